"""Results out of a file, checked as a whole: nothing that is read here is taken on trust."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from pathlib import Path

from eltwise.conformance.cells import VERDICTS, Cell, Example, Shown, StoredCase, StoredOperand
from eltwise.conformance.json_fields import Fields, read_object
from eltwise.conformance.paths import PATHS
from eltwise.conformance.results import EXTENTS, Results
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.ops import registry

_RULES = ("none", "numpy", "pdpd", "legacy")
_RUN = {each.name: each for each in TYPES if each.runs}


def read_results(path: Path) -> Results:
    """Read results from a file.

    Raises:
        FileFormatError: where there is no such file or it holds no results, with the place in it.
    """
    try:
        return results_of(read_object(path))
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def results_of(fields: Fields) -> Results:
    """Read results from the object that a results file holds.

    Raises:
        EltwiseError: naming the cell and the field that cannot be read.
    """
    cells = tuple(cell_of(item) for item in fields.items("cells", "cell"))
    _refuse_repeated(cell.key for cell in cells)
    return Results(
        cells,
        machine=fields.text("machine", ""),
        date=fields.text("date", ""),
        seed=fields.count("seed", 0),
        extent=fields.choice("extent", EXTENTS, "usual"),
        interrupted=fields.flag("interrupted"),
        versions=fields.texts("versions"),
    )


def cell_of(fields: Fields) -> Cell:
    """Read one cell."""
    op = fields.text("op")
    registry.find(op)
    return Cell(
        runtime=fields.text("runtime"),
        version=fields.text("version", ""),
        op=op,
        dtype=_element_type(fields).name,
        broadcast=fields.choice("broadcast", _RULES),
        path=fields.choice("path", PATHS),
        verdict=fields.choice("verdict", VERDICTS),
        explanation=fields.text("explanation", ""),
        wrong=fields.count("wrong", 0),
        total=fields.count("total", 0),
        example=_example(fields.inner("example")) if fields.has("example") else None,
        message=fields.text("message", ""),
        case=_case(fields.inner("case")) if fields.has("case") else None,
    )


def _refuse_repeated(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise FileFormatError("a cell is there twice", got=key)
        seen.add(key)


def _element_type(fields: Fields) -> ElementType:
    found = _RUN.get(fields.text("dtype"))
    if found is None:
        raise fields.error("dtype", ", ".join(_RUN))
    return found


def _example(fields: Fields) -> Example:
    expected, got = (_shown(fields.inner(name)) if fields.has(name) else None for name in ("expected", "got"))
    return Example(_shown(fields.inner("a")), _shown(fields.inner("b")), expected, got)


def _shown(fields: Fields) -> Shown:
    return Shown(fields.text("value"), fields.text("bits"))


def _case(fields: Fields) -> StoredCase:
    attributes = fields.inner("attributes")
    given = tuple((name, _attribute(attributes, name)) for name in attributes)
    got = _operand(fields.inner("got")) if fields.has("got") else None
    beside = _case(fields.inner("beside")) if fields.has("beside") else None
    return StoredCase(given, _operand(fields.inner("a")), _operand(fields.inner("b")), got, beside)


def _attribute(fields: Fields, name: str) -> object:
    value = fields.value(name)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value)
    if not isinstance(value, int | str):
        raise fields.error(name, "a whole number, a text or whole numbers")
    return value


def _operand(fields: Fields) -> StoredOperand:
    element_type = _element_type(fields)
    shape = fields.counts("shape")
    bits = fields.patterns("bits", element_type.bits)
    if len(bits) != prod(shape):
        raise fields.error("bits", f"{prod(shape)} patterns for the shape {list(shape)}")
    return StoredOperand(element_type, shape, bits)
