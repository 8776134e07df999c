"""The oracle: slow and exact results of every function under every broadcast rule, to compare with.

It shares nothing with the engine but the table of element types: the numbers are those of ``numbers``, what is computed
with them is in ``functions``, the index arithmetic is written here. NumPy holds bits and Python's integers, and applies
Python's arithmetic to them.
Sources: ONNX's Broadcasting page and the texts of its operators; OpenVINO's broadcast rules and operation
specifications. What they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.oracle.functions import BINARY, COMPARISONS, OF_ANY_NUMBER, OF_BOOLEANS, UNARY, UndefinedError
from eltwise.oracle.numbers import is_nan

RuleName = Literal["none", "numpy", "pdpd", "legacy"]
Sizes = tuple[int, ...]

_BY_STORAGE = {each.numpy: each for each in TYPES if each.numpy is not None}


class OracleRefusal(ValueError):  # noqa: N818 - the oracle refuses a combination; it has not gone wrong itself
    """The specification makes this combination of types, shapes and axis an error."""


@dataclass(frozen=True)
class Placement:
    """Where the operands lie in the result.

    Attributes:
        shape: the shape of the result.
        a_start: the dimension of the result that A's first dimension lies on.
        b_start: the same for B.
    """

    shape: Sizes
    a_start: int
    b_start: int


def evaluate(
    function: str,
    *operands: npt.NDArray[Any],
    rule: RuleName,
    axis: int = -1,
    enabled: bool = True,
) -> npt.NDArray[Any]:
    """Compute a function of the operands exactly, element by element.

    Args:
        function: what to compute; both steps of the squared difference are rounded to the element type.
        *operands: of one numeric element type that runs, with any strides and byte order; one operand, two, or for
            maxima and minima any number.
        rule: the broadcast rule.
        axis: for ``pdpd`` and ``legacy``, the dimension of A that B starts at; -1 aligns the ends.
        enabled: for ``legacy``, whether ``broadcast=1`` was given; without it the shapes must be equal.

    Returns:
        A new C-contiguous array in native byte order, with the shape that the rule gives: of the operands' type, or of
        booleans where the function is a comparison.

    Raises:
        OracleRefusal: where the types differ, are no numbers, or do not run; where the shapes do not broadcast; where
            the axis is out of range; where an integer is divided by 0.
        ValueError: for a function or rule that does not exist, or another number of operands.

    >>> evaluate("subtract", np.array([[1], [2]], np.uint8), np.array([1, 2], np.uint8), rule="numpy").tolist()
    [[0, 255], [1, 0]]
    """
    if function not in UNARY | BINARY:
        raise ValueError(f"there is no function {function!r}")
    if len(operands) != (1 if function in UNARY else 2) and not (function in OF_ANY_NUMBER and operands):
        raise ValueError(f"{function} does not take {len(operands)} operands")
    element_type = _common_type(operands, function in OF_BOOLEANS)
    shape, starts = place_all(rule, [operand.shape for operand in operands], axis, enabled)
    bits = [
        np.array(bits_of(operand), object)[_flat_positions(shape, operand.shape, start)]
        for operand, start in zip(operands, starts, strict=True)
    ]
    compute = partial((UNARY | BINARY)[function], element_type)
    try:
        results = reduce(compute, bits) if function in OF_ANY_NUMBER else compute(*bits)
    except UndefinedError:
        raise OracleRefusal("an integer is divided by 0, of which no specification gives the result") from None
    return array_of(BOOL if function in COMPARISONS else element_type, results, shape)


def place_all(
    rule: RuleName, shapes: Sequence[Sizes], axis: int = -1, enabled: bool = True
) -> tuple[Sizes, tuple[int, ...]]:
    """The shape of the result and the dimension that each operand starts at; the rest is as for ``place``.

    >>> place_all("numpy", [(3,), (2, 1), ()])
    ((2, 3), (1, 0, 2))
    """
    if len(shapes) == 2:
        placement = place(rule, shapes[0], shapes[1], axis, enabled)
        return placement.shape, (placement.a_start, placement.b_start)
    if rule not in ("none", "numpy"):
        raise ValueError(f"{rule} broadcasts two operands, not {len(shapes)}")
    shape = shapes[0]
    for other in shapes[1:]:
        shape = place(rule, shape, other).shape
    return shape, tuple(len(shape) - len(operand_shape) for operand_shape in shapes)


def place(rule: RuleName, a: Sizes, b: Sizes, axis: int = -1, enabled: bool = True) -> Placement:
    """Apply a broadcast rule to the shapes of A and B; the arguments and errors are those of ``evaluate``.

    >>> place("legacy", (2, 3, 4, 5), (3, 4), axis=1)
    Placement(shape=(2, 3, 4, 5), a_start=0, b_start=1)
    """
    if rule == "numpy":
        return _place_numpy(a, b)
    if rule == "pdpd":
        return _place_pdpd(a, b, axis)
    if rule == "legacy" and enabled:
        return _place_legacy(a, b, axis)
    if rule not in ("none", "legacy"):
        raise ValueError(f"there is no broadcast rule {rule!r}")
    if a != b:
        raise OracleRefusal(f"A has shape {a} and B {b}; without broadcasting they must be equal")
    return Placement(a, 0, 0)


def bits_of(array: npt.NDArray[Any]) -> list[int]:
    """Read the bit patterns of an array's elements in C order; the 4-bit types hold theirs in a byte's low half.

    Raises:
        OracleRefusal: for a type that is not an element type that runs.
    """
    element_type = element_type_of(array)
    unsigned = np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)
    patterns: list[int] = np.frombuffer(array.reshape(-1).tobytes(), unsigned).tolist()
    unused = (1 << 8 * array.dtype.itemsize) - (1 << element_type.bits)
    return [pattern & ~unused for pattern in patterns] if unused else patterns


def array_of(element_type: ElementType, bits: Iterable[int], shape: Sizes | None = None) -> npt.NDArray[Any]:
    """Make a native C-contiguous array from bit patterns in C order, one-dimensional where no shape is given."""
    unsigned = np.array(list(bits), np.dtype(f"u{element_type.storage.itemsize}"))
    array = unsigned.view(element_type.storage)
    return array if shape is None else array.reshape(shape)


def same_bits(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    """Whether two arrays agree in type, byte order, shape and every element; any NaN equals any NaN, -0 is not +0."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    return not differences(got, expected)


def differences(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> list[int]:
    """Find the flat C-order positions at which two arrays differ, by the measure of ``same_bits``.

    Raises:
        ValueError: where the types or shapes differ, since then no elements correspond.
    """
    if got.dtype != expected.dtype or got.shape != expected.shape:
        raise ValueError(f"got {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}")
    element_type = element_type_of(expected)
    pairs = zip(bits_of(got), bits_of(expected), strict=True)
    return [
        position
        for position, (one, other) in enumerate(pairs)
        if one != other and not (is_nan(element_type, one) and is_nan(element_type, other))
    ]


def element_type_of(array: npt.NDArray[Any]) -> ElementType:
    """The element type of an array, in either byte order.

    Raises:
        OracleRefusal: for a dtype that is not an element type that runs.
    """
    element_type = _BY_STORAGE.get(array.dtype.newbyteorder("="))
    if element_type is None:
        raise OracleRefusal(f"{array.dtype} is no element type that runs")
    return element_type


def _common_type(operands: Sequence[npt.NDArray[Any]], takes_booleans: bool) -> ElementType:
    element_type, *others = map(element_type_of, operands)
    for other in others:
        if other is not element_type:
            raise OracleRefusal(f"the operands are {element_type} and {other}; all must have one type")
    if not element_type.is_numeric and not (takes_booleans and element_type is BOOL):
        raise OracleRefusal(f"{element_type} is no numeric type")
    return element_type


def _place_numpy(a: Sizes, b: Sizes) -> Placement:
    rank = max(len(a), len(b))
    a_start, b_start = rank - len(a), rank - len(b)
    padded_a, padded_b = (1,) * a_start + a, (1,) * b_start + b
    return Placement(tuple(map(_joined_size, padded_a, padded_b)), a_start, b_start)


def _place_pdpd(a: Sizes, b: Sizes, axis: int) -> Placement:
    start = _start_of_run(a, b, axis)
    shape = list(a)
    for dimension, size in enumerate(b, start):
        if size > a[dimension]:
            raise OracleRefusal(f"dimension {dimension}: B's {size} is larger than A's {a[dimension]}")
        shape[dimension] = _joined_size(a[dimension], size)
    return Placement(tuple(shape), 0, start)


def _place_legacy(a: Sizes, b: Sizes, axis: int) -> Placement:
    _refuse_larger_rank(a, b)
    if a == b or all(size == 1 for size in b):
        return Placement(a, 0, len(a) - len(b))
    start = _start_of_run(a, b, axis)
    for position, size in enumerate(b):
        expected = a[start + position]
        if size == expected:
            continue
        if size != 1:
            raise OracleRefusal(f"dimension {start + position}: A has {expected} and B {size}")
        if any(before != 1 for before in b[:position]) and any(after != 1 for after in b[position:]):
            raise OracleRefusal(f"dimension {start + position}: a 1 between B's other dimensions does not expand")
    return Placement(a, 0, start)


def _start_of_run(a: Sizes, b: Sizes, axis: int) -> int:
    """The dimension of A that B starts at, where B lies wholly inside A."""
    _refuse_larger_rank(a, b)
    start = len(a) - len(b) if axis == -1 else axis
    if start < 0 or start + len(b) > len(a):
        raise OracleRefusal(f"axis {axis} is out of range for B of rank {len(b)} in A of rank {len(a)}")
    return start


def _refuse_larger_rank(a: Sizes, b: Sizes) -> None:
    if len(b) > len(a):
        raise OracleRefusal(f"B's rank {len(b)} is larger than A's rank {len(a)}")


def _joined_size(a: int, b: int) -> int:
    """The size that two sizes broadcast to when a 1 of either side expands."""
    if b in (a, 1):
        return a
    if a == 1:
        return b
    raise OracleRefusal(f"sizes {a} and {b} do not broadcast")


@lru_cache(1024)
def _flat_positions(shape: Sizes, operand: Sizes, start: int) -> npt.NDArray[np.intp]:
    """Where the elements that an operand has for those of the result lie, both in C order; a size of 1 repeats."""
    positions = [0]
    for dimension, size in enumerate(shape):
        stored = operand[dimension - start] if start <= dimension < start + len(operand) else 1
        positions = [
            position * stored + (index if stored > 1 else 0) for position in positions for index in range(size)
        ]
    return np.array(positions, np.intp)
