"""Runtimes with planted faults: onnxruntime, given other nodes than those of the model. They run in processes."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import onnx
from onnx import helper

from eltwise.runtimes.onnxruntime import OnnxRuntime, Session


class Planted(OnnxRuntime):
    """A runtime whose ``change`` changes a model before it is loaded."""

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Session:
        """Load the changed model."""
        del path
        model = onnx.load_from_string(data)
        self.change(model)
        return super().load(model.SerializeToString(), weights)

    def change(self, model: Any) -> None:
        """Change nothing."""


class Wrong(Planted):
    """Relu is computed as Abs."""

    def change(self, model: Any) -> None:
        """Replace the nodes."""
        for node in model.graph.node:
            node.op_type = "Abs" if node.op_type == "Relu" else node.op_type


class WrongSteps(Planted):
    """What is rounded, compared or made an integer is 1 more, 100 more where it is compared; a position one of 128."""

    def change(self, model: Any) -> None:
        """Add to the first input, or to that of positions."""
        types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        for node in list(model.graph.node):
            is_wrong = node.op_type in ("Round", "Floor", "Greater", "QuantizeLinear", "GridSample") or (
                node.op_type == "Cast" and node.attribute[0].i == onnx.TensorProto.INT32
            )
            index = 1 if node.op_type == "GridSample" else 0
            if is_wrong and types.get(node.input[index], 1) == onnx.TensorProto.FLOAT:
                more = {"Greater": 100.0, "GridSample": 2 / 128}.get(node.op_type, 1.0)
                constant = helper.make_tensor(f"{node.output[0]}/more", onnx.TensorProto.FLOAT, [], [more])
                sum_name, place = f"{node.output[0]}/sum", list(model.graph.node).index(node)
                model.graph.initializer.append(constant)
                model.graph.node.insert(place, helper.make_node("Add", [node.input[index], constant.name], [sum_name]))
                model.graph.node[place + 1].input[index] = sum_name


class WrongZeroPoints(Planted):
    """What is quantized by scales is 1 more."""

    def change(self, model: Any) -> None:
        """Add to the zero point of the result."""
        for node in model.graph.node:
            if node.op_type.startswith("QLinear"):
                index = 1 if node.op_type == "QLinearConcat" else 7 if len(node.input) > 5 else 4
                before = next(one for one in model.graph.initializer if one.name == node.input[index])
                after = helper.make_tensor(f"{before.name}/more", before.data_type, [], [before.raw_data[0] + 1])
                model.graph.initializer.append(after)
                node.input[index] = after.name


class TruncatingLevels(Planted):
    """What is quantized by its range is truncated; of positive numbers, which have the zero point 0."""

    def change(self, model: Any) -> None:
        """Compute the levels of other operators."""
        for node in list(model.graph.node):
            if node.op_type == "DynamicQuantizeLinear":
                levels, scale, _zero = node.output
                index = list(model.graph.node).index(node) + 1
                node.output[0] += "/rounded"
                quotient = helper.make_node("Div", [node.input[0], scale], [f"{levels}/quotient"])
                model.graph.node.insert(index, quotient)
                model.graph.node.insert(index + 1, helper.make_node("Cast", [*quotient.output], [levels], to=2))


class RoundingAway(Planted):
    """Round takes halves away from zero instead of to the even number."""

    def change(self, model: Any) -> None:
        """Compute it of other operators, which are exact here."""
        nodes = list(model.graph.node)
        half = helper.make_tensor("half", onnx.TensorProto.FLOAT, [], [0.5])
        del model.graph.node[:]
        for node in nodes:
            if node.op_type != "Round":
                model.graph.node.append(node)
                continue
            model.graph.initializer.append(half)
            read, made = node.input[0], node.output[0]
            model.graph.node.extend(
                helper.make_node(op, inputs, [output])
                for op, inputs, output in (
                    ("Sign", [read], f"{made}/sign"),
                    ("Abs", [read], f"{made}/size"),
                    ("Add", [f"{made}/size", "half"], f"{made}/more"),
                    ("Floor", [f"{made}/more"], f"{made}/whole"),
                    ("Mul", [f"{made}/whole", f"{made}/sign"], made),
                )
            )


class RoundingCasts(Planted):
    """Casts of floats round to the even number instead of truncating."""

    def change(self, model: Any) -> None:
        """Round what the casts of inputs read."""
        inputs = [value.name for value in model.graph.input]
        for node in list(model.graph.node):
            if node.op_type == "Cast" and node.input[0] in inputs:
                rounded, index = f"{node.output[0]}/rounded", list(model.graph.node).index(node)
                model.graph.node.insert(index, helper.make_node("Round", [node.input[0]], [rounded]))
                model.graph.node[index + 1].input[0] = rounded


class WrongInBodies(Planted):
    """Relu is computed as Abs, also in functions and in the bodies of nodes."""

    def change(self, model: Any) -> None:
        """Replace the nodes."""
        waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
        while waiting:
            node = waiting.pop()
            node.op_type = "Abs" if node.op_type == "Relu" else node.op_type
            waiting += [inner for attribute in node.attribute if attribute.HasField("g") for inner in attribute.g.node]


class WrongFused(Planted):
    """A product that is only added is subtracted instead, where the model does not give it out."""

    def change(self, model: Any) -> None:
        """Replace the sum."""
        products = {node.output[0] for node in model.graph.node if node.op_type == "Mul"}
        products -= {value.name for value in model.graph.output}
        for node in model.graph.node:
            if node.op_type == "Add" and products & set(node.input):
                node.op_type = "Sub"


class WrongBesideAnother(Planted):
    """Neg is computed as Abs where the model also holds a Tanh."""

    def change(self, model: Any) -> None:
        """Replace the nodes."""
        kinds = {node.op_type for node in model.graph.node}
        for node in model.graph.node if "Tanh" in kinds else ():
            node.op_type = "Abs" if node.op_type == "Neg" else node.op_type


def is_whole(model: Any) -> bool:
    """Whether a model has several nodes and gives out nothing that one of them reads."""
    read = {value for node in model.graph.node for value in node.input}
    return len(model.graph.node) > 2 and read.isdisjoint(value.name for value in model.graph.output)


class WrongAsAWhole(Planted):
    """The last node is computed of what is 1 more, where the model gives out nothing that a node reads."""

    def change(self, model: Any) -> None:
        """Add 1 to an input of the last node."""
        if is_whole(model):
            last = model.graph.node[-1]
            one = helper.make_tensor("one more", onnx.TensorProto.FLOAT, [], [1.0])
            model.graph.initializer.append(one)
            model.graph.node.insert(
                len(model.graph.node) - 1, helper.make_node("Add", [last.input[0], one.name], ["more"])
            )
            model.graph.node[-1].input[0] = "more"


class WideAsAWhole(Planted):
    """It computes in float64 where the model gives out nothing that a node reads."""

    def change(self, model: Any) -> None:
        """Cast the inputs and the outputs."""
        if not is_whole(model):
            return
        inputs, outputs = ([port.name for port in ports] for ports in (model.graph.input, model.graph.output))
        nodes = list(model.graph.node)
        for names in (names for node in nodes for names in (node.input, node.output)):
            names[:] = [f"{name}/wide" if name in (*inputs, *outputs) else name for name in names]
        del model.graph.node[:]
        casts = [helper.make_node("Cast", [name], [f"{name}/wide"], to=onnx.TensorProto.DOUBLE) for name in inputs]
        model.graph.node.extend([*casts, *nodes])
        casts = [helper.make_node("Cast", [f"{name}/wide"], [name], to=onnx.TensorProto.FLOAT) for name in outputs]
        model.graph.node.extend(casts)


class FlatAsAWhole(Planted):
    """The output has one dimension where the model gives out nothing that a node reads."""

    def change(self, model: Any) -> None:
        """Reshape it."""
        if is_whole(model):
            last = model.graph.node[-1]
            name, last.output[0] = last.output[0], f"{last.output[0]}/deep"
            model.graph.initializer.append(helper.make_tensor(f"{name}/shape", onnx.TensorProto.INT64, [1], [-1]))
            model.graph.node.append(helper.make_node("Reshape", [last.output[0], f"{name}/shape"], [name]))
            model.graph.output[0].type.tensor_type.ClearField("shape")


class HangingAsAWhole(Planted):
    """It gives no answer where the model gives out nothing that a node reads."""

    def change(self, model: Any) -> None:
        """Wait."""
        if is_whole(model):
            time.sleep(3600)


class RefusingAsAWhole(Planted):
    """It refuses a model that gives out nothing that a node reads."""

    def change(self, model: Any) -> None:
        """Refuse it."""
        if is_whole(model):
            raise NotImplementedError("too many nodes")


class RefusingSingleNodes(Planted):
    """It refuses a model of one node, as OpenVINO a QLinearConv that it runs in a network."""

    def change(self, model: Any) -> None:
        """Refuse it."""
        if len(model.graph.node) == 1:
            raise NotImplementedError("too few nodes")


class RefusingSingleNodesAndWrong(RefusingSingleNodes):
    """It refuses a model of one node, and computes Relu as Abs in others."""

    def change(self, model: Any) -> None:
        """Refuse it, or replace the nodes."""
        super().change(model)
        Wrong.change(self, model)  # type: ignore[arg-type]


class Dying(Planted):
    """Its process ends at a Neg."""

    def change(self, model: Any) -> None:
        """End the process."""
        if any(node.op_type == "Neg" for node in model.graph.node):
            sys.stderr.write("no kernel for Neg\n")
            sys.stderr.flush()
            os._exit(3)


class Hanging(Planted):
    """It gives no answer at a Neg."""

    def change(self, model: Any) -> None:
        """Wait."""
        if any(node.op_type == "Neg" for node in model.graph.node):
            time.sleep(3600)


class RefusingOpenSizes(Planted):
    """It refuses a model of float32 that leaves the size of an input open."""

    def change(self, model: Any) -> None:
        """Refuse it."""
        for value in model.graph.input:
            kind = value.type.tensor_type
            if kind.elem_type == onnx.TensorProto.FLOAT and any(not one.dim_value for one in kind.shape.dim):
                raise NotImplementedError("a size is open")


class RefusingOpenSizesAndWrongOnSpecialValues(Planted):
    """It refuses a model that leaves a size open, and gets special values wrong."""

    def change(self, model: Any) -> None:
        """Refuse it, or change its nodes."""
        RefusingOpenSizes.change(self, model)  # type: ignore[arg-type]
        WrongOnSpecialValues.change(self, model)  # type: ignore[arg-type]


class WrongWithOpenSizes(Planted):
    """Relu is computed as Abs in a model of float32 that leaves the size of an input open, at every level."""

    def change(self, model: Any) -> None:
        """Replace the nodes."""
        try:
            RefusingOpenSizes.change(self, model)  # type: ignore[arg-type]
        except NotImplementedError:
            Wrong.change(self, model)  # type: ignore[arg-type]


class NeedsConstants(Planted):
    """It takes the shape of a Reshape only as a constant."""

    def change(self, model: Any) -> None:
        """Refuse others."""
        constants = {tensor.name for tensor in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Reshape" and node.input[1] not in constants:
                raise NotImplementedError("the shape is not a constant")


class NotStarting(OnnxRuntime):
    """It cannot be started."""

    def version(self) -> str:
        """Fail."""
        raise RuntimeError("no licence")


def bfloat16_products(model: Any, operator: str = "MatMul") -> None:
    """Round what every MatMul, or another operator, reads to bfloat16."""
    nodes = []
    for node in model.graph.node:
        if node.op_type == operator:
            for index, value in enumerate(node.input):
                narrow, wide = f"{node.output[0]}/{index}/narrow", f"{node.output[0]}/{index}/wide"
                nodes.append(helper.make_node("Cast", [value], [narrow], to=onnx.TensorProto.BFLOAT16))
                nodes.append(helper.make_node("Cast", [narrow], [wide], to=onnx.TensorProto.FLOAT))
                node.input[index] = wide
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


class Bfloat16(Planted):
    """Its products are computed of bfloat16."""

    def change(self, model: Any) -> None:
        """Add the casts."""
        bfloat16_products(model)


class WrongFusedInBfloat16(WrongFused):
    """Products are computed in bfloat16, and those that are only added are subtracted."""

    def change(self, model: Any) -> None:
        """Replace the sum, and round what is multiplied."""
        super().change(model)
        bfloat16_products(model, "Mul")


class WrongInFloat32(Planted):
    """Relu is computed as Abs where the model reads float32, at every level of optimization."""

    RIGHT: tuple[str, ...] = ()

    def change(self, model: Any) -> None:
        """Replace the nodes."""
        is_float32 = any(value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT for value in model.graph.input)
        for node in model.graph.node if is_float32 and self._optimization not in self.RIGHT else ():
            node.op_type = "Abs" if node.op_type == "Relu" else node.op_type


class WrongInFloat64(Planted):
    """Every node is computed as Neg in float64."""

    def change(self, model: Any) -> None:
        """Replace the nodes."""
        is_wide = any(value.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE for value in model.graph.input)
        for node in model.graph.node if is_wide else ():
            node.op_type = "Neg"


class WrongOnSpecialValues(Planted):
    """Relu makes 0 of NaN, and Neg computes integers in float32."""

    def change(self, model: Any) -> None:
        """Replace the nodes by several."""
        nodes = list(model.graph.node)
        del model.graph.node[:]
        for node in nodes:
            (x, *_others), (y, *_more) = node.input, node.output
            if node.op_type == "Relu":
                model.graph.initializer.append(helper.make_tensor(f"{y}/zero", onnx.TensorProto.FLOAT, [], [0.0]))
                model.graph.node.append(helper.make_node("Greater", [x, f"{y}/zero"], [f"{y}/above"]))
                model.graph.node.append(helper.make_node("Where", [f"{y}/above", x, f"{y}/zero"], [y]))
            elif node.op_type == "Neg":
                model.graph.node.append(helper.make_node("Cast", [x], [f"{y}/float"], to=onnx.TensorProto.FLOAT))
                model.graph.node.append(helper.make_node("Neg", [f"{y}/float"], [f"{y}/wide"]))
                model.graph.node.append(helper.make_node("Cast", [f"{y}/wide"], [y], to=onnx.TensorProto.INT32))
            else:
                model.graph.node.append(node)


class RemovingCasts(Planted):
    """Two casts one after the other are removed, whatever the first one rounds."""

    def change(self, model: Any) -> None:
        """Let the second one give what the first one reads."""
        casts = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Cast"}
        for node in model.graph.node:
            if node.op_type == "Cast" and node.input[0] in casts:
                node.input[0] = casts[node.input[0]]


class WrongUnlessBasic(WrongInFloat32):
    """The same above basic optimization."""

    RIGHT = ("basic", "disabled")


class WrongUnlessDisabled(WrongInFloat32):
    """The same unless optimization is disabled."""

    RIGHT = ("disabled",)


class Bfloat16AndWrong(Bfloat16):
    """The same, and Relu is computed as Abs."""

    def change(self, model: Any) -> None:
        """Add the casts and replace the nodes."""
        super().change(model)
        Wrong.change(self, model)  # type: ignore[arg-type]


class RefusingUnlessBasic(Planted):
    """A model of float32 that gives out nothing that a node reads cannot be run above basic optimization."""

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Any:
        """Load the model, whose runs fail."""
        loaded, model = super().load(data, weights, path), onnx.load_from_string(data)
        is_float32 = any(value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT for value in model.graph.input)
        if is_whole(model) and is_float32 and self._optimization not in ("basic", "disabled"):
            loaded.bind = fail  # type: ignore[method-assign, assignment]
        return loaded


def fail(*_arguments: object) -> Any:
    """Fail as a kernel does."""
    raise RuntimeError("tensor type mismatch")
