"""The cases of the tests, computed from the operator registry; the same for the same extent and seed.

A test is a variant, which is an operator version with an element type and a broadcast rule, and an operand source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial

import numpy as np

from eltwise.conformance.cases import SOURCES, STATIC, Attributes, Case, Sizes
from eltwise.conformance.operators import TESTED
from eltwise.conformance.results import Extent
from eltwise.conformance.shape_pairs import FEW_ONTO, FEW_PAIRS, HARD_PAIRS, NUMPY_PAIRS, one_directional
from eltwise.conformance.value_cases import value_cases as of_values
from eltwise.conformance.variants import QUICK_SHARE, WHOLE_SOURCES, Variant
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.ops.casts import is_cast
from eltwise.ops.schema import is_arithmetic
from eltwise.oracle import OracleRefusal, array_of, hard_values, place
from eltwise.oracle.domain import is_defined

Operands = tuple[np.ndarray, ...]

_SHARES: dict[Extent, int] = {"quick": 0, "usual": 8, "thorough": 1}
"""One of so many further shapes is tested, beside the chosen few; 0: none."""

_RANDOM: dict[Extent, int] = {"quick": 2000, "usual": 4000, "thorough": 20000}
_SCALARS: dict[Extent, int] = {"quick": 2, "usual": 32, "thorough": 1 << 16}
_FEWER_OF_CASTS = 4
"""Casts are tested with every pair of types, each with so much fewer random values."""

_ORDINARY = 256
_COMMON_RANK = 12
"""Runtimes that limit the rank have a higher limit."""

HIGH_RANK = 3
"""The kind of cases with a higher rank."""

_ALWAYS = {*FEW_PAIRS, *HARD_PAIRS, ((1, 2) * 6, (1, 2, 1))}
"""The shapes that every type is tested with."""

_UNARY_SHAPES: tuple[Sizes, ...] = ((), (0,), (3,), (2, 3), (2, 0, 3), (1, 2) * 6, (2,) + (1,) * 63)
_TRIPLES: tuple[tuple[Sizes, ...], ...] = (((3,), (3,), (3,)), ((2, 1), (1, 3), ()), ((3,), (2, 3), (4, 1, 1)))
_MOST_OPERANDS = 4


@lru_cache(maxsize=256)  # Several runtimes run the same tests.
def cases_of(
    variant: Variant, source: str, extent: Extent, seed: int, checks: bool, is_thin: bool = False
) -> tuple[Case, ...]:
    """The cases of a test; with ``checks`` also mixed types and attributes that the version does not have.

    If thin, only those without which nothing would be tested: all values once, few shapes, and no optional attributes.
    """
    context, is_whole = SOURCES.get(source, STATIC), source in WHOLE_SOURCES
    if not is_arithmetic(variant.schema):
        count = _RANDOM[extent] // (_FEWER_OF_CASTS if is_cast(variant.schema) else 1)
        valid = list(of_values(variant.schema, variant.element_type, context, count, seed, is_thin=is_thin))
        refused = list[Case]()
    else:
        valid, refused = _arithmetic_cases(variant, source, extent, seed, is_thin)
        refused += foreign_cases(variant) if checks and is_whole else ()
        if extent == "quick":
            refused = refused[:1] if is_thin else _share_of(refused, variant.type_index, is_whole)
    refused += undefined_cases(variant) if is_whole or is_arithmetic(variant.schema) else ()
    return (*valid, *(replace(case, context=context, is_risky=True) for case in refused))


def _share_of(refused: list[Case], turn: int, is_whole: bool) -> list[Case]:
    """What a quick run tests of what must be refused, each of which takes a model of its own: a share a type."""
    if is_whole:
        return refused[turn % QUICK_SHARE :: QUICK_SHARE] if turn else refused
    return [] if turn % QUICK_SHARE else refused[:1]


def _arithmetic_cases(
    variant: Variant, source: str, extent: Extent, seed: int, is_thin: bool
) -> tuple[list[Case], list[Case]]:
    """Those that must work, and those whose shapes must be refused."""
    has_share, turn = extent == "quick" and source in WHOLE_SOURCES, variant.type_index
    valid, refused = value_cases(variant, source, extent, seed), list[Case]()
    if is_thin:
        valid = valid[:1]
    for number, case in enumerate(layout_cases(variant, source, extent, seed)):
        shapes = tuple(operand.shape for operand in case.operands)
        is_taken = turn == 0 or not has_share or (number - turn) % QUICK_SHARE == 0
        if not case.is_valid:
            refused.append(case)
        elif shapes in _ALWAYS or (is_taken and not is_thin):
            valid.append(case)
    return valid, refused


def kind_of(case: Case) -> int:
    """What a runtime is likely to take or to refuse as a whole.

    Equal shapes and what broadcasts wherever it is aligned; what needs ``axis``; high ranks; other numbers of operands.
    """
    shapes = [operand.shape for operand in case.read]
    if len(shapes) != case.schema.expression().operands:
        return 4
    if max(map(len, shapes)) > _COMMON_RANK:
        return HIGH_RANK
    if case.rule == "numpy" or len(set(shapes)) == 1:
        return 0
    try:
        place("numpy", shapes[:2])
    except OracleRefusal:
        return 2
    return 1


def value_cases(variant: Variant, source: str, extent: Extent, seed: int) -> list[Case]:
    """Hard values, random bit patterns and ordinary values on equal shapes, then spread by broadcasting.

    Types of up to 8 bits are tested with every combination of two values where that costs no model of its own size.
    """
    element_type, rule, count, function = variant.element_type, variant.rule, variant.count, _limited(variant)
    case = partial(variant.case, source)
    cases = [case(_values(function, element_type, count, extent, seed))]
    if element_type.bits <= 8 and (source in WHOLE_SOURCES or extent != "quick"):
        cases.append(case(_all_values(function, element_type, count)))
    if variant.schema.is_variadic:
        generator, hard = np.random.default_rng(seed), hard_values_of(element_type)
        for number in (1, *range(3, _MOST_OPERANDS + 1)):
            cases.append(case([generator.permutation(np.concatenate([hard] * 4)) for _index in range(number)]))
    for attribute in variant.schema.attributes:
        if attribute.kind == "boolean":
            other: Attributes = (*variant.attributes, (attribute.name, not attribute.default))
            cases.append(case(cases[0].operands, other))
    if rule == "none" or count == 1:
        return cases
    # Every hard value with every other by broadcasting: a column and a row, or a matrix and a row.
    hard, row = (_defined(function, index, hard_values_of(element_type)) for index in (0, 1))
    column = hard.reshape(-1, 1)
    spread = (column, row.reshape(1, -1)) if rule == "numpy" else (np.repeat(column, row.size, axis=1), row)
    cases.append(case(spread, variant.switched_on))
    if source in (*WHOLE_SOURCES, "dynamic"):
        for scalar in row[:: -(-row.size // _SCALARS[extent])]:
            cases.append(case((hard, np.array(scalar)), variant.switched_on))
    return cases


def hard_values_of(element_type: ElementType) -> np.ndarray:
    """The values on which runtimes are known to differ; both values of a boolean."""
    return hard_values.hard_values(element_type) if element_type.is_numeric else array_of(element_type, (0, 1))


def _limited(variant: Variant) -> str:
    """The function of a variant that does not define results for all values; empty for others, which share operands."""
    return variant.schema.function if variant.schema.expression().divides else ""


def _defined(function: str, index: int, values: np.ndarray) -> np.ndarray:
    """Those of some values that an operand may have."""
    return np.asarray(values[is_defined(function, index, values, {})])


def _where_defined(function: str, operands: Sequence[np.ndarray]) -> Operands:
    """The elements of operands of one shape that have defined results together."""
    flags = [is_defined(function, index, operand, {}) for index, operand in enumerate(operands)]
    return tuple(_fixed(operand[np.logical_and.reduce(flags)]) for operand in operands)


@cache
def _values(function: str, element_type: ElementType, count: int, extent: Extent, seed: int) -> Operands:
    parts = [_pairs(hard_values_of(element_type), count)]
    if element_type.is_numeric:
        seeds = range(seed, seed + count)
        parts.append([hard_values.random_bits(element_type, _RANDOM[extent], each) for each in seeds])
        parts.append([hard_values.ordinary(element_type, _ORDINARY, each) for each in seeds])
    return _where_defined(function, [np.concatenate(columns) for columns in zip(*parts, strict=True)])


@cache
def _all_values(function: str, element_type: ElementType, count: int) -> Operands:
    patterns = range(1 << (element_type.bits if element_type.is_numeric else 1))
    return _where_defined(function, _pairs(array_of(element_type, patterns), count))


def _pairs(values: np.ndarray, count: int) -> list[np.ndarray]:
    """Every value alone, or with every other."""
    return [values] if count == 1 else [np.repeat(values, values.size), np.tile(values, values.size)]


def _fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@cache
def _pool(function: str, index: int, element_type: ElementType, seed: int) -> np.ndarray:
    """What an operand of layouts is drawn from: hard values and random ones."""
    hard = hard_values_of(element_type)
    drawn = [hard_values.random_bits(element_type, 256, seed)] if element_type.is_numeric else []
    return _fixed(_defined(function, index, np.concatenate([hard, *drawn])))


def layout_cases(variant: Variant, source: str, extent: Extent, seed: int) -> list[Case]:
    """A case for each combination of shapes and attributes, valid or not, filled with hard and random values."""
    return [
        variant.case(source, _filled(_limited(variant), variant.element_type, shapes, seed), attributes)
        for attributes, shapes in dict.fromkeys(_layouts(variant, source, extent))
        if source != "dynamic" or any(shapes)  # Nothing of scalars is dynamic.
    ]


@cache
def _filled(function: str, element_type: ElementType, shapes: tuple[Sizes, ...], seed: int) -> Operands:
    """Operands of these shapes, drawn by the shapes alone: the results for every source and version are the same."""
    pools = [_pool(function, index, element_type, seed) for index in range(len(shapes))]
    generator = np.random.default_rng([seed, *shapes[0], pools[0].size, *(size for one in shapes[1:] for size in one)])
    return tuple(
        _fixed(np.asarray(pool[generator.integers(0, pool.size, size=sizes)]))
        for pool, sizes in zip(pools, shapes, strict=True)
    )


def _layouts(variant: Variant, source: str, extent: Extent) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    """The attributes and shapes: the chosen few, and the share of all others that the extent has."""
    whole = source in WHOLE_SOURCES
    attributes, switched_on = variant.attributes, variant.switched_on
    if variant.count == 1:
        yield from ((attributes, (sizes,)) for sizes in _UNARY_SHAPES)
        return
    if variant.schema.is_variadic:
        yield from ((attributes, shapes) for shapes in (((3,),), ((2, 3),), *_TRIPLES))
    share = _SHARES[extent] if whole or extent == "thorough" else 0
    if variant.rule in ("numpy", "none"):
        yield from ((attributes, shapes) for shapes in (NUMPY_PAIRS if whole or share else FEW_PAIRS))
        return
    if variant.rule == "legacy":
        yield from (((), shapes) for shapes in (((2, 3), (2, 3)), ((), ()), ((3, 3), (3,)), ((2, 3), ())))
        yield (("broadcast", 0), ("axis", 0)), ((3, 3), (3,))
        if share:
            yield from (((), shapes) for shapes in NUMPY_PAIRS[::share])
    onto = list(one_directional())[::share] if share else []
    for a, b, axis in (*(FEW_ONTO if whole else FEW_ONTO[::3]), *onto):
        yield switched_on if axis is None else (*switched_on, ("axis", axis)), (a, b)


def undefined_cases(variant: Variant) -> Iterator[Case]:
    """Integers divided by 0, for which any answer will do, and the least value divided by -1, on which some crash."""
    element_type = variant.element_type
    if not variant.schema.expression().divides or not element_type.is_integer:
        return
    low, high = element_type.limits
    one = np.ones(1, element_type.storage)
    yield Case(variant.schema, variant.attributes, (one, np.zeros_like(one)))
    if low < 0:
        least, minus_one = (array_of(element_type, (bits,)) for bits in (high + 1, 2 * high + 1))
        yield Case(variant.schema, variant.attributes, (least, minus_one))


def foreign_cases(variant: Variant) -> Iterator[Case]:
    """What must be refused whatever the shapes: operands of two types, and attributes of other versions."""
    schema, element_type = variant.schema, variant.element_type
    ones = np.ones(2, element_type.storage)
    if variant.count > 1:
        same_size = [other for other in TYPES if other.bits == element_type.bits and other is not element_type]
        another = [other for other in schema.types if other is not element_type]
        for second in dict.fromkeys((*same_size[:1], *another[:1])):
            if second in schema.types:
                yield Case(schema, variant.attributes, (ones, np.ones(2, second.storage)))
    known = set(schema.attribute_names)
    for candidate in TESTED:
        for attribute in candidate.attributes if candidate.name == schema.name else ():
            if attribute.name not in known:
                known.add(attribute.name)
                value = (0,) if attribute.kind == "ints" else 0
                yield Case(schema, (*variant.attributes, (attribute.name, value)), (ones,) * variant.count)
