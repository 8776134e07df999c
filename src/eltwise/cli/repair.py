"""``eltwise repair``: rewrite the nodes that a runtime refuses or computes incorrectly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from eltwise.cli import options, printing
from eltwise.cli.check import RUNNING
from eltwise.cli.progress import progress_of_bytes, waiting
from eltwise.cli.run import read_input_sets
from eltwise.core.exit_codes import ExitCode


@click.command(cls=options.Command)
@options.source
@click.argument("out", type=options.OUTPUT_PATH, metavar="OUT", help="The file to write, of the same format.")
@click.option(
    "--target", required=True, metavar="RUNTIME", help="onnxruntime or openvino; with --precision any runtime."
)
@click.option(
    "--allow", multiple=True, metavar="FAULT", help="Accept a fault, by the name that check --target gives it."
)
@click.option(
    "--run/--no-run",
    default=None,
    help="Compare OUT with IN on the runtime; by default if it is installed and nothing is allowed.",
)
@click.option(
    "--severity",
    metavar="LEAST",
    default="wrong values",
    help=f"The least severity that is repaired: {options.SEVERITIES}.",
)
@click.option(
    "--precision",
    metavar="TYPE",
    help="Rewrite for float16 instead, with the fewest nodes in float32 that keep the outputs within the tolerance.",
)
@options.input_sets
@options.tolerance
@options.seed
@click.option(
    "--limit", type=options.Number(0.1), default=120.0, metavar="SECONDS", help="Of one answer, with --precision."
)
@options.in_place
@options.json
def repair(
    *,
    source: Path,
    out: Path,
    target: str,
    allow: Sequence[str],
    run: bool | None,
    severity: str,
    precision: str | None,
    inputs: Sequence[str],
    tolerance: Sequence[str],
    seed: int,
    limit: float,
    in_place: bool,
    json: bool,
) -> ExitCode:
    """Rewrite exactly the nodes that a runtime refuses or computes incorrectly, or refuse with every reason.

    Exit 3 if the bits were to be compared and could not be; OUT is written then.
    """
    from eltwise.model import read
    from eltwise.targets.check import input_sets
    from eltwise.targets.deployed import Inputs
    from eltwise.targets.plan import target_named
    from eltwise.targets.repair import repair_file
    from eltwise.targets.rules import severity_named

    if precision is None:
        problem = "this is of a rewrite for another precision"
        options.refuse_on_command_line(("inputs", "tolerance", "seed", "limit"), problem, "add --precision float16")
    else:
        problem = "a rewrite for another precision repairs no faults"
        options.refuse_on_command_line(("severity",), problem, "leave it out, or --precision")
    graph = read(source, reads_weights=False).graph if inputs else None
    sets = {} if graph is None else input_sets(graph, read_input_sets(graph, inputs))
    is_run = run if run is not None else not allow
    with waiting(RUNNING) if is_run or precision else progress_of_bytes() as progress:
        report = repair_file(
            source,
            out,
            target=target if precision else target_named(target),
            allow=allow,
            run=run,
            severity=severity_named(severity),
            in_place=in_place,
            precision=precision,  # type: ignore[arg-type]
            inputs=Inputs(sets, tolerance or None, seed),
            limit=limit,
            progress=progress,
        )
    printing.report(report, as_json=json)
    return report.exit_code
