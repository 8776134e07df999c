"""Which constants are plain, and that a node with such a constant is told apart from one with any."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT32, INT32, TYPES, ElementType
from eltwise.ir.infer_graph import infer_graph
from eltwise.oracle import array_of
from eltwise.passes.graph_places import graph_places
from eltwise.passes.plain import has_others, is_plain_constant, plain_places
from eltwise.targets.examining import of_proto
from onnx_models import model, node, value
from openvino_models import Ir


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.is_numeric], ids=str)
def test_plain_numbers_are_kept_by_the_types_that_runtimes_hold_constants_in(element_type: ElementType) -> None:
    """Judged by what float32 without subnormals, bfloat16's range and int32 do to a number."""
    bits = element_type.bits
    drawn = np.random.default_rng(7).integers(0, 1 << bits, 4000, np.uint64) if bits > 8 else range(1 << bits)
    array = array_of(element_type, [int(pattern) for pattern in drawn])
    places = plain_places(array, element_type)
    if element_type.is_integer:
        low, high = INT32.limits
        wanted = [low <= int(number) <= high for number in array.tolist()]
    else:
        with np.errstate(all="ignore"):
            exact = array.astype(np.float64)
            largest = float(array_of(BFLOAT16, [0x7F7F])[0])
            least = float(array_of(FLOAT32, [0x00800000])[0])
            wanted = [
                not np.isfinite(number) or number == 0 or least <= abs(number) <= largest for number in exact.tolist()
            ]
    assert places.tolist() == wanted
    assert has_others(element_type) or all(wanted)
    assert is_plain_constant(array[places], element_type) == has_others(element_type)
    assert not is_plain_constant(array, element_type) or all(wanted)


def surroundings(constant: list[float]) -> set[tuple[str, ...]]:
    """How operands reach a node with this constant as B, in a file of each format."""
    array = np.array(constant, np.float32)
    proto = model([node("Sub", ["x", "c"], ["z"])], [value("x", (2,))], [value("z", (2,))], 13)
    proto.graph.initializer.append(numpy_helper.from_array(array, "c"))
    ir = Ir().parameter("a", "2").constant("c", "f32", "2", array.tobytes()).layer("Subtract", "s", ["a", "c"])
    graph = eltwise.load(ir.result("s", "r").xml(), ir.weights).graph
    ((_number, place),) = graph_places(graph, infer_graph(graph).types)
    return {of_proto(proto).places[0].surroundings, place.surroundings}


def test_a_node_knows_whether_its_constant_is_plain() -> None:
    assert surroundings([1, -0.0]) == {("b-plain",)}
    assert surroundings([np.inf, np.nan]) == {("b-plain",)}
    assert surroundings([1, 1e-40]) == surroundings([1, 3.4e38]) == {("b-constant",)}


def test_what_is_not_in_the_file_or_made_by_nodes_is_not_known() -> None:
    outside = numpy_helper.from_array(np.ones(2, np.float32), "c")
    proto = model([node("Sub", ["c", "x"], ["z"])], [value("x", (2,))], [value("z", (2,))], 13)
    proto.graph.initializer.append(outside)
    assert of_proto(proto).places[0].surroundings == ("a-plain",)
    made = onnx.ModelProto.FromString(proto.SerializeToString())
    made.graph.node.insert(0, node("Neg", ["c"], ["m"]))
    made.graph.node[1].input[:] = ["c", "m"]
    assert of_proto(made).places[0].surroundings == ("a-plain", "both-constant", "neighbours")
    held = proto.graph.initializer[0]
    held.ClearField("raw_data")
    held.data_location = onnx.TensorProto.EXTERNAL
    held.external_data.add(key="location", value="weights.bin")
    assert of_proto(proto).places[0].surroundings == ("a-constant",)
