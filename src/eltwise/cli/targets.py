"""``eltwise targets``: show the measured rules of each runtime, or measure them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_many
from eltwise.core.errors import AttributeValueError, counted, unknown_name
from eltwise.core.exit_codes import ExitCode
from eltwise.core.fields import plain

if TYPE_CHECKING:
    from eltwise.runtimes import Runtime
    from eltwise.targets.rules import RuleSet


@click.command(cls=options.Command)
@click.option("--refresh", is_flag=True, help="Measure the installed runtimes; takes some minutes for each.")
@click.option("--runtime", multiple=True, metavar="NAME", help="With --refresh: a runtime, such as onnxruntime.")
@click.option("--op", multiple=True, metavar="NAME", help="With --refresh: an operator version, such as Sub-14.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="With --refresh: an element type, such as uint8.")
@click.option("--table", type=options.PATH, metavar="FILE", help="A file of rules other than the one of the package.")
@options.json
def targets(
    refresh: bool,
    runtime: Sequence[str],
    op: Sequence[str],
    types: Sequence[str],
    table: Path | None,
    json: bool,
) -> ExitCode:
    """Show what was measured of each runtime, or measure it again and write the rules."""
    from eltwise.targets.rules import SHIPPED, read_rules, runtimes_in

    path = table or SHIPPED
    if refresh:
        for known in _chosen(runtime):
            if not _refresh(path, known, op, types):
                return ExitCode.INTERRUPTED
    else:
        options.refuse_on_command_line(("runtime", "op", "types"), "this says what is measured", "add --refresh")
    _show([read_rules(path, name) for name in runtimes_in(path)], json=json)
    return ExitCode.GOOD


def _chosen(names: Sequence[str]) -> list[Runtime]:
    """The runtimes with these names, all that rules are about if there are none."""
    from eltwise import runtimes
    from eltwise.targets.rules import SHIPPED, runtimes_in

    known = runtimes_in(SHIPPED)
    for name in names:
        if name not in known:
            raise unknown_name("runtime", name, known)
    return [runtimes.find(name) for name in names or known]


def _refresh(path: Path, runtime: Runtime, ops: Sequence[str], types: Sequence[str]) -> bool:
    """Measure a runtime, and tell whether that was done to its end; what was measured is written in any case."""
    from eltwise.core.dtypes import by_name
    from eltwise.formats import files
    from eltwise.ops import registry
    from eltwise.targets.measure import measure, requested
    from eltwise.targets.rules import read_rules, runtimes_in, write_rules

    files.check_writable(path)
    selected = requested(runtime, [str(registry.find(name)) for name in ops], [by_name(name).name for name in types])
    if not selected:
        hint = "`eltwise ops` says which types each operator version has"
        raise AttributeValueError(f"{runtime.name} has nothing of this to measure", hint=hint)
    known = read_rules(path, runtime.name) if path.exists() and runtime.name in runtimes_in(path) else None
    with progress_of_many() as progress:
        rules, left = measure(runtime, selected, progress, known)
    if rules.measured:
        write_rules(path, rules)
    if left:
        became = f"what was measured of {runtime.name} is in {path}; not run: {counted(left, 'test')}"
        nothing = f"nothing was measured of {runtime.name}, and {path} is as it was"
        printing.note(f"interrupted: {became if rules.measured else nothing}")
    return not left


def _show(known: list[RuleSet], *, json: bool) -> None:
    """Print of each runtime what was measured, and how many rules it has."""
    from eltwise.targets.rules import span

    if json:
        printing.json_text("rules", {"runtimes": [_fields(rules) for rules in known]})
        return
    rows = [(one.runtime, one.number, span(one.opsets), str(len(one.rules)), one.machine) for one in known]
    printing.table(("runtime", "version", "opsets", "rules", "machine"), rows, folding="machine")


def _fields(rules: RuleSet) -> dict[str, object]:
    from eltwise.targets.rules import SEVERITIES

    fields: dict[str, object] = plain(replace(rules, measured=frozenset(), rules=()))
    del fields["measured"]
    counts = Counter(rule.severity for rule in rules.rules)
    return {**fields, "subjects": len(rules.measured), "rules": {name: counts[name] for name in SEVERITIES}}
