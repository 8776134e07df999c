"""What is asked in each cell: the cases of an operator version, element type, broadcast rule and path.

The same for the same extent and seed. A group of cases is asked in one model where the path has models, since a model
costs more than its nodes; what must be refused is asked case by case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from eltwise.conformance.cases import Attributes, Case, Layout, layouts
from eltwise.conformance.paths import Path
from eltwise.conformance.results import Extent
from eltwise.conformance.shapes_of_rules import FEW_ONTO, NUMPY_PAIRS, Sizes
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import OracleRefusal, RuleName, hard_values, place

Groups = tuple[tuple[Case, ...], ...]

SHARES: dict[Extent, int] = {"quick": 0, "usual": 8, "thorough": 1}
"""Of the layouts that the rules have, one in so many is asked beside the chosen few; 0: none."""

_KEPT = 64
"""The cases of so many cells are kept, for other runtimes that are asked the same at about the same time."""

_MOST_TOGETHER = 64
_COMMON_RANK = 12
"""Runtimes that have a limit have a higher one."""

_RANDOM = {"quick": 2000, "usual": 4000, "thorough": 20000}
_ORDINARY = 256
_SCALARS = {"quick": 8, "usual": 32, "thorough": 1 << 16}
_FEW_PAIRS: tuple[tuple[Sizes, Sizes], ...] = (
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((0,), (1,)),
    ((3, 3), (3,)),
    ((2, 3), (2, 1)),
    ((2, 1), (1, 3)),
    ((8, 1, 6, 1), (7, 1, 5)),
    ((1, 2) * 6, (2, 1) * 6),
)
_FEW_REFUSED: tuple[tuple[Sizes, Sizes], ...] = (((3,), (4,)), ((2, 3), (2,)))


@dataclass(frozen=True)
class Subject:
    """What a runtime is asked about: an operator version with an element type and a broadcast rule."""

    schema: ElementwiseSchema
    element_type: ElementType
    rule: RuleName

    def __str__(self) -> str:
        return f"{self.schema}/{self.element_type}/{self.rule}"

    @property
    def attributes(self) -> Attributes:
        """The attributes that choose the rule; without them the row's default holds."""
        return (("auto_broadcast", self.rule),) if self.rule in ("none", "pdpd") else ()


def subjects() -> Iterator[Subject]:
    """Everything that the catalog has to ask about, in its order."""
    for schema in registry.ELEMENTWISE:
        for element_type in schema.types:
            for rule in rules_of(schema):
                yield Subject(schema, element_type, rule)


def rules_of(schema: ElementwiseSchema) -> tuple[RuleName, ...]:
    """The broadcast rules that a row can have."""
    return ("none", "numpy", "pdpd") if schema.broadcasting == "auto_broadcast" else (schema.broadcasting,)


@lru_cache(maxsize=_KEPT)
def groups(subject: Subject, path: Path, extent: Extent, seed: int, checks: bool) -> Groups:
    """The cases of a cell; with ``checks`` also mixed types and attributes that the row does not have."""
    of_values = value_cases(subject, path, extent, seed)
    working, refused = _divided(_layout_cases(subject, path, extent, seed))
    if extent == "quick":
        alone = 1 if path == "static" else 0
        of_values, working = of_values[:alone], [*of_values[alone:], *working]
    together = 1 if extent == "thorough" else _MOST_TOGETHER
    made = [
        *((case,) for case in of_values),
        *(bundle for kind in _kinds(working) for bundle in _bundles(kind, together)),
        *((case,) for case in refused),
    ]
    if checks and path in ("static", "call"):
        made += [(case,) for case in foreign_cases(subject)]
    return tuple(made)


def _bundles(cases: Sequence[Case], size: int) -> Iterator[tuple[Case, ...]]:
    return (tuple(cases[start : start + size]) for start in range(0, len(cases), size))


def _kinds(cases: Sequence[Case]) -> list[list[Case]]:
    """What a runtime is likely to take or to refuse as a whole.

    Equal shapes; what broadcasts wherever it is aligned; what broadcasts only where ``axis`` is read; high ranks.
    """
    kinds: list[list[Case]] = [[], [], [], []]
    for case in cases:
        if max(case.a.ndim, case.b.ndim) > _COMMON_RANK:
            kinds[3].append(case)
        elif case.rule == "numpy" or case.a.shape == case.b.shape:
            kinds[0].append(case)
        else:
            kinds[1 if _is_placed("numpy", case) else 2].append(case)
    return [kind for kind in kinds if kind]


def _is_placed(rule: RuleName, case: Case) -> bool:
    try:
        place(rule, case.a.shape, case.b.shape)
    except OracleRefusal:
        return False
    return True


def value_cases(subject: Subject, path: Path, extent: Extent, seed: int) -> list[Case]:
    """Hard pairs, random bit patterns and ordinary values on equal shapes, then spread out by the rule's broadcasting.

    Types of up to 8 bits are asked every pair that there is, where that costs no model of its own size.
    """
    element_type, attributes = subject.element_type, subject.attributes
    made = [Case(subject.schema, attributes, *_pairs(element_type, extent, seed))]
    if element_type.bits <= 8 and (path in ("static", "call") or extent != "quick"):
        made.append(Case(subject.schema, attributes, *_all_pairs(element_type)))
    if subject.rule == "none":
        return made
    hard = hard_values.hard_values(element_type)
    made.append(_spread(subject, hard))
    if path in ("static", "dynamic", "call"):
        switch = _switched_on(subject)
        for scalar in hard[:: max(1, hard.size // _SCALARS[extent])]:
            made.append(Case(subject.schema, switch, hard, np.array(scalar)))
    return made


def foreign_cases(subject: Subject) -> Iterator[Case]:
    """What must be refused whatever the shapes: operands of two types, and attributes of other versions."""
    schema, element_type = subject.schema, subject.element_type
    ones = np.ones(2, element_type.storage)
    other = next(other for other in TYPES if other.bits == element_type.bits and other is not element_type)
    wider = next(other for other in schema.types if other is not element_type)
    for second in dict.fromkeys(other for other in (other, wider) if other in schema.types):
        yield Case(schema, subject.attributes, ones, np.ones(2, second.storage))
    known = {attribute.name for attribute in schema.attributes}
    for candidate in registry.ELEMENTWISE:
        if candidate.name != schema.name:
            continue
        for attribute in candidate.attributes:
            if attribute.name not in known:
                known.add(attribute.name)
                value = (0,) if attribute.kind == "ints" else 0
                yield Case(schema, (*subject.attributes, (attribute.name, value)), ones, ones)


@cache
def _pairs(element_type: ElementType, extent: Extent, seed: int) -> tuple[np.ndarray, np.ndarray]:
    hard_a, hard_b = hard_values.hard_pairs(element_type)
    count = _RANDOM[extent]
    random_a, random_b = (hard_values.random_bits(element_type, count, seed + offset) for offset in (0, 1))
    plain_a, plain_b = (hard_values.ordinary(element_type, _ORDINARY, seed + offset) for offset in (0, 1))
    return _fixed(np.concatenate([hard_a, random_a, plain_a])), _fixed(np.concatenate([hard_b, random_b, plain_b]))


@cache
def _all_pairs(element_type: ElementType) -> tuple[np.ndarray, np.ndarray]:
    a, b = hard_values.all_pairs_8bit(element_type)
    return _fixed(a), _fixed(b)


@cache
def _pool(element_type: ElementType, seed: int) -> np.ndarray:
    """What the operands of layouts are drawn from: hard values and random ones."""
    drawn = hard_values.random_bits(element_type, 256, seed)
    return _fixed(np.concatenate([hard_values.hard_values(element_type), drawn]))


def _fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _spread(subject: Subject, hard: np.ndarray) -> Case:
    """Every hard value against every other by broadcasting: a column against a row, or a matrix against a row."""
    if subject.rule == "numpy":
        return Case(subject.schema, subject.attributes, hard.reshape(-1, 1), hard.reshape(1, -1))
    matrix = np.repeat(hard.reshape(-1, 1), hard.size, axis=1)
    return Case(subject.schema, _switched_on(subject), matrix, hard)


def _switched_on(subject: Subject) -> Attributes:
    return (("broadcast", 1),) if subject.rule == "legacy" else subject.attributes


def _layout_cases(subject: Subject, path: Path, extent: Extent, seed: int) -> list[Case]:
    """A case a layout, filled with hard and random values."""
    pool = _pool(subject.element_type, seed)
    made = []
    for layout in _layouts(subject, path, extent):
        if path == "dynamic" and not (layout.a or layout.b):
            continue  # Nothing of two scalars is dynamic.
        # Drawn by the shapes alone, so that every path, rule and version is asked the same, which is computed once.
        generator = np.random.default_rng([seed, *layout.a, pool.size, *layout.b])
        a, b = (np.asarray(pool[generator.integers(0, pool.size, size=sizes)]) for sizes in (layout.a, layout.b))
        made.append(Case(subject.schema, layout.attributes, a, b))
    return made


def _layouts(subject: Subject, path: Path, extent: Extent) -> list[Layout]:
    """The chosen few, and the share of all others that the extent asks; only ``static`` and ``call`` are asked all."""
    few = list(_few(subject, whole=path in ("static", "call")))
    share = SHARES[extent] if path in ("static", "call") or extent == "thorough" else 0
    if not share:
        return list(dict.fromkeys(few))
    others = [layout for layout in layouts(subject.schema) if _rule_of(subject, layout) == subject.rule]
    return list(dict.fromkeys([*few, *others[::share]]))


def _few(subject: Subject, *, whole: bool) -> Iterator[Layout]:
    attributes = subject.attributes
    if subject.rule in ("numpy", "none"):
        pairs = NUMPY_PAIRS if whole else (*_FEW_PAIRS, *_FEW_REFUSED)
        yield from (Layout(attributes, a, b) for a, b in pairs)
        return
    if subject.rule == "legacy":
        yield from (Layout((), a, b) for a, b in (((2, 3), (2, 3)), ((), ()), ((3, 3), (3,)), ((2, 3), ())))
        yield Layout((("broadcast", 0), ("axis", 0)), (3, 3), (3,))
    for a, b, axis in FEW_ONTO if whole else FEW_ONTO[::3]:
        switch = _switched_on(subject)
        yield Layout(switch if axis is None else (*switch, ("axis", axis)), a, b)


def _rule_of(subject: Subject, layout: Layout) -> str:
    return (
        str(dict(layout.attributes).get("auto_broadcast", "numpy"))
        if len(rules_of(subject.schema)) > 1
        else subject.rule
    )


def _divided(cases: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """What must work and what must be refused, by the oracle."""
    working: list[Case] = []
    refused: list[Case] = []
    for case in cases:
        (working if case.works else refused).append(case)
    return working, refused
