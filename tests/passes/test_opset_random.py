"""Random models with subgraphs give the same numbers in any opset, and broken ones a sentence.

The old models are interpreted here by NumPy, with the oracle saying where B lies; the new ones by ONNX's reference
evaluator, which is right from opset 7 on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from eltwise import oracle
from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.inference import FIRST_INFERRED
from support.onnx_models import find_problems, model, node, value
from support.versions import convert_onnx_bytes, in_opset

Sizes = tuple[int, ...]
Values = dict[str, np.ndarray]
COMPUTE = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
NAMES = ("y", "y_aligned", "y_aligned_axes", "x", "a", "b", "y_aligned_1")
"""Names that new ones could clash with."""


@dataclass
class Drawn:
    """A model while it is drawn: what exists already, by name."""

    draw: st.DrawFn
    shapes: dict[str, Sizes] = field(default_factory=dict)
    inputs: dict[str, Sizes] = field(default_factory=dict)
    tensors: list[TensorProto] = field(default_factory=list)
    taken: set[str] = field(default_factory=lambda: {"x"})

    def name(self) -> str:
        wish = self.draw(st.sampled_from(NAMES))
        name = wish if wish not in self.taken else f"{wish}{len(self.taken)}"
        self.taken.add(name)
        return name

    def operand(self, shape: Sizes) -> str:
        """A value of a shape: one that is there, a new input, or a new initializer."""
        there = sorted(name for name, found in self.shapes.items() if found == shape)
        kind = self.draw(st.sampled_from(["there", "input", "initializer"]))
        if kind == "there" and there:
            return self.draw(st.sampled_from(there))
        name = self.name()
        self.shapes[name] = shape
        if kind == "initializer":
            numbers = np.random.default_rng(len(self.shapes)).integers(-9, 9, shape)
            self.tensors.append(numpy_helper.from_array(np.asarray(numbers, np.int32), name))
        else:
            self.inputs[name] = shape
        return name

    def legacy_node(self) -> onnx.NodeProto:
        a = self.draw(st.sampled_from(sorted(self.shapes)))
        shape = self.shapes[a]
        start = self.draw(st.integers(0, len(shape)))
        end = self.draw(st.integers(start, len(shape)))
        b = self.operand(shape[start:end])
        is_whole = (start, end) == (0, len(shape)) and self.draw(st.booleans())
        is_end = end == len(shape) and self.draw(st.booleans())
        attributes = {} if is_whole else {"broadcast": 1} | ({} if is_end else {"axis": start})
        result = self.name()
        self.shapes[result] = shape
        return node(self.draw(st.sampled_from(sorted(COMPUTE))), [a, b], [result], f"n_{result}", **attributes)

    def branch(self, shape: Sizes) -> onnx.GraphProto:
        """A graph that makes a value of a shape out of the values around it."""
        fitting = sorted(name for name, found in self.shapes.items() if found == shape)
        first = self.name()
        nodes = [node("Identity", [self.draw(st.sampled_from(fitting))], [first])]
        self.shapes[first] = shape
        for _index in range(self.draw(st.integers(0, 2))):
            nodes.append(self.legacy_node())
        last = next(found for found in reversed(nodes) if self.shapes[found.output[0]] == shape).output[0]
        made_here = {name for found in nodes for name in found.output}
        self.shapes = {name: found for name, found in self.shapes.items() if name not in made_here}
        return helper.make_graph(nodes, "branch", [], [value(last, shape, TensorProto.INT32)])


@st.composite
def old_models(draw: st.DrawFn) -> onnx.ModelProto:
    drawn = Drawn(draw, {"x": (2, 3, 2)}, {"x": (2, 3, 2)})
    nodes = []
    for _index in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 3)):
            nodes.append(drawn.legacy_node())
            continue
        shape = drawn.shapes[draw(st.sampled_from(sorted(drawn.shapes)))]
        graphs = {"then_branch": drawn.branch(shape), "else_branch": drawn.branch(shape)}
        result = drawn.name()
        drawn.shapes[result] = shape
        nodes.append(node("If", ["condition"], [result], f"n_{result}", **graphs))
    inputs = [value(name, shape, TensorProto.INT32) for name, shape in drawn.inputs.items()]
    inputs.append(value("condition", (), TensorProto.BOOL))
    outputs = [value(found.output[0], drawn.shapes[found.output[0]], TensorProto.INT32) for found in nodes]
    return model(nodes, inputs, outputs, 6, 4, drawn.tensors)


def interpret(graph: onnx.GraphProto, around: Values) -> list[np.ndarray]:
    """Run a graph of opset 6."""
    values = {**around, **{tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}}
    for found in graph.node:
        operands = [values[name] for name in found.input]
        attributes = {item.name: helper.get_attribute_value(item) for item in found.attribute}
        match found.op_type:
            case "If":
                results = interpret(attributes["then_branch" if operands[0] else "else_branch"], values)
            case "Identity":
                results = operands
            case "Unsqueeze":
                results = [np.expand_dims(operands[0], tuple(attributes["axes"]))]
            case "Squeeze":
                results = [np.squeeze(operands[0], tuple(attributes["axes"]))]
            case _:
                results = [legacy(COMPUTE[found.op_type], *operands, **attributes)]  # type: ignore[arg-type]
        values.update(zip(found.output, results, strict=True))
    return [values[output.name] for output in graph.output]


def legacy(compute: np.ufunc, a: np.ndarray, b: np.ndarray, broadcast: int = 0, axis: int = -1) -> np.ndarray:
    _shape, (_a_start, start) = oracle.place("legacy", [a.shape, b.shape], axis, bool(broadcast))
    return np.asarray(compute(a, b.reshape((*b.shape, *(1,) * (a.ndim - start - b.ndim)))))


@settings(max_examples=120)
@given(made=old_models(), opset=st.sampled_from([7, 10, 13, 14, 21, 27]), chosen=st.booleans())
def test_random_models_give_the_same_numbers(made: onnx.ModelProto, opset: int, chosen: bool) -> None:
    generator = np.random.default_rng(5)
    fed = {
        found.name: np.asarray(generator.integers(-9, 9, [size.dim_value for size in found.type.tensor_type.shape.dim]))
        for found in made.graph.input
    }
    fed = {name: array.astype(np.int32) for name, array in fed.items()} | {"condition": np.array(chosen)}
    right = interpret(made.graph, fed)
    up, report = in_opset(made, opset)
    assert report.assumptions == ()
    assert same(list(ReferenceEvaluator(up).run(None, fed)), right)  # type: ignore[arg-type]
    assert same(interpret(in_opset(up, 6)[0].graph, fed), right)


def same(got: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(got, right, strict=True))


def broken(data: bytes, chance: random.Random) -> bytes:
    """Bytes with a few of them changed, lost or new."""
    changed = bytearray(data)
    for _index in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed))
        match chance.randrange(3):
            case 0:
                changed[place] = chance.randrange(256)
            case 1:
                del changed[place : place + chance.randint(1, 6)]
            case _:
                changed[place:place] = bytes(chance.randrange(256) for _byte in range(chance.randint(1, 3)))
        changed = changed or bytearray(b"\x00")
    return bytes(changed)


WORDS = ("Sub", "Cast", "Pad", "If", "Clip", "Softmax", "Reshape", "Upsample", "TopK", "Dropout", "Gemm", "Squeeze")
WORDS += ("Unsqueeze", "BatchNormalization", "Constant", "ReduceSum", "PRelu", "GRU", "Scan", "Loop", "Split", "Max")  # type: ignore[assignment]


def twisted(made: onnx.ModelProto, chance: random.Random) -> bytes:
    """A model whose nodes are of other operators, or read and say other things."""
    twin = onnx.ModelProto()
    twin.CopyFrom(made)
    for _index in range(chance.randint(1, 4)):
        found = chance.choice(twin.graph.node)
        match chance.randrange(6):
            case 0:
                found.op_type = chance.choice(WORDS)
            case 1 if found.attribute:
                del found.attribute[chance.randrange(len(found.attribute))]
            case 2 if found.input:
                found.input[chance.randrange(len(found.input))] = chance.choice(["", "x", "nothing"])
            case 3:
                found.attribute.add(name=chance.choice(["axis", "axes", "to"]), type=chance.randint(0, 14), i=-(2**63))
            case 4:
                found.output.append(chance.choice(["", "x", "more"]))
            case _:
                twin.opset_import[0].version = chance.randint(1, 29)
    data: bytes = twin.SerializeToString()
    return data


def ending_of(data: bytes, opset: int) -> str:
    try:
        converted, _report = convert_onnx_bytes(data, opset)
    except EltwiseError as error:
        return "sentence" if str(error) else "nothing"
    is_inferred = onnx.ModelProto.FromString(data).opset_import[0].version >= FIRST_INFERRED
    assert find_problems(onnx.ModelProto.FromString(converted)) == [] or not is_inferred
    return "model"


def test_broken_models_give_a_sentence_or_a_model(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - nothing secret is drawn
    branch = helper.make_graph([node("Sub", ["x", "b"], ["p"], axis=0, broadcast=1)], "branch", [], [value("p")])
    nodes = [
        node("If", ["c"], ["i"], "if", then_branch=branch, else_branch=branch),
        node("Clip", ["i"], ["k"], "clip", min=0.0, max=1e9),
        node("Sub", ["k", "b"], ["z"], "minus", axis=0, broadcast=1),
    ]
    tensors = [numpy_helper.from_array(np.array([1, 2], np.float32), "b")]
    made = model(nodes, [value("x"), value("c", (), TensorProto.BOOL)], [value("z")], 6, 4, tensors)
    data = made.SerializeToString()
    endings = {"model": 0, "sentence": 0}
    for index in range(1200):
        ending = ending_of(twisted(made, chance) if index % 2 else broken(data, chance), chance.randint(1, 28))
        endings[ending] += 1
    assert min(endings.values()) > 20
