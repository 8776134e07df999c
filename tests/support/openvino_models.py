"""IR files as text, built without the package's own writer, so that tests can bend every part of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.engine.runner import Runner
from eltwise.formats.openvino.reader import read_openvino
from eltwise.formats.openvino.writer import write_openvino
from eltwise.formats.reading import Reading
from eltwise.ir.graph import Graph
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops.schema import ElementwiseSchema

PRECISIONS = {"f16": "FP16", "f32": "FP32", "f64": "FP64", "boolean": "BOOL", "u1": "BIN"}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "boolean": 8, "f8e4m3": 8, "f8e5m2": 8} | {
    f"{kind}{bits}": bits for kind in "iu" for bits in (4, 8, 16, 32, 64)
}
"""The element types that run, by their names in IR, with their sizes."""


def attributes(texts: dict[str, Any]) -> str:
    return "".join(f" {name}={quoteattr(str(text))}" for name, text in texts.items())


@dataclass
class Ir:
    """An IR file that is being built; every layer is given the next number."""

    version: str = "11"
    name: str = "model"
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytes = b""
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    rest: str = ""

    def layer(
        self,
        kind: str,
        name: str,
        inputs: list[str] | tuple[str, ...] = (),
        outputs: int = 1,
        *,
        opset: str = "opset1",
        names: str = "",
        precision: str = "FP32",
        extra: str = "",
        **data: Any,
    ) -> Ir:
        number, count = len(self.layers), len(inputs)
        ports = "".join(f'<port id="{index}" precision="{precision}"><dim>2</dim></port>' for index in range(count))
        made = f" names={quoteattr(names)}" if names else ""
        results = "".join(
            f'<port id="{count + index}" precision="{precision}"{made}><dim>2</dim></port>' for index in range(outputs)
        )
        self.layers.append(
            f'<layer id="{number}" name={quoteattr(name)} type="{kind}" version="{opset}"{extra}>'
            + (f"<data{attributes(data)}/>" if data else "")
            + (f"<input>{ports}</input>" if ports else "")
            + (f"<output>{results}</output>" if results else "")
            + "</layer>"
        )
        for index, source in enumerate(inputs):
            self.edge(*self.numbers[source], number, index)
        if outputs:
            self.numbers[name] = (number, count)
        return self

    def edge(self, from_layer: object, from_port: object, to_layer: object, to_port: object) -> Ir:
        self.edges.append(
            f'<edge from-layer="{from_layer}" from-port="{from_port}" to-layer="{to_layer}" to-port="{to_port}"/>'
        )
        return self

    def parameter(self, name: str, shape: str = "2,3", element_type: str = "f32", names: str = "") -> Ir:
        precision = PRECISIONS.get(element_type, element_type.upper())
        return self.layer("Parameter", name, names=names, precision=precision, shape=shape, element_type=element_type)

    def constant(
        self,
        name: str,
        element_type: str,
        shape: str,
        raw: bytes,
        /,
        names: str = "",
        gap: bytes = b"",
        **changes: Any,
    ) -> Ir:
        self.weights += gap
        data: dict[str, Any] = {
            "element_type": element_type,
            "shape": shape,
            "offset": len(self.weights),
            "size": len(raw),
        }
        self.weights += raw
        precision = PRECISIONS.get(element_type, element_type.upper())
        return self.layer("Const", name, names=names, precision=precision, **(data | changes))

    def stated(
        self, schema: ElementwiseSchema, name: str, element_type: ElementType, attributes: dict[str, str]
    ) -> list[str]:
        """Add the attributes of a layer that files state as constants, which are taken out; gives their names."""
        names = []
        for attribute, sizes in schema.constant_operands:
            raw = np.full(sizes, float(attributes.pop(attribute, 1)), element_type.storage).tobytes()
            names.append(f"{name}/{attribute}")
            self.constant(names[-1], element_type.ir, ",".join(map(str, sizes)), raw)
        return names

    def result(self, source: str, name: str = "", output_names: str = "") -> Ir:
        own = f" output_names={quoteattr(output_names)}" if output_names else ""
        return self.layer("Result", name or f"{source}/result", [source], outputs=0, extra=own)

    def text(self) -> str:
        return (
            f'<?xml version="1.0"?>\n<net name={quoteattr(self.name)} version="{self.version}">\n'
            f"<layers>\n{chr(10).join(self.layers)}\n</layers>\n<edges>\n{chr(10).join(self.edges)}\n</edges>\n"
            f"{self.rest}</net>\n"
        )

    def xml(self) -> bytes:
        return self.text().encode()


def binary(
    kind: str = "Subtract",
    a: str = "2,3",
    b: str = "2,3",
    element_type: str = "f32",
    version: str = "11",
    opset: str = "opset1",
    **data: Any,
) -> Ir:
    """One element-wise layer ``s`` of the inputs ``a`` and ``b``."""
    ir = Ir(version).parameter("a", a, element_type).parameter("b", b, element_type)
    precision = PRECISIONS.get(element_type, element_type.upper())
    return ir.layer(kind, "s", ["a", "b"], opset=opset, precision=precision, **data).result("s", "r")


def problems_of(reading: Reading) -> list[EltwiseError]:
    """What reading, the graph's structure and inference find."""
    return [*reading.problems, *structure_problems(reading.graph), *infer_graph(reading.graph).problems]


def read(ir: Ir) -> Graph:
    """Read an IR that has no problems."""
    reading = read_openvino(ir.xml(), ir.weights)
    assert reading.problems == ()
    assert structure_problems(reading.graph) == []
    return reading.graph


def written_anew(graph: Graph) -> tuple[bytes, bytes]:
    """The files of a graph, made of it alone: those of an untouched one would be the ones that were read."""
    return write_openvino(replace(graph))


def assert_round_trip(graph: Graph) -> None:
    xml, weights = written_anew(graph)
    again = read_openvino(xml, weights)
    assert again.problems == ()
    assert again.graph == graph
    assert write_openvino(again.graph) == written_anew(again.graph) == (xml, weights)


def run(graph: Graph, **feeds: np.ndarray) -> dict[str, np.ndarray]:
    inference = infer_graph(graph)
    assert inference.problems == []
    return Runner(graph, inference.outputs).run(feeds)
