"""``eltwise check``: report the problems of a model, or what a runtime computes differently."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import waiting
from eltwise.cli.run import read_input_sets
from eltwise.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from eltwise.targets.problems import ProblemsReport
    from eltwise.targets.report import TargetReport

RUNNING = "running the model"
_OF_RUNS = ("run", "severity", "inputs", "tolerance", "seed")
"""The options that need a runtime."""


@click.command(cls=options.Command)
@click.argument("model", type=options.PATH, help="An .onnx or .xml file.")
@click.option("--target", metavar="RUNTIME", help="Check for a runtime: onnxruntime or openvino, or a recorded run.")
@click.option("--run/--no-run", default=True, help="With --target: run the model there if the runtime is installed.")
@click.option(
    "--severity",
    metavar="LEAST",
    help=f"With --target: the least severity that counts: {options.SEVERITIES}.",
)
@options.input_sets
@options.tolerance
@options.seed
@options.summary
@options.json
@options.sarif_file
@options.markdown_file
def check(
    *,
    model: Path,
    target: str | None,
    run: bool,
    severity: str | None,
    inputs: Sequence[str],
    tolerance: Sequence[str],
    seed: int,
    summary: bool,
    json: bool,
    sarif: Path | None,
    markdown: Path | None,
) -> ExitCode:
    """Report every problem of a model, or whether it computes the same on a runtime.

    Exit 1 if there is a problem, and 3 if nothing was found and the outputs could not be compared.
    """
    printing.check_outputs([model], sarif, texts=[markdown], is_printed=json)
    report: ProblemsReport | TargetReport
    if target is None:
        options.refuse_on_command_line(_OF_RUNS, "nothing is run without a runtime", "add --target RUNTIME")
        report = _problems(model)
    else:
        report = _check_target(model, target, run, severity, (inputs, tolerance, seed))
    command = "eltwise check" if target is None else f"eltwise check --target {target}"
    if not printing.write_outputs(*printing.ci_outputs(report, model, command, sarif, markdown), added=markdown):
        printing.report(report, as_json=json, is_summary=summary)
    return report.exit_code


def _problems(path: Path) -> ProblemsReport:
    """What is wrong with a model, whatever runs it."""
    from eltwise.targets.problems import problems_of

    return replace(problems_of(path), name=path.name)


def _check_target(
    path: Path,
    target: str,
    run: bool,
    severity: str | None,
    run_inputs: tuple[Sequence[str], Sequence[str], int],
) -> TargetReport:
    """What a runtime does with a model."""
    from eltwise.model import read
    from eltwise.targets.check import check as check_on
    from eltwise.targets.rules import DEFAULT_SEVERITY, severity_named

    texts, tolerance, seed = run_inputs
    least = severity_named(severity) if severity else DEFAULT_SEVERITY
    model = read(path, reads_weights=False)
    arrays = read_input_sets(model.graph, texts) if texts else None
    with waiting(RUNNING) if run else nullcontext():
        return check_on(
            model,
            target,
            run=run,
            severity=least,
            inputs=arrays,
            tolerance=tolerance,
            seed=seed,
        )
