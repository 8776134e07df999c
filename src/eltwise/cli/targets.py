"""``eltwise targets``: show the measured rules of each runtime, or measure them again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_many
from eltwise.core.errors import AttributeValueError, unknown_name

if TYPE_CHECKING:
    from eltwise.runtimes import Runtime
    from eltwise.targets.measure import Request
    from eltwise.targets.rules import RuleSet


def targets(
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Measure the installed runtimes; takes many minutes.")
    ] = False,
    runtime: Annotated[
        list[str] | None,
        typer.Option("--runtime", metavar="NAME", help="With --refresh: a runtime, such as onnxruntime."),
    ] = None,
    op: Annotated[
        list[str] | None,
        typer.Option("--op", metavar="NAME", help="With --refresh: an operator version, such as Sub-14."),
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="With --refresh: an element type, such as uint8.")
    ] = None,
    missing: Annotated[
        bool,
        typer.Option("--missing", help="With --refresh: measure only what the rules of this version do not cover."),
    ] = False,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="A file of rules other than the one of the package.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was measured of each runtime, or measure it again and write the rules."""
    from eltwise.targets.rules import SHIPPED, read_rules, runtimes_in

    path = table or SHIPPED
    if refresh:
        _refresh(path, runtime, _request(op, type_), only_missing=missing)
    elif runtime or op or type_ or missing:
        raise AttributeValueError("--runtime, --op, --type and --missing say what is measured", hint="add --refresh")
    _show([read_rules(path, name) for name in runtimes_in(path)], json=json)


def _request(op: list[str] | None, type_: list[str] | None) -> Request:
    from eltwise.core.dtypes import by_name
    from eltwise.ops import registry
    from eltwise.targets.measure import Request

    ops = tuple(str(registry.find(name)) for name in op or ())
    return Request(ops, tuple(by_name(name).name for name in type_ or ()))


def _refresh(path: Path, names: list[str] | None, request: Request, *, only_missing: bool) -> None:
    """Measure runtimes one after the other; what was measured is written also where Ctrl-C ends it."""
    from eltwise.formats import files
    from eltwise.targets.measure import measure
    from eltwise.targets.rules import read_rules, runtimes_in, write_rules

    chosen = _runtimes(names, request)
    files.check_writable(path)
    for runtime in chosen:
        known = read_rules(path, runtime.name) if path.exists() and runtime.name in runtimes_in(path) else None
        with progress_of_many() as tell:
            outcome = measure(runtime, request, tell, known, only_missing=only_missing)
        if not outcome.rules.measured:
            printing.note(f"interrupted: nothing was measured of {runtime.name}, and {path} is as it was")
            raise typer.Exit(130)
        write_rules(path, outcome.rules)
        if outcome.left:
            printing.note(
                f"interrupted: what was measured of {runtime.name} is in {path}; {outcome.left} tests were not run"
            )
            raise typer.Exit(130)


def _runtimes(names: list[str] | None, request: Request) -> list[Runtime]:
    """The runtimes that are meant and have something of what is asked."""
    from eltwise import runtimes
    from eltwise.targets.measure import requested
    from eltwise.targets.plan import TARGETS, runtime_named

    known = [name for of_target in TARGETS.values() for name in of_target.values()]
    for name in names or ():
        if name not in known:
            raise unknown_name("runtime", name, known)
    found = [runtimes.find(name) for name in names or known if requested(runtime_named(name), request)]
    if not found:
        hint = "`eltwise ops` says which types each operator version has"
        raise AttributeValueError("nothing is left to measure", hint=hint)
    return found


def _show(known: list[RuleSet], *, json: bool) -> None:
    """Print of each runtime what was measured, and how many rules of each severity it has."""
    from eltwise.targets.rules import SEVERITIES

    if json:
        printing.json_text([_fields(rules) for rules in known])
        return
    wide = (*reversed(SEVERITIES), "machine") if printing.is_wide() else ()
    made = printing.table("runtime", "version", "opsets", "rules", *wide, folding=wide[-1] if wide else "version")
    for rules in known:
        counts = _counts(rules)
        cells = {**{name: str(count or "") for name, count in counts.items()}, "machine": rules.machine}
        total = str(len(rules.rules))
        made.add_row(rules.runtime, rules.number, _span(rules.opsets), total, *(cells[name] for name in wide))
    printing.show(made)


def _fields(rules: RuleSet) -> dict[str, object]:
    said = {name: getattr(rules, name) for name in ("runtime", "version", "machine", "date")}
    versions = {"opsets": list(rules.opsets), "file_versions": list(rules.file_versions)}
    measured = len({(op, kind, broadcast) for op, kind, broadcast, _rewrite in rules.measured})
    return said | versions | {"subjects": measured, "rules": _counts(rules)}


def _counts(rules: RuleSet) -> dict[str, int]:
    from eltwise.targets.rules import SEVERITIES

    counts = Counter(rule.severity for rule in rules.rules)
    return {severity: counts[severity] for severity in SEVERITIES}


def _span(numbers: tuple[int, ...]) -> str:
    """Numbers that follow each other as a span.

    >>> _span((1, 2, 3)), _span((1, 3)), _span(())
    ('1 to 3', '1, 3', '')
    """
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
