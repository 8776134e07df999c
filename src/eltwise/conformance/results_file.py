"""Results out of a file, which somebody else may have written: every field is checked when it is read."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from pathlib import Path

from eltwise.conformance.cases import LETTERS
from eltwise.conformance.contexts import SOURCE_NAMES
from eltwise.conformance.json_fields import Fields, read_object
from eltwise.conformance.results import (
    EXTENTS,
    OUTCOMES,
    Example,
    Results,
    Shown,
    StoredArray,
    StoredCase,
    TestResult,
)
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.ops import registry
from eltwise.runtimes.registry import RULES

_RUN = {each.name: each for each in TYPES if each.runs}


def read_results(path: Path) -> Results:
    """Read results from a file.

    Raises:
        FileFormatError: if there is no such file or it does not hold results, with the place in it.
    """
    try:
        return results_of(read_object(path))
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def results_of(fields: Fields) -> Results:
    """Read results from the object that a results file holds.

    Raises:
        EltwiseError: naming the test and the field that cannot be read.
    """
    tests = tuple(_test(item) for item in fields.items("cells", "cell"))
    _refuse_repeated(test.key for test in tests)
    return Results(
        tests,
        machine=fields.text("machine", ""),
        date=fields.text("date", ""),
        seed=fields.count("seed", 0),
        extent=fields.choice("extent", EXTENTS, "usual"),
        interrupted=fields.flag("interrupted"),
        versions=fields.texts("versions"),
    )


def _test(fields: Fields) -> TestResult:
    op = fields.text("op")
    registry.find(op)
    return TestResult(
        runtime=fields.text("runtime"),
        version=fields.text("version", ""),
        op=op,
        dtype=_element_type(fields).name,
        broadcast=fields.choice("broadcast", RULES),
        source=fields.choice("path", SOURCE_NAMES),
        outcome=fields.choice("verdict", OUTCOMES),
        reasons=_reasons(fields),
        wrong=fields.count("wrong", 0),
        total=fields.count("total", 0),
        example=_example(fields.inner("example")) if fields.has("example") else None,
        message=fields.text("message", ""),
        case=_case(fields.inner("case")) if fields.has("case") else None,
        words=fields.text("words", fields.text("message", "")),
    )


def _reasons(fields: Fields) -> tuple[tuple[str, ...], ...]:
    """The fault models by name; a file of an earlier version has them only as text."""
    text = fields.text("explanation", "")
    if not fields.has("faults"):
        return ((text,),) if text else ()
    return tuple(fields.lists_of_words("faults"))


def _refuse_repeated(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise FileFormatError("a cell occurs twice", got=key)
        seen.add(key)


def _element_type(fields: Fields) -> ElementType:
    found = _RUN.get(fields.text("dtype"))
    if found is None:
        raise fields.error("dtype", ", ".join(_RUN))
    return found


def _example(fields: Fields) -> Example:
    operands = tuple(_shown(fields.inner(name)) for name in LETTERS if fields.has(name))
    expected, got = (_shown(fields.inner(name)) if fields.has(name) else None for name in ("expected", "got"))
    return Example(operands, expected, got)


def _shown(fields: Fields) -> Shown:
    return Shown(fields.text("value"), fields.text("bits"))


def _case(fields: Fields) -> StoredCase:
    attributes = fields.inner("attributes")
    operands = tuple(_array(fields.inner(name)) for name in LETTERS if fields.has(name))
    if not operands:
        raise fields.error("a", "an operand")
    return StoredCase(
        tuple((name, _attribute(attributes, name)) for name in attributes),
        operands,
        _array(fields.inner("got")) if fields.has("got") else None,
        _case(fields.inner("beside")) if fields.has("beside") else None,
    )


def _attribute(fields: Fields, name: str) -> object:
    value = fields.value(name)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value)
    if not isinstance(value, int | str):
        raise fields.error(name, "an integer, a string or a list of integers")
    return value


def _array(fields: Fields) -> StoredArray:
    element_type = _element_type(fields)
    shape = fields.counts("shape")
    bits = fields.patterns("bits", element_type.bits)
    if len(bits) != prod(shape):
        raise fields.error("bits", f"{prod(shape)} patterns for the shape {list(shape)}")
    return StoredArray(element_type, shape, bits)
