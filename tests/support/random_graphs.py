"""Random graphs of both formats: every operator version, constants, shared values, unknown sizes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from eltwise.core.dtypes import BOOL, INT32, INT64, ElementType
from eltwise.core.shapes import Dimension, Shape, of_sizes
from eltwise.formats.openvino.ports import ResultNames, output_ports
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import OpSchema
from eltwise.oracle import hard_values
from support.random_elementwise import grow_elementwise

Sizes = tuple[int, ...]
OPSETS = (1, 4, 5, 6, 7, 10, 11, 13, 14, 17, 21, 25)


@dataclass
class Growth:
    """A graph that is growing; every value has known sizes here, whatever its declaration says."""

    draw: st.DrawFn
    origin: Origin
    inputs: dict[str, tuple[ElementType, Sizes]] = field(default_factory=dict)
    constants: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    known: dict[str, tuple[ElementType, Sizes]] = field(default_factory=dict)

    @property
    def is_onnx(self) -> bool:
        return self.origin.domain == "ai.onnx"

    def schema(self, name: str) -> OpSchema:
        schema = registry.resolve(self.origin.domain, name, self.origin.opset if self.is_onnx else 15)
        assert schema is not None
        return schema

    def new(self, prefix: str) -> str:
        return f"{prefix}{len(self.known)}"

    def source(self, element_type: ElementType, sizes: Sizes) -> str:
        """A value of this type and shape: one that is there, an input, or a constant."""
        there = [name for name, kind in self.known.items() if kind == (element_type, sizes)]
        choice = self.draw(st.sampled_from(["input", "constant", "there", "input"]))
        if choice == "there" and there:
            return self.draw(st.sampled_from(there))
        if choice == "input":
            name = self.new("x")
            self.inputs[name] = (element_type, sizes)
        else:
            name = self.new("c")
            self.constants[name] = Tensor(drawn(element_type, sizes, len(self.known)), element_type)
        self.known[name] = (element_type, sizes)
        return name

    def operand(self, element_type: ElementType, sizes: Sizes, divides: bool) -> str:
        """An operand; what integers are divided by is mostly a constant without zeros."""
        if not divides or not self.draw(st.integers(0, 5)):
            return self.source(element_type, sizes)
        array = drawn(element_type, sizes, len(self.known))
        name = self.new("d")
        self.constants[name] = Tensor(np.where(array == 0, array.dtype.type(1), array), element_type)
        self.known[name] = (element_type, sizes)
        return name

    def indices(self, numbers: Sizes) -> str:
        kind = INT64 if self.is_onnx else self.draw(st.sampled_from([INT32, INT64]))
        name = self.new("i")
        scalar = not self.is_onnx and len(numbers) == 1 and self.draw(st.booleans())
        array = np.array(numbers[0] if scalar else numbers, kind.storage)
        self.constants[name] = Tensor(array, kind)
        self.known[name] = (kind, array.shape)
        return name

    def add(self, schema: OpSchema, inputs: list[str], kind: ElementType, sizes: Sizes, **attributes: Any) -> None:
        output = self.new("v")
        name = output if not self.is_onnx or self.draw(st.booleans()) else f"node_{output}"
        self.nodes.append(Node(name, schema.bind(attributes), tuple(inputs), (output,)))
        self.known[output] = (kind, sizes)


def drawn(element_type: ElementType, sizes: Sizes, seed: int) -> np.ndarray:
    if element_type is BOOL:
        return np.random.default_rng(seed).integers(0, 2, sizes).astype(np.bool_)
    pool = np.concatenate([hard_values.hard_values(element_type), hard_values.random_bits(element_type, 40, seed)])
    return np.asarray(pool[np.random.default_rng(seed).integers(0, pool.size, sizes)])


def grow_data_movement(growth: Growth) -> None:
    draw = growth.draw
    if not growth.known:
        return
    value, (kind, sizes) = draw(st.sampled_from(list(growth.known.items())))
    behaviour = draw(st.sampled_from(["identity", "cast", "reshape", "squeeze", "unsqueeze"]))
    names = {"cast": "Cast" if growth.is_onnx else "Convert"}
    name = names.get(behaviour, behaviour.capitalize())
    if behaviour == "identity" and not growth.is_onnx:
        return
    schema = growth.schema(name)
    if kind not in schema.types:
        return
    if behaviour == "identity":
        growth.add(schema, [value], kind, sizes)
    elif behaviour == "cast":
        grow_cast(growth, schema, value, kind, sizes)
    elif behaviour == "reshape":
        grow_reshape(growth, schema, value, kind, sizes)
    else:
        grow_axes(growth, schema, value, kind, sizes)


def grow_cast(growth: Growth, schema: OpSchema, value: str, kind: ElementType, sizes: Sizes) -> None:
    target = growth.draw(st.sampled_from(schema.types))
    name = "to" if growth.is_onnx else "destination_type"
    extra = {}
    if "saturate" in schema.attribute_names and growth.draw(st.booleans()):
        extra = {"saturate": growth.draw(st.integers(0, 1))}
    growth.add(schema, [value], target, sizes, **{name: target}, **extra)


def grow_reshape(growth: Growth, schema: OpSchema, value: str, kind: ElementType, sizes: Sizes) -> None:
    draw, count = growth.draw, int(np.prod(sizes, dtype=int))
    copied = (0, -1) if sizes else (-1,)
    targets = [(-1,), (count,), (1, count), sizes, (*sizes[:1], -1), copied] if count else [sizes]
    target: Sizes = draw(st.sampled_from(targets))
    copies = 0 in target
    made = tuple(sizes[index] if size == 0 else size for index, size in enumerate(target))
    if -1 in made:
        rest = int(np.prod([size for size in made if size != -1], dtype=int))
        made = tuple(count // rest if size == -1 else size for size in made)
    if "shape" in schema.attribute_names:
        growth.add(schema, [value], kind, made, shape=target)
        return
    attributes: dict[str, Any] = {}
    if not growth.is_onnx:
        attributes = {"special_zero": copies or draw(st.booleans())}
    elif "allowzero" in schema.attribute_names and not copies and draw(st.booleans()):
        attributes = {"allowzero": 1}
    if growth.is_onnx:
        growth.add(schema, [value, growth.indices(target)], kind, made, **attributes)
    else:
        name = growth.new("i")
        growth.constants[name] = Tensor(np.array(target, np.int32), INT32)
        growth.known[name] = (INT32, (len(target),))
        growth.add(schema, [value, name], kind, made, **attributes)


def grow_axes(growth: Growth, schema: OpSchema, value: str, kind: ElementType, sizes: Sizes) -> None:
    draw, inserts = growth.draw, schema.name == "Unsqueeze"
    rank = len(sizes) + 1 if inserts else len(sizes)
    candidates = list(range(rank)) if inserts else [axis for axis, size in enumerate(sizes) if size == 1]
    if not candidates:
        return
    axis = draw(st.sampled_from(candidates))
    made = (*sizes[:axis], 1, *sizes[axis:]) if inserts else (*sizes[:axis], *sizes[axis + 1 :])
    if draw(st.booleans()) and not (growth.is_onnx and schema.version == 1):
        axis -= rank
    if "axes" in schema.attribute_names:
        growth.add(schema, [value], kind, made, axes=(axis,))
    else:
        growth.add(schema, [value, growth.indices((axis,))], kind, made)


class Drawn(NamedTuple):
    """A graph with arrays for its inputs."""

    graph: Graph
    feeds: dict[str, np.ndarray]

    def __repr__(self) -> str:
        """The values and nodes, a line each."""
        graph = self.graph
        lines = [f"{graph.origin}, outputs {', '.join(port.value for port in graph.outputs)}"]
        lines += [f"  {port.value} = input ({port.type}) {self.feeds[port.name]!r}" for port in graph.inputs]
        lines += [f"  {name} = {tensor.array!r}" for name, tensor in graph.constants]
        for node in graph.nodes:
            attributes = "".join(f", {name}={value}" for name, value in node.bound.attributes)
            lines.append(f"  {node.outputs[0]} = {node.schema}({', '.join(node.inputs)}{attributes})")
        return "\n".join(lines)


@st.composite
def graphs(draw: st.DrawFn, domain: str, most_nodes: int = 6) -> Drawn:
    """A graph with arrays for its inputs."""
    opset = draw(st.sampled_from(OPSETS)) if domain == "ai.onnx" else 0
    origin = Origin("ai.onnx", 8 if opset < 19 else 10, opset) if domain == "ai.onnx" else Origin("openvino", 11)
    growth = Growth(draw, origin)
    for _number in range(draw(st.integers(1, most_nodes))):
        draw(st.sampled_from([grow_elementwise, grow_elementwise, grow_data_movement]))(growth)
    if not growth.nodes:
        grow_elementwise(growth)
    made = [node.outputs[0] for node in growth.nodes]
    others = draw(st.lists(st.sampled_from([*made, *growth.inputs]), max_size=2, unique=True))
    given = list(dict.fromkeys([made[-1], *others]))
    feeds = {name: drawn(kind, sizes, index) for index, (name, (kind, sizes)) in enumerate(growth.inputs.items())}
    inputs = tuple(
        Port(name, TensorType(kind, _declared(growth, sizes)), name) for name, (kind, sizes) in growth.inputs.items()
    )
    graph = Graph(
        "random",
        origin,
        inputs,
        _outputs(growth, given),
        tuple(growth.nodes),
        tuple(growth.constants.items()),
        input_order=tuple(growth.inputs),
    )
    return Drawn(graph, feeds)


def _outputs(growth: Growth, given: list[str]) -> tuple[Port, ...]:
    if growth.is_onnx:
        return tuple(Port(name, TensorType(growth.known[name][0], Shape(None)), name) for name in given)
    ports = output_ports([ResultNames(f"{name}/result", name, (), ()) for name in given])
    return tuple(replace(port, type=TensorType(None, Shape(None))) for port in ports)


def _declared(growth: Growth, sizes: Sizes) -> Shape:
    """The shape of an input as the file declares it: now and then without a size, or even the rank."""
    draw, exact = growth.draw, of_sizes(sizes)
    left_out = draw(st.sampled_from(["nothing", "nothing", "a size", "all sizes", "the rank"]))
    if left_out == "the rank":
        return Shape(None)
    if left_out == "nothing" or not sizes:
        return exact
    chosen = range(len(sizes)) if left_out == "all sizes" else [draw(st.integers(0, len(sizes) - 1))]
    kinds = [Dimension(), Dimension(symbol="N")] if growth.is_onnx and len(growth.inputs) == 1 else [Dimension()]
    assert exact.dimensions is not None
    return Shape(
        tuple(
            draw(st.sampled_from(kinds if left_out == "a size" else kinds[:1])) if index in chosen else dimension
            for index, dimension in enumerate(exact.dimensions)
        )
    )
