"""Random chains of element-wise nodes of one type, broadcast or not, with constants of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, ElementType
from eltwise.core.shapes import UNKNOWN_RANK, Dimension, Shape, of_sizes
from eltwise.formats.openvino.ports import ResultNames, output_ports
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values

OPSETS = (7, 13, 14, 17)
_MOST_NODES = 4
Choice = TypeVar("Choice")
_SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (16,), (2, 3, 4), (1,), ())


class Chain:
    """A graph that grows node by node, each reading what is there."""

    def __init__(self, generator: np.random.Generator, domain: str) -> None:
        self._generator = generator
        opset = int(generator.choice(OPSETS)) if domain == "ai.onnx" else 0
        self._origin = Origin("ai.onnx", 8, opset) if opset else Origin("openvino", 11)
        names = ("Sub", "Add", "Mul") if opset else ("Subtract", "Add", "Multiply", "SquaredDifference")
        schemas = [registry.resolve(self._origin.domain, name, opset or 1) for name in names]
        self._rows = [schema for schema in schemas if isinstance(schema, ElementwiseSchema)]
        self.element_type: ElementType = self._any(self._rows[0].types)
        self._shape = self._any(_SHAPES)
        narrow = [self._shape, self._shape[1:], (*self._shape[:-1], 1)[: len(self._shape)], (1,) * len(self._shape)]
        self._shapes = {"x": self._shape, "y": self._any(narrow) if generator.random() < 0.4 else self._shape}
        self._is_static = bool(generator.random() < 0.6)
        self._constants: dict[str, Tensor] = {}
        self._nodes: list[Node] = []
        # Runtimes may leave out a cast to a type that they do not compute in.
        is_cast = self.element_type in (FLOAT16, BFLOAT16) and generator.random() < 0.3
        self._given = {"x": FLOAT32 if is_cast and opset != 7 else self.element_type, "y": self.element_type}
        if self._given["x"] is not self.element_type:
            kind, attribute = ("Cast", "to") if opset else ("Convert", "destination_type")
            schema = registry.resolve(self._origin.domain, kind, opset or 1)
            assert schema is not None
            self._nodes.append(Node("cast", schema.bind({attribute: self.element_type}), ("x",), ("cast",)))

    def _any(self, choices: Sequence[Choice]) -> Choice:
        return choices[int(self._generator.integers(len(choices)))]

    def _drawn(self, shape: tuple[int, ...], element_type: ElementType) -> np.ndarray:
        seed = int(self._generator.integers(1 << 30))
        ordinary = hard_values.ordinary(element_type, 40, seed)
        dense = hard_values.of_all_digits(element_type, 40, seed)
        pool = np.concatenate([hard_values.hard_values(element_type), ordinary, dense])
        return np.asarray(pool[self._generator.integers(0, pool.size, shape)])

    def _constant(self) -> str:
        """A constant: of any numbers, or one number throughout, of the chain's shape or of single sizes."""
        name = f"k{len(self._constants)}"
        shape = self._any([self._shape, (1,) * len(self._shape), ()])
        array = self._drawn(shape, self.element_type)
        if self._generator.random() < 0.6:
            number = self._any([0.0, -0.0, 1.0, 3.0, 5.0, 1e-60, 1 + 2.0**-40])
            array = np.full(shape, number).astype(self.element_type.storage)
        self._constants[name] = Tensor(array, self.element_type)
        return name

    def grow(self) -> None:
        made = [node.outputs[0] for node in self._nodes]
        # Most nodes read the one before, which is what runtimes join.
        there = [*(name for name, kind in self._given.items() if kind is self.element_type), *made]
        own = made[-1] if made and self._generator.random() < 0.7 else self._any(there)
        other = self._any(there) if self._generator.random() < 0.4 else self._constant()
        inputs = (own, other) if self._generator.random() < 0.5 else (other, own)
        output = f"v{len(made)}"
        self._nodes.append(Node(output, self._any(self._rows).bind({}), inputs, (output,)))

    def finished(self) -> tuple[Graph, dict[str, np.ndarray]]:
        made = [node.outputs[0] for node in self._nodes]
        given = [made[-1]] if self._generator.random() < 0.8 else [name for name in made if name != "cast"]
        read = [name for name in ("x", "y") if any(name in node.inputs for node in self._nodes)]
        inputs = tuple(Port(name, TensorType(self._given[name], self._declared(name)), name) for name in read)
        graph = Graph(
            "chain",
            self._origin,
            inputs,
            self._outputs(given),
            tuple(self._nodes),
            tuple(self._constants.items()),
            input_order=tuple(read),
        )
        return graph, {name: self._drawn(self._shapes[name], self._given[name]) for name in read}

    def _declared(self, name: str) -> Shape:
        sizes = self._shapes[name]
        return of_sizes(sizes) if self._is_static else Shape(tuple(Dimension() for _size in sizes))

    def _outputs(self, given: list[str]) -> tuple[Port, ...]:
        if self._origin.domain == "ai.onnx":
            return tuple(Port(name, TensorType(self.element_type, UNKNOWN_RANK), name) for name in given)
        ports = output_ports([ResultNames(f"{name}/result", name, (), ()) for name in given])
        return tuple(replace(port, type=TensorType(None, UNKNOWN_RANK)) for port in ports)


def random_chain(generator: np.random.Generator, domain: str) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of one to four nodes, with arrays for its inputs."""
    chain = Chain(generator, domain)
    for _number in range(int(generator.integers(1, _MOST_NODES + 1))):
        chain.grow()
    return chain.finished()
