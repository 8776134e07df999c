"""Test cases of every operator version, computed from the registry, and their comparison with the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np

from eltwise import oracle
from eltwise.conformance.shape_pairs import NUMPY_PAIRS, one_directional
from eltwise.core.dtypes import BOOL, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values

Attributes = tuple[tuple[str, object], ...]
Sizes = tuple[int, ...]
Run = Callable[..., np.ndarray]
"""``run(op, *operands, **attributes)`` gives the result, or raises where it refuses."""

Kind = Literal["differs", "refused", "accepted", "wrong type or shape"]


def all_pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every value with every other and with itself."""
    return np.repeat(values, values.size), np.tile(values, values.size)


@dataclass(frozen=True, eq=False)
class Case:
    schema: ElementwiseSchema
    attributes: Attributes
    operands: tuple[np.ndarray, ...]

    def __str__(self) -> str:
        operands = ", ".join(f"{operand.dtype}{list(operand.shape)}" for operand in self.operands)
        return f"{self.schema} {dict(self.attributes)} {operands}"

    @cached_property
    def expected(self) -> np.ndarray | oracle.OracleRefusal:
        """The exact result, or why the case must be refused."""
        try:
            return self._evaluated()
        except oracle.OracleRefusal as refusal:
            return refusal

    def _evaluated(self) -> np.ndarray:
        given = dict(self.attributes)
        shapes = tuple(operand.shape for operand in self.operands)
        rule: Any = self.schema.broadcasting
        if rule == "auto_broadcast":
            rule = given.get("auto_broadcast", "numpy")
        axis, enabled = given.get("axis", -1), given.get("broadcast", 0) == 1
        function = self.schema.bind(given).function if "m_pythondiv" in given else self.schema.function
        if len(set(shapes)) == 1 and self.operands[0].size > 1 << 10:
            flat = tuple(np.ascontiguousarray(operand).tobytes() for operand in self.operands)
            return _same_shape(function, self.operands[0].dtype, flat).reshape(shapes[0])
        return oracle.evaluate(function, *self.operands, rule=rule, axis=axis, enabled=enabled)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _same_shape(function: str, dtype: np.dtype[Any], operands: tuple[bytes, ...]) -> np.ndarray:
    """Operands of one shape: the same values are asked of every version that computes the function."""
    return oracle.evaluate(function, *(np.frombuffer(each, dtype) for each in operands), rule="none")


@dataclass(frozen=True)
class Failure:
    case: Case
    kind: Kind
    detail: str

    def __str__(self) -> str:
        return f"{self.case}: {self.kind}: {self.detail}"


def failures(run: Run, cases: Iterable[Case]) -> Iterator[Failure]:
    for case in cases:
        failure = compare(run, case)
        if failure is not None:
            yield failure


def compare(run: Run, case: Case) -> Failure | None:
    expected = case.expected
    try:
        got = run(case.schema.versioned_name, *case.operands, **dict(case.attributes))
    except (EltwiseError, ValueError, TypeError) as error:
        return None if isinstance(expected, oracle.OracleRefusal) else Failure(case, "refused", str(error))
    if isinstance(expected, oracle.OracleRefusal):
        return Failure(case, "accepted", str(expected))
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return Failure(case, "wrong type or shape", f"{got.dtype}{got.shape}, not {expected.dtype}{expected.shape}")
    wrong = oracle.differences(got, expected)
    if not wrong:
        return None
    first = f"got {got.reshape(-1)[wrong[0]]}, expected {expected.reshape(-1)[wrong[0]]}"
    return Failure(case, "differs", f"{len(wrong)} of {expected.size}, first at {wrong[0]}: {first}")


def versions_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """Every operator version with every element type that it allows."""
    for schema in registry.ELEMENTWISE:
        for element_type in schema.types:
            yield schema, element_type


def functions_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """For each function the version with the most types, for differences one for each way to broadcast."""
    found: dict[tuple[str, str], ElementwiseSchema] = {}
    for schema in registry.ELEMENTWISE:
        key = schema.function, schema.broadcasting if schema.function == "subtract" else ""
        if key not in found or len(schema.types) >= len(found[key].types):
            found[key] = schema
    for schema in found.values():
        for element_type in schema.types:
            yield schema, element_type


def layouts(schema: ElementwiseSchema) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    """Attributes and shapes of the operands, from the broadcast rules of a version."""
    if schema.is_variadic:
        yield from (((), shapes) for shapes in _VARIADIC)
        yield from (((), pair) for pair in NUMPY_PAIRS)
        return
    if len(schema.operands) == 1:
        yield from (((), (pair[0],)) for pair in NUMPY_PAIRS)
        return
    divisions: tuple[Attributes, ...] = ((), (("m_pythondiv", False),)) if schema.variants else ((),)
    for division in divisions:
        yield from ((division + attributes, shapes) for attributes, shapes in _binary_layouts(schema))


_VARIADIC: tuple[tuple[Sizes, ...], ...] = (
    ((),),
    ((2, 3),),
    ((2, 3), (2, 3), (2, 3)),
    ((2, 1), (3,), ()),
    ((), (3,), (2, 1), (4, 1, 1)),
    ((2, 3), (3,), (4,)),
    *(((2, 3),) * count for count in (9, 20)),
    ((1,) * 63 + (3,),) * 2,
)
"""One operand, several that are equal or broadcast, more than a kernel reads at once."""


def _binary_layouts(schema: ElementwiseSchema) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    yield from (((), pair) for pair in NUMPY_PAIRS)
    if schema.broadcasting == "numpy":
        return
    if schema.broadcasting == "legacy":
        yield from (((("broadcast", 0), ("axis", 0)), pair) for pair in NUMPY_PAIRS)
        enabled: Attributes = (("broadcast", 1),)
    else:
        yield from (((("auto_broadcast", "none"),), pair) for pair in NUMPY_PAIRS)
        enabled = (("auto_broadcast", "pdpd"),)
    for a, b, axis in one_directional():
        yield enabled if axis is None else (*enabled, ("axis", axis)), (a, b)


def shape_cases(
    schema: ElementwiseSchema, element_type: ElementType, seed: int, *, shared: bool | None = None
) -> Iterator[Case]:
    """Cases filled with hard and random values, one a layout; most integer divisors have no 0, some have one.

    With ``shared``, only the first type of a version has all layouts; the others share them, which takes an eighth of
    the time. Where it is false, these are left out.
    """
    generator = np.random.default_rng(seed)
    pool = values(element_type, seed)
    divides = element_type.is_integer and schema.expression().divides
    own = schema.types.index(element_type)
    for number, (attributes, shapes) in enumerate(layouts(schema)):
        if shared not in (None, not own or number % 8 == own % 8):
            continue
        operands = [np.asarray(pool[generator.integers(0, pool.size, size=sizes)]) for sizes in shapes]
        if divides and number % 7:
            operands[1] = np.asarray(pool[pool != 0][generator.integers(0, (pool != 0).sum(), size=shapes[1])])
        yield Case(schema, attributes, tuple(operands))


def values(element_type: ElementType, seed: int) -> np.ndarray:
    """Hard and random values of a type."""
    if element_type is BOOL:
        return np.array([False, True])
    return np.concatenate([hard_values.hard_values(element_type), hard_values.random_bits(element_type, 256, seed)])


def value_cases(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> Iterator[Case]:
    """Every pair of hard values, random bit patterns, and for types of up to 8 bits every pair there is."""
    if element_type is BOOL:
        a, b = np.array(list(product([False, True], repeat=2))).T
        pairs = [(a.copy(), b.copy())]
    else:
        first, second = (hard_values.random_bits(element_type, 2000, seed + offset) for offset in (0, 1))
        pairs = [all_pairs(hard_values.hard_values(element_type)), (first, second)]
        if element_type.bits <= 8:
            pairs.append(all_pairs(oracle.array_of(element_type, range(1 << element_type.bits))))
    if len(schema.operands) == 1 and not schema.is_variadic:
        singles = [np.unique(a.view(f"u{a.itemsize}")).view(a.dtype) for a, _b in pairs]
        yield from (Case(schema, (), (single,)) for single in singles)
        return
    divides = element_type.is_integer and schema.expression().divides
    for a, b in pairs:
        kept = b != 0 if divides else np.ones(b.shape, bool)
        yield Case(schema, (), (a[kept], b[kept]))
        if schema.variants:
            yield Case(schema, ((schema.variants[0][0], schema.variants[0][1]),), (a[kept], b[kept]))
    if schema.is_variadic:
        a, b = pairs[0]
        yield Case(schema, (), (a, b, b[::-1].copy()))
