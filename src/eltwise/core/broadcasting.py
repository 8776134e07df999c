"""The broadcast rules: one short function a rule, the same for known, symbolic, unknown and interval dimensions.

Each takes the shapes of A and B and gives the result's shape, where both operands lie in it, and what had to be
assumed; or it raises a ``ShapeError`` where no run could succeed. Sources: ONNX's Broadcasting page and the texts of
Sub-1, Sub-6 and Sub-7; OpenVINO's broadcast rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from eltwise.core.errors import AttributeValueError, ShapeError
from eltwise.core.shapes import UNKNOWN_RANK, Dimension, Shape

RuleName = Literal["none", "numpy", "pdpd", "legacy"]
Dimensions = tuple[Dimension, ...]
Pair = tuple[Dimension, str]
"""The dimension of the result and the assumption that it rests on, empty where there is none."""


@dataclass(frozen=True)
class Rule:
    """A broadcast rule with its arguments.

    Attributes:
        name: which rule.
        axis: where B starts in A, for ``legacy`` and ``pdpd``; -1 aligns the ends.
        enabled: for ``legacy``, whether ``broadcast=1`` was given; without it the shapes must be equal.
    """

    name: RuleName
    axis: int = -1
    enabled: bool = True


@dataclass(frozen=True)
class Broadcast:
    """What a rule found.

    Attributes:
        shape: the shape of the result.
        starts: for each operand how many of the result's dimensions lie before its first; None where a rank is
            unknown.
        assumptions: what must hold at run time, in words.
    """

    shape: Shape
    starts: tuple[int | None, ...]
    assumptions: tuple[str, ...] = ()


def broadcast(rule: Rule, *shapes: Shape) -> Broadcast:
    """Apply a rule to the shapes of the operands; only ``none`` and ``numpy`` take other numbers of them than two.

    >>> from eltwise.core.shapes import parse
    >>> str(broadcast(Rule("numpy"), parse("?,4,1"), parse("1..6,1,5")).shape)
    '?,4,5'

    Raises:
        ShapeError: where the shapes cannot broadcast, naming the dimension and both sizes.
        AttributeValueError: where ``axis`` is out of range.
    """
    first, *others = shapes
    found = Broadcast(first, (0,))
    for index, other in enumerate(others, 1):
        try:
            joined = _RULES[rule.name](rule, found.shape, other)
        except ShapeError as error:
            if len(shapes) == 2:
                raise
            listed = ", ".join(f"({shape})" for shape in shapes)
            words = f"the shapes {listed} do not broadcast: operand {index} does not fit those before it"
            raise ShapeError(words, got=f"({found.shape}) and ({other})", allowed=error.allowed) from None
        own, start = joined.starts
        starts = tuple(None if own is None or before is None else own + before for before in found.starts)
        found = Broadcast(joined.shape, (*starts, start), (*found.assumptions, *joined.assumptions))
    return found


def _none(_rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if a.dimensions is None or b.dimensions is None:
        known_side = b if a.dimensions is None else a
        return Broadcast(known_side, (None, None), ("A and B have the same shape",))
    if len(a.dimensions) != len(b.dimensions):
        raise _mismatch(a, b, "without broadcasting both ranks must be equal")
    return _paired(a, b, a.dimensions, 0, _equal_pair, "without broadcasting both sizes must be equal")


def _numpy(_rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if a.dimensions is None or b.dimensions is None:
        return Broadcast(UNKNOWN_RANK, (None, None), ("the ranks and sizes of A and B broadcast",))
    rank = max(len(a.dimensions), len(b.dimensions))
    a_start, b_start = rank - len(a.dimensions), rank - len(b.dimensions)
    dimensions, assumptions = list(b.dimensions[:a_start]), []
    dimensions += a.dimensions[:b_start]
    for index in range(rank - min(len(a.dimensions), len(b.dimensions)), rank):
        mine, theirs = a.dimensions[index - a_start], b.dimensions[index - b_start]
        pair = _numpy_pair(mine, theirs)
        if pair is None:
            raise _mismatch(a, b, _sizes_of(index, mine, theirs), "equal sizes, or a 1 in one of them")
        dimensions.append(pair[0])
        assumptions += [f"in dimension {index}, {pair[1]}"] if pair[1] else []
    return Broadcast(Shape(tuple(dimensions)), (a_start, b_start), tuple(assumptions))


def _pdpd(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if rule.axis < -1:
        raise _axis_error(rule, a, b)
    if a.dimensions is None or b.dimensions is None:
        return Broadcast(UNKNOWN_RANK, (None, None), ("the rank and sizes of B fit into those of A",))
    if len(b.dimensions) > len(a.dimensions):
        raise _mismatch(a, b, "B has the larger rank and is broadcast onto A only")
    start = len(a.dimensions) - len(b.dimensions) if rule.axis == -1 else rule.axis
    if start + len(b.dimensions) > len(a.dimensions):
        raise _axis_error(rule, a, b)
    return _paired(a, b, b.dimensions, start, _pdpd_pair, "B's size must be A's size or 1, and never larger")


def _legacy(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if a.dimensions is None or b.dimensions is None:
        wanted = "B broadcasts onto A" if rule.enabled else "A and B have the same shape"
        return Broadcast(a, (None, None), (wanted,))
    if not rule.enabled:
        return _legacy_equal(a, b, a.dimensions, b.dimensions)
    if len(b.dimensions) > len(a.dimensions):
        raise _mismatch(a, b, "B has the larger rank and is broadcast onto A only")
    end = len(a.dimensions) - len(b.dimensions)
    if all(dimension.is_one for dimension in b.dimensions) or _all_same(a.dimensions, b.dimensions):
        return Broadcast(a, (0, end))
    start = end if rule.axis == -1 else rule.axis
    if start < 0 or start > end:
        return _legacy_without_axis(rule, a, b, a.dimensions, b.dimensions)
    return _legacy_run(a, b, b.dimensions, start)


def _legacy_equal(a: Shape, b: Shape, ours: Dimensions, theirs: Dimensions) -> Broadcast:
    hint = "broadcast is 0 or absent, so the shapes must be equal; set broadcast=1 to broadcast B onto A"
    if len(ours) != len(theirs):
        raise _mismatch(a, b, "the ranks differ", hint=hint)
    try:
        return Broadcast(a, (0, 0), _paired(a, b, ours, 0, _equal_pair, "equal sizes").assumptions)
    except ShapeError as error:
        error.hint = hint
        raise


def _legacy_without_axis(rule: Rule, a: Shape, b: Shape, ours: Dimensions, theirs: Dimensions) -> Broadcast:
    """Check an axis that is out of range: it is ignored for a one-element B and for equal shapes."""
    may_be_one = all(dimension.may_be(1) for dimension in theirs)
    may_be_equal = len(ours) == len(theirs) and all(
        mine.meet(other) is not None for mine, other in zip(ours, theirs, strict=True)
    )
    if not (may_be_one or may_be_equal):
        raise _axis_error(rule, a, b)
    cases = ["B has one element"] * may_be_one + ["A and B have the same shape"] * may_be_equal
    return Broadcast(
        a, (0, len(ours) - len(theirs)), (f"{' or '.join(cases)}, since axis {rule.axis} is out of range",)
    )


def _legacy_run(a: Shape, b: Shape, theirs: Dimensions, start: int) -> Broadcast:
    """Match B against the contiguous run of A from ``start``; only 1s at B's own ends expand."""
    assert a.dimensions is not None
    assumptions = []
    for index, other in enumerate(theirs):
        mine = a.dimensions[start + index]
        pair = _legacy_pair(mine, other, theirs[:index], theirs[index + 1 :])
        if pair is None and other.is_one:
            raise _mismatch(
                a,
                b,
                _sizes_of(start + index, mine, other),
                hint="a 1 between B's other dimensions does not expand in this version (1s at B's ends do)",
            )
        if pair is None:
            hint = _legacy_axis_hint(a.dimensions, theirs, start)
            raise _mismatch(
                a,
                b,
                _sizes_of(start + index, mine, other),
                f"B as a run of A's shape from axis {start}",
                hint,
            )
        assumptions += [f"in dimension {start + index}, {pair[1]}"] if pair[1] else []
    return Broadcast(a, (0, start), tuple(assumptions))


def _legacy_axis_hint(ours: Dimensions, theirs: Dimensions, start: int) -> str:
    fitting = [
        axis
        for axis in range(len(ours) - len(theirs) + 1)
        if axis != start and _all_same(ours[axis : axis + len(theirs)], theirs)
    ]
    return f"axis={fitting[0]} would fit" if fitting else ""


def _paired(
    a: Shape,
    b: Shape,
    theirs: Dimensions,
    start: int,
    pair_of: Callable[[Dimension, Dimension], Pair | None],
    wanted: str,
) -> Broadcast:
    """Pair B with A from ``start`` on, one-directionally: the result has A's rank."""
    assert a.dimensions is not None
    assert b.dimensions is not None
    dimensions, assumptions = list(a.dimensions), []
    for index in range(start, start + len(theirs)):
        mine, other = a.dimensions[index], b.dimensions[index - start]
        pair = pair_of(mine, other)
        if pair is None:
            raise _mismatch(a, b, _sizes_of(index, mine, other), wanted)
        dimensions[index] = pair[0]
        assumptions += [f"in dimension {index}, {pair[1]}"] if pair[1] else []
    return Broadcast(Shape(tuple(dimensions)), (0, start), tuple(assumptions))


def _equal_pair(a: Dimension, b: Dimension) -> Pair | None:
    if a.is_same(b):
        return a, ""
    met = a.meet(b)
    return None if met is None else (met, f"A's {a} is B's {b}")


def _numpy_pair(a: Dimension, b: Dimension) -> Pair | None:
    if a.is_same(b) or b.is_one:
        return a, ""
    if a.is_one:
        return b, ""
    if a.may_be(1) and b.may_be(1):
        return a.hull(b), f"A's {a} and B's {b} are equal or one of them is 1"
    if a.may_be(1):
        return b, f"A's {a} is 1 or {b}"
    if b.may_be(1):
        return a, f"B's {b} is 1 or {a}"
    return _equal_pair(a, b)


def _pdpd_pair(a: Dimension, b: Dimension) -> Pair | None:
    if a.high is not None and b.low > a.high:
        return None
    pair = _numpy_pair(a, b)
    if pair is None or a.is_same(b) or not _may_be_larger_and_broadcast(b, a):
        return pair
    smaller = f"B's {b} is not larger than A's {a}"
    return pair[0], f"{pair[1]}, and {smaller}" if pair[1] else smaller


def _may_be_larger_and_broadcast(b: Dimension, a: Dimension) -> bool:
    """Whether B may be the larger one of two sizes that broadcast by the numpy rule: one of them is 1."""
    larger_than_one = b.high is None or b.high > 1
    return (a.may_be(1) and larger_than_one) or (a.may_be(0) and b.may_be(1))


def _legacy_pair(a: Dimension, b: Dimension, before: Dimensions, after: Dimensions) -> Pair | None:
    """Pair one dimension of B's run with A's, knowing B's dimensions before and after it."""
    if a.is_same(b):
        return a, ""
    if not b.may_be(1) or not any(all(dimension.may_be(1) for dimension in side) for side in (before, after)):
        return _equal_pair(a, b)
    if any(all(dimension.is_one for dimension in side) for side in (before, after)):
        return a, "" if b.is_one else f"B's {b} is 1 or A's {a}"
    return a, f"B's {b} is A's {a}, or a 1 that has only 1s before it or only 1s after it"


def _all_same(ours: Dimensions, theirs: Dimensions) -> bool:
    return len(ours) == len(theirs) and all(mine.is_same(other) for mine, other in zip(ours, theirs, strict=True))


def _sizes_of(index: int, a: Dimension, b: Dimension) -> str:
    return f"dimension {index} is {a} in A and {b} in B"


def _mismatch(a: Shape, b: Shape, reason: str, allowed: str = "", hint: str = "") -> ShapeError:
    return ShapeError(f"shapes ({a}) and ({b}) do not broadcast: {reason}", got="", allowed=allowed, hint=hint)


def _axis_error(rule: Rule, a: Shape, b: Shape) -> AttributeValueError:
    ranks = "" if a.rank is None or b.rank is None else f" for B of rank {b.rank} in A of rank {a.rank}"
    upper = "" if a.rank is None or b.rank is None else f", -1 (align the ends), 0 to {max(a.rank - b.rank, 0)}"
    return AttributeValueError(
        f"axis is out of range{ranks}",
        operand="attribute axis",
        got=str(rule.axis),
        allowed=upper.lstrip(", ") or "-1 or more",
    )


_RULES: dict[RuleName, Callable[[Rule, Shape, Shape], Broadcast]] = {
    "none": _none,
    "numpy": _numpy,
    "pdpd": _pdpd,
    "legacy": _legacy,
}
