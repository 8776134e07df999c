"""The cases that show what a runtime does with a node and what stands around it, one list a company. Pure.

Each has a few hard numbers against each other and numbers with all their digits, which show a step that is rounded
once instead of twice; as constants stand arrays and single numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

import numpy as np

from eltwise import oracle
from eltwise.conformance.cases import Around, Attributes, Case
from eltwise.conformance.questions import Subject as Question
from eltwise.core.dtypes import FLOAT32, ElementType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values
from eltwise.passes.company import Before, Company, all_companies, has_neutral, is_cast_apart
from eltwise.passes.plain import plain_places

Chained = tuple[Company, Case]

_HARD = 4
"""So many hard numbers are taken beside zeros and one, of which each stands beside each."""

_DENSE = 160
_ALMOST_NEUTRAL = (1e-60, -1e-60, 1 + 2.0**-40, 1 - 2.0**-40)


@dataclass(frozen=True, eq=False)
class _Pool:
    """Numbers of a type: three arrays of one length, one of float32 that a cast takes, and single ones."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray
    wide: np.ndarray
    single: np.ndarray
    numbers: tuple[np.ndarray, ...]
    ones: tuple[np.ndarray, ...]


def chained_cases(question: Question, seed: int) -> Iterator[Chained]:
    """The cases of each company that a subject can be in, each company's together."""
    makers = _makers(question)
    for company in all_companies():
        maker = makers.get(company.before)
        if company.before not in ("", "cast") and maker is None:
            continue
        if company.before == "cast" and not is_cast_apart(question.element_type):
            continue
        if company.is_with_neutral and not has_neutral(question.element_type, company.other):
            continue
        for case in _cases(question, company, maker, _pool(question.element_type, seed)):
            if case.works:
                yield company, case


def _makers(question: Question) -> dict[Before, ElementwiseSchema]:
    """The operator versions that may stand before, by what they compute."""
    found: dict[Before, ElementwiseSchema] = {}
    for name in dict.fromkeys(schema.name for schema in registry.ELEMENTWISE):
        schema = registry.resolve(question.schema.domain, name, question.schema.version)
        if isinstance(schema, ElementwiseSchema) and question.element_type in schema.types:
            found[schema.function] = schema
    return found


def _cases(question: Question, company: Company, maker: ElementwiseSchema | None, pool: _Pool) -> Iterator[Case]:
    for other in _others(company, pool):
        for operands, constant in _made_of(company, maker, pool):
            case = _case(question, company, maker, other, operands, constant)
            if case.works:
                yield case
                continue
            # Where a single number does not broadcast, the other operand is one, too.
            for number in pool.ones if other.size == 1 else ():
                yield _case(question, company, maker, other, (number, pool.single), constant)


def _others(company: Company, pool: _Pool) -> tuple[np.ndarray, ...]:
    """What the operand is that no node makes."""
    zero = np.zeros_like(pool.third)
    by_kind: dict[str, tuple[np.ndarray, ...]] = {
        "run-time": (pool.third,),
        "constant": (pool.third, pool.single) if company.before else (pool.third,),
        "number": pool.numbers,
        "zero": (zero[:1],),
        "-zero": (-zero[:1],),
        "zeros": (zero,),
        "-zeros": (-zero,),
        "almost neutral": tuple(np.array([number]).astype(zero.dtype) for number in _ALMOST_NEUTRAL),
    }
    return by_kind[company.other]


def _made_of(
    company: Company, maker: ElementwiseSchema | None, pool: _Pool
) -> Iterator[tuple[tuple[np.ndarray, np.ndarray], str]]:
    """The operands of the node before, and which of them is a constant."""
    if company.before == "cast":
        yield (pool.wide, pool.wide), ""
        return
    if not company.has_constant or maker is None:
        yield (pool.first, pool.second), ""
        return
    yield (pool.first, pool.second), "y"
    yield (pool.first, pool.single), "y"
    if not _commutes(maker):
        yield (pool.first, pool.second), "x"
        if maker.broadcasting != "legacy":
            yield (pool.single, pool.second), "x"


def _commutes(maker: ElementwiseSchema) -> bool:
    steps = maker.expression().steps
    return len(steps) > 1 or steps[0].definition.commutes


def _case(
    question: Question,
    company: Company,
    maker: ElementwiseSchema | None,
    other: np.ndarray,
    operands: tuple[np.ndarray, np.ndarray],
    constant: str,
) -> Case:
    own = operands[0] if maker is None else _made(maker.function, *map(_Content, operands))
    if company.before == "cast":
        with np.errstate(over="ignore"):
            own = operands[0].astype(question.element_type.storage)
    beside = "b" if company.slot == "a" else "a"
    constants = (*constant, *(() if company.other == "run-time" else (beside,)))
    around = Around(
        maker,
        company.before == "cast",
        company.slot,
        *operands,
        constants,
        is_dynamic=not company.is_static,
        is_shared=company.is_shared,
        is_followed=company.is_with_neutral,
    )
    a, b = (own, other) if company.slot == "a" else (other, own)
    return Case(question.schema, _attributes(question, a, b), a, b, around)


class _Content:
    """An array by what it holds, so that the oracle, which is slow, is asked once for the same."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self._key = (array.dtype, array.shape, array.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=256)
def _made(formula: str, x: _Content, y: _Content) -> np.ndarray:
    """What the node before makes."""
    return oracle.evaluate(formula, x.array, y.array, "numpy")


def _attributes(question: Question, a: np.ndarray, b: np.ndarray) -> Attributes:
    return (("broadcast", 1),) if question.rule == "legacy" and a.shape != b.shape else question.attributes


@cache
def _pool(element_type: ElementType, seed: int) -> _Pool:
    hard = hard_values.hard_values(element_type)
    with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
        plain = hard[plain_places(hard, element_type) & (hard != 0)]
    zeros = np.array([0.0, -0.0] if not element_type.is_integer else [0]).astype(element_type.storage)
    one = np.array([1]).astype(element_type.storage)
    few = np.concatenate([zeros, one, plain[np.linspace(0, plain.size - 1, _HARD).astype(int)]])
    grid = np.array(list(product(range(few.size), repeat=3))).T
    dense = [hard_values.of_all_digits(element_type, _DENSE, seed + number) for number in range(3)]
    first, second, third = (np.concatenate([few[places], part]) for places, part in zip(grid, dense, strict=True))
    wide = np.concatenate([[0.0, -0.0, np.inf], hard_values.of_all_digits(FLOAT32, first.size - 3, seed)]).astype(
        np.float32
    )
    single = dense[0][:1]
    others = () if element_type.is_integer else (-1.0, 0.5)
    numbers = (single, *(np.array([number]).astype(single.dtype) for number in others))
    ones = tuple(few[place : place + 1] for place in range(zeros.size + 1))
    return _Pool(first, second, third, wide, single, numbers, ones)
