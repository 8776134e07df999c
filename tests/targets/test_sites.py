"""Op sites: what is around a node is found in models of both formats, and constants are told apart by their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT32, INT32, TYPES, ElementType
from eltwise.oracle import array_of
from eltwise.targets.plan import read_model
from eltwise.targets.sites import HELD_IN_LESS, Site, numbers_of, plain_numbers, sites_of
from support.onnx_models import value
from support.openvino_models import Ir
from support.target_models import chain

PRODUCT = ("Mul", "x y", "p")
ADDED = ("Add", "p z", "r")


def _node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


def site(made: onnx.ModelProto, name: str = "r") -> Site:
    return next(site for site in sites_of(read_model(made).graph) if site.node.label == name)


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ([PRODUCT, ADDED], "elementwise multiply input"),
        ([PRODUCT, ("Identity", "p", "q"), ("Add", "q z", "r")], "elementwise multiply input"),
        ([PRODUCT, ("Sub", "x y", "s"), ("Add", "p s", "r")], "elementwise multiply subtract"),
        ([("Softmax", "x", "p"), ADDED], "other input"),
        ([_node("Cast", "x", "p", to=1), ADDED], "cast input"),
        ([("Mul", "x k", "p"), ADDED], "elementwise multiply with-constant input"),
        ([("Sub", "x y", "r")], "input"),
        ([("Sub", "x k", "r")], "input"),
    ],
)
def test_what_makes_the_operands_is_found(nodes: list[Any], wanted: str) -> None:
    found = site(chain(*nodes, constants={"k": [2, 3]}))
    assert found.context["producer"] == frozenset(wanted.split())
    assert ("neighbours" in found.context["source"]) == (wanted != "input")
    assert found.is_beside_foreign == ("other" in wanted)


READ = ("Sub", "x y", "p")


@pytest.mark.parametrize(
    ("nodes", "readers"),
    [
        ([READ, ("Abs", "p", "r")], "elementwise absolute"),
        ([READ, ("Identity", "p", "q"), ("Transpose", "q", "t"), ("Max", "t z", "r")], "elementwise maximum"),
        ([READ, _node("Split", "p", "q", axis=0), ("Add", "q z", "r")], "elementwise add"),
        ([READ, ("Abs", "p", "s"), _node("Cast", "p", "c", to=1), ("Concat", "s c", "r")], "elementwise absolute cast"),
        ([READ, ("Softmax", "p", "r")], "other"),
        ([READ, ("Identity", "p", "r")], "output"),
        ([READ, ("Identity", "p", "i"), ("Abs", "i", "s"), ("Where", "s p z", "r")], "elementwise absolute other"),
    ],
)
def test_what_reads_the_result_is_found(nodes: list[Any], readers: str) -> None:
    assert site(chain(*nodes), "p").context["reader"] == frozenset(readers.split())


def test_a_result_of_a_nested_graph_or_that_one_takes_is_read_by_any_node() -> None:
    branch = helper.make_graph([_node("Add", "p x", "t")], "branch", [], [value("t", None)])
    made = chain(PRODUCT, helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch))
    made.graph.input.append(value("c", (), TensorProto.BOOL))
    assert site(made, "t").context["reader"] == site(made, "p").context["reader"] == {"other"}


@pytest.mark.parametrize(
    ("numbers", "operands", "wanted"),
    [
        ([0], "x k", "b-number b-zero"),
        ([-0.0], "k x", "a-number a-minus-zero"),
        ([2, 3], "x k", ""),
        ([1], "x k", "b-number"),
        ([0, -0.0], "x k", "b-zeros b-minus-zeros"),
    ],
)
def test_constants_and_zeros_are_told_apart(numbers: list[float], operands: str, wanted: str) -> None:
    assert site(chain(("Add", operands, "r"), constants={"k": numbers})).context["constant"] == set(wanted.split())


def test_an_input_that_has_a_value_may_be_a_constant() -> None:
    made = chain(("Add", "x zero", "r"), constants={"zero": [0]})
    made.graph.input.append(helper.make_tensor_value_info("zero", 1, [1]))
    found = site(made).context
    assert found["constant"] == {"b-number", "b-zero", "b-minus-zero", "b-almost-neutral"}
    assert found["source"] == {"static", "b-constant"}


def test_operands_and_results_are_found_in_both_formats() -> None:
    def sources(*numbers: float) -> frozenset[str]:
        """How operands reach a node with this constant as B, in a file of each format."""
        ir = Ir().parameter("a", "2").constant("c", "f32", "2", np.float32(numbers).tobytes())  # type: ignore[arg-type]
        (found,) = sites_of(
            eltwise.load(ir.layer("Subtract", "s", ["a", "c"]).result("s", "r").xml(), ir.weights).graph
        )
        onnx_site = site(chain(("Sub", "x c", "r"), constants={"c": numbers}))
        assert found.context == onnx_site.context
        return found.context["source"]

    assert sources(1, -0.0) == sources(np.inf, np.nan) == {"b-plain"}
    assert sources(1, 1e-40) == sources(1, 3.4e38) == {"b-constant"}


def test_nodes_in_nested_graphs_are_found_with_the_values_around_them() -> None:
    branch = helper.make_graph([_node("Add", "p k", "t")], "branch", [], [value("t", None)])
    chosen = helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    made = chain(PRODUCT, chosen, constants={"k": [2, 3]})
    made.graph.input.append(value("c", (), TensorProto.BOOL))
    found = [site for site in sites_of(read_model(made).graph) if site.node.label == "t"]
    assert len(found) == 2
    assert found[0].context["source"] == {"b-plain", "neighbours"}
    assert found[0].context["producer"] == {"elementwise", "multiply"}


def test_types_behind_foreign_operators_are_known() -> None:
    made = chain(("Softmax", "x", "p"), _node("Concat", "p p", "q", axis=0), ("Add", "q q", "r"), size="N")
    found = site(made)
    assert (found.type_name, found.context["pattern"], found.context["source"]) == (
        "float32",
        {"equal", "broadcast"},
        {"dynamic", "neighbours"},
    )


def test_nothing_is_said_of_nodes_whose_types_ranks_or_operands_are_not_known() -> None:
    assert site(chain(("Max", "x y z", "r"))).context["pattern"] == {"equal"}
    for nodes in ([("Normalizer", "x", "p"), ADDED], [("Sub", "x", "r")], [("Abs", "x y", "r")]):
        assert site(chain(*nodes)).context == {}


def test_sizes_of_tensors_are_told_from_other_integers() -> None:
    held = [
        numpy_helper.from_array(np.array([number], np.int64), name) for name, number in (("k", 2), ("large", 1 << 40))
    ]

    def are_sizes(*nodes: tuple[str, str, str]) -> bool:
        inputs = [value("x", ("N", 3)), value("i", (2,), TensorProto.INT64)]
        made = [_node(*node) for node in (("Shape", "x", "s"), ("Gather", "s k", "g"), *nodes)]
        graph = helper.make_graph(made, "sizes", inputs, [value("r", None, TensorProto.INT64)], held)
        return site(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)).are_sizes

    assert are_sizes(("Mul", "g k", "r"))
    assert are_sizes(("Sub", "g k", "d"), ("Mul", "d s", "r"))
    assert not are_sizes(("Mul", "g large", "r"))
    assert not are_sizes(("Mul", "s i", "r"))


LOOP = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x, int64 given) => (int64 r) <int64 rounds = {{9}}, bool goes = {{1}}, int64 two = {{2}}> {{
    s = Size (x)
    r = Loop (rounds, goes, {0}) <body = b (int64 i, bool c, int64 k) => (bool c, int64 n) {{ n = {1} }}>
}}"""


@pytest.mark.parametrize(
    ("start", "step", "are_sizes"),
    [
        ("two", "Add (k, two)", True),
        ("s", "Sub (two, k)", True),
        ("s", "Add (i, k)", True),
        ("given", "Add (i, s)", True),
        ("given", "Add (k, two)", False),
        ("two", "Add (k, given)", False),
        ("two", "Add (k, k)", False),  # This doubles in every round.
        ("two", "Mul (k, two)", False),
    ],
)
def test_counters_of_rounds_are_told_from_other_integers(start: str, step: str, are_sizes: bool) -> None:
    assert site(parse_model(LOOP.format(start, step)), "n").are_sizes is are_sizes


@pytest.mark.parametrize("body", ["b () => () {}", "b (int64 i) => (n) { n = Add (i, i) }"])
def test_a_loop_that_is_not_valid_is_read_for_counters_too(body: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g () => (r) {{ r = Loop <body = {body}> () }}'
    assert all(site.are_sizes for site in sites_of(read_model(parse_model(text)).graph))


@pytest.mark.parametrize(("made", "are_sizes"), [("ShapeOf", True), ("Roll", False)])
def test_sizes_of_tensors_are_told_where_an_ir_does_not_tell_their_type(made: str, are_sizes: bool) -> None:
    ir = Ir().parameter("x", "?,3", "i64").layer(made, "s", ["x"], opset="opset7", output_type="i64")
    ir.layer("Concat", "c", ["s", "s"], axis=0).layer("Multiply", "m", ["c", "s"]).result("m")
    (found,) = sites_of(read_model(ir.xml(), ir.weights).graph)
    assert (found.element_type, found.are_sizes) == (None, are_sizes)


@pytest.mark.parametrize(("kind", "reads"), [("i4", [True, False]), ("i8", [False, False])])
def test_results_of_4_bits_may_stay_in_8_whoever_reads_them(kind: str, reads: list[bool]) -> None:
    """Two such nodes cannot overflow 8 bits."""
    ir = Ir().parameter("a", "2,3", kind).parameter("b", "2,3", kind)
    ir.layer("Multiply", "m", ["a", "b"], precision=kind.upper())
    ir.layer("Subtract", "s", ["m", "b"], precision=kind.upper())
    graph = eltwise.load(ir.result("s", "r").xml(), b"").graph
    assert ["read-wider" in site.context["source"] for site in sites_of(graph)] == reads


def test_what_is_not_in_the_file_or_made_by_nodes_is_not_known() -> None:
    made = chain(("Floor", "c", "m"), ("Sub", "c m", "r"), constants={"c": [1, 1]})
    assert site(made).context["source"] == {"a-plain", "both-constant", "neighbours"}
    outside = chain(("Sub", "c x", "r"), constants={"c": [1, 1]})
    held = outside.graph.initializer[0]
    held.ClearField("raw_data")
    held.data_location = onnx.TensorProto.EXTERNAL
    held.external_data.add(key="location", value="weights.bin")
    found = site(outside).context
    assert (found["source"], found["constant"]) == ({"a-constant"}, {"a-zeros", "a-minus-zeros"})


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.is_numeric], ids=str)
def test_plain_numbers_are_kept_by_the_types_that_runtimes_hold_constants_in(element_type: ElementType) -> None:
    """Compared with what float32 without subnormals, bfloat16's range and int32 do to a number."""
    bits = element_type.bits
    drawn = np.random.default_rng(7).integers(0, 1 << bits, 4000, np.uint64) if bits > 8 else range(1 << bits)
    array = array_of(element_type, [int(pattern) for pattern in drawn])
    plain = plain_numbers(array, element_type)
    if element_type.is_integer:
        low, high = INT32.limits
        wanted = [low <= int(number) <= high for number in array.tolist()]
    else:
        with np.errstate(all="ignore"):
            exact = array.astype(np.float64)
            largest = float(array_of(BFLOAT16, [0x7F7F])[0])
            least = float(array_of(FLOAT32, [0x00800000])[0])
            wanted = [not np.isfinite(one) or one == 0 or least <= abs(one) <= largest for one in exact.tolist()]
    assert plain.tolist() == wanted
    assert element_type in HELD_IN_LESS or all(wanted)
    assert "plain" in numbers_of(array[plain], element_type)
    assert ("plain" in numbers_of(array, element_type)) == all(wanted)


def test_a_reshape_has_as_many_dimensions_as_its_list_has_elements() -> None:
    """The list comes of sizes that inference does not follow in this opset, as in models of old exporters."""
    text = """<ir_version: 4, opset_import: ["" : 9]>
        g (float[1, 8, 6, 5] x) => (float[N, M, K] z) {
            s = Shape(x)
            zero = Constant<value = int64 {0}>()
            n = Gather(s, zero)
            first = Unsqueeze<axes = [0]>(n)
            rest = Constant<value = int64[2] {-1, 2}>()
            sizes = Concat<axis = 0>(first, rest)
            r = Reshape(x, sizes)
            z = Mul(r, r)
        }"""
    model = parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (site,) = sites_of(read_model(model).graph)
    assert site.context["pattern"]
