"""How one broadcast rule is said in another dialect: by an attribute, by dimensions of size 1 behind B, or not at all.

Only ranks are needed, not sizes, but where sizes decide what is allowed: a rule that demands equal shapes is carried to
one that broadcasts only where no size could broadcast. Sources: ONNX's Broadcasting page and the texts of Sub-1, Sub-6
and Sub-7; OpenVINO's broadcast rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import EltwiseError, ShapeError, UnsupportedError
from eltwise.core.shapes import Dimension, Shape
from eltwise.ops.schema import Broadcasting

Attributes = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Alignment:
    """How an element-wise operation is said in another dialect.

    Attributes:
        attributes: those of the operator that choose its rule.
        trailing: how many dimensions of size 1 B needs behind its own.
        assumptions: what must hold at run time for both rules to agree; where it does not, the rule that is carried
            refuses the operands.
        reason: why B is changed, empty where it is not.
    """

    attributes: Attributes = ()
    trailing: int = 0
    assumptions: tuple[str, ...] = ()
    reason: str = ""


def align(rule: Rule, a: Shape, b: Shape, target: Broadcasting) -> Alignment:
    """Say a broadcast rule in the way that another operator version has.

    Args:
        rule: the rule, with its axis.
        a: the shape of operand A, known or not.
        b: the shape of operand B.
        target: the broadcasting of the other version.

    Raises:
        EltwiseError: where it cannot be said exactly, or the shapes do not broadcast at all.

    >>> from eltwise.core.shapes import parse
    >>> align(Rule("legacy", 1), parse("N,3,4,5"), parse("3,4"), "numpy").trailing
    1
    """
    if rule.name == "none" or (rule.name == "legacy" and not rule.enabled):
        return _demanding_equal(rule, a, b, target)
    if target == "legacy":
        return _to_legacy(rule, a, b)
    if rule.name == "numpy":
        return Alignment()
    return _run_to_numpy(rule, a, b)


def _demanding_equal(rule: Rule, a: Shape, b: Shape, target: Broadcasting) -> Alignment:
    if target == "auto_broadcast":
        return Alignment((("auto_broadcast", "none"),))
    if target == "legacy":
        return Alignment()
    broadcast(rule, a, b)
    if a.dimensions is None or b.dimensions is None:
        raise _may_broadcast("a rank is not known")
    for index, (mine, other) in enumerate(zip(a.dimensions, b.dimensions, strict=True)):
        if not _must_be_equal(mine, other):
            raise _may_broadcast(f"dimension {index} is {mine} in A and {other} in B")
    return Alignment()


def _must_be_equal(a: Dimension, b: Dimension) -> bool:
    """Whether broadcasting both ways still refuses all sizes but equal ones."""
    return a.is_same(b) or not (a.may_be(1) or b.may_be(1))


def _may_broadcast(reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"this operator demands equal shapes, the other version would broadcast, and here they may differ: {reason}",
        hint="declare sizes that are equal",
    )


def _run_to_numpy(rule: Rule, a: Shape, b: Shape) -> Alignment:
    """B as a run of A, given by an axis: dimensions of size 1 behind B put it where the ends are aligned."""
    found = broadcast(rule, a, b)
    if rule.axis == -1 or b.rank == 0:
        return Alignment(assumptions=found.assumptions)
    if a.rank is None or b.rank is None or found.starts[1] is None:
        operand = "A" if a.rank is None else "B"
        raise ShapeError(
            f"the rank of operand {operand} is not known, and axis={rule.axis} counts from A's first dimension",
            operand=f"operand {operand}",
            hint="declare its rank",
        )
    has_one_element = all(dimension.is_one for dimension in b.dimensions or ())
    trailing = 0 if has_one_element else a.rank - found.starts[1] - b.rank
    reason = f"axis={rule.axis}: B {_dimensions(b.rank)} starts at dimension {found.starts[1]} of A's {a.rank}"
    return Alignment((), trailing, found.assumptions, reason if trailing else "")


def _dimensions(rank: int) -> str:
    return f"of {rank} dimension{'' if rank == 1 else 's'}"


def _to_legacy(rule: Rule, a: Shape, b: Shape) -> Alignment:
    """Broadcasting of B onto A only, where the rule does just that for all sizes that may come."""
    wanted = broadcast(rule, a, b)
    if a == b and a.is_known:
        return Alignment()
    start = -1 if rule.name == "numpy" or rule.axis == -1 or wanted.starts[1] is None else wanted.starts[1]
    try:
        found = broadcast(Rule("legacy", start, enabled=True), a, b)
    except EltwiseError as error:
        raise UnsupportedError(f"this version broadcasts B onto A only: {error.problem}") from None
    if found.shape != wanted.shape or found.starts[1] is None or set(found.assumptions) - set(wanted.assumptions):
        doubt = "; ".join(found.assumptions) or f"the result ({wanted.shape}) has not A's shape ({a})"
        raise UnsupportedError(f"this version broadcasts B onto A only, and that cannot be shown here: {doubt}")
    axis: Attributes = () if start == -1 else (("axis", start),)
    return Alignment((*axis, ("broadcast", 1)), 0, wanted.assumptions)
