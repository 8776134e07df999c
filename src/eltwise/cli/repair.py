"""``eltwise repair``: rewrite the nodes that a runtime refuses or computes incorrectly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from eltwise.cli import options, printing
from eltwise.cli.check import RUNNING
from eltwise.cli.progress import progress_of_bytes, waiting


@click.command(cls=options.Command)
@options.source
@click.argument("out", type=options.PATH, metavar="OUT", help="The file to write, of the same format.")
@click.option("--target", required=True, metavar="RUNTIME", help="onnxruntime or openvino.")
@click.option(
    "--allow", multiple=True, metavar="FAULT", help="Accept a fault, by the name that check --target gives it."
)
@click.option("--verify", is_flag=True, help="Run OUT on the runtime and compare it with IN before it is written.")
@click.option(
    "--severity",
    metavar="LEAST",
    default="wrong values",
    help="The least severity that is repaired: refused, wrong, precision or sign.",
)
@options.in_place
@options.json
def repair(
    source: Path, out: Path, target: str, allow: Sequence[str], verify: bool, severity: str, in_place: bool, json: bool
) -> None:
    """Rewrite exactly the nodes that a runtime refuses or computes incorrectly, or refuse with every reason."""
    from eltwise.targets.plan import target_named
    from eltwise.targets.repair import repair_file
    from eltwise.targets.rules import severity_named

    with waiting(RUNNING) if verify else progress_of_bytes() as progress:
        report = repair_file(
            source,
            out,
            target=target_named(target),
            allow=allow,
            verify=verify,
            severity=severity_named(severity),
            in_place=in_place,
            progress=progress,
        )
    printing.report(report, as_json=json)
