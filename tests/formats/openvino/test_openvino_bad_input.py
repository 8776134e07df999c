"""Bad IR files: each ends in one sentence that says what, where, what was found and what is allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eltwise.core.dtypes import FLOAT32
from eltwise.core.errors import EltwiseError, FileFormatError, raise_all
from eltwise.core.shapes import parse
from eltwise.formats.openvino.reader import read_openvino, read_openvino_file
from eltwise.formats.openvino.writer import write_openvino, write_openvino_file
from eltwise.ir.graph import Graph, Node, Origin, Port, TensorType
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops import registry
from openvino_models import Ir, binary, read

TEXT = binary(auto_broadcast="numpy").text()
EDGE = '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'


def sentence_of(xml: str | bytes, weights: bytes | None = b"") -> str:
    """What a caller is told."""
    data = xml.encode() if isinstance(xml, str) else xml
    with pytest.raises(EltwiseError) as caught:
        examine(data, weights)
    return str(caught.value)


def examine(data: bytes, weights: bytes | None) -> None:
    reading = read_openvino(data, weights, "model.xml")
    problems = [*reading.problems, *structure_problems(reading.graph, reading.unresolved)]
    raise_all([*problems, *infer_graph(reading.graph).problems])


def assert_says(sentence: str, *words: str) -> None:
    for word in words:
        assert word in sentence
    assert len(sentence) < 1200


BOMB = '<!DOCTYPE net [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
MANY_ATTRIBUTES = " ".join(f'a{number}="1"' for number in range(50_000))


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("", ["model.xml", "not well-formed XML", "empty"]),
        ("not XML", ["not well-formed XML"]),
        (TEXT[: len(TEXT) // 2], ["not well-formed XML"]),
        (TEXT.replace("</edges>", ""), ["not well-formed XML", "edges"]),
        (TEXT.replace('id="0"', 'id="0" id="0"', 1), ["not well-formed XML", "id"]),
        (TEXT.replace('"a"', '"&unheard;"'), ["not well-formed XML", "unheard"]),
        (TEXT.encode() + b"\xff", ["not well-formed XML"]),
        (TEXT.replace("1.0", '1.0" encoding="unheard', 1), ["not well-formed XML"]),
        ("<html/>", ["not OpenVINO IR", "<html>", "<net>"]),
        ('<net xmlns="http://here" name="m" version="11"/>', ["not OpenVINO IR", "http://here"]),
        (TEXT.replace("<net", BOMB + "<net"), ["DOCTYPE", "without DOCTYPE"]),
        (TEXT.replace("<net", "<!-- x --><?p?>\n" + BOMB + "<net").replace('"a"', '"&b;"'), ["DOCTYPE"]),
        (TEXT.replace("<net", '<!DOCTYPE net SYSTEM "/etc/passwd"><net'), ["DOCTYPE"]),
        (TEXT.replace('<?xml version="1.0"?>', BOMB).encode("utf-16"), ["DOCTYPE"]),
        ("\ufeff" + TEXT.replace('<?xml version="1.0"?>', BOMB), ["DOCTYPE"]),
        (TEXT.replace(' version="11"', ""), ["<net> has no version", '"10" or version="11"']),
        (TEXT.replace('"11"', '"9"'), ["version of the IR format", "'9'", "10, 11"]),
        (TEXT.replace('"11"', '"12"'), ["version of the IR format", "'12'"]),
        (TEXT.replace('"11"', '"11.0"'), ["version of the IR format", "'11.0'"]),
        (TEXT.replace("<net ", "<net nmae='x' "), ["<net>", "'nmae'", "did you mean 'name'"]),
        ('<net version="11"/>', ["no <layers>"]),
        (TEXT.replace("edges>", "edgse>"), ["'edgse'", "did you mean 'edges'"]),
        (TEXT.replace("<edges>", "<edges/><edges>"), ["two <edges>", "line"]),
        (TEXT.replace("<edges>", "<edges><layer/>"), ["<edges>", "'layer'", "edge"]),
        (TEXT.replace('<layer id="0"', "<layer"), ["node 'a'", "'id'", "missing", "line"]),
        (TEXT.replace(' name="a"', ""), ["layer 0", "'name'", "missing"]),
        (TEXT.replace(' type="Subtract"', ""), ["layer 2", "'s'", "'type'", "missing"]),
        (TEXT.replace('type="Subtract" version="opset1"', 'type="Subtract"'), ["'s'", "'version'", "missing"]),
        (TEXT.replace('name="a"', 'name=""'), ["layer 0", "name is empty"]),
        (TEXT.replace('name="a"', f'name="{"a" * 5000}"'), ["layer 0", "too long", "4096"]),
        (TEXT.replace("<data ", f"<data {MANY_ATTRIBUTES} "), ["layer 0", "too many attributes", "got 50002", "64"]),
        (TEXT.replace('layer id="0"', 'layer id="-5"'), ["attribute id", "'-5'", "0 to"]),
        (TEXT.replace('layer id="0"', 'layer id="٣"'), ["attribute id", "'٣'", "digits"]),
        (TEXT.replace('layer id="0"', f'layer id="{"9" * 5000}"'), ["attribute id", "digits"]),
        (TEXT.replace('layer id="1"', 'layer id="0"'), ["same id", "'a'", "'b'"]),
        (TEXT.replace('"b"', '"a"'), ["same name", "Parameter 'a' (id 0)", "(id 1)"]),
        (TEXT.replace('"s"', '"a"'), ["same name", "Parameter 'a'", "Subtract 'a'"]),
        (Ir().parameter("a").result("a", "r").result("a", "r").text(), ["two Result layers", "'r'"]),
        (TEXT.replace('<port id="1"', '<port id="0"'), ["node 's'", "two ports", "same id"]),
        (TEXT.replace("<port", "<part", 1).replace("</port", "</part", 1), ["'part'", "did you mean 'port'"]),
        (TEXT.replace('to-layer="3"', 'to-layer="77"'), ["edge from layer 2 port 2 to layer 77", "no layer 77"]),
        (TEXT.replace('from-layer="2"', 'from-layer="77"'), ["no layer 77"]),
        (TEXT.replace('from-port="2"', 'from-port="5"'), ["'s'", "no output port 5"]),
        (TEXT.replace('to-port="1"', 'to-port="5"'), ["'s'", "no input port 5"]),
        (TEXT.replace("</edges>", EDGE + "</edges>"), ["input port 1", "'s'", "two edges"]),
        (TEXT.replace(' to-port="1"', ""), ["<edge>", "line", "'to-port'", "missing"]),
        (TEXT.replace("to-port", "to-prot"), ["<edge>", "'to-prot'", "did you mean 'to-port'"]),
        (TEXT.replace('from-port="2"', 'from-port="x"'), ["from-port", "'x'", "digits"]),
    ],
)
def test_files_that_hold_no_graph(xml, words):
    sentence = sentence_of(xml)
    assert sentence.startswith("model.xml: ")
    assert_says(sentence, *words)


def test_of_very_many_problems_only_the_first_are_listed():
    sentence = sentence_of(TEXT.replace("</edges>", EDGE * 2000 + "</edges>"))
    assert sentence.count("is fed by two edges") == 50
    assert "and 1950 more of this kind" in sentence


def test_cycles_name_their_layers():
    ir = Ir().parameter("a").layer("Subtract", "s", ["a", "a"]).layer("Subtract", "t", ["s", "a"]).result("t")
    text = ir.text().replace(
        'from-layer="0" from-port="0" to-layer="1" to-port="1"', 'from-layer="2" from-port="2" to-layer="1" to-port="1"'
    )
    sentence = sentence_of(text)
    assert_says(sentence, "form a cycle")
    assert "s -> t -> s" in sentence or "t -> s -> t" in sentence


def test_a_layer_that_feeds_itself_is_a_cycle():
    text = TEXT.replace(EDGE, EDGE.replace('from-layer="1" from-port="0"', 'from-layer="2" from-port="2"'))
    assert_says(sentence_of(text), "s -> s", "cycle")


def test_long_cycles_are_not_listed_whole():
    ir = Ir().parameter("a")
    for index in range(60):
        ir.layer("Subtract", f"s{index}", ["a", "a" if not index else f"s{index - 1}"])
    text = ir.text().replace(
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>',
        '<edge from-layer="60" from-port="2" to-layer="1" to-port="1"/>',
    )
    assert_says(sentence_of(text), "60 nodes in all", "cycle")


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (TEXT.replace(EDGE, ""), ["Subtract", "node 's'", "input port 1", "not connected"]),
        (TEXT.replace('<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>', ""), ["'r'", "not connected"]),
        (TEXT.replace('version="opset1"', 'version="opset17"'), ["'a'", "'opset17'", "opset1 to opset16"]),
        (TEXT.replace('type="Subtract" version="opset1"', 'type="Subtract" version="opset0"'), ["'s'", "'opset0'"]),
        (TEXT.replace('type="Subtract" version="opset1"', 'type="Subtract" version="opset01"'), ["'s'", "'opset01'"]),
        (TEXT.replace('type="Result" version="opset1"', 'type="Result" version="extension"'), ["'r'", "'extension'"]),
        (TEXT.replace('auto_broadcast="numpy"', 'auto_broadcast="nunpy"'), ["auto_broadcast", "'nunpy'", "pdpd"]),
        (TEXT.replace("auto_broadcast=", "auto_brodcast="), ["Subtract-1", "'s'", "did you mean 'auto_broadcast'"]),
        (TEXT.replace("auto_broadcast=", "Auto_broadcast="), ["did you mean 'auto_broadcast'"]),
        (TEXT.replace("<data auto", "<data bogus='7' auto"), ["'bogus'", "auto_broadcast.auto_broadcast_axis"]),
        (TEXT.replace("<layer id", "<layer ide='7' id", 1), ["'ide'", "did you mean 'id'"]),
        (TEXT.replace("data", "dta"), ["'dta'", "did you mean 'data'"]),
        (TEXT.replace('auto_broadcast="numpy"/>', 'auto_broadcast="numpy"/><data/>'), ["'s'", "two <data>"]),
        (TEXT.replace("FP32", "fp32", 1), ["'a'", "port 0", "precision 'fp32'", "did you mean 'FP32'"]),
        (TEXT.replace("<dim>2<", "<dim>-2<"), ["<dim> of port 0", "'-2'", "-1 to"]),
        (TEXT.replace("<dim>2<", "<dim>٢<"), ["<dim> of port 0", "'٢'"]),
        (TEXT.replace("dim>", "dom>"), ["'dom'", "did you mean 'dim'"]),
        (TEXT.replace('<port id="0"', "<port id='0' nmaes='x'"), ["port 0", "'nmaes'", "did you mean 'names'"]),
        (TEXT.replace('element_type="f32"', 'element_type="F32"'), ["'F32'", "did you mean 'f32'"]),
        (TEXT.replace('element_type="f32"', 'element_type="float"'), ["'float'", "f32"]),
        (TEXT.replace('element_type="f32"', 'element_type="nf4"'), ["nf4 is unsupported", "float32"]),
        (TEXT.replace('element_type="f32"', 'element_type="dynamic"'), ["unsupported element type dynamic"]),
        (TEXT.replace('element_type="f32"', 'element_type="boolean"'), ["Subtract-1", "bool", "float32"]),
        (TEXT.replace('element_type="f32"', 'element_type="f64"', 1), ["operand A is float64", "operand B is float32"]),
        (TEXT.replace(' element_type="f32"', ""), ["attribute element_type", "missing", "'a'"]),
        (TEXT.replace(' shape="2,3"', ""), ["attribute shape", "missing", "'a'"]),
        (TEXT.replace("shape=", "shpae="), ["'shpae'", "did you mean 'shape'"]),
        (TEXT.replace('"2,3"', '"2,N"'), ["attribute shape", "'N'", "intervals"]),
        (TEXT.replace('"2,3"', '"2,-2"'), ["attribute shape", "'-2'"]),
        (TEXT.replace('"2,3"', '"2,,3"'), ["attribute shape", "''"]),
        (TEXT.replace('"2,3"', '"5..2"'), ["attribute shape", "5..2"]),
        (TEXT.replace('"2,3"', f'"{2**63}"'), ["attribute shape", "too large"]),
        (TEXT.replace('"2,3"', f'"{"1," * 64}1"'), ["attribute shape", "rank is too large", "64"]),
        (TEXT.replace('"2,3"', f'"{"1," * 500000}1"'), ["attribute shape", "rank is too large"]),
        (binary(a="2,3", b="2,4").text(), ["Subtract-1", "'s'", "dimension 1 is 3 in A and 4 in B"]),
        (binary(b="3", auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 5}).text(), ["axis", "got 5"]),
        (binary(auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": "x"}).text(), ["_axis", "'x'"]),
        (binary(auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 2**63}).text(), ["_axis", "digits"]),
        (Ir().parameter("a").layer("Result", "r", [], 0).text(), ["'r'", "number of input ports", "allowed: 1"]),
        (Ir().parameter("a").layer("Subtract", "s", ["a"]).result("s").text(), ["Subtract-1", "missing", "operand B"]),
        (Ir().parameter("a").layer("Subtract", "s", ["a"] * 3).result("s").text(), ["too many inputs", "got 3"]),
        (Ir().parameter("a").layer("Subtract", "s", ["a"] * 2, 2).result("a").text(), ["output ports", "got 2"]),
        (Ir().parameter("a").layer("Identity", "s", ["a"]).result("s").text(), ["Identity", "opset16 to opset16"]),
        (Ir().parameter("a").layer("Result", "r", ["a"], 0, bogus=1).text(), ["Result", "'bogus'"]),
        (
            Ir().parameter("a").layer("Convert", "c", ["a"]).result("c").text(),
            ["Convert-1", "destination_type", "missing"],
        ),
        (
            Ir().parameter("a").layer("Convert", "c", ["a"], destination_type="i33").result("c").text(),
            ["destination_type", "'i33'", "did you mean 'i32'"],
        ),
        (
            Ir().parameter("a").layer("Reshape", "c", ["a", "a"], special_zero="maybe").result("c").text(),
            ["special_zero", "'maybe'", "true, 1, false, 0"],
        ),
        (
            Ir().parameter("a").layer("Squeeze", "c", ["a"], allow_axis_skip="true").result("c").text(),
            ["Squeeze-1", "'allow_axis_skip'"],
        ),
        (Ir().parameter("a").text(), ["no output"]),
        (Ir().text(), ["no output"]),
    ],
)
def test_layers_with_a_problem(xml, words):
    assert_says(sentence_of(xml), *words)


def test_every_unsupported_layer_is_in_one_sentence():
    ir = Ir().parameter("a").layer("Power", "one", ["a", "a"]).layer("Split", "two", ["one"], 2)
    ir.layer("Mine", "three", ["two"], opset="extension").layer("Subtract", "s", ["three", "one"]).result("s")
    reading = read_openvino(ir.xml(), None)
    (problem,) = reading.problems
    words = [
        "3 unsupported operators",
        "Power (opset1) node 'one'",
        "'two'",
        "Mine (extension) node 'three'",
        "SquaredDifference",
    ]
    assert_says(str(problem), *words)
    assert reading.unresolved == {"one", "two", "two:1", "three"}
    assert structure_problems(reading.graph, reading.unresolved) == []
    assert [node.name for node in reading.graph.nodes] == ["s"]


def test_every_problem_is_reported_at_once_with_the_names_of_its_layers():
    ir = Ir().parameter("a", "2,x").layer("Power", "b", ["a", "a"]).layer("Subtract", "s", ["a", "a"], bogus=1)
    ir.layer("Subtract", "t", ["s", "b"], opset="opset99").parameter("c", "x").result("t").result("c")
    reading = read_openvino(ir.xml(), None)
    assert [problem.node for problem in reading.problems] == ["", "a", "s", "t", "c"]
    assert reading.unresolved == {"a", "b", "s", "t", "c"}


RAW = np.arange(3, dtype="<f4").tobytes()


@pytest.mark.parametrize(
    ("changes", "weights", "words"),
    [
        ({}, None, ["Const", "'c'", "is in the weights", "12 bytes"]),
        ({}, b"", ["beyond the end", "bytes 0 to 12", "0 to 0"]),
        ({}, RAW[:-1], ["beyond the end", "bytes 0 to 12", "0 to 11"]),
        ({"offset": 1}, RAW, ["bytes 1 to 13"]),
        ({"offset": 2**62}, RAW, ["beyond the end", str(2**62)]),
        ({"offset": -1}, RAW, ["attribute offset", "'-1'"]),
        ({"offset": 2**64}, RAW, ["attribute offset", "digits"]),
        ({"offset": ""}, RAW, ["attribute offset", "''"]),
        ({"size": -12}, RAW, ["attribute size", "'-12'"]),
        ({"size": 8}, RAW, ["attribute size", "is 8 bytes, expected 12"]),
        ({"size": 16}, RAW * 2, ["attribute size", "is 16 bytes, expected 12"]),
        ({"size": 2**62, "shape": str(2**60)}, RAW, ["beyond the end"]),
        ({"size": 2**62}, RAW, ["attribute size", "expected 12"]),
        ({"shape": f"{2**40},{2**40}"}, RAW, ["attribute size", f"expected {2**82}"]),
        ({"shape": f"{2**62},{2**62},0", "size": 0}, RAW, ["attribute shape", "too large"]),
        ({"shape": "?"}, RAW, ["must be known", "'?'"]),
        ({"shape": "1..3"}, RAW, ["must be known"]),
        ({"shape": "..."}, RAW, ["must be known"]),
        ({"shape": "-1"}, RAW, ["must be known"]),
        ({"shape": "N"}, RAW, ["attribute shape", "'N'"]),
        ({"element_type": "F32"}, RAW, ["did you mean 'f32'"]),
        ({"element_type": "string"}, RAW, ["string is unsupported"]),
        ({"ofset": "1"}, RAW, ["'ofset'", "did you mean 'offset'"]),
    ],
)
def test_constants_with_a_problem(changes, weights, words):
    ir = Ir().constant("c", "f32", "3", RAW, **changes).result("c")
    reading = read_openvino(ir.xml(), weights)
    assert reading.unresolved == {"c"}
    (problem,) = reading.problems
    assert problem.node == "c"
    assert_says(str(problem), *words)


@pytest.mark.parametrize("missing", ["element_type", "shape", "offset", "size"])
def test_constants_with_a_missing_attribute(missing):
    text = Ir().constant("c", "f32", "3", RAW).result("c").text()
    start = text.index(f' {missing}="')
    assert_says(sentence_of(text[:start] + text[text.index('"', start + len(missing) + 3) + 1 :], RAW), missing)


@pytest.mark.parametrize("element_type", ["u1", "u2", "u3", "u6", "nf4", "f4e2m1", "f8e8m0", "string"])
def test_types_that_do_not_run_are_refused_by_name(element_type):
    ir = Ir().constant("c", element_type, "3", b"\x00" * 3).result("c")
    assert_says(sentence_of(ir.text(), ir.weights), "is unsupported", "node 'c'", "float32")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        read_openvino_file(tmp_path / "net.xml")
    with pytest.raises(FileFormatError, match="a folder"):
        read_openvino_file(tmp_path)
    path = tmp_path / "net.xml"
    path.write_bytes(Ir().constant("c", "f32", "3", RAW).result("c").xml())
    (problem,) = read_openvino_file(path).problems
    assert_says(str(problem), "is in the weights", "net.bin")
    (tmp_path / "net.bin").write_bytes(RAW[:5])
    (problem,) = read_openvino_file(path).problems
    assert_says(str(problem), "beyond the end of net.bin", "0 to 5")
    (tmp_path / "net.bin").unlink()
    (tmp_path / "net.bin").mkdir()
    with pytest.raises(FileFormatError, match=r"net\.bin: this is a folder"):
        read_openvino_file(path)


def test_structural_errors_name_the_file(tmp_path):
    path = tmp_path / "net.xml"
    path.write_bytes(b"<html/>")
    with pytest.raises(FileFormatError, match=r"^net\.xml: "):
        read_openvino_file(path)


def test_places_that_cannot_be_written_leave_nothing_behind(tmp_path):
    graph = read(binary())
    with pytest.raises(FileFormatError, match="folder does not exist"):
        write_openvino_file(graph, tmp_path / "absent" / "net.xml")
    with pytest.raises(FileFormatError, match=r"its own \.bin"):
        write_openvino_file(graph, tmp_path / "net.bin")
    (tmp_path / "net.xml").mkdir()
    with pytest.raises(FileFormatError, match="a folder"):
        write_openvino_file(graph, tmp_path / "net.xml")
    assert [found.name for found in tmp_path.iterdir()] == ["net.xml"]


def sentence_of_writing(graph: Graph) -> str:
    with pytest.raises(EltwiseError) as caught:
        write_openvino(graph)
    return str(caught.value)


def test_graphs_that_ir_cannot_say_are_refused():
    graph = read(binary())
    port = graph.inputs[0]
    named = replace(port, type=TensorType(FLOAT32, parse("N,3")))
    onnx = Node("o", registry.find("Sub-14").bind({}), ("a", "b"), ("s",))
    refused = {
        "ONNX graph": replace(graph, origin=Origin("ai.onnx", 8, 14)),
        "version of the IR format": replace(graph, origin=Origin("openvino", 12)),
        "Sub-14 node 'o'": replace(graph, nodes=(onnx,)),
        "default value": replace(graph, optional_inputs=(port,)),
        "'N'": replace(graph, inputs=(named, graph.inputs[1])),
        "nothing makes": replace(graph, nodes=()),
        "no output": replace(graph, outputs=()),
        "tensor names": replace(graph, tensor_names=(("a", ("x\\", "y")),)),
        "XML": replace(graph, name="\x00"),
        "metadata": replace(graph, metadata=(("/".join("a" * 40), "x"),)),
        "written in XML": replace(graph, metadata=(("1 2", "x"),)),
        "do not broadcast": replace(graph, inputs=(Port("a", TensorType(FLOAT32, parse("2,4")), "a"), graph.inputs[1])),
    }
    for word, bad in refused.items():
        assert_says(sentence_of_writing(bad), word)
