"""An ONNX model of float32 in float16, but for some of its nodes, with Casts where the two meet.

The name of a value is that of its float32 form, so that nodes that stay as they are, and bodies that read values from
outside, are not changed; its float16 form has another name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import onnx
from onnx import ModelProto, NodeProto, TensorProto, defs, helper

from eltwise.core.dtypes import FLOAT16, FLOAT32
from eltwise.core.errors import UnsupportedError
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.float_types import rounded_tensor, set_attributes
from eltwise.formats.onnx.inference import infer_types
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.nodes import subgraphs
from eltwise.formats.onnx.reader import folder_of, read_model_proto
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph

_NARROW = "tensor(float16)"
_SUFFIX = "/float16"
_WITH_VALUES = ("Constant", "ConstantOfShape")
"""Operators that hold numbers in an attribute."""


@dataclass
class Narrowing:
    """A model of which nodes may become float16.

    Attributes:
        model: the model.
        ports: for each node that may, by its index: which of its inputs and outputs are float16 then.
    """

    graph: Graph
    model: ModelProto = field(init=False)
    ports: Mapping[int, tuple[frozenset[int], frozenset[int]]] = field(init=False)

    def __post_init__(self) -> None:
        if self.graph.origin.domain != "ai.onnx":
            raise UnsupportedError("only ONNX models are rewritten for float16", hint="convert it: eltwise convert")
        self.model = write_model_proto(self.graph)
        types = infer_types(self.graph).get(id(self.graph), {})
        self._floats = {name for name, kind in types.items() if kind.element_type is FLOAT32}
        self._floats |= {one.name for one in self.model.graph.initializer if one.data_type == TensorProto.FLOAT}
        self._known = types.keys() | {one.name for one in self.model.graph.initializer}
        nodes = enumerate(self.model.graph.node)
        ports = {number: self._ports_of(node) for number, node in nodes}
        self.ports = {number: one for number, one in ports.items() if one is not None and any(one)}

    def label(self, number: int) -> str:
        """The name of a node, or of what it makes."""
        node = self.model.graph.node[number]
        return node.name or next(iter(node.output), "")

    def graph_with(self, retained: Collection[int]) -> Graph:
        """The model in float16, but for some nodes that may be and those that may not."""
        model = ModelProto.FromString(self.model.SerializeToString())
        path = folder_of(self.graph)
        narrow = {number: ports for number, ports in self.ports.items() if number not in retained}
        wide = self._read_as_float32(narrow)
        input_names = {value.name for value in model.graph.input}
        tensors = {one.name: one for one in model.graph.initializer if one.name not in input_names}
        tensors |= {
            node.output[0]: node.attribute[0].t
            for node in model.graph.node
            if node.op_type == "Constant" and node.attribute[0].name == "value"
        }
        nodes, added = list(model.graph.node), dict[str, TensorProto]()
        needed = {nodes[n].input[index] for n, (inputs, _outputs) in narrow.items() for index in inputs}
        del model.graph.node[:]
        model.graph.node.extend(_cast(name, is_narrow=True) for name in sorted(input_names & needed))
        for number, node in enumerate(nodes):
            inputs, outputs = narrow.get(number, (frozenset(), frozenset()))
            for index in inputs:
                name = node.input[index]
                if name in tensors and name not in added:
                    added[name] = rounded_tensor(tensors[name], ExternalData(path), FLOAT16, name + _SUFFIX)
                node.input[index] += _SUFFIX
            names = [node.output[index] for index in outputs]
            for index in outputs:
                node.output[index] += _SUFFIX
            if outputs:
                set_attributes(node, FLOAT16)
            model.graph.node.append(node)
            model.graph.node.extend(_cast(name, is_narrow=False) for name in names if name in wide)
            others = [name for name in node.output if name in needed and name not in tensors and name not in names]
            model.graph.node.extend(_cast(name, is_narrow=True) for name in others)
        retained_tensors = [one for one in model.graph.initializer if one.name not in added or one.name in wide]
        retained_tensors += added.values()
        del model.graph.initializer[:]
        model.graph.initializer.extend(retained_tensors)
        del model.graph.value_info[:]
        return read_model_proto(model, path, "", reads_weights=False).graph

    def _ports_of(self, node: NodeProto) -> tuple[frozenset[int], frozenset[int]] | None:
        """Which inputs and outputs of a node are float16 then; None for one that must stay as it is."""
        if node.domain not in ("", "ai.onnx") or node.op_type in _WITH_VALUES or any(subgraphs(node)):
            return None
        try:
            schema = defs.get_schema(node.op_type, self.graph.origin.opset, "")
        except defs.SchemaError:
            return None
        allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
        sides = []
        for names, formal in ((node.input, schema.inputs), (node.output, schema.outputs)):
            chosen = set()
            for index, name in enumerate(names):
                if name and name not in self._known:
                    return None
                if name not in self._floats:
                    continue
                kind = formal[min(index, len(formal) - 1)].type_str
                if kind in allowed and _NARROW not in allowed[kind]:
                    return None
                chosen |= {index} & ({index} if kind in allowed else set())
            sides.append(frozenset(chosen))
        return sides[0], sides[1]

    def _read_as_float32(self, narrow: Mapping[int, tuple[frozenset[int], frozenset[int]]]) -> set[str]:
        """The values that something reads as float32: nodes that stay, bodies, and the caller."""
        names = {value.name for value in self.model.graph.output}
        for number, node in enumerate(self.model.graph.node):
            inputs = narrow.get(number, (frozenset[int](), frozenset[int]()))[0]
            names.update(name for index, name in enumerate(node.input) if index not in inputs)
            names.update(_captured(node))
        return names


def _captured(node: NodeProto) -> Iterator[str]:
    """What the nodes in the bodies of a node read."""
    for _name, body in subgraphs(node):
        yield from (name for one in walk(body) if isinstance(one, NodeProto) for name in one.input)
        yield from (value.name for value in body.output)


def _cast(name: str, *, is_narrow: bool) -> NodeProto:
    """A Cast from float32 to float16, or back."""
    ends = [name, name + _SUFFIX] if is_narrow else [name + _SUFFIX, name]
    to = onnx.TensorProto.FLOAT16 if is_narrow else onnx.TensorProto.FLOAT
    return helper.make_node("Cast", ends[:1], ends[1:], f"{ends[1]}/cast", to=to)
