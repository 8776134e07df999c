"""The cases of operators beyond arithmetic: hard and random values of every operand's types, with all attributes.

What distinguishes runtimes there are values, types and attributes, and not shapes: few shapes are tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, product

import numpy as np

from eltwise.conformance.cases import Attributes, Case, Context
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.ops.attribute import Attribute
from eltwise.ops.casts import is_cast
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.oracle import array_of, hard_values
from eltwise.oracle.domain import is_defined

_ORDINARY = 64
_MOST_SCALARS = 2
"""So many scalars of an operand are tried that lies on an axis."""

_MOST_INDICES = 8
"""So many indices of an axis have values of their own."""

_MOST_TYPES = 2
"""So many combinations of operand types are tested with attributes that are not the default."""

_FEW = 3
_MOST_ON_AN_AXIS, _HALVES = 100, 200

_BLOCK_SIZE, _BLOCKS = 3, 3
_LEVELS = (256, 5)
_LIMITS = ((-1.0, 1.0), (0.0, 2.55), (-1.28, 1.27), (0.0, 6.0))
"""Pairs of limits between which values are quantized."""

_NUMBERS = (-1.5, 2.25, 0.75)
"""What attributes that are numbers are, in their order."""


def value_cases(
    schema: ElementwiseSchema,
    element_type: ElementType,
    context: Context,
    count: int,
    seed: int,
    *,
    is_thin: bool = False,
) -> Iterator[Case]:
    """The cases of an operator version and a type T, of ``count`` random values each.

    If thin, only those whose attributes are required, each once.
    """
    required = {each.name for each in schema.attributes if each.required}
    for attributes, has_all in _attribute_sets(schema):
        is_required = {name for name, _value in attributes} == required
        if is_thin and not is_required:
            continue
        operation = schema.bind(dict(attributes))
        counts = {len(schema.operands) if has_all else schema.required_operands}
        if has_all and schema.required_operands < len(schema.operands):
            counts.add(schema.required_operands)
        for number in sorted(counts):
            every = _types(operation, number, element_type)
            if not is_required:
                plain = schema.bind({name: value for name, value in attributes if name in required})
                every = [types for types in every if _computed(operation, types) != _computed(plain, types)]
            for types in every if has_all and not attributes else every[:_MOST_TYPES]:
                chosen = _operands(operation, types, count, seed)
                for more, operands in islice(chosen, 1) if is_thin else chosen:
                    yield Case(schema, (*attributes, *more), operands, context)


def _attribute_sets(schema: ElementwiseSchema) -> Iterator[tuple[Attributes, bool]]:
    """Each value of each attribute once, and whether operands that may be left out are there."""
    numbers = iter(_NUMBERS)
    required = [each for each in schema.attributes if each.required]
    values = [_choices(each, schema) or (next(numbers),) for each in required]
    for chosen in product(*values):
        base = tuple(zip((each.name for each in required), chosen, strict=True))
        yield base, True
        optional = [each for each in schema.attributes if not each.required and each.name not in _LEFT_OUT]
        for attribute in optional:
            others = [each for each in _choices(attribute, schema) if each != attribute.default]
            yield from (((*base, (attribute.name, each)), attribute.kind != "element type") for each in others)
        floats = [each.name for each in optional if each.kind == "float"]
        if floats:
            yield (*base, *zip(floats, _NUMBERS, strict=False)), True


_LEFT_OUT = ("auto_broadcast", "axis", "broadcast", "block_size", "consumed_inputs", "round_mode")
"""The attributes that belong to shapes, and those without effect on the types that run."""


def _choices(attribute: Attribute, schema: ElementwiseSchema) -> Sequence[object]:
    """The values of an attribute as a file states them, if they can be listed."""
    if attribute.kind == "boolean":
        return (False, True)
    if attribute.name == "levels":
        return _LEVELS
    choices = schema.types if attribute.kind == "element type" and not attribute.choices else attribute.choices
    return [each.name if isinstance(each, ElementType) else each for each in choices]


def _computed(operation: Operation, types: tuple[ElementType, ...]) -> object:
    """What an operation computes of operands of these types; an attribute may be for others than theirs."""
    return operation.function, operation.computation_of(types, lambda each: each)[0].expression


def _types(operation: Operation, count: int, element_type: ElementType) -> list[tuple[ElementType, ...]]:
    """The types of operands: each type that an operand may have at least once."""
    computation, read = operation.computation_of(range(count))
    others = dict(enumerate(_schema_of(operation).other_types)) | dict(zip(read, computation.other_types, strict=False))
    allowed = [others.get(index) or (element_type,) for index in range(count)]
    longest = max(map(len, allowed))
    lists = dict.fromkeys(tuple(each[turn % len(each)] for each in allowed) for turn in range(longest))
    return [types for types in lists if _is_allowed(operation, types)]


def _is_allowed(operation: Operation, types: tuple[ElementType, ...]) -> bool:
    try:
        computation, read = operation.computation_of(types, lambda each: each)
        computation.check_types(read)
    except EltwiseError:
        return False
    return True


def _schema_of(operation: Operation) -> ElementwiseSchema:
    assert isinstance(operation.schema, ElementwiseSchema)
    return operation.schema


def _operands(
    operation: Operation, types: tuple[ElementType, ...], count: int, seed: int
) -> Iterator[tuple[Attributes, tuple[np.ndarray, ...]]]:
    """Operands of these types, with the attributes that their shapes need."""
    (computation, read), schema = operation.computation_of(types, lambda each: each), _schema_of(operation)
    element_type = computation.check_types(read)
    assert element_type is not None
    parameters = dict(computation.typed(element_type, read).steps[-1].parameters)
    generator = np.random.default_rng(seed)
    domain = "convert" if schema.domain == "openvino" and is_cast(schema) else operation.function
    pools = [
        values[is_defined(domain, index, values, parameters)]
        for index, values in enumerate(_pool(each, count, seed + index) for index, each in enumerate(types))
    ]
    if any(not pool.size for pool in pools):
        return
    if schema.broadcasting == "axis":
        yield from _on_an_axis(schema, pools, generator, operation.function, parameters)
        return
    if operation.function == "fake_quantize":
        yield from _between_limits(pools[0], types[1], int(str(parameters["levels"])), generator)
        return
    if len(read) == 1:
        others = [pool[:_FEW] for pool in pools[1:]]  # Of these only the type is read.
        yield (), (pools[0], *others)
        yield (), (pools[0][:6].reshape(1, -1, 2), *others)
        return
    if schema.keeps_shape:
        for _turn in range(_MOST_SCALARS):
            yield (), (pools[0], *(np.asarray(generator.choice(pool)) for pool in pools[1:]))
        return
    size = max(count, *(pool.size for pool in pools))
    drawn = [generator.choice(pool, size) for pool in pools]
    yield (), tuple(drawn)
    if schema.broadcasting in ("numpy", "auto_broadcast"):
        hard = [pool[:_ORDINARY] for pool in pools]
        shapes = [(-1, 1), (1, -1)]
        spread = [each.reshape(shape) for each, shape in zip(hard, shapes, strict=False)]
        yield (), (*spread, *(each[0].reshape(()) for each in hard[2:]))


def _on_an_axis(
    schema: ElementwiseSchema,
    pools: Sequence[np.ndarray],
    generator: np.random.Generator,
    function: str,
    parameters: Mapping[str, object],
) -> Iterator[tuple[Attributes, tuple[np.ndarray, ...]]]:
    """Scales and the like as scalars, and one for each index of an axis."""
    x, *others = pools
    rows = [generator.choice(pool, _MOST_INDICES) for pool in others]
    exponents = np.arange(_MOST_INDICES // 2)
    # With these halves are exact.
    rows[0][: exponents.size] = 2.0 ** (exponents if rows[0].dtype.kind in "iu" else -exponents)
    for turn in range(_MOST_SCALARS):
        scalars = [row[-turn] for row in rows]
        operands = (_with_halves(x, scalars[0], generator), *(np.asarray(each) for each in scalars))
        yield (), (operands[0][is_defined(function, 0, operands[0], parameters)], *operands[1:])
    has_axis = "axis" in schema.attribute_names
    if not has_axis and schema.axis < 0:
        return
    x = np.stack([_with_halves(x[:_MOST_ON_AN_AXIS], scale, generator) for scale in rows[0]], axis=1)
    x = x[is_defined(function, 0, x, parameters).all(axis=1)]
    yield (), (np.ascontiguousarray(x), *rows)
    if has_axis:
        yield (("axis", 0),), (np.ascontiguousarray(x.T), *rows)
    if "block_size" in schema.attribute_names:
        yield from _in_blocks(x, others, generator)


def _in_blocks(
    x: np.ndarray, others: Sequence[np.ndarray], generator: np.random.Generator
) -> Iterator[tuple[Attributes, tuple[np.ndarray, ...]]]:
    """Scales and the like for blocks on each axis, of which the last block is not whole."""
    x = x[:, : _BLOCK_SIZE * _BLOCKS - 1]
    blocks = [generator.choice(pool, (x.shape[0], _BLOCKS)) for pool in others]
    block_size = ("block_size", _BLOCK_SIZE)
    yield (block_size,), (np.ascontiguousarray(x), *blocks)
    yield (("axis", 0), block_size), tuple(np.ascontiguousarray(each.T) for each in (x, *blocks))


def _between_limits(
    pool: np.ndarray, of_limits: ElementType, levels: int, generator: np.random.Generator
) -> Iterator[tuple[Attributes, tuple[np.ndarray, ...]]]:
    """Numbers, those midway between levels and their neighbours, with scalars as limits and with one an index."""
    columns = []
    for low, high in _LIMITS:
        midway = low + (generator.integers(0, levels - 1, _HALVES) + 0.5) * (high - low) / (levels - 1)
        near = midway.astype(pool.dtype)
        bits = near.view(f"u{near.itemsize}") + generator.integers(-1, 2, _HALVES).astype(f"u{near.itemsize}")
        columns.append(np.concatenate([generator.choice(pool, _HALVES), bits.view(pool.dtype)]))
        limits = [np.asarray(limit, of_limits.storage) for limit in (low, high, *_LIMITS[len(columns) % len(_LIMITS)])]
        yield (), (columns[-1], *limits)
    ends = np.array(_LIMITS).T
    limits = [each.astype(of_limits.storage) for each in (*ends, *ends[:, ::-1])]
    yield (), (np.stack(columns, axis=1), *limits)


def _with_halves(x: np.ndarray, scale: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The values, and odd multiples of half a scale with their neighbours, which show how quotients are rounded."""
    if of_numpy(x.dtype).kind != "float":
        return x
    with np.errstate(all="ignore"):
        halves = (generator.integers(-300, 300, _HALVES) + 0.5) * float(scale)
        near = halves.astype(x.dtype)
    bits = near.view(f"u{x.itemsize}") + generator.integers(-1, 2, _HALVES).astype(f"u{x.itemsize}")
    return np.concatenate([x, bits.astype(f"u{x.itemsize}").view(x.dtype)])


@cache
def _pool(element_type: ElementType, count: int, seed: int) -> np.ndarray:
    """Hard values first, then ordinary ones and random bits."""
    if not element_type.is_numeric:
        return array_of(element_type, (0, 1))
    ordinary = hard_values.ordinary(element_type, _ORDINARY, seed)
    digits = hard_values.of_all_digits(element_type, count // 2, seed)
    drawn = hard_values.random_bits(element_type, count // 2, seed)
    return np.concatenate([hard_values.hard_values(element_type), ordinary, digits, drawn])
