"""The same ONNX model in other float types: one in place of all others, or float16 for some of its nodes.

Where nodes of float16 and float32 meet there are Casts. The name of a value is that of its float32 form, so that nodes
that stay as they are, and bodies that read values from outside, are not changed; its float16 form has another name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto, defs, helper

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.onnx.definitions import define
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.inference import infer_types
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.nodes import nodes_in, subgraphs
from eltwise.formats.onnx.reader import path_of, read_model_proto
from eltwise.formats.onnx.tensors import keep_tensor, read_tensor
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph, Tensor

_FLOATS = {element_type.onnx_number for element_type in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)}
_NARROW = "tensor(float16)"
_SUFFIX = "/float16"
_WITH_VALUES = ("Constant", "ConstantOfShape")
"""Operators that hold numbers in an attribute."""

_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")


def in_float_type(graph: Graph, element_type: ElementType) -> Graph:
    """Make the model in which every float has one type; constants are rounded to it, which float64 holds exactly.

    Operators of onnxruntime are defined by those of ONNX in it.

    Raises:
        UnsupportedError: for OpenVINO IR, whose runtime computes float64 in float32.
        EltwiseError: for constants that cannot be read.
    """
    if graph.origin.domain != "ai.onnx":
        hint = "trace the ONNX model that it was made of"
        if not any(node.is_foreign for node in graph.nodes):
            hint += ", or convert it: eltwise convert"
        raise UnsupportedError("OpenVINO computes float64 in float32, so that an IR has no wider run", hint=hint)
    model = write_model_proto(graph)
    define(model)
    folder = ExternalData(path_of(graph))
    for message in list(walk(model)):
        if isinstance(message, TensorProto) and message.data_type in _FLOATS:
            message.CopyFrom(_rounded_tensor(message, folder, element_type, message.name))
        elif isinstance(message, TypeProto) and message.tensor_type.elem_type in _FLOATS:
            message.tensor_type.elem_type = element_type.onnx_number
        elif isinstance(message, NodeProto):
            _set_attributes(message, element_type)
    return read_model_proto(model, path_of(graph), reads_weights=False).graph


def any_float(attribute: object) -> object:
    """An attribute as it is in every float type: one that names a type, or holds numbers of it."""
    if not isinstance(attribute, AttributeProto):
        return attribute
    if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _FLOATS:
        return "float"
    if attribute.type == AttributeProto.TENSOR and attribute.t.data_type in _FLOATS:
        try:
            array = read_tensor(attribute.t, ExternalData(None), repr(attribute.name)).array
        except EltwiseError:  # As of external data.
            return attribute
        return array.shape, array.astype(np.float64).tobytes()
    return attribute


def _rounded_tensor(proto: TensorProto, folder: ExternalData, element_type: ElementType, name: str) -> TensorProto:
    """The same tensor in a float type, with a name."""
    array, result = read_tensor(proto, folder, repr(proto.name)).array, TensorProto()
    keep_tensor(result, name, Tensor(_rounded(array, element_type), element_type))
    return result


def _rounded(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(element_type.storage)


def _set_attributes(node: NodeProto, element_type: ElementType) -> None:
    """Change the types that a node names, and the floats of a Constant, which have 32 bits."""
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _FLOATS:
            attribute.i = element_type.onnx_number
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            values = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, np.float64)
            attribute.Clear()
            attribute.name, attribute.type = "value", AttributeProto.TENSOR
            keep_tensor(attribute.t, "", Tensor(_rounded(values, element_type), element_type))


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
        path = path_of(self.graph)
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
                    added[name] = _rounded_tensor(tensors[name], ExternalData(path), FLOAT16, name + _SUFFIX)
                node.input[index] += _SUFFIX
            names = [node.output[index] for index in outputs]
            for index in outputs:
                node.output[index] += _SUFFIX
            if outputs:
                _set_attributes(node, FLOAT16)
            model.graph.node.append(node)
            model.graph.node.extend(_cast(name, is_narrow=False) for name in names if name in wide)
            others = [name for name in node.output if name in needed and name not in tensors and name not in names]
            model.graph.node.extend(_cast(name, is_narrow=True) for name in others)
        retained_tensors = [one for one in model.graph.initializer if one.name not in added or one.name in wide]
        retained_tensors += added.values()
        del model.graph.initializer[:]
        model.graph.initializer.extend(retained_tensors)
        del model.graph.value_info[:]
        return read_model_proto(model, path, reads_weights=False).graph

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
        yield from (name for one in nodes_in(body) for name in one.input)
        yield from (value.name for value in body.output)


def _cast(name: str, *, is_narrow: bool) -> NodeProto:
    """A Cast from float32 to float16, or back."""
    ends = [name, name + _SUFFIX] if is_narrow else [name + _SUFFIX, name]
    to = TensorProto.FLOAT16 if is_narrow else TensorProto.FLOAT
    return helper.make_node("Cast", ends[:1], ends[1:], f"{ends[1]}/cast", to=to)
