"""``eltwise trace``: the first node whose result differs between two runs of a model, although its inputs are equal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_many
from eltwise.cli.run import files_of_inputs, read_inputs
from eltwise.core.escaping import on_one_line
from eltwise.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from eltwise.formats.registry import Source
    from eltwise.model import Model


@click.command(cls=options.Command)
@click.argument("model", type=options.PATH, help="An .onnx or .xml file with any operators, or a .pt2 file of PyTorch.")
@click.argument(
    "other", type=options.PATH, required=False, help="Another model that is to mean the same, for the reference."
)
@options.runtime("The runtime that is tested, such as openvino, a function FILE.py:NAME or a recorded run.")
@options.runtime("The reference: a runtime such as onnxruntime, a recorded run, exact or float64.", name="--against")
@options.inputs
@options.tolerance
@options.seed
@click.option(
    "--segment",
    type=options.Integer(1),
    default=64,
    metavar="MIB",
    help="How much memory the values of a segment may take.",
)
@click.option("--limit", type=options.Number(0.1), default=120.0, metavar="SECONDS", help="Of one answer.")
@click.option("--switches/--no-switches", default=True, help="Where an output differs, try options that may mend it.")
@click.option(
    "--versions", metavar="LOW..HIGH", help="Where an output differs, find the version of the runtime that changed it."
)
@click.option("--all", "all_nodes", is_flag=True, help="Show every node, not 30 lines of them.")
@options.summary
@click.option(
    "--reproduce", type=options.OUTPUT_PATH, metavar="FOLDER", help="Write the node that is blamed as a case."
)
@options.json_file
@options.html_file
@options.sarif_file
@options.markdown_file
@click.option(
    "--model-explorer", type=options.PATH, metavar="FILE", help="Write the errors for Model Explorer, as JSON."
)
def trace(
    *,
    model: Path,
    other: Path | None,
    runtime: str,
    against: str,
    inputs: Sequence[str],
    tolerance: Sequence[str],
    seed: int,
    segment: int,
    limit: float,
    switches: bool,
    versions: str | None,
    all_nodes: bool,
    summary: bool,
    reproduce: Path | None,
    json: Path | None,
    html: Path | None,
    sarif: Path | None,
    markdown: Path | None,
    model_explorer: Path | None,
) -> ExitCode:
    """Run a model in two runtimes, compare every value and name the first node that is wrong by itself."""
    from eltwise.comparison.tolerance import tolerance_files
    from eltwise.formats.files import check_new_folder
    from eltwise.formats.registry import files_of
    from eltwise.tracing.trace import trace as trace_model

    if reproduce is not None:
        check_new_folder(reproduce)
    first, second, readable = _models(model, other, (runtime, against), limit)
    sources = [*files_of(readable.graph, model), *([other] if other else []), *map(Path, tolerance_files(tolerance))]
    sources += files_of_inputs(inputs)
    printing.check_outputs(sources, json, html, model_explorer, sarif, texts=[markdown])
    with progress_of_many() as progress:
        report = trace_model(
            first,
            second,
            runtime=runtime,
            against=against,
            inputs=read_inputs(readable.graph, inputs),
            tolerance=tolerance,
            seed=seed,
            segment=segment << 20,
            limit=limit,
            switches=switches,
            versions=versions or (),
            progress=progress,
        )
    command = f"eltwise trace --runtime {runtime} --against {against}"
    reports = ((json, report.to_json), (html, report.to_html), (model_explorer, report.to_model_explorer))
    if not printing.write_outputs(
        *reports, *printing.ci_outputs(report, model, command, sarif, markdown), added=markdown
    ):
        text = report.to_text(all_nodes=all_nodes, has_hint=reproduce is None)
        printing.lines(on_one_line(report.summary) if summary else text)
    if reproduce is not None and report.is_reproducible:
        from eltwise.conformance.reproduce import SCRIPT  # It loads much, and few traces write a case.

        report.reproduce(reproduce)
        printing.note(f"run: python {shlex.quote(str(reproduce / SCRIPT))}")
    elif reproduce is not None:
        printing.note(f"no case was written: no node is wrong as a model of its own in {runtime}")
    return report.exit_code


def _models(
    model: Path, other: Path | None, runtimes: tuple[str, str], limit: float
) -> tuple[Source | Model, Source | Model | None, Model]:
    """The model and the other one, and that of them, which is read, whose inputs the inputs are."""
    from eltwise.model import read
    from eltwise.tracing.program import is_program, with_export

    first, second = with_export(model, other, runtimes, limit)
    if is_program(first) and second is not None:  # The inputs are those of the model that was exported from it.
        readable = read(second, reads_weights=False)
        return first, readable, readable
    readable = read(first, reads_weights=False)
    return readable, second, readable
