"""What stands around an element-wise node that a runtime may compute together with it. Pure.

A runtime makes one step of several nodes where it sees a gain: it multiplies and adds with one rounding, adds two
constants to each other before it adds them, leaves out a constant zero. What it does then is measured for pairs: a
node, the node that makes one of its operands, and where constants come in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar, get_args

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT64, ElementType

Other = Literal["run-time", "constant", "number", "zero", "-zero", "zeros", "-zeros", "almost neutral"]
"""What the operand is that the node before does not make: given in a run, a constant, a constant of one number; one
zero, or several, of the positive or the negative sign; one float64 that is 0 or 1 only when rounded to float32."""

Before = str
"""What makes an operand: a primitive or composite, ``cast``, or nothing (empty): the operand is given."""

OTHERS: tuple[Other, ...] = get_args(Other)
NEUTRAL: tuple[Other, ...] = tuple(kind for kind in OTHERS if kind not in ("run-time", "constant", "number"))
"""Constants that a runtime may take for ones that change nothing."""

_HELD: tuple[Other, ...] = ("constant", "number")

FORMULAS = ("subtract", "squared_difference", "add", "multiply")
"""What nodes compute that are told apart."""

Node = TypeVar("Node")

_AT_A_TIME = 1 << 16
"""So many numbers are looked at together, so that large constants take no memory beside their own."""


@dataclass(frozen=True)
class Company:
    """What stands around a node.

    Attributes:
        before: what makes one operand.
        has_constant: whether that node has a constant operand.
        slot: which operand it makes: ``a`` or ``b``.
        other: what the other operand is.
        is_shared: whether others read that node's result, too.
        is_static: whether all sizes are known.
    """

    before: Before
    has_constant: bool
    slot: Literal["a", "b"]
    other: Other
    is_shared: bool
    is_static: bool

    @property
    def is_with_neutral(self) -> bool:
        """Whether the other operand is a constant that a runtime may take for one that changes nothing."""
        return self.other in NEUTRAL

    def __str__(self) -> str:
        """A name that nothing else in a table has, such as ``b after multiply with a constant, a zero``."""
        slot, beside = ("a", "b") if self.slot == "a" else ("b", "a")
        before = f" after {self.before}" if self.before else " given"
        words = [
            f"{slot}{before}{' with a constant' if self.has_constant else ''}",
            f"{beside} {self.other}",
            *(["shared"] if self.is_shared else []),
            *([] if self.is_static else ["dynamic"]),
        ]
        return ", ".join(words)


@dataclass(frozen=True)
class Maker:
    """The node that makes an operand.

    Attributes:
        kind: what it does; empty for a node of another operator.
        has_constant: whether it has a constant operand.
        is_shared: whether others read its result, too.
    """

    kind: Before
    has_constant: bool = False
    is_shared: bool = False


@dataclass(frozen=True)
class Operand:
    """What is known of an operand of a node.

    Attributes:
        held: what it may be.
        maker: the node that makes it, None for constants and what the model is given.
    """

    held: tuple[Other, ...] = ("run-time",)
    maker: Maker | None = None


def all_companies() -> Iterator[Company]:
    """Every company that is told apart.

    What is neutral is asked with any node before, or none, since what is left out is the node itself; whether others
    read what that node made, and its own constants, do not count then. A cast is one step whoever else reads it.
    """
    slots: tuple[Literal["a", "b"], ...] = ("a", "b")
    truths = (False, True)
    ordinary: tuple[Other, ...] = ("run-time", "constant")
    for before, slot, is_static in product(FORMULAS, slots, truths):
        for has_constant, other, is_shared in product(truths, ordinary, truths):
            yield Company(before, has_constant, slot, other, is_shared, is_static)
    for slot, is_static in product(slots, truths):
        yield from (Company("", False, slot, other, False, is_static) for other in _HELD)
        yield from (Company("cast", False, slot, other, False, is_static) for other in ordinary)
    anything: tuple[Before, ...] = ("", *FORMULAS)
    for maker, slot, other, is_static in product(anything, slots, NEUTRAL, truths):
        yield Company(maker, False, slot, other, False, is_static)


def companies_of(
    element_type: ElementType, a: Operand, b: Operand, is_static: bool, known: Collection[str]
) -> tuple[Company, ...]:
    """In which companies a node may be.

    Args:
        element_type: the operands' type.
        a: operand A.
        b: operand B.
        is_static: whether all sizes are known.
        known: what nodes of the model's dialect compute that are told apart; a node of any other operator before a
            constant zero counts as each of them.

    >>> from eltwise.core.dtypes import FLOAT32
    >>> made = Operand(maker=Maker("multiply"))
    >>> [str(found) for found in companies_of(FLOAT32, made, Operand(("zero",)), True, ())]
    ['a after multiply, b zero']
    """
    found: list[Company] = []
    slots: tuple[tuple[Literal["a", "b"], Operand, Operand], ...] = (("a", a, b), ("b", b, a))
    for slot, own, other in slots:
        if "run-time" not in own.held:
            continue
        for held in other.held:
            if held in NEUTRAL:
                befores = _befores(own, known) if has_neutral(element_type, held) else ()
                found += [Company(before, False, slot, held, False, is_static) for before in befores]
            else:
                found += _with_ordinary(element_type, slot, own.maker, held, is_static)
    return tuple(dict.fromkeys(found))


def _with_ordinary(
    element_type: ElementType, slot: Literal["a", "b"], maker: Maker | None, held: Other, is_static: bool
) -> Iterator[Company]:
    other: Other = "constant" if held == "number" else held
    if maker is not None and maker.kind == "cast" and is_cast_apart(element_type):
        yield Company("cast", False, slot, other, False, is_static)
    elif maker is not None and maker.kind not in ("", "cast"):
        yield Company(maker.kind, maker.has_constant, slot, other, maker.is_shared, is_static)
    elif held in _HELD:
        yield Company("", False, slot, held, False, is_static)


def is_cast_apart(element_type: ElementType) -> bool:
    """Whether a cast to a type may be left out by runtimes that compute the type in float32."""
    return element_type in (FLOAT16, BFLOAT16)


def has_neutral(element_type: ElementType, kind: Other) -> bool:
    """Whether a type has such constants, with which a node is yet no other one."""
    return element_type is FLOAT64 if kind == "almost neutral" else not element_type.is_integer


def _befores(own: Operand, known: Collection[str]) -> tuple[Before, ...]:
    if own.maker is None:
        return ("",)
    return tuple(known) if own.maker.kind in ("", "cast") else (own.maker.kind,)


def needed_of(
    outputs: Iterable[str], maker_of: Callable[[str], Node | None], reads: Callable[[Node], Iterable[str]]
) -> Iterator[Node]:
    """The nodes that outputs need, each once; what none needs runtimes leave out first, so that it shares nothing.

    Args:
        outputs: the names of the values that are given.
        maker_of: the node that makes a value, None for what no node of the graph makes.
        reads: the names of the values that a node reads.
    """
    waiting = list(outputs)
    found: set[int] = set()
    while waiting:
        node = maker_of(waiting.pop())
        if node is None or id(node) in found:
            continue
        found.add(id(node))
        waiting += reads(node)
        yield node


def held_as(array: np.ndarray) -> tuple[Other, ...]:
    """What a constant is, of which several may hold.

    >>> held_as(np.float32([0, -0.0])), held_as(np.float32(0)), held_as(np.float32([0, 1]))
    (('constant', 'zeros', '-zeros'), ('number', 'zero'), ('constant',))
    >>> held_as(np.float64(1e-60)), held_as(np.float64(0.1))
    (('number', 'almost neutral'), ('number',))
    """
    flat = array.reshape(-1)
    kind: Other = "number" if flat.size == 1 else "constant"
    signs: set[bool] = set()
    for start in range(0, flat.size, _AT_A_TIME):
        with np.errstate(all="ignore"):  # NaN may come as one that signals.
            part = flat[start : start + _AT_A_TIME].astype(np.float64)
            if part.any():
                return (kind, "almost neutral") if flat.size == 1 and _is_almost_neutral(part[0]) else (kind,)
        signs.update(np.signbit(part).tolist())
    return (kind, *(zeros_of(flat.size, sign) for sign in sorted(signs)))


def _is_almost_neutral(number: np.float64) -> bool:
    rounded = np.float32(number)
    return rounded in (0, 1) and rounded != number


def zeros_of(count: int, is_negative: bool) -> Other:
    """The name of so many zeros."""
    if is_negative:
        return "-zero" if count == 1 else "-zeros"
    return "zero" if count == 1 else "zeros"
