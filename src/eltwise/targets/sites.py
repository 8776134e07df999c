"""An op site: an element-wise node as a runtime meets it, with all that a rule can be about.

A runtime may compute a constant operand, or what is made of constants only, before the model runs, in another way than
at run time. Whether it does so with what nodes make of constants is not known, so such an operand counts as both. A
runtime may also make one step of several nodes; what it does then is measured for pairs: a node, the node that makes
one of its operands, and what the other operand is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import BFLOAT16, FLOAT16, UINT32, ElementType
from eltwise.core.shapes import Shape
from eltwise.ops.schema import ElementwiseSchema
from eltwise.targets.constants import NEUTRAL, Held, has_neutral

Pattern = Literal["equal", "broadcast", "inside", "scalars", "empty", "high-rank", "unknown-rank"]
"""How the shapes of A and B lie: equal; broadcast with their ends aligned; B aligned elsewhere in A; both of rank 0;
one of them known to hold no element; of more than 6 dimensions."""

Source = Literal[
    "static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours", "a-plain", "b-plain", "read-wider"
]
"""How operands reach a node: given in a run with known or unknown sizes; a constant, or one of plain numbers; from or
to other nodes; read in a wider type, which shows whether the result was brought to its type before."""

HIGHEST_ORDINARY_RANK = 6
"""Runtimes have limits of their own for more dimensions."""

_HELD: dict[tuple[bool, bool], Source] = {
    (True, False): "a-constant",
    (False, True): "b-constant",
    (True, True): "both-constant",
}
_PLAIN: dict[Source, Source] = {"a-constant": "a-plain", "b-constant": "b-plain"}


@dataclass(frozen=True)
class Pair:
    """A node and what makes one of its operands.

    Attributes:
        operand: which operand that is: ``a`` or ``b``.
        producer: what makes it: ``none`` where it is given, ``cast``, or what is computed, as ``multiply``; with
            ``-constant`` behind where the producer has a constant operand.
        other: what the other operand is.
        readers: whether ``one`` node reads what the producer makes, or ``several``.
        sizes: whether all are ``known`` or some ``unknown``.
    """

    operand: str
    producer: str
    other: Held
    readers: str
    sizes: str


@dataclass(frozen=True)
class Producer:
    """The node that makes an operand; ``kind`` is what it computes, ``cast``, or empty for any other operator."""

    kind: str
    has_constant: bool = False
    is_shared: bool = False


@dataclass(frozen=True)
class Operand:
    """What is known of an operand: what it may be, and what makes it; None for constants and the model's inputs."""

    held: tuple[Held, ...] = ("run-time",)
    producer: Producer | None = None


@dataclass(frozen=True)
class Site:
    """An element-wise node as a runtime meets it.

    Attributes:
        node: the node's name, or the name of what it makes.
        schema: the operator version.
        element_type: that of the operands; None where it is not known.
        broadcast: the broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
        patterns: how the shapes may lie.
        sources: how the operands may reach the node.
        pairs: what may be around it that a runtime may compute together with it.
        is_beside_foreign: whether an operator makes an operand or reads the result that eltwise does not know.
        are_sizes: whether the operands are computed of sizes of tensors, which are taken to fit int32.
    """

    node: str
    schema: ElementwiseSchema
    element_type: ElementType | None
    broadcast: str
    patterns: tuple[Pattern, ...] = ()
    sources: tuple[Source, ...] = ()
    pairs: tuple[Pair, ...] = ()
    is_beside_foreign: bool = False
    are_sizes: bool = False

    @property
    def type_name(self) -> str:
        """The name of the element type, empty where it is not known."""
        return self.element_type.name if self.element_type else ""

    def situations(self, rewrite: str = "none") -> Iterator[dict[str, str]]:
        """Everything that may hold at once for the node, written in some way."""
        head = {
            "op": self.schema.name,
            "version": str(self.schema.version),
            "broadcast": self.broadcast,
            "type": self.type_name,
            "rewrite": rewrite,
        }
        yield from (
            {**head, "source": source, "pattern": pattern} for source in self.sources for pattern in self.patterns
        )
        yield from ({**head, **vars(pair)} for pair in self.pairs)


def patterns_of(rule: Rule, a: Shape, b: Shape) -> tuple[Pattern, ...]:
    """How shapes may lie under a rule.

    >>> from eltwise.core.shapes import parse
    >>> patterns_of(Rule("numpy"), parse("N,3"), parse("N,3")), patterns_of(Rule("pdpd", 0), parse("2,3"), parse("2"))
    (('equal', 'broadcast'), ('inside',))
    >>> patterns_of(Rule("numpy"), parse("0,N"), parse("N"))
    ('empty',)
    """
    if a.dimensions is None or b.dimensions is None:
        return ("unknown-rank",)
    if any(dimension.high == 0 for dimension in (*a.dimensions, *b.dimensions)):
        return ("empty",)
    rank_a, rank_b = len(a.dimensions), len(b.dimensions)
    if max(rank_a, rank_b) > HIGHEST_ORDINARY_RANK:
        return ("high-rank",)
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


def sources_of(
    constant: tuple[bool, bool],
    made_of_constants: tuple[bool, bool],
    *,
    is_static: bool,
    has_neighbours: bool,
    is_plain: bool,
) -> tuple[Source, ...]:
    """How operands may reach a node.

    Args:
        constant: whether A and B are constants.
        made_of_constants: whether each is one, or made by nodes of constants only.
        is_static: whether all sizes are known.
        has_neighbours: whether nodes make an operand or read the result.
        is_plain: whether the one constant has plain numbers only, of a type that has others.
    """
    at_run_time: Source = "static" if is_static else "dynamic"
    held = [_HELD.get(pair, at_run_time) for pair in (constant, made_of_constants)]
    if is_plain:
        # What nodes make of constants is not known, so the second counts only where it is the first.
        plain = _PLAIN.get(held[0], held[0])
        held = [plain, plain if made_of_constants == constant else held[1]]
    found: list[Source] = [at_run_time] if not is_static and constant != (True, True) else []
    return tuple(dict.fromkeys([*found, *held, *(("neighbours",) if has_neighbours else ())]))


def is_narrow(element_type: ElementType) -> bool:
    """Whether runtimes may compute in another type, wider or signed, and leave a result there until the model ends."""
    return element_type.is_numeric and (element_type.bits <= 16 or element_type is UINT32)


def read_wider(site: Site) -> Site:
    """The site of a node whose result another node reads."""
    if site.element_type is None or not is_narrow(site.element_type):
        return site
    return replace(site, sources=(*site.sources, "read-wider"))


def pairs_of(
    element_type: ElementType, a: Operand, b: Operand, *, is_static: bool, producers: Sequence[str]
) -> tuple[Pair, ...]:
    """The pairs that a node may be in.

    Args:
        element_type: the operands' type.
        a: operand A.
        b: operand B.
        is_static: whether all sizes are known.
        producers: what nodes of the format compute that were measured; a node of any other operator before a constant
            zero counts as each of them.
    """
    found: list[Pair] = []
    sizes = "known" if is_static else "unknown"
    for operand, own, other in (("a", a, b), ("b", b, a)):
        for held in other.held if "run-time" in own.held else ():
            if held in NEUTRAL:
                makers = _before_neutral(own, producers) if has_neutral(element_type, held) else ()
                found += [Pair(operand, maker, held, "one", sizes) for maker in makers]
            else:
                found += _ordinary(element_type, operand, own.producer, held, sizes)
    return tuple(dict.fromkeys(found))


def _ordinary(
    element_type: ElementType, operand: str, producer: Producer | None, held: Held, sizes: str
) -> Iterator[Pair]:
    other: Held = "constant" if held == "number" else held
    if producer is not None and producer.kind == "cast" and element_type in (FLOAT16, BFLOAT16):
        yield Pair(operand, "cast", other, "one", sizes)  # One step, whoever else reads it.
    elif producer is not None and producer.kind not in ("", "cast"):
        kind = f"{producer.kind}-constant" if producer.has_constant else producer.kind
        yield Pair(operand, kind, other, "several" if producer.is_shared else "one", sizes)
    elif held in ("constant", "number"):
        yield Pair(operand, "none", held, "one", sizes)


def _before_neutral(own: Operand, producers: Sequence[str]) -> Sequence[str]:
    if own.producer is None:
        return ("none",)
    return producers if own.producer.kind in ("", "cast") else (own.producer.kind,)
