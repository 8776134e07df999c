"""Test cases of every operator version, computed from the registry, and their comparison with the oracle."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from eltwise import oracle
from eltwise.conformance.shape_pairs import FEW_ONTO, NUMPY_PAIRS, one_directional
from eltwise.core.dtypes import BOOL, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.oracle import hard_values
from eltwise.oracle.evaluation import FUNCTIONS
from support.operands import choices, operand_types, read_of, with_parameters

Attributes = tuple[tuple[str, object], ...]
Sizes = tuple[int, ...]
SHARED = "ELTWISE_TEST_RESULTS"
"""The variable with the folder in which the processes of one run of the tests share results of the oracle."""

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
        _computation, operands = read_of(self.operation, self.operands)
        shapes = tuple(operand.shape for operand in operands)
        rule: Any = self.schema.broadcasting
        if rule == "auto_broadcast":
            rule = given.get("auto_broadcast", "numpy")
        axis, enabled = given.get("axis", -1), given.get("broadcast", 0) == 1
        function, parameters = self._function()
        if len(set(shapes)) == 1 and operands[0].size > 1 << 8:
            flat = tuple((operand.dtype, np.ascontiguousarray(operand).tobytes()) for operand in operands)
            return _same_shape(function, parameters, flat).reshape(shapes[0])
        options: dict[str, Any] = {"axis": axis, "enabled": enabled, "parameters": dict(parameters)}
        result = oracle.evaluate(function, *operands, rule=rule, **options)
        if self.schema.keeps_shape and result.shape != shapes[0]:
            raise oracle.OracleRefusal("the other operands do not broadcast onto the first one")
        return result

    @property
    def operation(self) -> Operation:
        """The operator with the attributes that decide what is computed; those that are refused are not among them."""
        chosen = {name for name, _value, _function in self.schema.variants}
        chosen |= {name for name, _parameter in self.schema.parameters}
        return self.schema.bind({name: value for name, value in self.attributes if name in chosen})

    def _function(self) -> tuple[str, Attributes]:
        """What is computed, with its parameters."""
        operation = self.operation
        function = dict(self.schema.absent).get((True,) * len(self.operands), operation.function)
        if function != operation.function:
            return function, ()
        steps = read_of(operation, self.operands)[0].expression.steps
        return function, steps[-1].parameters if len(steps) == 1 else ()


@lru_cache(maxsize=256)
def _same_shape(function: str, parameters: Attributes, operands: tuple[tuple[np.dtype[Any], bytes], ...]) -> np.ndarray:
    """Operands of one shape: the same values are asked of every version that computes the function.

    And of its kernels, which another process of the same run may test: the processes share the results.
    """
    digest = blake2b(repr((function, parameters, [str(dtype) for dtype, _data in operands])).encode(), digest_size=20)
    for _dtype, data in operands:
        digest.update(data)
    file = Path(os.environ[SHARED], digest.hexdigest())
    if file.exists():
        shared: np.ndarray = pickle.loads(file.read_bytes())  # noqa: S301 - written below
        return shared
    arrays = (np.frombuffer(each, dtype) for dtype, each in operands)
    result = oracle.evaluate(function, *arrays, rule="none", parameters=dict(parameters))
    whole = file.with_name(f"{file.name}.{os.getpid()}")
    whole.write_bytes(pickle.dumps(result))
    whole.replace(file)
    return result


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


SCHEMAS = tuple(schema for schema in registry.ELEMENTWISE if schema.broadcasting != "axis")
"""The operator versions whose rules the oracle has by name."""


def versions_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """Every operator version with every element type that it allows."""
    for schema in SCHEMAS:
        for element_type in Operation(schema).types:
            yield schema, element_type


def functions_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """For each function the version with the most types, for differences one for each way to broadcast."""
    found: dict[tuple[str, str], ElementwiseSchema] = {}
    for schema in SCHEMAS:
        key = schema.function, schema.broadcasting if schema.function == "subtract" else ""
        if key not in found or len(schema.types) >= len(found[key].types):
            found[key] = schema
    for schema in found.values():
        for element_type in schema.types:
            yield schema, element_type


@cache
def layouts(schema: ElementwiseSchema) -> tuple[tuple[Attributes, tuple[Sizes, ...]], ...]:
    """Attributes and shapes of the operands, from the broadcast rules of a version."""
    return tuple(_layouts(schema))


def _layouts(schema: ElementwiseSchema) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    if schema.is_variadic:
        yield from (((), shapes) for shapes in _VARIADIC)
        yield from (((), pair) for pair in NUMPY_PAIRS)
        return
    for chosen in attribute_sets(schema):
        if len(schema.operands) == 1:
            yield from ((chosen, (pair[0],)) for pair in NUMPY_PAIRS)
        elif len(schema.operands) == 2:
            yield from ((chosen + attributes, shapes) for attributes, shapes in _binary_layouts(schema))
        else:
            rules: tuple[Attributes, ...] = ((),)
            if schema.broadcasting == "auto_broadcast":
                rules += ((("auto_broadcast", "none"),),)
            count = len(schema.operands)
            yield from ((chosen + rule, ((a, b) * 3)[:count]) for rule in rules for a, b in NUMPY_PAIRS)
            if schema.broadcasting == "auto_broadcast":
                yield from ((chosen + rule, shapes) for rule, shapes in _onto_base(schema))
            yield from ((chosen, shapes) for shapes in _VARIADIC if len(shapes) == count)


def attribute_sets(schema: ElementwiseSchema) -> list[Attributes]:
    """The attributes that decide what is computed: those that must be stated, each choice, and other parameters."""
    sets = choices(schema) + ([with_parameters(schema)] if schema.parameters else [])
    return list(dict.fromkeys(tuple(each.items()) for each in sets))


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


def _onto_base(schema: ElementwiseSchema) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    """Operands of which all but one broadcast onto that one: all alike, or a scalar between others of its shape."""
    base, count = FUNCTIONS[schema.function].base, len(schema.operands)
    for a, b, axis in FEW_ONTO:
        rule: Attributes = (("auto_broadcast", "pdpd"), *((("axis", axis),) if axis is not None else ()))
        yield rule, tuple(a if index == base else b for index in range(count))
        if axis is None:
            yield rule, tuple(a if index == base else (b, ())[index % 2] for index in range(count))


def _binary_layouts(schema: ElementwiseSchema) -> Iterator[tuple[Attributes, tuple[Sizes, ...]]]:
    yield from (((), pair) for pair in NUMPY_PAIRS)
    if schema.broadcasting == "channel":
        yield from (((), (a, b)) for a, b, axis in one_directional() if axis in (None, 1))
    if schema.broadcasting in ("none", "numpy", "channel"):
        return
    if schema.broadcasting == "legacy":
        yield from (((("broadcast", 0), ("axis", 0)), pair) for pair in NUMPY_PAIRS)
        enabled: Attributes = (("broadcast", 1),)
    else:
        yield from (((("auto_broadcast", "none"),), pair) for pair in NUMPY_PAIRS)
        enabled = (("auto_broadcast", "pdpd"),)
    for a, b, axis in one_directional():
        yield enabled if axis is None else (*enabled, ("axis", axis)), (a, b)


WHOLE = frozenset(
    {(each.broadcasting, len(each.operands), each.is_variadic): each for each in reversed(SCHEMAS)}.values()
)
"""The first version with each broadcast rule and number of operands."""

FEW = 2 * len(NUMPY_PAIRS)


def shares_of(schema: ElementwiseSchema) -> int:
    """Into how many shares the layouts of a version are divided among its types."""
    return len(schema.types) if _has_a_fifth(schema) else max(8, len(schema.types))


def _has_a_fifth(schema: ElementwiseSchema) -> bool:
    return schema not in WHOLE and len(layouts(schema)) > FEW


def shared_layouts(
    schema: ElementwiseSchema, element_type: ElementType
) -> list[tuple[int, tuple[Attributes, tuple[Sizes, ...]]]]:
    """The share of the numbered layouts of a version that one of its types has."""
    every, has_fifth = list(enumerate(layouts(schema))), _has_a_fifth(schema)
    if has_fifth:
        every = every[SCHEMAS.index(schema) % 5 :: 5]
    own, shares = schema.types.index(element_type), shares_of(schema)
    return every[(own + SCHEMAS.index(schema)) % shares :: shares] if own or has_fifth else every


def shape_cases(
    schema: ElementwiseSchema, element_type: ElementType, seed: int, *, shared: bool = False
) -> Iterator[Case]:
    """Cases filled with hard and random values, one a layout; most integer divisors have no 0, some have one.

    With ``shared``, the first type of a version has all layouts where they are few or the version is in ``WHOLE``, and
    all other types a share, no more than an eighth: together they have each layout once. Of many layouts any five
    versions beside each other have each once, all types of a version together a fifth. How shapes broadcast depends on
    the rule of a version, not on what it computes.
    """
    generator = np.random.default_rng(seed)
    pool = values(element_type, seed)
    divides = element_type.is_integer and schema.expression().divides
    chosen = shared_layouts(schema, element_type) if shared else list(enumerate(layouts(schema)))
    for number, (attributes, shapes) in chosen:
        types = (
            operand_types(schema, element_type, len(shapes)) if not schema.is_variadic else [element_type] * len(shapes)
        )
        pools = [pool if each is element_type else values(each, seed) for each in types]
        operands = [
            np.asarray(one[generator.integers(0, one.size, size=sizes)])
            for one, sizes in zip(pools, shapes, strict=True)
        ]
        if divides and number % 7:
            operands[1] = np.asarray(pool[pool != 0][generator.integers(0, (pool != 0).sum(), size=shapes[1])])
        yield Case(schema, attributes, tuple(operands))


LEVEL_TYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint16", "int32", "uint64")
"""A type of each width and kind of arithmetic."""


def is_of_level(schema: ElementwiseSchema, element_type: ElementType, level: int) -> bool:
    """Whether a function is tried with a type on a processor level: on one of any three levels in a row."""
    return (SCHEMAS.index(schema) + LEVEL_TYPES.index(element_type.name)) % 3 == level % 3


def level_cases(level: int) -> Iterator[Case]:
    """Few cases of each function with some widths and kinds of arithmetic, and how loops run for differences."""
    for schema, element_type in functions_and_types():
        if element_type.name not in LEVEL_TYPES:
            continue
        if is_of_level(schema, element_type, level):
            yield from islice(value_cases(schema, element_type, 1), 2)
        if schema.function == "subtract":  # How loops run does not depend on what they compute.
            yield from shape_cases(schema, element_type, 1, shared=True)


def values(element_type: ElementType, seed: int) -> np.ndarray:
    """Hard and random values of a type."""
    if element_type is BOOL:
        return np.array([False, True])
    return np.concatenate([hard_values.hard_values(element_type), hard_values.random_bits(element_type, 256, seed)])


def _operands(
    schema: ElementwiseSchema, element_type: ElementType, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Pairs of values as the operands of a version; of other types some that are hard, too, and others are shuffled."""
    if schema.is_variadic:
        return a, b
    types = operand_types(schema, element_type, len(schema.operands))
    shuffled = np.random.default_rng(0).permutation
    numbers = iter((a, b, shuffled(a), shuffled(b), shuffled(a)))
    return tuple(
        np.resize(values(each, 0), a.size) if other else next(numbers)
        for each, other in zip(types, schema.other_types or (None,) * len(types), strict=True)
    )


def value_cases(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> Iterator[Case]:
    """Every pair of hard values, random bit patterns, and for types of up to 8 bits every pair there is."""
    if element_type is BOOL:
        a, b = np.array(list(product([False, True], repeat=2))).T
        pairs = [(a.copy(), b.copy())]
    else:
        count = 200 if schema.expression().steps[0].definition.is_real and element_type.bits == 64 else 2000
        first, second = (hard_values.random_bits(element_type, count, seed + offset) for offset in (0, 1))
        pairs = [all_pairs(hard_values.hard_values(element_type)), (first, second)]
        if element_type.bits <= 8:
            pairs.append(all_pairs(oracle.array_of(element_type, range(1 << element_type.bits))))
    if len(schema.operands) == 1 and not schema.is_variadic:
        singles = [np.unique(a.view(f"u{a.itemsize}")).view(a.dtype) for a, _b in pairs]
        yield from (Case(schema, chosen, (single,)) for chosen in attribute_sets(schema) for single in singles)
        return
    divides = element_type.is_integer and schema.expression().divides
    raises = element_type.is_integer and schema.function == "power"
    for a, b in pairs:
        kept = b != 0 if divides else np.ones(b.shape, bool)
        for chosen in attribute_sets(schema):
            operands = _operands(schema, element_type, a[kept], b[kept])
            if raises:  # Exponents of another type are not those of the pairs.
                is_defined = (operands[0] != 0) | ~(operands[1].astype(np.float64) < 0)
                operands = tuple(each[is_defined] for each in operands)
            yield Case(schema, chosen, operands)
    if schema.is_variadic:
        a, b = pairs[0]
        yield Case(schema, (), (a, b, b[::-1].copy()))
