"""The cases that show what a runtime does in each situation that a rule can be about. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np

from eltwise import oracle
from eltwise.conformance.cases import SOURCES, Attributes, Case, Context
from eltwise.conformance.suite import Variant, layout_cases
from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, ElementType
from eltwise.core.shapes import of_sizes
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values
from eltwise.targets.constants import NEUTRAL, Held, has_neutral, has_others_than_plain, plain_numbers
from eltwise.targets.finding_sites import PRODUCERS
from eltwise.targets.generalize import Key
from eltwise.targets.sites import HIGHEST_ORDINARY_RANK, Pair, Pattern, is_narrow, patterns_of

_SCALARS = 16
_DIGITS = 96
_HELD: tuple[Held, ...] = ("constant", "number")
_GIVEN: tuple[Held, ...] = ("run-time", "constant")
_Shaped = tuple[Pattern, Attributes, np.ndarray, np.ndarray]


def node_cases(variant: Variant, seed: int) -> Iterator[tuple[Key, Case]]:
    """The cases of every operand source and pattern of shapes."""
    element_type = variant.element_type
    contexts = {name: found for name, found in SOURCES.items() if variant.has_neutral or not found.has_neutral}
    if has_others_than_plain(element_type):
        contexts |= {"a-plain": Context(constants=(0,)), "b-plain": Context(constants=(1,))}
    if is_narrow(element_type) and variant.has_neutral:
        contexts["read-wider"] = Context(consumer="Cast")
    for (source, context), (pattern, case) in product(contexts.items(), _shaped(variant, seed)):
        # Nothing of scalars is dynamic, and a model of unknown sizes does not tell that one is 0.
        if source == "dynamic" and pattern in ("scalars", "empty"):
            continue
        made = replace(case, context=context)
        if source.endswith("-plain"):
            made = _with_plain(made, context.constants[0], seed)
        yield (source, pattern), made


def _with_plain(case: Case, index: int, seed: int) -> Case:
    """The case with other numbers in place of those that are not plain."""
    pool = _hard(case.element_type)
    pool = pool[plain_numbers(pool, case.element_type)]
    operand = case.operands[index]
    others = np.random.default_rng(seed).choice(pool, operand.shape)
    plain = np.asarray(np.where(plain_numbers(operand, case.element_type), operand, others))
    return replace(case, operands=tuple(plain if number == index else one for number, one in enumerate(case.operands)))


def _shaped(variant: Variant, seed: int) -> list[tuple[Pattern, Case]]:
    """The cases by how their shapes lie: every pair of hard values in each, numbers of all digits, and more shapes."""
    made = [*_of_values(variant, seed), *(_of_broadcasts(variant) if variant.rule != "none" else ())]
    found = [(pattern, variant.case((a, b), attributes)) for pattern, attributes, a, b in made]
    cases = [case for case in layout_cases(variant, "static", "quick", seed) if len(case.operands) == 2]
    return [*found, *((pattern_of(case), case) for case in cases if case.is_valid)]


def _of_values(variant: Variant, seed: int) -> Iterator[_Shaped]:
    hard, attributes = _hard(variant.element_type), variant.attributes
    first, second = np.tile(hard, hard.size), np.repeat(hard, hard.size)
    high = (1,) * HIGHEST_ORDINARY_RANK
    digits = [hard_values.of_all_digits(variant.element_type, _DIGITS, seed + number) for number in range(2)]
    yield "equal", attributes, first, second
    yield "equal", attributes, digits[0], digits[1]
    yield "high-rank", attributes, first.reshape(*high, -1), second.reshape(*high, -1)
    yield "empty", attributes, hard[:0], hard[:0]


def _of_broadcasts(variant: Variant) -> Iterator[_Shaped]:
    hard, attributes, switched_on = _hard(variant.element_type), variant.attributes, variant.switched_on
    matrix = np.tile(hard, hard.size).reshape(hard.size, hard.size)
    high = matrix.reshape(*(1,) * HIGHEST_ORDINARY_RANK, *matrix.shape)
    singles = [np.asarray(number) for number in hard[:: max(1, hard.size // _SCALARS)]]
    for one, other in zip(singles, singles[::-1], strict=True):
        yield "broadcast", switched_on, hard, one
        yield "broadcast", switched_on, hard, one.reshape(1)
        yield "scalars", attributes, one, other
    if variant.rule == "numpy":
        yield from (("broadcast", attributes, one, hard) for one in singles)
        yield "broadcast", attributes, hard.reshape(-1, 1), hard
        yield "high-rank", attributes, high, hard
    else:
        yield "broadcast", switched_on, matrix, hard
        yield "inside", (*switched_on, ("axis", 0)), matrix, hard
        yield "high-rank", (*switched_on, ("axis", HIGHEST_ORDINARY_RANK)), high, hard


def pattern_of(case: Case) -> Pattern:
    """How the shapes of a case lie."""
    axis = dict(case.attributes).get("axis", -1)
    rule = Rule(case.rule, axis if isinstance(axis, int) else -1)
    return patterns_of(rule, *(of_sizes(operand.shape) for operand in case.operands))[0]


def pair_cases(variant: Variant, seed: int) -> Iterator[tuple[Pair, Case]]:
    """The cases of every pair that a node can be in: what makes one operand, and what the other is."""
    element_type, domain = variant.element_type, variant.schema.domain
    makers: dict[str, str] = {}
    for schema in registry.ELEMENTWISE:
        found = registry.resolve(domain, schema.name, variant.schema.version) if schema.domain == domain else None
        if isinstance(found, ElementwiseSchema) and found.function in PRODUCERS[domain] and element_type in found.types:
            makers[found.function] = str(found)
    for operand, sizes in product("ab", ("known", "unknown")):
        for producer, other, readers in product(makers, _GIVEN, ("one", "several")):
            for name in (producer, f"{producer}-constant"):
                yield from _of_pair(variant, Pair(operand, name, other, readers, sizes), makers[producer], seed)
        for held in _HELD:
            yield from _of_pair(variant, Pair(operand, "none", held, "one", sizes), "", seed)
        for held in _GIVEN if element_type in (FLOAT16, BFLOAT16) else ():
            yield from _of_pair(variant, Pair(operand, "cast", held, "one", sizes), "Cast", seed)
        for held, producer in product(NEUTRAL, ("none", *makers)):
            if has_neutral(element_type, held):
                yield from _of_pair(
                    variant, Pair(operand, producer, held, "one", sizes), makers.get(producer, ""), seed
                )


def _of_pair(variant: Variant, pair: Pair, maker: str, seed: int) -> Iterator[tuple[Pair, Case]]:
    first, second, third = _pools(variant.element_type, seed)
    produced = "ab".index(pair.operand)
    around: tuple[np.ndarray, ...] = ()
    own = first
    if maker == "Cast":
        around = (hard_values.of_all_digits(FLOAT32, first.size, seed),)
        with np.errstate(over="ignore"):
            own = around[0].astype(first.dtype)
    elif maker:
        around = (first, second)
        own = oracle.evaluate(pair.producer.removesuffix("-constant"), first, second, rule="numpy")
    inner = [2 + 1] if pair.producer.endswith("-constant") else []
    outer = [1 - produced] if pair.other != "run-time" else []
    context = Context(
        (*outer, *inner),
        pair.sizes == "unknown",
        maker,
        produced,
        pair.readers == "several",
        "neutral" if pair.other in NEUTRAL and variant.has_neutral else "",
    )
    for other in _others(pair, third):
        operands = (own, other) if produced == 0 else (other, own)
        attributes = variant.switched_on if other.shape != own.shape else None
        yield pair, replace(variant.case(operands, attributes), context=context, around=around)


def _others(pair: Pair, third: np.ndarray) -> list[np.ndarray]:
    """What the operand is that no node makes."""
    zero = np.zeros_like(third)
    almost = [np.array([number]).astype(third.dtype) for number in (1e-60, -1e-60, 1 + 2.0**-40, 1 - 2.0**-40)]
    numbers = [np.array([number]).astype(third.dtype) for number in (3, 5, 1)]
    by_kind = {
        "run-time": [third],
        "constant": [third, third[-1:]] if pair.producer != "none" else [third],
        "number": numbers,
        "zero": [zero[:1]],
        "-zero": [-zero[:1]],
        "zeros": [zero],
        "-zeros": [-zero],
        "almost-neutral": almost,
    }
    return by_kind[pair.other]


@cache
def _pools(element_type: ElementType, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three arrays of one length: a few plain hard numbers, zeros and one in all combinations, then digits."""
    hard = _hard(element_type)
    with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
        plain = hard[plain_numbers(hard, element_type) & (hard != 0)]
    zeros = np.array([0] if element_type.is_integer else [0.0, -0.0]).astype(element_type.storage)
    few = np.concatenate(
        [zeros, np.array([1]).astype(zeros.dtype), plain[np.linspace(0, plain.size - 1, 4).astype(int)]]
    )
    grid = np.array(list(product(range(few.size), repeat=3))).T
    digits = [hard_values.of_all_digits(element_type, _DIGITS, seed + number) for number in range(3)]
    first, second, third = (np.concatenate([few[one], part]) for one, part in zip(grid, digits, strict=True))
    return first, second, third


def _hard(element_type: ElementType) -> np.ndarray:
    return hard_values.hard_values(element_type)
