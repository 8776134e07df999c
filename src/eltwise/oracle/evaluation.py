"""The oracle: slow and exact results of every formula under every broadcast rule, to judge engines and runtimes by.

It shares nothing with the engine but the table of element types: the numbers are those of ``oracle_numbers``, the
index arithmetic is written here, element by element, and NumPy only holds the bits.
Sources: ONNX's Broadcasting page and the texts of Sub, Add and Mul in versions 1 to 14; OpenVINO's broadcast
rules and the texts of Subtract-1, SquaredDifference-1, Add-1 and Multiply-1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import TYPES, ElementType
from eltwise.oracle.numbers import add, is_nan, multiply, squared_difference, subtract

__all__ = [
    "OracleRefusal",
    "RuleName",
    "add",
    "array_of",
    "bits_of",
    "differences",
    "evaluate",
    "multiply",
    "same_bits",
    "squared_difference",
    "subtract",
]

RuleName = Literal["none", "numpy", "pdpd", "legacy"]
Sizes = tuple[int, ...]

_KEPT = 1 << 15
"""So many results of each formula are kept: the same hard values meet again in other shapes."""

_FORMULAS: dict[str, Callable[[ElementType, int, int], int]] = {
    "subtract": lru_cache(_KEPT)(subtract),
    "squared_difference": lru_cache(_KEPT)(squared_difference),
    "add": lru_cache(_KEPT)(add),
    "multiply": lru_cache(_KEPT)(multiply),
}
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
    formula: str,
    a: npt.NDArray[Any],
    b: npt.NDArray[Any],
    rule: RuleName,
    axis: int = -1,
    enabled: bool = True,
) -> npt.NDArray[Any]:
    """Compute a - b, (a - b) * (a - b), a + b or a * b exactly, element by element.

    Args:
        formula: what to compute; both steps of the squared difference are rounded to the element type.
        a: the first operand, of any numeric element type that runs, with any strides and byte order.
        b: the second operand, of the same element type.
        rule: the broadcast rule.
        axis: for ``pdpd`` and ``legacy``, the dimension of A that B starts at; -1 aligns the ends.
        enabled: for ``legacy``, whether ``broadcast=1`` was given; without it the shapes must be equal.

    Returns:
        A new C-contiguous array of the operands' type in native byte order, with the shape that the rule gives.

    Raises:
        OracleRefusal: where the types differ, are no numbers, or do not run; where the shapes do not broadcast; where
            the axis is out of range.
        ValueError: for a formula or rule that does not exist.

    >>> evaluate("subtract", np.array([[1], [2]], np.uint8), np.array([1, 2], np.uint8), "numpy").tolist()
    [[0, 255], [1, 0]]
    """
    if formula not in _FORMULAS:
        raise ValueError(f"there is no formula {formula!r}")
    element_type = _common_type(a, b)
    placement = place(rule, a.shape, b.shape, axis, enabled)
    compute = _FORMULAS[formula]
    a_bits, b_bits = bits_of(a), bits_of(b)
    results = [
        compute(
            element_type,
            a_bits[_flat_position(index, a.shape, placement.a_start)],
            b_bits[_flat_position(index, b.shape, placement.b_start)],
        )
        for index in itertools.product(*map(range, placement.shape))
    ]
    return array_of(element_type, results, placement.shape)


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
    element_type = _type_of(array)
    unsigned = np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)
    patterns: list[int] = np.frombuffer(array.tobytes(), unsigned).tolist()
    unused = (1 << 8 * array.dtype.itemsize) - (1 << element_type.bits)
    return [pattern & ~unused for pattern in patterns] if unused else patterns


def array_of(element_type: ElementType, bits: Iterable[int], shape: Sizes | None = None) -> npt.NDArray[Any]:
    """Make a native C-contiguous array from bit patterns in C order, one-dimensional where no shape is given."""
    unsigned = np.array(list(bits), np.dtype(f"u{element_type.storage.itemsize}"))
    made = unsigned.view(element_type.storage)
    return made if shape is None else made.reshape(shape)


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
    element_type = _type_of(expected)
    pairs = zip(bits_of(got), bits_of(expected), strict=True)
    return [
        position
        for position, (one, other) in enumerate(pairs)
        if one != other and not (is_nan(element_type, one) and is_nan(element_type, other))
    ]


def _type_of(array: npt.NDArray[Any]) -> ElementType:
    element_type = _BY_STORAGE.get(array.dtype.newbyteorder("="))
    if element_type is None:
        raise OracleRefusal(f"{array.dtype} is no element type that runs")
    return element_type


def _common_type(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> ElementType:
    a_type, b_type = _type_of(a), _type_of(b)
    if a_type is not b_type:
        raise OracleRefusal(f"A is {a_type} and B is {b_type}; both must have one type")
    if not a_type.is_numeric:
        raise OracleRefusal(f"{a_type} is no numeric type")
    return a_type


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
        wanted = a[start + position]
        if size == wanted:
            continue
        if size != 1:
            raise OracleRefusal(f"dimension {start + position}: A has {wanted} and B {size}")
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


def _flat_position(index: Sequence[int], shape: Sizes, start: int) -> int:
    """Where an operand's element for one index of the result lies in C order; a size of 1 repeats its element."""
    position = 0
    for dimension, size in enumerate(shape, start):
        position = position * size + (0 if size == 1 else index[dimension])
    return position
