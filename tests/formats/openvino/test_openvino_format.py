"""OpenVINO IR: what is read, that writing gives it back, and that OpenVINO agrees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import BY_IR_NAME, FLOAT16, FLOAT32, INT32, TYPES, ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.formats.openvino.document import join_names, split_names
from eltwise.formats.openvino.reader import read_openvino, read_openvino_file
from eltwise.formats.openvino.writer import write_openvino_file
from eltwise.formats.submodels import write_submodel
from eltwise.ir.infer_graph import infer_graph
from support.openvino_core import openvino_core
from support.openvino_models import BITS, PRECISIONS, Ir, assert_round_trip, binary, read, run, written_anew

RUNNING = [each.ir for each in TYPES if each.runs]


def test_the_helper_knows_every_type_that_runs() -> None:
    assert {name: BY_IR_NAME[name].bits for name in BITS} == BITS
    assert set(BITS) == set(RUNNING)


@pytest.mark.parametrize("version", ["10", "11"])
@pytest.mark.parametrize("kind", ["Subtract", "SquaredDifference"])
def test_a_layer_becomes_a_node_of_its_row(kind: str, version: str) -> None:
    graph = read(binary(kind, version=version, auto_broadcast="numpy"))
    (node,) = graph.nodes
    assert (node.name, node.schema.versioned_name, node.inputs, node.outputs) == ("s", f"{kind}-1", ("a", "b"), ("s",))
    assert node.operation.attributes == (("auto_broadcast", "numpy"),)
    assert (graph.name, graph.origin.domain, graph.origin.file_version) == ("model", "openvino", int(version))
    assert [port.name for port in graph.inputs] == list(graph.input_order) == ["a", "b"]
    assert [(port.name, port.value, port.layer, port.aliases) for port in graph.outputs] == [("s", "s", "r", ("r",))]
    assert_round_trip(graph)


@pytest.mark.parametrize("opset", [f"opset{number}" for number in range(1, 17)] + ["OPSET3", "Opset16"])
def test_every_operation_set_selects_its_row(opset: str) -> None:
    number = int(opset.lower().removeprefix("opset"))
    ir = Ir().parameter("a").layer("sQuEeZe", "q", ["a"], opset=opset).layer("SUBTRACT", "s", ["q", "a"], opset=opset)
    squeeze, subtract = read(ir.result("s")).nodes
    assert squeeze.schema.versioned_name == ("Squeeze-15" if number >= 15 else "Squeeze-1")
    assert subtract.schema.versioned_name == "Subtract-1"


def test_type_names_of_all_kinds_are_read_without_regard_to_case() -> None:
    ir = binary("squareddifference")
    text = ir.text().replace('"Parameter"', '"PARAMETER"').replace('"Result"', '"result"')
    assert read_openvino(text.encode(), None).graph == read(ir)


@pytest.mark.parametrize(
    ("written", "rule", "axis"),
    [
        ({}, "numpy", -1),
        ({"auto_broadcast": "NUMPY"}, "numpy", -1),
        ({"auto_broadcast": "none"}, "none", -1),
        ({"auto_broadcast": "Explicit"}, "none", -1),
        ({"auto_broadcast": "pdpd"}, "pdpd", 0),
        ({"auto_broadcast": "PDPD", "axis": 7}, "pdpd", 0),
        ({"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "1"}, "pdpd", 1),
        ({"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "-1"}, "pdpd", -1),
        ({"auto_broadcast": "numpy", "auto_broadcast.auto_broadcast_axis": "1"}, "numpy", -1),
        ({"auto_broadcast": "none", "auto_broadcast.auto_broadcast_axis": "x", "axis": "y"}, "none", -1),
    ],
)
def test_broadcast_attributes(written: Any, rule: Any, axis: Any) -> None:
    graph = read(binary(b="3", **written) if axis == 1 else binary(**written))
    found = graph.nodes[0].operation.rule
    assert (found.name, found.axis) == (rule, axis)
    assert_round_trip(graph)
    assert (b"auto_broadcast.auto_broadcast_axis" in written_anew(graph)[0]) == (rule == "pdpd")


@pytest.mark.parametrize(
    ("notation", "shape"),
    [
        ("", ""),
        ("2,3", "2,3"),
        (" 2 , 3 ", "2,3"),
        ("-1,?, 3", "?,?,3"),
        ("2..5,..5,2..,0..,..", "2..5,..5,2..,?,?"),
        ("...", "..."),
        ("0", "0"),
        (",".join(["1"] * 64), ",".join(["1"] * 64)),
    ],
)
def test_shapes_of_parameters(notation: Any, shape: Any) -> None:
    graph = read(Ir().parameter("a", notation).result("a"))
    assert str(graph.inputs[0].type.shape) == shape
    assert_round_trip(graph)


@pytest.mark.parametrize("element_type", RUNNING)
def test_constants_of_every_type_are_little_endian_unaligned_and_packed(element_type: ElementType) -> None:
    storage = BY_IR_NAME[element_type].storage  # type: ignore[index]
    raw = bytes((37 * index + 9) % 251 for index in range((3 * BITS[element_type] + 7) // 8))  # type: ignore[index]
    graph = read(Ir().constant("c", element_type, "1, 3", raw, gap=b"\xff").result("c"))  # type: ignore[arg-type]
    array = graph.constant["c"].array
    assert (array.dtype, array.shape) == (storage, (1, 3))
    if BITS[element_type] == 4:  # type: ignore[index]
        halves = [raw[0] & 15, raw[0] >> 4, raw[1] & 15]
        wanted = [half - 16 if half > 7 and element_type == "i4" else half for half in halves]
        assert array.ravel().astype(int).tolist() == wanted
    elif element_type == "boolean":
        assert array.all()  # type: ignore[unreachable]
    else:
        assert array.tobytes() == raw
    assert_round_trip(graph)


def test_a_boolean_constant_takes_a_byte_a_value_and_any_byte_but_zero_is_true() -> None:
    graph = read(Ir().constant("c", "boolean", "4", b"\x00\x01\x02\x00").result("c"))
    assert graph.constant["c"].array.tolist() == [False, True, True, False]
    assert written_anew(graph)[1] == b"\x00\x01\x01\x00"


def test_constants_may_share_their_bytes_and_equal_ones_are_written_once() -> None:
    raw = np.arange(3, dtype="<f4").tobytes()
    ir = Ir().constant("c", "f32", "3", raw).constant("d", "i32", "3", b"", offset=0, size=12)
    graph = read(ir.layer("Subtract", "s", ["c", "c"]).result("s").result("d"))
    assert graph.constant["d"].array.tobytes() == raw
    assert written_anew(graph)[1] == raw
    assert_round_trip(graph)


def test_empty_constants_need_no_weights() -> None:
    graph = read_openvino(Ir().constant("c", "f32", "0,3", b"").result("c").xml(), None).graph
    assert graph.constant["c"].array.shape == (0, 3)
    assert written_anew(graph)[1] == b""


def test_layers_in_any_order_are_sorted_and_inputs_keep_the_files_order() -> None:
    ir = Ir().parameter("a").parameter("b").layer("Subtract", "s", ["a", "b"]).layer("Subtract", "t", ["s", "a"])
    ir.result("t", "rt").result("s", "rs")
    ir.layers.reverse()
    graph = read(ir)
    assert [port.name for port in graph.inputs] == ["b", "a"]
    assert [node.name for node in graph.nodes] == ["s", "t"]
    assert [port.name for port in graph.outputs] == ["s", "t"]
    assert_round_trip(graph)


def test_operands_are_in_the_order_in_which_the_ports_stand() -> None:
    text = binary().text().replace('<port id="0" precision="FP32"><dim>2</dim></port><port id="1"', '<port id="7"')
    text = text.replace('<port id="7"', '<port id="1" precision="FP32"/><port id="0"')
    assert read_openvino(text.encode(), None).graph.nodes[0].inputs == ("b", "a")


def scaled(beta: list[str], element_type: str = "f16", operand_type: str = "") -> Ir:
    """A Swish whose second operand is the last of these layers, after a constant."""
    operand_type = operand_type or ("f32" if beta else element_type)
    ir = Ir().parameter("x", "3", operand_type).parameter("p", "", element_type)
    ir.constant("c", element_type, "", np.array(1.5).astype(BY_IR_NAME[element_type].storage).tobytes())
    for kind in beta:
        ir.layer(kind, "c2", ["c"], destination_type="f32")
    ir.layer("Swish", "s", ["x", "c2" if beta else "c"], opset="opset4", precision=PRECISIONS[operand_type])
    return ir.result("s").result("p")


@pytest.mark.parametrize("beta", [[], ["Convert"]])
def test_constants_of_formulas_are_attributes(beta: list[str]) -> None:
    ir = scaled(beta)
    graph = read(ir)
    (node,) = [each for each in graph.nodes if each.name == "s"]
    assert (node.inputs, node.operation.attributes) == (("x",), (("beta", 1.5),))
    assert [name for name, _tensor in graph.constants] == (["c"] if beta else [])
    assert_round_trip(graph)
    x = np.array([-1, 0.5, 3], np.float32 if beta else np.float16)
    feeds = {"x": x, "p": np.zeros((), np.float16)}
    expected = eltwise.operator("Swish-4", beta=1.5)(x)
    assert run(graph, **feeds)["s"].tobytes() == expected.tobytes()
    types = {"x": graph.inputs[0].type}
    part = eltwise.load(*write_submodel(graph, [node], types, ["s"], {}))
    assert part.run({"x": x})["s"].tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("beta", "operand_type", "number_type"), [([], "f32", "float16"), (["Convert"], "f16", "float32")]
)
def test_a_constant_of_another_type_than_the_operand_is_refused(
    beta: list[str], operand_type: str, number_type: str
) -> None:
    """As in OpenVINO; also where the operand is the result of other layers."""
    ir = scaled(beta, "f16", operand_type)
    problems = read_openvino(ir.xml(), ir.weights).problems
    expected = {"f16": "float16", "f32": "float32"}[operand_type]
    assert [str(each) for each in problems] == [
        f"Swish node 's': operand X is {expected} and operand beta is {number_type}; allowed: one type for all"
    ]
    with pytest.raises(RuntimeError, match="type"):
        openvino_core().read_model(ir.xml(), ir.weights)
    behind = Ir().parameter("x", "3", "f64").layer("Abs", "a", ["x"]).constant("c", "f32", "", bytes(4))
    behind.layer("HardSigmoid", "s", ["a", "c", "c"]).result("s")
    assert len(read_openvino(behind.xml(), behind.weights).problems) == 2


@pytest.mark.parametrize("source", ["p", "three"])
def test_what_is_no_constant_of_one_number_is_unsupported_by_name(source: str) -> None:
    ir = Ir().parameter("x", "3").parameter("p", "").constant("three", "f32", "3", bytes(12))
    ir.layer("HardSigmoid", "s", ["x", source, "p"]).result("s")
    reading = read_openvino(ir.xml(), ir.weights)
    got = {"p": "a computed value", "three": r"shape \(3\)"}[source]
    with pytest.raises(UnsupportedError, match=f"HardSigmoid node 's', operand alpha: only a constant of one .*{got}"):
        raise reading.problems[0]
    (node,) = reading.graph.nodes
    assert node.is_foreign
    assert node.inputs == ("x", source, "p")


def test_a_number_that_the_type_does_not_hold_is_not_written() -> None:
    graph = read(scaled([]))
    (node,) = graph.nodes
    other = replace(node, operation=node.bound.schema.bind({"beta": 0.1}))
    with pytest.raises(UnsupportedError, match=r"Swish-4, operand beta: float16 does not hold the number 0\.1"):
        written_anew(replace(graph, nodes=(other,)))


def test_a_result_may_have_the_name_of_another_layer() -> None:
    graph = read(Ir().parameter("a").result("a", "a"))
    assert (graph.outputs[0].name, graph.outputs[0].aliases, graph.outputs[0].layer) == ("a", (), "a")
    assert_round_trip(graph)


@pytest.mark.parametrize(
    ("text", "names"),
    [("x", ["x"]), ("x,y\\,z", ["x", "y,z"]), (",x,,x, y", ["x", " y"]), ("\\\\,a\\b,c\\", ["\\,a\\b", "c\\"])],
)
def test_tensor_names_are_split_as_openvino_splits_them(text: str, names: Any) -> None:
    assert list(split_names(text)) == names
    assert list(split_names(join_names(names))) == names


def test_tensor_names_address_inputs_and_outputs() -> None:
    ir = Ir().parameter("a", names="x,y\\,z").parameter("b").layer("Subtract", "s", ["a", "b"], names="first,second")
    graph = read(ir.result("s", "r"))
    assert graph.inputs[0].aliases == ("x", "y,z")
    assert (graph.outputs[0].name, graph.outputs[0].aliases) == ("first", ("second", "s", "r"))
    assert graph.tensor_names == (("a", ("x", "y,z")), ("s", ("first", "second")))
    assert_round_trip(graph)


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ([("a", "r", ""), ("b", "q", "")], ["x", "b"]),
        ([("a", "r", ""), ("a", "q", "")], ["r", "q"]),
        ([("a", "r", "k"), ("a", "q", "")], ["k", "x"]),
        ([("a", "r", "k,l"), ("a", "q", "l")], ["k", "l"]),
        ([("b", "x", ""), ("b", "q", ""), ("a", "r", "")], ["x", "q", "r"]),
        ([("a", "x", ""), ("b", "a", "x")], ["x", "a"]),
    ],
)
def test_output_names_are_unique(outputs: Any, names: Any) -> None:
    ir = Ir().parameter("a", names="x").parameter("b")
    for source, name, own in outputs:
        ir.result(source, name, own)
    graph = read(ir)
    assert [port.name for port in graph.outputs] == names
    assert_round_trip(graph)


def test_metadata_that_a_path_and_a_value_say_whole_is_kept() -> None:
    ir = binary()
    ir.rest = (
        '<meta_data><MO_version value="1"/></meta_data><rt_info><MO_version value="2"/><conversion_parameters>'
        '<framework value="onnx"/><a value="&lt;&amp;&#10;"/></conversion_parameters><layout version="0" value="x"/>'
        '<p value="1"><q value="2"/></p></rt_info>'
    )
    graph = read(ir)
    assert graph.metadata == (
        ("MO_version", "2"),
        ("conversion_parameters/framework", "onnx"),
        ("conversion_parameters/a", "<&\n"),
        ("p", "1"),
        ("p/q", "2"),
    )
    assert_round_trip(graph)


def test_neighbours_are_read_with_their_attributes() -> None:
    ir = Ir().parameter("a", "1,2,3").constant("axes", "i64", "1", np.int64(0).tobytes())
    ir.constant("target", "i32", "2", np.array([0, -1], "<i4").tobytes())
    ir.layer("Squeeze", "q", ["a", "axes"], opset="opset15", allow_axis_skip="TRUE")
    ir.layer("Unsqueeze", "u", ["q", "axes"]).layer("Reshape", "h", ["q", "target"], special_zero="1")
    ir.layer("Convert", "c", ["h"], destination_type="f16").layer("Identity", "i", ["c"], opset="opset16")
    graph = read(ir.result("i").result("u"))
    given = {node.name: dict(node.operation.attributes) for node in graph.nodes}
    assert given == {
        "q": {"allow_axis_skip": True},
        "u": {},
        "h": {"special_zero": True},
        "c": {"destination_type": FLOAT16},
        "i": {},
    }
    found = infer_graph(graph)
    assert [str(port.type) for port in found.outputs] == ["float16(2,3)", "float32(1,2,3)"]
    assert_round_trip(graph)


@pytest.mark.parametrize("element_type", [name for name in RUNNING if name != "boolean"])
def test_version_10_gives_results_back_as_int32_or_float32(element_type: ElementType) -> None:
    graph = read(binary(element_type=element_type, version="10"))  # type: ignore[arg-type]
    inner = BY_IR_NAME[element_type]  # type: ignore[index]
    (output,) = infer_graph(graph).outputs
    given_back = INT32 if element_type in ("i32", "i64", "u32", "u64") else FLOAT32
    assert output.type.element_type is given_back
    assert output.inner_type is (None if inner is given_back else inner)
    for port in graph.inputs:
        assert port.type.element_type is (FLOAT32 if inner is FLOAT16 else inner)
        assert port.inner_type is (FLOAT16 if inner is FLOAT16 else None)
    assert_round_trip(graph)


@pytest.mark.parametrize("element_type", [name for name in RUNNING if name != "boolean"])
def test_version_11_keeps_all_types(element_type: ElementType) -> None:
    graph = read(binary(element_type=element_type))  # type: ignore[arg-type]
    (output,) = infer_graph(graph).outputs
    assert {port.type.element_type for port in (*graph.inputs, output)} == {BY_IR_NAME[element_type]}  # type: ignore[index]
    assert {port.inner_type for port in (*graph.inputs, output)} == {None}


def test_version_10_runs_with_the_types_of_its_time() -> None:
    f16 = read(binary(element_type="f16", version="10"))
    a = np.array([[1.0001, 2, 65519], [0, -0.0, 1]], np.float32)
    result = run(f16, a=a, b=np.zeros((2, 3), np.float32))["s"]
    assert result.dtype == np.float32
    assert result.tolist() == a.astype(np.float16).astype(np.float32).tolist()
    u8 = read(binary(element_type="u8", version="10", a="2", b="2"))
    result = run(u8, a=np.array([0, 9], np.uint8), b=np.array([1, 4], np.uint8))["s"]
    assert (result.dtype, result.tolist()) == (np.float32, [255.0, 5.0])
    flags = read(Ir("10").parameter("a", "2", "boolean").result("a"))
    result = run(flags, a=np.array([True, False]))["a"]
    assert (result.dtype, result.tolist()) == (np.float32, [1.0, 0.0])


def test_encodings_and_comments_of_xml_are_read() -> None:
    text = binary().text().replace("<layers>", "<!-- 1 < 2 --><?one two?><layers>").replace('"s"', '"σ"')
    wanted = read_openvino(text.encode(), None).graph
    assert wanted.nodes[0].name == "σ"
    declaration = '<?xml version="1.0"?>'
    for data in (
        b"\xef\xbb\xbf" + text.encode(),
        text.replace(declaration, '<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
        text.replace(declaration, '<?xml version="1.0" encoding="iso-8859-7"?>').encode("iso-8859-7"),
    ):
        assert read_openvino(data, None).graph == wanted


def test_files_are_found_side_by_side_and_written_whole(tmp_path: Path) -> None:
    raw = np.arange(6, dtype="<f4").tobytes()
    ir = Ir().parameter("a").constant("c", "f32", "2,3", raw).layer("Subtract", "s", ["a", "c"]).result("s")
    graph = read(ir)
    path = tmp_path / "net.xml"
    write_openvino_file(replace(graph), path)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["net.bin", "net.xml"]
    assert (path.read_bytes(), (tmp_path / "net.bin").read_bytes()) == written_anew(graph)
    assert read_openvino_file(path).graph == graph
    write_openvino_file(read(binary()), path)
    assert (tmp_path / "net.bin").read_bytes() == b""
    (tmp_path / "net.bin").unlink()
    assert read_openvino_file(path).graph == read(binary())


def test_an_ir_that_was_not_changed_has_the_same_bytes(tmp_path: Path) -> None:
    ir = Ir("10").constant("c", "f32", "2,3", bytes(24), gap=b"unused").result("c")
    (tmp_path / "in.xml").write_bytes(ir.xml() + b"<!-- kept -->\n")
    (tmp_path / "in.bin").write_bytes(ir.weights + b"unused")
    (tmp_path / "out").mkdir()
    for loaded in (
        eltwise.load(tmp_path / "in.xml"),
        eltwise.load(ir.xml() + b"<!-- kept -->\n", ir.weights + b"unused"),
    ):
        assert eltwise.save(loaded, tmp_path / "out" / "copy.xml") == ()
        assert (tmp_path / "out" / "copy.xml").read_bytes() == ir.xml() + b"<!-- kept -->\n"
        assert (tmp_path / "out" / "copy.bin").read_bytes() == ir.weights + b"unused"
    loaded = eltwise.load(tmp_path / "in.xml")
    for other in (lambda path: path.write_bytes(b"\x01" * 99), lambda path: path.unlink()):
        other(tmp_path / "in.bin")  # The weights of the file that was read are gone, those in memory are written.
        eltwise.save(loaded, tmp_path / "out" / "again.xml")
        assert (tmp_path / "out" / "again.bin").read_bytes() == bytes(24)
        assert eltwise.load(tmp_path / "out" / "again.xml") == loaded


def test_only_the_constants_of_large_weights_are_read(tmp_path: Path) -> None:
    ir = Ir().constant("c", "u8", "3", b"", offset=2**40, size=3).result("c")
    (tmp_path / "net.xml").write_bytes(ir.xml())
    with (tmp_path / "net.bin").open("wb") as sparse:
        sparse.seek(2**40)
        sparse.write(b"\x01\x02\x03")
    assert read_openvino_file(tmp_path / "net.xml").graph.constant["c"].array.tolist() == [1, 2, 3]


# Random graphs.

_TYPES = ("f32", "f16", "bf16", "i64", "u8", "i4", "f8e5m2")
_NAMES = st.text(st.sampled_from("ab,\\ é<&\"'/\n:"), min_size=1, max_size=4)


@st.composite
def graphs(draw: st.DrawFn) -> Ir:
    """IR files of many layers whose shapes all broadcast."""
    ir = Ir(draw(st.sampled_from(["10", "11"])), draw(_NAMES))
    values: dict[str, list[str]] = {}

    def fresh() -> str:
        return f"{draw(_NAMES)}{len(ir.layers)}"

    def tensor_names() -> str:
        names = draw(st.lists(_NAMES.filter(lambda name: not name.endswith("\\")), max_size=2, unique=True))
        return join_names(names)

    def add(element_type: str, name: str) -> None:
        values.setdefault(element_type, []).append(name)

    for _ in range(draw(st.integers(1, 3))):
        element_type, name = draw(st.sampled_from(_TYPES)), fresh()
        shape = draw(st.sampled_from(["2,3", "1,3", "", "?,3", "1..4,3", "...", "0,1,3"]))
        ir.parameter(name, shape, element_type, tensor_names())
        add(element_type, name)
    for _ in range(draw(st.integers(0, 2))):
        element_type, name = draw(st.sampled_from(_TYPES)), fresh()
        raw = draw(st.binary(min_size=(3 * BITS[element_type] + 7) // 8, max_size=(3 * BITS[element_type] + 7) // 8))
        ir.constant(name, element_type, "1,3", raw, tensor_names(), gap=draw(st.binary(max_size=3)))
        add(element_type, name)
    for _ in range(draw(st.integers(0, 6))):
        element_type = draw(st.sampled_from(sorted(values)))
        pool, name = st.sampled_from(values[element_type]), fresh()
        match draw(st.sampled_from(["numpy", "same", "Convert", "Identity"])):
            case "numpy":
                ir.layer("Subtract", name, [draw(pool), draw(pool)], names=tensor_names())
            case "same":
                source, rule = draw(pool), draw(st.sampled_from(["none", "pdpd"]))
                ir.layer("SquaredDifference", name, [source, source], auto_broadcast=rule)
            case "Convert":
                element_type_made = draw(st.sampled_from(_TYPES))
                ir.layer("Convert", name, [draw(pool)], destination_type=element_type_made)
                element_type = element_type_made
            case _:
                ir.layer("Identity", name, [draw(pool)], opset="opset16", names=tensor_names())
        add(element_type, name)
    everything = st.sampled_from([name for names in values.values() for name in names])
    for source in draw(st.lists(everything, min_size=1, max_size=3)):
        ir.result(source, fresh(), tensor_names())
    return ir


@pytest.mark.slow
@settings(max_examples=200)
@given(graphs(), st.randoms(use_true_random=False))
def test_random_graphs_survive_writing(ir: Ir, random: Any) -> None:
    random.shuffle(ir.layers)
    reading = read_openvino(ir.xml(), ir.weights)
    assert reading.problems == ()
    if not infer_graph(reading.graph).problems:
        assert_round_trip(reading.graph)
