"""The cases of the tests, computed from the operator registry; the same for the same extent and seed.

A test is a variant, which is an operator version with an element type and a broadcast rule, and an operand source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Literal

import numpy as np

from eltwise.conformance.cases import CALL, SOURCE_NAMES, SOURCES, STATIC, Attributes, Case, Sizes
from eltwise.conformance.models import NEUTRAL_OPS
from eltwise.conformance.results import Extent
from eltwise.conformance.shape_pairs import FEW_ONTO, FEW_PAIRS, HARD_PAIRS, NUMPY_PAIRS, one_directional
from eltwise.conformance.value_cases import value_cases as of_values
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, is_arithmetic, stated_types
from eltwise.oracle import OracleRefusal, RuleName, array_of, hard_values, place

Operands = tuple[np.ndarray, ...]

TESTED = tuple(filter(stated_types, registry.ELEMENTWISE))
"""The operator versions that are tested. ``accuracy`` measures functions, of which no text states the bits."""

_SHARES: dict[Extent, int] = {"quick": 0, "usual": 8, "thorough": 1}
"""One of so many further shapes is tested, beside the chosen few; 0: none."""

_RANDOM: dict[Extent, int] = {"quick": 2000, "usual": 4000, "thorough": 20000}
_SCALARS: dict[Extent, int] = {"quick": 2, "usual": 32, "thorough": 1 << 16}
_ORDINARY = 256
_COMMON_RANK = 12
"""Runtimes that limit the rank have a higher limit."""

HIGH_RANK = 3
"""The kind of cases with a higher rank."""

_QUICK_REFUSED = 1
"""So many cases that must be refused are tested in a quick run with most operand sources: each takes its own model."""

_QUICK_SHARE = 4
"""A quick run tests one of so many shapes with a type, others with the next type: runtimes decide them by the version.

The first type has all of them, and every type has ``_ALWAYS``.
"""

_ALWAYS = {*FEW_PAIRS, *HARD_PAIRS, ((1, 2) * 6, (1, 2, 1))}

_WHOLE_SOURCES = ("static", CALL)
"""The operand sources that are tested with all shapes."""

_UNARY_SHAPES: tuple[Sizes, ...] = ((), (0,), (3,), (2, 3), (2, 0, 3), (1, 2) * 6, (2,) + (1,) * 63)
_TRIPLES: tuple[tuple[Sizes, ...], ...] = (((3,), (3,), (3,)), ((2, 1), (1, 3), ()), ((3,), (2, 3), (4, 1, 1)))
_MOST_OPERANDS = 4


@dataclass(frozen=True)
class Variant:
    """An operator version with an element type and a broadcast rule."""

    schema: ElementwiseSchema
    element_type: ElementType
    rule: RuleName | Literal["axis"]

    def __str__(self) -> str:
        return f"{self.schema}/{self.element_type}/{self.rule}"

    @property
    def attributes(self) -> Attributes:
        """The attributes that choose the rule; the default needs none."""
        has_default = self.schema.broadcasting != "auto_broadcast" or self.rule == "numpy"
        return () if has_default else (("auto_broadcast", self.rule),)

    @property
    def switched_on(self) -> Attributes:
        """The attributes that switch broadcasting on."""
        return (("broadcast", 1),) if self.rule == "legacy" else self.attributes

    @property
    def count(self) -> int:
        """The number of operands, 2 if there may be any number."""
        return self.schema.expression().operands

    @property
    def sources(self) -> tuple[str, ...]:
        """The operand sources that differ and can be built: a subtraction of 0 must have the type."""
        if not is_arithmetic(self.schema):
            return ("static", "b-constant", CALL) if len(self.schema.operands) > 1 else ("static", CALL)
        subtraction = registry.resolve(self.schema.domain, NEUTRAL_OPS[self.schema.domain], self.schema.version)
        same_type = self.schema.expression().result_type(self.element_type) is self.element_type
        has_neutral = same_type and subtraction is not None and self.element_type in subtraction.types
        left_out = [] if self.count > 1 else ["b-constant", "both-constant"]
        left_out += [] if has_neutral else ["neighbours"]
        return tuple(name for name in SOURCE_NAMES if name not in left_out)

    @property
    def has_neutral(self) -> bool:
        """Whether a subtraction of 0, which changes no bit, can be put around the operator in its model."""
        return "neighbours" in self.sources

    @property
    def is_quick(self) -> bool:
        """Whether a quick run tests it: rules other than NumPy's with one of four types, and others per operator."""
        is_chosen = self.schema.broadcasting == "auto_broadcast" and self.rule != "numpy"
        rank = self.schema.types.index(self.element_type) + TESTED.index(self.schema)
        return not is_chosen or rank % _QUICK_SHARE == 0

    def case(self, source: str, operands: Sequence[np.ndarray], attributes: Attributes | None = None) -> Case:
        """A case of this variant, by default with the attributes of the rule."""
        if self.schema.expression().divides and self.element_type.is_integer:
            operands = _without_undefined(self.element_type, *operands)
        chosen = self.attributes if attributes is None else attributes
        return Case(self.schema, chosen, tuple(operands), SOURCES.get(source, STATIC))


def variants() -> Iterator[Variant]:
    """Every variant that the registry has, in its order."""
    for schema in TESTED:
        rules: tuple[RuleName | Literal["axis"], ...] = ("none", "numpy", "pdpd")
        if schema.broadcasting == "auto_broadcast" and not is_arithmetic(schema):
            rules = ("numpy",)
        elif schema.broadcasting != "auto_broadcast":
            rules = (schema.broadcasting,)
        yield from (Variant(schema, element_type, rule) for element_type in stated_types(schema) for rule in rules)


@lru_cache(maxsize=256)  # Several runtimes run the same tests.
def cases_of(variant: Variant, source: str, extent: Extent, seed: int, checks: bool) -> tuple[Case, ...]:
    """The cases of a test; with ``checks`` also mixed types and attributes that the version does not have."""
    if not is_arithmetic(variant.schema):
        context = SOURCES.get(source, STATIC)
        return tuple(of_values(variant.schema, variant.element_type, context, _RANDOM[extent], seed))
    is_quick, is_whole = extent == "quick", source in _WHOLE_SOURCES
    type_index = variant.schema.types.index(variant.element_type)
    valid, refused = value_cases(variant, source, extent, seed), []
    for number, case in enumerate(layout_cases(variant, source, extent, seed)):
        shapes = tuple(operand.shape for operand in case.operands)
        has_share = type_index == 0 or not (is_quick and is_whole) or (number - type_index) % _QUICK_SHARE == 0
        if not case.is_valid:
            refused.append(case)
        elif has_share or shapes in _ALWAYS:
            valid.append(case)
    if is_quick and is_whole and type_index:
        refused = refused[type_index % _QUICK_SHARE :: _QUICK_SHARE] or refused[:1]
    elif is_quick and not is_whole:
        refused = refused[:_QUICK_REFUSED]
    refused += undefined_cases(variant)
    if checks and is_whole:
        refused += foreign_cases(variant)
    context = SOURCES.get(source, STATIC)
    return (*valid, *(replace(case, context=context, is_risky=True) for case in refused))


def kind_of(case: Case) -> int:
    """What a runtime is likely to take or to refuse as a whole.

    Equal shapes and what broadcasts wherever it is aligned; what needs ``axis``; high ranks; other numbers of operands.
    """
    shapes = [operand.shape for operand in case.operands]
    if len(shapes) != case.schema.expression().operands:
        return 4
    if max(map(len, shapes)) > _COMMON_RANK:
        return HIGH_RANK
    if case.rule == "numpy" or len(set(shapes)) == 1:
        return 0
    try:
        place("numpy", shapes[0], shapes[1])
    except OracleRefusal:
        return 2
    return 1


def value_cases(variant: Variant, source: str, extent: Extent, seed: int) -> list[Case]:
    """Hard values, random bit patterns and ordinary values on equal shapes, then spread by broadcasting.

    Types of up to 8 bits are tested with every combination of two values where that costs no model of its own size.
    """
    element_type, rule = variant.element_type, variant.rule
    case = partial(variant.case, source)
    cases = [case(_values(element_type, variant.count, extent, seed))]
    if element_type.bits <= 8 and (source in _WHOLE_SOURCES or extent != "quick"):
        cases.append(case(_all_values(element_type, variant.count)))
    hard = hard_values_of(element_type)
    if variant.schema.is_variadic:
        generator = np.random.default_rng(seed)
        for count in (1, *range(3, _MOST_OPERANDS + 1)):
            cases.append(case([generator.permutation(np.concatenate([hard] * 4)) for _index in range(count)]))
    for attribute in variant.schema.attributes:
        if attribute.kind == "boolean":
            other: Attributes = (*variant.attributes, (attribute.name, not attribute.default))
            cases.append(case(cases[0].operands, other))
    if rule == "none" or variant.count == 1:
        return cases
    # Every hard value with every other by broadcasting: a column and a row, or a matrix and a row.
    column = hard.reshape(-1, 1)
    spread = (column, hard.reshape(1, -1)) if rule == "numpy" else (np.repeat(column, hard.size, axis=1), hard)
    cases.append(case(spread, variant.switched_on))
    if source in (*_WHOLE_SOURCES, "dynamic"):
        for scalar in hard[:: -(-hard.size // _SCALARS[extent])]:
            cases.append(case((hard, np.array(scalar)), variant.switched_on))
    return cases


def hard_values_of(element_type: ElementType) -> np.ndarray:
    """The values on which runtimes are known to differ; both values of a boolean."""
    return hard_values.hard_values(element_type) if element_type.is_numeric else array_of(element_type, (0, 1))


@cache
def _values(element_type: ElementType, count: int, extent: Extent, seed: int) -> Operands:
    pairs = _pairs(hard_values_of(element_type), count)
    if not element_type.is_numeric:
        return pairs
    drawn = [hard_values.random_bits(element_type, _RANDOM[extent], seed + offset) for offset in range(count)]
    plain = [hard_values.ordinary(element_type, _ORDINARY, seed + offset) for offset in range(count)]
    return tuple(map(_fixed, map(np.concatenate, zip(pairs, drawn, plain, strict=True))))


@cache
def _all_values(element_type: ElementType, count: int) -> Operands:
    return _pairs(array_of(element_type, range(1 << (element_type.bits if element_type.is_numeric else 1))), count)


def _pairs(values: np.ndarray, count: int) -> Operands:
    """Every value alone, or with every other."""
    return tuple(
        map(_fixed, (values,) if count == 1 else (np.repeat(values, values.size), np.tile(values, values.size)))
    )


def _fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@cache
def _pool(element_type: ElementType, seed: int) -> np.ndarray:
    """What the operands of layouts are drawn from: hard values and random ones."""
    hard = hard_values_of(element_type)
    drawn = [hard_values.random_bits(element_type, 256, seed)] if element_type.is_numeric else []
    return _fixed(np.concatenate([hard, *drawn]))


def layout_cases(variant: Variant, source: str, extent: Extent, seed: int) -> list[Case]:
    """A case for each combination of shapes and attributes, valid or not, filled with hard and random values."""
    return [
        variant.case(source, _filled(variant.element_type, shapes, seed), attributes)
        for attributes, shapes in dict.fromkeys(_layouts(variant, source, extent))
        if source != "dynamic" or any(shapes)  # Nothing of scalars is dynamic.
    ]


@cache
def _filled(element_type: ElementType, shapes: tuple[Sizes, ...], seed: int) -> Operands:
    """Operands of these shapes, drawn by the shapes alone: the results for every source and version are the same."""
    pool = _pool(element_type, seed)
    generator = np.random.default_rng([seed, *shapes[0], pool.size, *(size for one in shapes[1:] for size in one)])
    return tuple(_fixed(np.asarray(pool[generator.integers(0, pool.size, size=sizes)])) for sizes in shapes)


def _layouts(variant: Variant, source: str, extent: Extent) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    """The attributes and shapes: the chosen few, and the share of all others that the extent has."""
    whole = source in _WHOLE_SOURCES
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


def _without_undefined(element_type: ElementType, a: np.ndarray, b: np.ndarray) -> Operands:
    """Integers to divide: no 0 as a divisor, and not the least value, which may meet -1."""
    low, _high = element_type.limits
    kind = element_type.storage.type
    a = np.where(a == kind(low), kind(low + 1), a) if low < 0 else a
    return np.asarray(a), np.asarray(np.where(b == kind(0), kind(1), b))


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
