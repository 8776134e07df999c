"""An element-wise node as a runtime meets it: its operator version, type and rule, its shapes, and where operands are.

A runtime may compute a constant operand, or what is made of constants only, before the model runs, in another way than
at run time. Whether it does so with what nodes make of constants is not known, so such an operand counts as both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import UINT32, ElementType
from eltwise.core.shapes import Shape
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.company import Company

Layout = Literal["equal", "broadcast", "inside", "scalars", "empty", "high rank", "unknown rank"]
"""How the shapes of A and B lie: equal; broadcast with their ends aligned; B aligned elsewhere in A; both of rank 0;
one of them known to hold no element."""

Surroundings = Literal[
    "static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours", "a-plain", "b-plain", "read-wider"
]
"""How operands reach a node. The names are those of the referee's paths, two for constants of plain numbers, and one
for a result that another node reads, which shows whether it was brought to its type before."""

HIGHEST_ORDINARY_RANK = 6
"""Runtimes have limits of their own for more dimensions, which the layout ``high rank`` keeps apart."""

_HELD: dict[tuple[bool, bool], Surroundings] = {
    (True, False): "a-constant",
    (False, True): "b-constant",
    (True, True): "both-constant",
}
_PLAIN: dict[Surroundings, Surroundings] = {"a-constant": "a-plain", "b-constant": "b-plain"}


@dataclass(frozen=True)
class Place:
    """An element-wise node as a runtime meets it.

    Attributes:
        node: the node's name, or the name of what it makes.
        row: the operator version.
        element_type: that of the operands; None where it is not known.
        rule: the broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
        layouts: how the shapes may lie.
        surroundings: how the operands may reach the node.
        companies: what may stand around it that a runtime may compute together with it.
        is_beside_others: whether an operator makes an operand or reads the result that this package does not know.
    """

    node: str
    schema: ElementwiseSchema
    element_type: ElementType | None
    rule: str
    layouts: tuple[Layout, ...]
    surroundings: tuple[Surroundings, ...]
    companies: tuple[Company, ...] = ()
    is_beside_others: bool = False


Chosen = Callable[[Place], bool]
"""Which nodes are meant."""


def layouts_of(rule: Rule, a: Shape, b: Shape) -> tuple[Layout, ...]:
    """How shapes may lie under a rule.

    >>> from eltwise.core.shapes import parse
    >>> layouts_of(Rule("numpy"), parse("N,3"), parse("N,3")), layouts_of(Rule("pdpd", 0), parse("2,3"), parse("2"))
    (('equal', 'broadcast'), ('inside',))
    >>> layouts_of(Rule("numpy"), parse("0,N"), parse("N"))
    ('empty',)
    """
    if a.dimensions is None or b.dimensions is None:
        return ("unknown rank",)
    if any(dimension.high == 0 for dimension in (*a.dimensions, *b.dimensions)):
        return ("empty",)
    rank_a, rank_b = len(a.dimensions), len(b.dimensions)
    if max(rank_a, rank_b) > HIGHEST_ORDINARY_RANK:
        return ("high rank",)
    has_one_element = all(dimension.is_one for dimension in b.dimensions)
    if rule.name in ("pdpd", "legacy") and rule.axis != -1 and rule.axis + rank_b != rank_a and not has_one_element:
        return ("inside",)
    if rank_a != rank_b:
        return ("broadcast",)
    if rank_a == 0:
        return ("scalars", "equal")
    if a.is_known and b.is_known:
        return ("equal",) if a == b else ("broadcast",)
    return ("equal",) if rule.name == "none" else ("equal", "broadcast")


def is_narrow(element_type: ElementType) -> bool:
    """Whether runtimes may compute in another type, wider or signed, and leave a result there until the model ends."""
    return element_type.is_numeric and (element_type.bits <= 16 or element_type is UINT32)


def surroundings_of(
    constant: tuple[bool, bool],
    made_of_constants: tuple[bool, bool],
    is_static: bool,
    has_neighbours: bool,
    *,
    is_plain: bool = False,
) -> tuple[Surroundings, ...]:
    """How operands may reach a node.

    Args:
        constant: whether A and B are constants.
        made_of_constants: whether each is one, or made by nodes of constants only.
        is_static: whether all sizes are known.
        has_neighbours: whether nodes make an operand or read the result.
        is_plain: whether the one constant has plain numbers only, of a type that has others.

    >>> surroundings_of((False, False), (False, True), True, False)
    ('static', 'b-constant')
    >>> surroundings_of((False, True), (False, True), True, False, is_plain=True)
    ('b-plain',)
    """
    at_run_time: Surroundings = "static" if is_static else "dynamic"
    held = [_HELD.get(pair, at_run_time) for pair in (constant, made_of_constants)]
    if is_plain:
        # What nodes make of constants is not known, so the second counts only where it is the first.
        plain = _PLAIN.get(held[0], held[0])
        held = [plain, plain if made_of_constants == constant else held[1]]
    found: list[Surroundings] = [at_run_time] if not is_static and constant != (True, True) else []
    return tuple(dict.fromkeys([*found, *held, *(("neighbours",) if has_neighbours else ())]))


def read_wider(place: Place) -> Place:
    """The place of a node whose result another node reads."""
    if place.element_type is None or not is_narrow(place.element_type):
        return place
    return replace(place, surroundings=(*place.surroundings, "read-wider"))
