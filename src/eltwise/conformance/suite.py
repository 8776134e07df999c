"""The cases of the tests, computed from the operator registry; the same for the same extent and seed.

A test is a variant, which is an operator version with an element type and a broadcast rule, and an operand source. The
cases of a group are put into one model, since a model costs more than its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from eltwise.conformance.cases import DIVISIONS, Attributes, Case, Sizes
from eltwise.conformance.contexts import CALL, SOURCES, STATIC
from eltwise.conformance.results import Extent
from eltwise.conformance.shape_pairs import FEW_ONTO, FEW_PAIRS, NUMPY_PAIRS, one_directional
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.ops import registry
from eltwise.ops.schema import Domain, ElementwiseSchema
from eltwise.oracle import OracleRefusal, RuleName, array_of, hard_values, place

Groups = tuple[tuple[Case, ...], ...]
Operands = tuple[np.ndarray, ...]

SHARES: dict[Extent, int] = {"quick": 0, "usual": 8, "thorough": 1}
"""One of so many further shapes is tested, beside the chosen few; 0: none."""

NEUTRAL_OPS: dict[Domain, tuple[Domain, str]] = {
    "ai.onnx": ("ai.onnx", "Sub"),
    "openvino": ("openvino", "Subtract"),
}

_MOST_TOGETHER = 64
_COMMON_RANK = 12
"""Runtimes that limit the rank have a higher limit."""

_RANDOM: dict[Extent, int] = {"quick": 2000, "usual": 4000, "thorough": 20000}
_SCALARS: dict[Extent, int] = {"quick": 8, "usual": 32, "thorough": 1 << 16}
_ORDINARY = 256
_FEW_REFUSED = 3
"""So many cases that must be refused are tested with most operand sources: each takes a model of its own."""

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
    rule: RuleName

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
        return operand_count(self.schema)

    @property
    def has_neutral(self) -> bool:
        """Whether a subtraction of 0, which changes no bit, can be put around the operator in its model."""
        if self.schema.expression().result_type(self.element_type) is not self.element_type:
            return False
        subtraction = registry.resolve(*NEUTRAL_OPS[self.schema.domain], self.schema.version)
        return subtraction is not None and self.element_type in subtraction.types

    def case(self, operands: Sequence[np.ndarray], attributes: Attributes | None = None) -> Case:
        """A case of this variant, by default with the attributes of the rule."""
        made = Case(self.schema, self.attributes if attributes is None else attributes, tuple(operands))
        return _without_undefined(made) if self.schema.function in DIVISIONS else made


def operand_count(schema: ElementwiseSchema) -> int:
    """The number of operands, 2 if there may be any number."""
    return schema.expression().operands


def variants() -> Iterator[Variant]:
    """Every variant that the registry has, in its order."""
    for schema in registry.ELEMENTWISE:
        for element_type in schema.types:
            for rule in rules_of(schema):
                yield Variant(schema, element_type, rule)


def rules_of(schema: ElementwiseSchema) -> tuple[RuleName, ...]:
    """The broadcast rules that an operator version has."""
    if schema.broadcasting != "auto_broadcast":
        return (schema.broadcasting,)
    return ("none", "numpy", "pdpd")


@lru_cache(maxsize=64)  # Several runtimes run the same tests at about the same time.
def groups(variant: Variant, source: str, extent: Extent, seed: int, checks: bool) -> Groups:
    """The cases of a test; with ``checks`` also mixed types and attributes that the version does not have."""
    values = value_cases(variant, source, extent, seed)
    valid: list[Case] = []
    refused: list[Case] = []
    for case in layout_cases(variant, source, extent, seed):
        (valid if case.is_valid else refused).append(case)
    if extent == "quick" and source not in _WHOLE_SOURCES:
        refused = refused[:_FEW_REFUSED]
    if extent == "quick":
        alone = 1 if source == "static" else 0
        values, valid = values[:alone], [*values[alone:], *valid]
    together = 1 if extent == "thorough" else _MOST_TOGETHER
    made = [
        *((case,) for case in values),
        *(bundle for kind in _kinds(valid) for bundle in _bundles(kind, together)),
        *((case,) for case in refused),
        *((case,) for case in undefined_cases(variant)),
    ]
    if checks and source in _WHOLE_SOURCES:
        made += [(case,) for case in foreign_cases(variant)]
    context = SOURCES.get(source, STATIC)
    return tuple(tuple(replace(case, context=context) for case in group) for group in made)


def _bundles(cases: Sequence[Case], size: int) -> Iterator[tuple[Case, ...]]:
    return (tuple(cases[start : start + size]) for start in range(0, len(cases), size))


def _kinds(cases: Sequence[Case]) -> list[list[Case]]:
    """What a runtime is likely to take or to refuse as a whole.

    Equal shapes and what broadcasts wherever it is aligned; what needs ``axis``; high ranks; other numbers of operands.
    """
    kinds: list[list[Case]] = [[], [], [], [], []]
    for case in cases:
        shapes = [operand.shape for operand in case.operands]
        if len(shapes) != operand_count(case.schema):
            kinds[4].append(case)
        elif max(map(len, shapes)) > _COMMON_RANK:
            kinds[3].append(case)
        elif case.rule == "numpy" or len(set(shapes)) == 1:
            kinds[0].append(case)
        else:
            kinds[1 if _is_numpy(*shapes) else 2].append(case)
    return [kind for kind in kinds if kind]


def _is_numpy(a: Sizes, b: Sizes) -> bool:
    try:
        place("numpy", a, b)
    except OracleRefusal:
        return False
    return True


def value_cases(variant: Variant, source: str, extent: Extent, seed: int) -> list[Case]:
    """Hard values, random bit patterns and ordinary values on equal shapes, then spread by broadcasting.

    Types of up to 8 bits are tested with every combination of two values where that costs no model of its own size.
    """
    element_type = variant.element_type
    made = [variant.case(_values(element_type, variant.count, extent, seed))]
    if element_type.bits <= 8 and (source in _WHOLE_SOURCES or extent != "quick"):
        made.append(variant.case(_all_values(element_type, variant.count)))
    made += [variant.case(operands) for operands in _other_counts(variant, seed)]
    for attribute in variant.schema.attributes:
        if attribute.kind == "boolean":
            attributes: Attributes = (*variant.attributes, (attribute.name, not attribute.default))
            made.append(variant.case(made[0].operands, attributes))
    if variant.rule == "none" or variant.count == 1:
        return made
    hard = hard_values_of(element_type)
    made.append(_spread(variant, hard))
    if source in (*_WHOLE_SOURCES, "dynamic"):
        for scalar in hard[:: max(1, hard.size // _SCALARS[extent])]:
            made.append(variant.case((hard, np.array(scalar)), variant.switched_on))
    return made


def hard_values_of(element_type: ElementType) -> np.ndarray:
    """The values on which runtimes are known to differ; both values of a boolean."""
    return hard_values.hard_values(element_type) if element_type.is_numeric else array_of(element_type, (0, 1))


@cache
def _values(element_type: ElementType, count: int, extent: Extent, seed: int) -> Operands:
    hard = hard_values_of(element_type)
    pairs = (hard,) if count == 1 else (np.repeat(hard, hard.size), np.tile(hard, hard.size))
    if not element_type.is_numeric:
        return tuple(map(_fixed, pairs))
    drawn = [hard_values.random_bits(element_type, _RANDOM[extent], seed + offset) for offset in range(count)]
    plain = [hard_values.ordinary(element_type, _ORDINARY, seed + offset) for offset in range(count)]
    return tuple(_fixed(np.concatenate(parts)) for parts in zip(pairs, drawn, plain, strict=True))


@cache
def _all_values(element_type: ElementType, count: int) -> Operands:
    every = array_of(element_type, range(1 << (element_type.bits if element_type.is_numeric else 1)))
    pairs = (every,) if count == 1 else (np.repeat(every, every.size), np.tile(every, every.size))
    return tuple(map(_fixed, pairs))


def _other_counts(variant: Variant, seed: int) -> Iterator[Operands]:
    """Operands of a version that takes any number of them."""
    if not variant.schema.is_variadic:
        return
    hard = hard_values_of(variant.element_type)
    generator = np.random.default_rng(seed)
    for count in range(1, _MOST_OPERANDS + 1):
        if count != variant.count:
            yield tuple(generator.permutation(np.concatenate([hard] * 4)) for _index in range(count))


@cache
def _pool(element_type: ElementType, seed: int) -> np.ndarray:
    """What the operands of layouts are drawn from: hard values and random ones."""
    hard = hard_values_of(element_type)
    if not element_type.is_numeric:
        return _fixed(hard)
    return _fixed(np.concatenate([hard, hard_values.random_bits(element_type, 256, seed)]))


def _fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _spread(variant: Variant, hard: np.ndarray) -> Case:
    """Every hard value with every other by broadcasting: a column and a row, or a matrix and a row."""
    if variant.rule == "numpy":
        return variant.case((hard.reshape(-1, 1), hard.reshape(1, -1)))
    return variant.case((np.repeat(hard.reshape(-1, 1), hard.size, axis=1), hard), variant.switched_on)


def layout_cases(variant: Variant, source: str, extent: Extent, seed: int) -> list[Case]:
    """A case for each combination of shapes and attributes, valid or not, filled with hard and random values."""
    pool = _pool(variant.element_type, seed)
    made = []
    for attributes, shapes in dict.fromkeys(_layouts(variant, source, extent)):
        if source == "dynamic" and not any(shapes):
            continue  # Nothing of scalars is dynamic.
        # Drawn by the shapes alone, so that every source, rule and version gets the same, which is computed once.
        generator = np.random.default_rng(
            [seed, *shapes[0], pool.size, *(size for sizes in shapes[1:] for size in sizes)]
        )
        operands = [np.asarray(pool[generator.integers(0, pool.size, size=sizes)]) for sizes in shapes]
        made.append(variant.case(operands, attributes))
    return made


def _layouts(variant: Variant, source: str, extent: Extent) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    """The attributes and shapes: the chosen few, and the share of all others that the extent has."""
    whole = source in _WHOLE_SOURCES
    attributes, switched_on = variant.attributes, variant.switched_on
    if variant.count == 1:
        yield from ((attributes, (sizes,)) for sizes in _UNARY_SHAPES)
        return
    if variant.schema.is_variadic:
        yield from ((attributes, shapes) for shapes in (((3,),), ((2, 3),), *_TRIPLES))
    share = SHARES[extent] if whole or extent == "thorough" else 0
    if variant.rule in ("numpy", "none"):
        yield from ((attributes, shapes) for shapes in (NUMPY_PAIRS if whole or share else FEW_PAIRS))
        return
    if variant.rule == "legacy":
        yield from (((), shapes) for shapes in (((2, 3), (2, 3)), ((), ()), ((3, 3), (3,)), ((2, 3), ())))
        yield (("broadcast", 0), ("axis", 0)), ((3, 3), (3,))
        if share:
            yield from (((), shapes) for shapes in NUMPY_PAIRS[::share])
    others = list(one_directional())[::share] if share else []
    for a, b, axis in (*(FEW_ONTO if whole else FEW_ONTO[::3]), *others):
        yield switched_on if axis is None else (*switched_on, ("axis", axis)), (a, b)


def undefined_cases(variant: Variant) -> Iterator[Case]:
    """Integers divided by 0, for which any answer will do, and the least value divided by -1, on which some crash."""
    element_type = variant.element_type
    if variant.schema.function not in DIVISIONS or not element_type.is_integer:
        return
    low, high = element_type.limits
    ones = np.ones(2, element_type.storage)
    yield Case(variant.schema, variant.attributes, (ones, np.zeros_like(ones)))
    if low < 0:
        least = array_of(element_type, (high + 1, high + 1))
        yield Case(variant.schema, variant.attributes, (least, -ones))


def _without_undefined(case: Case) -> Case:
    """A division without 0 as a divisor and without the least value, which may meet -1."""
    if not case.element_type.is_integer:
        return case
    a, b = case.operands
    low, _high = case.element_type.limits
    storage = case.element_type.storage.type
    a = np.where(a == storage(low), storage(low + 1), a) if low < 0 else a
    return replace(case, operands=(np.asarray(a), np.asarray(np.where(b == storage(0), storage(1), b))))


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
    for candidate in registry.ELEMENTWISE:
        for attribute in candidate.attributes if candidate.name == schema.name else ():
            if attribute.name not in known:
                known.add(attribute.name)
                value = (0,) if attribute.kind == "ints" else 0
                yield Case(schema, (*variant.attributes, (attribute.name, value)), (ones,) * variant.count)
