"""The broadcast rules: one short function a rule, the same for known, symbolic, unknown and interval dimensions.

Each takes the shapes of A and B and gives the result's shape, where both operands lie in it, and what had to be
assumed; or it raises a ``ShapeError`` where no run could succeed. Sources: ONNX's Broadcasting page and the texts of
Sub-1, Sub-6 and Sub-7; OpenVINO's broadcast rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

from eltwise.core.errors import AttributeValueError, ShapeError
from eltwise.core.shapes import UNKNOWN_RANK, Dimension, Shape

RuleName = Literal["none", "numpy", "pdpd", "legacy", "axis", "channel"]
Dimensions = tuple[Dimension, ...]
Pair = tuple[Dimension, str]
"""The dimension of the result and the assumption that it rests on, empty where there is none."""


class Rule(NamedTuple):
    """A broadcast rule with its arguments.

    Attributes:
        name: which rule.
        axis: where B starts in A, for ``legacy`` and ``pdpd``; -1 aligns the ends. For ``axis`` the dimension of A that
            B lies on, counted from the end where it is below 0; for ``channel`` the one that it is matched with first.
        enabled: for ``legacy``, whether ``broadcast=1`` was given; without it the shapes must be equal.
        block: for ``axis``, for how many elements of A on that dimension B has one; 0 for all or one each.
        base: which operand is A, where the others broadcast onto it.
    """

    name: RuleName
    axis: int = -1
    enabled: bool = True
    block: int = 0
    base: int = 0


class Broadcast(NamedTuple):
    """What a rule found.

    Attributes:
        shape: the shape of the result.
        starts: for each operand how many of the result's dimensions lie before its first; None where a rank, or for
            ``channel`` a size, is unknown.
        assumptions: what must hold at run time, in words.
    """

    shape: Shape
    starts: tuple[int | None, ...]
    assumptions: tuple[str, ...] = ()


def is_blocked(rule: Rule, a: int, b: int) -> bool:
    """Whether a B of rank b has an element for each block of an A of rank a."""
    return rule.block > 0 and a == b > 0


def broadcast(rule: Rule, *shapes: Shape) -> Broadcast:
    """Apply a rule to the shapes of the operands; ``legacy`` takes two of them.

    >>> from eltwise.core.shapes import parse
    >>> str(broadcast(Rule("numpy"), parse("?,4,1"), parse("1..6,1,5")).shape)
    '?,4,5'

    Raises:
        ShapeError: where the shapes cannot broadcast, naming the dimension and both sizes.
        AttributeValueError: where ``axis`` is out of range.
    """
    first = shapes[rule.base]
    if rule.name == "numpy" and first.is_known and all(shape is first for shape in shapes):
        return Broadcast(first, (0,) * len(shapes))
    order = [rule.base, *(index for index in range(len(shapes)) if index != rule.base)]
    result = Broadcast(first, (0,))
    for index in order[1:]:
        other = shapes[index]
        try:
            joined = _RULES[rule.name](rule, result.shape, other)
        except ShapeError as error:
            if len(shapes) == 2:
                raise
            listed = ", ".join(f"({shape})" for shape in shapes)
            message = f"the shapes {listed} do not broadcast: operand {index} does not fit those before it"
            raise ShapeError(message, got=f"({result.shape}) and ({other})", allowed=error.allowed) from None
        shift, start = joined.starts
        starts = tuple(None if shift is None or before is None else shift + before for before in result.starts)
        result = Broadcast(joined.shape, (*starts, start), (*result.assumptions, *joined.assumptions))
    return result._replace(starts=tuple(start for _index, start in sorted(zip(order, result.starts, strict=True))))


def _none(_rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if a.dimensions is None or b.dimensions is None:
        ranked = b if a.dimensions is None else a
        return Broadcast(ranked, (None, None), ("A and B have the same shape",))
    if len(a.dimensions) != len(b.dimensions):
        raise _mismatch(a, b, "without broadcasting both ranks must be equal")
    return _paired(a, b, 0, _equal_pair, "without broadcasting both sizes must be equal")


def _numpy(_rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if a.dimensions is None or b.dimensions is None:
        return Broadcast(UNKNOWN_RANK, (None, None), ("the ranks and sizes of A and B broadcast",))
    rank = max(len(a.dimensions), len(b.dimensions))
    starts = rank - len(a.dimensions), rank - len(b.dimensions)
    dimensions, assumptions = [*b.dimensions[: starts[0]], *a.dimensions[: starts[1]]], []
    for index in range(max(starts), rank):
        mine, theirs = a.dimensions[index - starts[0]], b.dimensions[index - starts[1]]
        pair = _numpy_pair(mine, theirs)
        if pair is None:
            raise _mismatch(a, b, _sizes_of(index, mine, theirs), "equal sizes, or a 1 in one of them")
        dimensions.append(pair[0])
        assumptions += [f"in dimension {index}, {pair[1]}"] if pair[1] else []
    return Broadcast(Shape(tuple(dimensions)), starts, tuple(assumptions))


def _pdpd(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if rule.axis < -1:
        raise _axis_error(rule, a, b)
    if a.dimensions is None or b.dimensions is None:
        return Broadcast(UNKNOWN_RANK, (None, None), ("the rank and sizes of B fit into those of A",))
    end = _start_of_end(a.dimensions, b.dimensions, a, b)
    start = end if rule.axis == -1 else rule.axis
    if start > end:
        raise _axis_error(rule, a, b)
    return _paired(a, b, start, _pdpd_pair, "B's size must be A's size or 1, and never larger")


def _legacy(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if a.dimensions is None or b.dimensions is None:
        expected = "B broadcasts onto A" if rule.enabled else "A and B have the same shape"
        return Broadcast(a, (None, None), (expected,))
    ours, theirs = a.dimensions, b.dimensions
    if not rule.enabled:
        hint = "broadcast is 0 or absent, so the shapes must be equal; set broadcast=1 to broadcast B onto A"
        if len(ours) != len(theirs):
            raise _mismatch(a, b, "the ranks differ", hint=hint)
        return Broadcast(a, (0, 0), _paired(a, b, 0, _equal_pair, "equal sizes", lambda _at: hint).assumptions)
    end = _start_of_end(ours, theirs, a, b)
    if all(dimension.is_one for dimension in theirs) or _all_same(ours, theirs):
        return Broadcast(a, (0, end))
    start = end if rule.axis == -1 else rule.axis
    if 0 <= start <= end:
        return _legacy_run(a, b, ours, theirs, start)
    # An axis out of range is ignored for a one-element B and for equal shapes.
    may_be_equal = end == 0 and all(mine.meet(other) is not None for mine, other in zip(ours, theirs, strict=True))
    cases = ["B has one element"] * all(dimension.may_be(1) for dimension in theirs)
    cases += ["A and B have the same shape"] * may_be_equal
    if not cases:
        raise _axis_error(rule, a, b)
    return Broadcast(a, (0, end), (f"{' or '.join(cases)}, since axis {rule.axis} is out of range",))


def _axis(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    """One element, one for each index of a dimension, or one for each block of them."""
    if a.dimensions is None or b.dimensions is None:
        return Broadcast(a, (None, None), ("B has one element, or lies on a dimension of A",))
    end = _start_of_end(a.dimensions, b.dimensions, a, b)
    is_in_blocks = is_blocked(rule, len(a.dimensions), len(b.dimensions))
    if len(b.dimensions) <= 1 and all(dimension.is_one for dimension in b.dimensions) and not is_in_blocks:
        return Broadcast(a, (0, end))
    axis = rule.axis + len(a.dimensions) if rule.axis < 0 else rule.axis
    if not 0 <= axis < len(a.dimensions):
        rank = len(a.dimensions)
        raise AttributeValueError(
            "axis is out of range", operand="attribute axis", got=str(rule.axis), allowed=f"{-rank} to {rank - 1}"
        )
    if is_in_blocks:
        return _blocked(rule, a, b, axis)
    if len(b.dimensions) != 1:
        raise _mismatch(a, b, "B has more than one dimension", "one element, or one for each index of the axis")
    return _paired(a, b, axis, _equal_pair, f"one element, or one for each index of dimension {axis}")


def _blocked(rule: Rule, a: Shape, b: Shape, axis: int) -> Broadcast:
    """B has A's sizes but on the axis, where it has an element for each block, of which the last may be smaller."""

    def pair_of(mine: Dimension, other: Dimension) -> Pair | None:
        if next(index) != axis:
            return _equal_pair(mine, other)
        if mine.is_known and other.is_known:
            return (mine, "") if other.low == -(-mine.low // rule.block) else None
        return mine, f"B has an element for each {rule.block} of A's {mine}"

    index = iter(range(len(a.dimensions or ())))
    return _paired(a, b, 0, pair_of, f"A's sizes, but on dimension {axis} one element for each block of {rule.block}")


def _channel(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    """A B of one dimension lies on the axis where it has A's size there; any other is aligned with A's end."""
    if a.dimensions is None or b.dimensions is None:
        return Broadcast(a, (None, None), ("B broadcasts onto A",))
    end = _start_of_end(a.dimensions, b.dimensions, a, b)
    at_end = partial(_paired, a, b, end, _onto_pair, "sizes of A, or 1")
    if len(b.dimensions) != 1 or end <= rule.axis:
        return at_end()
    mine, other = a.dimensions[rule.axis], b.dimensions[0]
    if mine.is_same(other):
        return Broadcast(a, (0, rule.axis))
    if mine.meet(other) is None:
        return at_end()
    last = _onto_pair(a.dimensions[end], other)
    cases = f"B's {other} is A's {mine} in dimension {rule.axis}"
    cases += f", or broadcasts onto A's {a.dimensions[end]} in dimension {end}" if last else ""
    return Broadcast(a, (0, None if last else rule.axis), (cases,))


def _legacy_run(a: Shape, b: Shape, ours: Dimensions, theirs: Dimensions, start: int) -> Broadcast:
    """Match B against the contiguous run of A from ``start``; only 1s at B's own ends expand."""
    at = iter(range(len(theirs)))

    def pair_of(mine: Dimension, other: Dimension) -> Pair | None:
        index = next(at)
        return _legacy_pair(mine, other, theirs[:index], theirs[index + 1 :])

    def hint(index: int) -> str:
        if theirs[index].is_one:
            return "a 1 between B's other dimensions does not expand in this version (1s at B's ends do)"
        runs = ((axis, ours[axis : axis + len(theirs)]) for axis in range(len(ours)) if axis != start)
        return next((f"axis={axis} would fit" for axis, run in runs if _all_same(run, theirs)), "")

    result = _paired(a, b, start, pair_of, f"B as a run of A's shape from axis {start}", hint)
    return Broadcast(a, (0, start), result.assumptions)


def _paired(
    a: Shape,
    b: Shape,
    start: int,
    pair_of: Callable[[Dimension, Dimension], Pair | None],
    allowed: str,
    hint: Callable[[int], str] = lambda _index: "",
) -> Broadcast:
    """Pair B with A from ``start`` on, one-directionally: the result has A's rank."""
    dimensions, assumptions = list(a.dimensions or ()), []
    for index, other in enumerate(b.dimensions or ()):
        mine = dimensions[start + index]
        pair = pair_of(mine, other)
        if pair is None:
            raise _mismatch(a, b, _sizes_of(start + index, mine, other), allowed, hint(index))
        dimensions[start + index] = pair[0]
        assumptions += [f"in dimension {start + index}, {pair[1]}"] if pair[1] else []
    return Broadcast(Shape(tuple(dimensions)), (0, start), tuple(assumptions))


def _start_of_end(ours: Dimensions, theirs: Dimensions, a: Shape, b: Shape) -> int:
    """Where B starts in A if their ends are aligned."""
    if len(theirs) > len(ours):
        raise _mismatch(a, b, "B has the larger rank and is broadcast onto A only")
    return len(ours) - len(theirs)


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


def _onto_pair(a: Dimension, b: Dimension) -> Pair | None:
    if a.is_same(b) or b.is_one:
        return a, ""
    return (a, f"B's {b} is 1 or A's {a}") if b.may_be(1) else _equal_pair(a, b)


def _pdpd_pair(a: Dimension, b: Dimension) -> Pair | None:
    if a.high is not None and b.low > a.high:
        return None
    pair = _numpy_pair(a, b)
    # B may be the larger one of two sizes that broadcast by the numpy rule only where one of them is 1.
    may_be_larger = (a.may_be(1) and (b.high is None or b.high > 1)) or (a.may_be(0) and b.may_be(1))
    if pair is None or a.is_same(b) or not may_be_larger:
        return pair
    smaller = f"B's {b} is not larger than A's {a}"
    return pair[0], f"{pair[1]}, and {smaller}" if pair[1] else smaller


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
    return ShapeError(f"shapes ({a}) and ({b}) do not broadcast: {reason}", allowed=allowed, hint=hint)


def _axis_error(rule: Rule, a: Shape, b: Shape) -> AttributeValueError:
    ranks, allowed = "", "-1 or more"
    if a.rank is not None and b.rank is not None:
        ranks = f" for B of rank {b.rank} in A of rank {a.rank}"
        allowed = f"-1 (align the ends), 0 to {max(a.rank - b.rank, 0)}"
    return AttributeValueError(
        f"axis is out of range{ranks}", operand="attribute axis", got=str(rule.axis), allowed=allowed
    )


_RULES: dict[RuleName, Callable[[Rule, Shape, Shape], Broadcast]] = {
    "none": _none,
    "numpy": _numpy,
    "pdpd": _pdpd,
    "legacy": _legacy,
    "axis": _axis,
    "channel": _channel,
}
