"""Op sites: what is around a node is found in models of both formats, and constants are told apart by their numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from eltwise.targets.constants import has_others_than_plain, is_plain, plain_numbers
from eltwise.targets.finding_sites import find_sites
from onnx import TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT32, INT32, TYPES, ElementType
from eltwise.oracle import array_of
from eltwise.targets.plan import read_subject
from eltwise.targets.sites import Pair, Site
from onnx_models import model as onnx_model
from onnx_models import node as onnx_node
from onnx_models import value
from openvino_models import Ir
from random_chains import random_chain


def model(
    *nodes: onnx.NodeProto, constants: dict[str, list[float]] | None = None, sizes: object = 2
) -> onnx.ModelProto:
    held = [numpy_helper.from_array(np.float32(value), name) for name, value in (constants or {}).items()]
    read = {name for node in nodes for name in node.input}
    inputs = [helper.make_tensor_value_info(name, 1, [sizes]) for name in sorted(read & {"x", "y", "z"})]
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], 1, None)]
    graph = helper.make_graph(nodes, "sites", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def node(kind: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


def sites(made: onnx.ModelProto) -> dict[str, Site]:
    return {site.node: site for site in read_subject(made).sites}


def pairs(made: onnx.ModelProto) -> set[tuple[str, str, str, str, str]]:
    """The pairs of the last node."""
    return {_fields(pair) for pair in list(sites(made).values())[-1].pairs}


def _fields(pair: Pair) -> tuple[str, str, str, str, str]:
    return (pair.operand, pair.producer, pair.other, pair.readers, pair.sizes)


def known(operand: str, producer: str, other: str, readers: str = "one") -> tuple[str, str, str, str, str]:
    return (operand, producer, other, readers, "known")


PRODUCT = node("Mul", "x y", "p")


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([PRODUCT, node("Add", "p z", "r")], {known("a", "multiply", "run-time")}),
        ([PRODUCT, node("Add", "z p", "r")], {known("b", "multiply", "run-time")}),
        ([PRODUCT, node("Identity", "p", "q"), node("Add", "q z", "r")], {known("a", "multiply", "run-time")}),
        ([PRODUCT, node("Sub", "p x", "s"), node("Add", "p z", "r")], {known("a", "multiply", "run-time")}),
        (
            [PRODUCT, node("Sub", "x y", "s"), node("Add", "p s", "r")],
            {known("a", "multiply", "run-time"), known("b", "subtract", "run-time")},
        ),
        ([node("Sub", "x y", "r")], set()),
    ],
)
def test_what_makes_an_operand_is_found(nodes: list[onnx.NodeProto], wanted: set[tuple[str, ...]]) -> None:
    """What no output needs shares nothing."""
    assert pairs(model(*nodes)) == wanted


def test_a_shared_producer_and_unknown_sizes_are_told() -> None:
    twice = (PRODUCT, node("Sub", "p x", "s"), node("Mul", "s p", "t"), node("Add", "t p", "r"))
    assert known("b", "multiply", "run-time", "several") in pairs(model(*twice))
    assert pairs(model(PRODUCT, node("Add", "p z", "r"), sizes="N")) == {
        ("a", "multiply", "run-time", "one", "unknown")
    }


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        (node("Add", "x zero", "r"), {known("a", "none", "number"), known("a", "none", "zero")}),
        (node("Sub", "less x", "r"), {known("b", "none", "number"), known("b", "none", "-zero")}),
        (node("Add", "x k", "r"), {known("a", "none", "constant")}),
        (node("Add", "x one", "r"), {known("a", "none", "number")}),
        (
            node("Sub", "x both", "r"),
            {known("a", "none", "constant"), known("a", "none", "zeros"), known("a", "none", "-zeros")},
        ),
    ],
)
def test_constants_and_zeros_are_told_apart(last: onnx.NodeProto, wanted: set[tuple[str, ...]]) -> None:
    constants = {"k": [2, 3], "zero": [0], "less": [-0.0], "both": [0, -0.0], "one": [1]}
    used = {name: numbers for name, numbers in constants.items() if name in last.input}
    assert pairs(model(last, constants=used)) == wanted


def test_a_producer_with_a_constant_is_another_one() -> None:
    made = model(node("Mul", "x k", "p"), node("Add", "p k", "r"), constants={"k": [2, 3]})
    assert pairs(made) == {known("a", "multiply-constant", "constant")}


def test_a_cast_that_makes_an_operand_counts_for_types_that_are_computed_in_float32() -> None:
    made = model(node("Cast", "x", "p", to=10), node("Sub", "p p", "r"))
    made.graph.output[0].type.tensor_type.elem_type = 10
    assert pairs(made) == {known("a", "cast", "run-time"), known("b", "cast", "run-time")}
    made.graph.node[0].attribute[0].i = made.graph.output[0].type.tensor_type.elem_type = 11
    assert pairs(made) == set()


def test_an_input_that_has_a_value_may_be_a_constant() -> None:
    made = model(node("Add", "x zero", "r"), constants={"zero": [0]})
    made.graph.input.append(helper.make_tensor_value_info("zero", 1, [1]))
    assert {found[2] for found in pairs(made)} == {"zero", "-zero", "zeros", "-zeros", "constant", "number"}


def test_zero_behind_another_operator_counts_behind_each_that_is_measured() -> None:
    made = model(node("Relu", "x", "p"), node("Add", "p zero", "r"), constants={"zero": [0]})
    (site,) = sites(made).values()
    assert {pair.producer for pair in site.pairs} == {"none", "subtract", "add", "multiply"}
    assert site.is_beside_foreign
    assert not sites(model(PRODUCT, node("Add", "p z", "r")))["r"].is_beside_foreign


def test_nodes_in_nested_graphs_are_found_with_the_values_around_them() -> None:
    branch = helper.make_graph([node("Add", "p k", "t")], "branch", [], [value("t", None)])
    chosen = helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    made = model(node("Mul", "x y", "p"), chosen, constants={"k": [2, 3]})
    made.graph.input.append(value("c", (), TensorProto.BOOL))
    found = [site for site in read_subject(made).sites if site.node == "t"]
    assert len(found) == 2
    assert found[0].sources == ("b-plain", "neighbours")
    assert {_fields(pair) for pair in found[0].pairs} == {known("a", "multiply", "constant")}


def test_types_behind_foreign_operators_are_known() -> None:
    nodes = [
        onnx_node("Relu", ["x"], ["p"]),
        onnx_node("Concat", ["p", "p"], ["q"], axis=0),
        onnx_node("Add", ["q", "q"], ["r"]),
    ]
    made = onnx_model(nodes, [value("x", ("N", 3), TensorProto.FLOAT16)], [value("r", None, TensorProto.FLOAT16)])
    (site,) = read_subject(made).sites
    assert (site.type_name, site.patterns, site.sources) == (
        "float16",
        ("equal", "broadcast"),
        ("dynamic", "neighbours"),
    )


def test_sizes_of_tensors_are_told_from_other_integers() -> None:
    shape = onnx_node("Shape", ["x"], ["s"])
    number = numpy_helper.from_array(np.int64([2]), "k")
    large = numpy_helper.from_array(np.int64([1 << 40]), "large")

    def are_sizes(*nodes: onnx.NodeProto) -> bool:
        inputs = [value("x", ("N", 3)), value("i", (2,), TensorProto.INT64)]
        made = onnx_model([shape, *nodes], inputs, [value("r", None, TensorProto.INT64)], initializers=[number, large])
        return sites(made)["r"].are_sizes

    gather = onnx_node("Gather", ["s", "k"], ["g"])
    assert are_sizes(gather, node("Mul", "g k", "r"))
    assert are_sizes(gather, node("Sub", "g k", "d"), node("Mul", "d s", "r"))
    assert not are_sizes(gather, node("Mul", "g large", "r"))
    assert not are_sizes(node("Mul", "s i", "r"))


@pytest.mark.parametrize(("kind", "reads"), [("i4", [True, False]), ("i8", [False, False])])
def test_results_of_4_bits_may_stay_in_8_whoever_reads_them(kind: str, reads: list[bool]) -> None:
    """Pairs of such nodes cannot overflow 8 bits, so that pairs do not show it."""
    ir = Ir().parameter("a", "2,3", kind).parameter("b", "2,3", kind)
    ir.layer("Multiply", "m", ["a", "b"], precision=kind.upper())
    ir.layer("Subtract", "s", ["m", "b"], precision=kind.upper())
    graph = eltwise.load(ir.result("s", "r").xml(), b"").graph
    assert ["read-wider" in site.sources for site in find_sites(graph)] == reads


@pytest.mark.parametrize(("domain", "names"), [("ai.onnx", {"a", "b"}), ("openvino", {"a", "b"})])
def test_every_pair_of_a_random_chain_has_facts_of_the_known_kinds(domain: str, names: set[str], seed: int) -> None:
    producers = {"subtract", "add", "multiply", "squared_difference"}
    found: set[str] = set()
    for number in range(60):
        graph, _feeds = random_chain(np.random.default_rng([seed, number]), domain)
        for site in find_sites(graph):
            for pair in site.pairs:
                assert pair.operand in names
                assert pair.producer.removesuffix("-constant") in {*producers, "none", "cast"}
                found.add(pair.producer)
    assert {"none", "add", "multiply-constant", "cast"} <= found


def sources(constant: list[float]) -> set[tuple[str, ...]]:
    """How operands reach a node with this constant as B, in a file of each format."""
    array = np.array(constant, np.float32)
    proto = onnx_model([onnx_node("Sub", ["x", "c"], ["z"])], [value("x", (2,))], [value("z", (2,))], 13)
    proto.graph.initializer.append(numpy_helper.from_array(array, "c"))
    ir = Ir().parameter("a", "2").constant("c", "f32", "2", array.tobytes()).layer("Subtract", "s", ["a", "c"])
    (site,) = find_sites(eltwise.load(ir.result("s", "r").xml(), ir.weights).graph)
    return {read_subject(proto).sites[0].sources, site.sources}


def test_a_node_knows_whether_its_constant_is_plain() -> None:
    assert sources([1, -0.0]) == {("b-plain",)}
    assert sources([np.inf, np.nan]) == {("b-plain",)}
    assert sources([1, 1e-40]) == sources([1, 3.4e38]) == {("b-constant",)}


def test_what_is_not_in_the_file_or_made_by_nodes_is_not_known() -> None:
    outside = numpy_helper.from_array(np.ones(2, np.float32), "c")
    proto = onnx_model([onnx_node("Sub", ["c", "x"], ["z"])], [value("x", (2,))], [value("z", (2,))], 13)
    proto.graph.initializer.append(outside)
    assert read_subject(proto).sites[0].sources == ("a-plain",)
    made = onnx.ModelProto.FromString(proto.SerializeToString())
    made.graph.node.insert(0, onnx_node("Floor", ["c"], ["m"]))
    made.graph.node[1].input[:] = ["c", "m"]
    assert read_subject(made).sites[0].sources == ("a-plain", "both-constant", "neighbours")
    held = proto.graph.initializer[0]
    held.ClearField("raw_data")
    held.data_location = onnx.TensorProto.EXTERNAL
    held.external_data.add(key="location", value="weights.bin")
    (site,) = read_subject(proto).sites
    assert site.sources == ("a-constant",)
    assert {pair.other for pair in site.pairs} == {"constant", "zeros", "-zeros"}


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.is_numeric], ids=str)
def test_plain_numbers_are_kept_by_the_types_that_runtimes_hold_constants_in(element_type: ElementType) -> None:
    """Compared with what float32 without subnormals, bfloat16's range and int32 do to a number."""
    bits = element_type.bits
    drawn = np.random.default_rng(7).integers(0, 1 << bits, 4000, np.uint64) if bits > 8 else range(1 << bits)
    array = array_of(element_type, [int(pattern) for pattern in drawn])
    places = plain_numbers(array, element_type)
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
    assert has_others_than_plain(element_type) or all(wanted)
    assert is_plain(array[places], element_type) == has_others_than_plain(element_type)
    assert not is_plain(array, element_type) or all(wanted)
