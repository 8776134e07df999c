"""Random element-wise nodes of every operator version: types, attributes and shapes that go together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from eltwise.core.dtypes import FLOAT16, FLOAT32, FLOAT64, INT32, INT64, ElementType
from eltwise.ops import registry
from eltwise.ops.schema import Domain, ElementwiseSchema, Operation
from support.operands import choices, with_parameters

if TYPE_CHECKING:
    from support.random_graphs import Growth

Sizes = tuple[int, ...]
Value = tuple[ElementType, Sizes]

_USUAL = (FLOAT16, FLOAT32, FLOAT64, INT32, INT64)
_OPENVINO_OPSET = 15
_QUANTIZES = ("quantize", "dequantize")


@cache
def _schemas(domain: Domain, opset: int, *, is_arithmetic: bool) -> list[ElementwiseSchema]:
    """The versions that an opset has, all or only arithmetic, of which kernels compute several nodes at once.

    Casts to a stated type are among the nodes that move values.
    """
    return [
        schema
        for schema in registry.ELEMENTWISE
        if schema.domain == domain
        and (schema.function != "cast" or schema.like)
        and registry.resolve(domain, schema.name, opset) is schema
        and (not is_arithmetic or schema.expression().is_arithmetic)
    ]


def grow_elementwise(growth: Growth) -> None:
    """Add a node, and the inputs and constants that it needs."""
    draw = growth.draw
    chosen = _schemas(growth.origin.domain, growth.origin.opset or _OPENVINO_OPSET, is_arithmetic=draw(st.booleans()))
    schema: ElementwiseSchema = draw(st.sampled_from(chosen))
    attributes = _attributes(growth, schema)
    first, kind, sizes = _main_operand(growth, schema, attributes)
    count, main = _count(growth, schema), _main(schema)
    types = _types(growth, schema, kind, count)
    sizes_of, attributes = _shapes(growth, schema, sizes, count, attributes)
    present = _present(growth, schema, count)
    divides = schema.expression().divides or schema.function == "power"
    operands = []
    for index in range(count):
        if index == main or not present[index]:
            operands.append(first if index == main else "")
        else:
            is_divisor = index > 0 and divides and types[index].is_integer
            operands.append(growth.operand(types[index], sizes_of[index], is_divisor))
    while not operands[-1]:
        operands.pop()
    growth.add(schema, operands, *_result(growth, schema.bind(attributes), operands), **attributes)


def _main(schema: ElementwiseSchema) -> int:
    """The operand of type T that others broadcast onto."""
    return next((index for index, other in enumerate(schema.other_types) if other is None), 0)


def _attributes(growth: Growth, schema: ElementwiseSchema) -> dict[str, Any]:
    """Attributes that decide what is computed; those that decide how shapes go together come later."""
    if schema.like:  # Of quantization the type is that of an operand.
        return {}
    return dict(growth.draw(st.sampled_from([*choices(schema), with_parameters(schema)])))


def _main_operand(
    growth: Growth, schema: ElementwiseSchema, attributes: dict[str, Any]
) -> tuple[str, ElementType, Sizes]:
    """A value that there is, often the last one, which makes chains; else an input or a constant."""
    draw = growth.draw
    allowed = schema.bind(attributes).types
    last = growth.nodes[-1].outputs[0] if growth.nodes else ""
    if last and growth.known[last][0] in allowed and draw(st.booleans()):
        return (last, *growth.known[last])
    fitting = [(name, *value) for name, value in growth.known.items() if value[0] in allowed]
    if fitting and draw(st.integers(0, 3)):
        return draw(st.sampled_from(fitting[::-1]))
    usual = [each for each in _USUAL if each in allowed] * (1 if growth.is_onnx else 4)
    kind, sizes = draw(st.sampled_from([*usual, *allowed])), draw(shapes())
    return growth.source(kind, sizes), kind, sizes


@st.composite
def shapes(draw: st.DrawFn) -> Sizes:
    """Up to four dimensions of few elements, or one that is longer than a vector of the processor's."""
    few = st.lists(st.sampled_from([2, 3, 1, 4, 2, 3, 1, 5, 2, 0]), max_size=4).map(tuple)
    return draw(few) if draw(st.integers(0, 3)) else (draw(st.sampled_from([5, 17, 33, 70])),)


def _count(growth: Growth, schema: ElementwiseSchema) -> int:
    return growth.draw(st.sampled_from([2, 1, 3, 5])) if schema.is_variadic else len(schema.operands)


def _types(growth: Growth, schema: ElementwiseSchema, kind: ElementType, count: int) -> list[ElementType]:
    if schema.is_variadic or not schema.other_types:
        return [kind] * count
    return [growth.draw(st.sampled_from(other)) if other else kind for other in schema.other_types]


def _present(growth: Growth, schema: ElementwiseSchema, count: int) -> list[bool]:
    """Which operands are not left out."""
    if schema.is_variadic:
        return [True] * count
    optional = range(schema.required_operands, count)
    absent = {index for index in optional if growth.draw(st.booleans())}
    return [index not in absent for index in range(count)]


def _shapes(
    growth: Growth, schema: ElementwiseSchema, sizes: Sizes, count: int, attributes: dict[str, Any]
) -> tuple[list[Sizes], dict[str, Any]]:
    """The shapes of the operands where the main one has this shape, and the attributes with those that say so."""
    draw, main = growth.draw, _main(schema)
    rule: str = schema.broadcasting
    stated: dict[str, Any] = {}
    if rule == "auto_broadcast":
        rule = draw(st.sampled_from(["numpy", "none", "pdpd"]))
        stated = {} if rule == "numpy" and draw(st.booleans()) else {"auto_broadcast": rule}
    if "clip" in schema.function and count > 1:
        others: list[Sizes] = [()] * count
    elif schema.like and schema.function == "cast":
        others = [draw(shapes()) for _operand in range(count)]
    elif schema.function in _QUANTIZES:
        others, stated = _quantized(growth, schema, sizes)
        others = others * count
    elif rule == "axis" or (rule == "channel" and draw(st.booleans())):
        others = [sizes[1:2] if len(sizes) > 1 and draw(st.booleans()) else ()] * count
    elif rule in ("numpy", "channel"):
        others = [_beside(growth, sizes, may_grow=not schema.keeps_shape) for _operand in range(count)]
        others = _agreeing(sizes, others)
    elif rule == "none" or (rule == "legacy" and draw(st.booleans())):
        others = [sizes] * count
    else:
        start = draw(st.integers(0, max(len(sizes) - 1, 0)))
        ends = [draw(st.integers(start, len(sizes))) for _operand in range(count)]
        stated |= {"axis": start} | ({"broadcast": 1} if rule == "legacy" else {})
        others = [sizes[start:end] for end in ends]
    others[main] = sizes
    return others, attributes | stated


def _beside(growth: Growth, sizes: Sizes, *, may_grow: bool) -> Sizes:
    """A shape that broadcasts with another by NumPy's rule."""
    draw = growth.draw
    start = draw(st.integers(0, len(sizes)))
    narrow = tuple(draw(st.sampled_from([size, 1])) for size in sizes[start:])
    if not may_grow or draw(st.integers(0, 3)):
        return narrow
    wide = tuple(2 if size == 1 else size for size in narrow) if sizes and sizes[-1] == 1 else narrow
    wide = tuple(2 if own == 1 else size for own, size in zip(sizes[start:], wide, strict=True))
    return (draw(st.sampled_from([2, 1])), *wide) if not start and len(sizes) < 4 else wide


def _agreeing(sizes: Sizes, others: Sequence[Sizes]) -> list[Sizes]:
    """The shapes, but for those that do not broadcast with all before them."""
    agreeing: list[Sizes] = []
    shape = sizes
    for other in others:
        try:
            shape = np.broadcast_shapes(shape, other)
        except ValueError:
            agreeing.append(())
        else:
            agreeing.append(other)
    return agreeing


def _quantized(growth: Growth, schema: ElementwiseSchema, sizes: Sizes) -> tuple[list[Sizes], dict[str, Any]]:
    """The shape of scales and zero points: one element, one for each index of a dimension, or one for a block."""
    draw, names = growth.draw, schema.attribute_names
    if not sizes or "axis" not in names or not draw(st.integers(0, 2)):
        return [draw(st.sampled_from([(), (1,)] if sizes else [()]))], {}
    axis = draw(st.integers(-len(sizes), len(sizes) - 1))
    if "block_size" not in names or draw(st.booleans()):
        return [(sizes[axis],)], {"axis": axis}
    block = draw(st.integers(1, max(sizes[axis], 1)))
    blocks = list(sizes)
    blocks[axis] = -(-sizes[axis] // block)
    return [tuple(blocks)], {"axis": axis, "block_size": block}


def _result(growth: Growth, operation: Operation, operands: Sequence[str]) -> Value:
    """The type and shape of the result."""
    schema = operation.schema
    assert isinstance(schema, ElementwiseSchema)
    values = [growth.known[name] if name else None for name in operands]
    computation, read = operation.computation_of(values, lambda value: value[0])
    kind = computation.result_type_of(tuple(each for each, _sizes in read))
    assert kind is not None
    main = growth.known[operands[_main(schema)]][1]
    is_numpy = operation.rule.name == "numpy"
    return kind, np.broadcast_shapes(*(sizes for _kind, sizes in read)) if is_numpy else main
