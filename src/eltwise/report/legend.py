"""How verdicts, counts and cells are written, the same in the page and in the document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eltwise.conformance.cells import VERDICTS, Cell, Shown, Verdict
from eltwise.conformance.results import Results
from eltwise.core.dtypes import TYPES
from eltwise.ops import registry


@dataclass(frozen=True)
class Sign:
    """How a verdict is shown: a mark that needs no colour, and what it means of a runtime."""

    mark: str
    meaning: str


SIGNS: dict[Verdict, Sign] = {
    "ok": Sign("✓", "every bit is right"),
    "refused": Sign("R", "refuses what is allowed"),
    "accepted": Sign("A", "takes what must be refused"),
    "differs": Sign("≠", "gives other bits"),
    "hung": Sign("H", "gives no answer in time"),
    "crashed": Sign("✗", "its process ends"),
}


def worst(cells: Iterable[Cell]) -> Verdict:
    """The worst verdict of some cells."""
    return max((cell.verdict for cell in cells), key=VERDICTS.index)


def runtimes_of(cells: Iterable[Cell]) -> dict[str, str]:
    """The runtimes with their versions, in the order of the results."""
    return {cell.runtime: cell.version for cell in cells}


def operators_of(cells: Iterable[Cell]) -> list[str]:
    """The versioned names in the order of the catalog."""
    return _ordered((cell.op for cell in cells), [schema.versioned_name for schema in registry.ELEMENTWISE])


def types_of(cells: Iterable[Cell]) -> list[str]:
    """The element types in the order of the table of types."""
    return _ordered((cell.dtype for cell in cells), [each.name for each in TYPES])


def _ordered(names: Iterable[str], order: Sequence[str]) -> list[str]:
    present = set(names)
    return [name for name in order if name in present]


def counted(count: int, thing: str) -> str:
    """A number with its thing.

    >>> counted(1, "cell"), counted(65536, "element")
    ('1 cell', '65,536 elements')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["int8"]), listed(["int8", "uint8", "int64"])
    ('int8', 'int8, uint8 and int64')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def both_ways(shown: Shown) -> str:
    """An element in decimal and bits."""
    return f"{shown.value} ({shown.bits})"


def call_of(cell: Cell) -> str:
    """The attributes and shapes of a cell's smallest failing case; empty where it has none."""
    if cell.case is None:
        return ""
    attributes = [f"{name}={value}" for name, value in cell.case.attributes]
    operands = [
        f"{letter} of shape ({', '.join(map(str, operand.shape))})"
        + ("" if operand.element_type.name == cell.dtype else f" and type {operand.element_type}")
        for letter, operand in (("A", cell.case.a), ("B", cell.case.b))
    ]
    return listed([*attributes, *operands])


def first_line(message: str, longest: int = 240) -> str:
    """The first line of a message that says something, cut where it is very long."""
    line = next((text.strip() for text in message.splitlines() if text.strip()), "")
    return line if len(line) <= longest else f"{line[: longest - 3].rstrip()}..."


def summary(results: Results) -> str:
    """The whole in one sentence."""
    cells = results.cells
    runtimes = counted(len(runtimes_of(cells)), "runtime")
    right = sum(cell.verdict == "ok" for cell in cells)
    stopped = " It was interrupted: the rest is missing." if results.interrupted else ""
    return f"{counted(len(cells), 'cell')} of {runtimes}: {right:,} right, {len(cells) - right:,} not.{stopped}"


def facts(results: Results) -> list[tuple[str, str]]:
    """When and where it was measured, and with what."""
    versions = dict(results.versions) or {name: text for name, text in runtimes_of(results.cells).items() if text}
    found = [
        ("measured", results.date),
        ("on", results.machine),
        ("extent", results.extent),
        ("seed", str(results.seed)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]
    return [(name, text) for name, text in found if text]
