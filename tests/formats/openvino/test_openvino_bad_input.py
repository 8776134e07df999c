"""Bad IR files: each ends in one sentence that says what, where, what was found and what is allowed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import FLOAT32
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.core.shapes import parse
from eltwise.formats.openvino.reader import read_openvino, read_openvino_file
from eltwise.formats.openvino.writer import write_openvino, write_openvino_file
from eltwise.ir.graph import Graph, Node, Origin, Port
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from support.openvino_models import Ir, binary, problems_of, read

TEXT = binary(auto_broadcast="numpy").text()
EDGE = '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'
LAST_EDGE = '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>'
SUBTRACT = 'type="Subtract" version="opset1"'
RAW = np.arange(3, dtype="<f4").tobytes()
BOMB = '<!DOCTYPE net [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
DECLARATION = '<?xml version="1.0"?>'
MANY_ATTRIBUTES = " ".join(f'a{number}="1"' for number in range(50_000))


def sentence_of(xml: str | bytes, weights: bytes | None = b"") -> str:
    """What a caller is told."""
    with pytest.raises(EltwiseError) as caught:
        eltwise.load(xml.encode() if isinstance(xml, str) else xml, weights)
    return str(caught.value)


def assert_says(sentence: str, words: str) -> None:
    """The words between bars are all in the sentence."""
    for part in words.split(" | "):
        assert part in sentence
    assert len(sentence) < 1200


NO_XML: list[tuple[str | bytes, str]] = [
    ("<", "not well-formed XML"),
    (TEXT[: len(TEXT) // 2], "not well-formed XML"),
    (TEXT.replace("</edges>", ""), "not well-formed XML | edges"),
    (TEXT.replace('id="0"', 'id="0" id="0"', 1), "not well-formed XML | id"),
    (TEXT.replace('"a"', '"&unheard;"'), "not well-formed XML | unheard"),
    (TEXT.encode() + b"\xff", "not well-formed XML"),
    (TEXT.replace("1.0", '1.0" encoding="unheard', 1), "not well-formed XML"),
    ("<html/>", "not OpenVINO IR | <html> | <net>"),
    ('<net xmlns="http://here" name="m" version="11"/>', "not OpenVINO IR | http://here"),
    (TEXT.replace("<net", BOMB + "<net"), "DOCTYPE | without DOCTYPE"),
    (TEXT.replace("<net", "<!-- x --><?p?>\n" + BOMB + "<net").replace('"a"', '"&b;"'), "DOCTYPE"),
    (TEXT.replace("<net", '<!DOCTYPE net SYSTEM "/etc/passwd"><net'), "DOCTYPE"),
    (TEXT.replace(DECLARATION, BOMB).encode("utf-16"), "DOCTYPE"),
    ("\ufeff" + TEXT.replace(DECLARATION, BOMB), "DOCTYPE"),
    ('<net version="11"/>', "no <layers>"),
]
CHANGED = [
    # What is replaced in the text of a model that is right, by what, and what is said of it.
    (' version="11"', "", '<net> has no version | "10" or version="11"'),
    ('"11"', '"9"', "version of the IR format | '9' | 10, 11"),
    ('"11"', '"12"', "version of the IR format | '12'"),
    ('"11"', '"11.0"', "version of the IR format | '11.0'"),
    ("<net ", "<net nmae='x' ", "<net> | 'nmae' | did you mean 'name'"),
    ("edges>", "edgse>", "'edgse' | did you mean 'edges'"),
    ("<edges>", "<edges/><edges>", "two <edges> | line"),
    ("<edges>", "<edges><layer/>", "<edges> | 'layer' | edge"),
    ('<layer id="0"', "<layer", "node 'a' | 'id' | missing | line"),
    (' name="a"', "", "<layer> in line 4 | 'name' | missing"),
    (' type="Subtract"', "", "'s' | 'type' | missing"),
    (SUBTRACT, 'type="Subtract"', "'s' | 'version' | missing"),
    ('name="a"', 'name=""', "line 4 | name is empty"),
    ('name="a"', f'name="{"a" * 5000}"', "too long | 4096"),
    ("<data ", f"<data {MANY_ATTRIBUTES} ", "<data> | too many attributes | got 50002 | 64"),
    ('layer id="0"', 'layer id="-5"', "attribute id | '-5' | 0 to"),
    ('layer id="0"', 'layer id="٣"', "attribute id | '٣' | digits"),
    ('layer id="0"', f'layer id="{"9" * 5000}"', "attribute id | digits"),
    ('layer id="1"', 'layer id="0"', "same id | 'a' | 'b'"),
    ('<port id="1"', '<port id="0"', "node 's' | two ports | same id"),
    ("</output>", "<part/></output>", "'part' | did you mean 'port'"),
    ('to-layer="3"', 'to-layer="77"', "edge from layer 2 port 2 to layer 77 | no layer 77"),
    ('from-layer="2"', 'from-layer="77"', "no layer 77"),
    ('from-port="2"', 'from-port="5"', "'s' | no output port 5"),
    ('to-port="1"', 'to-port="5"', "'s' | no input port 5"),
    ("</edges>", EDGE + "</edges>", "input port 1 | 's' | two edges"),
    (' to-port="1"', "", "<edge> | line | 'to-port' | missing"),
    ("to-port", "to-prot", "<edge> | 'to-prot' | did you mean 'to-port'"),
    ('from-port="2"', 'from-port="x"', "from-port | 'x' | digits"),
    ("<layer id", "<layer ide='7' id", "node 'a' | 'ide' | did you mean 'id'"),
    ("data", "dta", "'dta' | did you mean 'data'"),
    ('auto_broadcast="numpy"/>', 'auto_broadcast="numpy"/><data/>', "'s' | two <data>"),
    ("dim>", "dom>", "'dom' | did you mean 'dim'"),
    ('<port id="0"', "<port id='0' nmaes='x'", "<port> | 'nmaes' | did you mean 'names'"),
    (EDGE, EDGE.replace('"1" from-port="0"', '"2" from-port="2"'), "s -> s | cycle"),
    (EDGE, "", "Subtract | node 's' | input port 1 | not connected"),
    (LAST_EDGE, "", "'r' | not connected"),
    ('version="opset1"', 'version="opset17"', "'a' | 'opset17' | opset1 to opset16"),
    (SUBTRACT, 'type="Subtract" version="opset0"', "'s' | 'opset0'"),
    (SUBTRACT, 'type="Subtract" version="opset01"', "'s' | 'opset01'"),
    ('type="Result" version="opset1"', 'type="Result" version="extension"', "'r' | 'extension'"),
    ('auto_broadcast="numpy"', 'auto_broadcast="nunpy"', "auto_broadcast | 'nunpy' | pdpd"),
    ("auto_broadcast=", "auto_brodcast=", "Subtract-1 | 's' | did you mean 'auto_broadcast'"),
    ("auto_broadcast=", "Auto_broadcast=", "did you mean 'auto_broadcast'"),
    ("<data auto", "<data bogus='7' auto", "'bogus' | auto_broadcast.auto_broadcast_axis"),
    ('element_type="f32"', 'element_type="F32"', "'F32' | did you mean 'f32'"),
    ('element_type="f32"', 'element_type="float"', "'float' | f32"),
    ('element_type="f32"', 'element_type="nf4"', "nf4 is unsupported | float32"),
    ('element_type="f32"', 'element_type="dynamic"', "unsupported element type dynamic"),
    ('element_type="f32"', 'element_type="boolean"', "Subtract-1 | bool | float32"),
    (' element_type="f32"', "", "attribute element_type | missing | 'a'"),
    (' shape="2,3"', "", "attribute shape | missing | 'a'"),
    ("shape=", "shpae=", "'shpae' | did you mean 'shape'"),
    ('"2,3"', '"2,N"', "attribute shape | 'N' | intervals"),
    ('"2,3"', '"2,-2"', "attribute shape | '-2'"),
    ('"2,3"', '"2,,3"', "attribute shape | ''"),
    ('"2,3"', '"5..2"', "attribute shape | 5..2"),
    ('"2,3"', f'"{2**63}"', "attribute shape | too large"),
    ('"2,3"', f'"{"1," * 64}1"', "attribute shape | rank is too large | 64"),
    ('"2,3"', f'"{"1," * 500000}1"', "attribute shape | rank is too large"),
]
PDPD = {"auto_broadcast": "pdpd"}
LAYERS = [
    (binary(a="2,3", b="2,4"), "Subtract-1 | 's' | dimension 1 is 3 in A and 4 in B"),
    (Ir().parameter("a").parameter("b", "2,3", "f64").layer("Subtract", "s", ["a", "b"]), "float32 | float64"),
    (binary(b="3", **PDPD, **{"auto_broadcast.auto_broadcast_axis": 5}), "axis | got 5"),  # type: ignore[arg-type]
    (binary(**PDPD, **{"auto_broadcast.auto_broadcast_axis": "x"}), "_axis | 'x'"),
    (binary(**PDPD, **{"auto_broadcast.auto_broadcast_axis": 2**63}), "_axis | digits"),  # type: ignore[arg-type]
    (Ir().parameter("a").layer("Result", "r", [], 0), "'r' | number of input ports | allowed: 1"),
    (Ir().parameter("a").layer("Subtract", "s", ["a"]).result("s"), "Subtract-1 | missing | operand B"),
    (Ir().parameter("a").layer("Subtract", "s", ["a"] * 3).result("s"), "too many inputs | got 3"),
    (Ir().parameter("a").layer("Subtract", "s", ["a"] * 2, 2).result("a"), "output ports | got 2"),
    (Ir().parameter("a").layer("Identity", "s", ["a"]).result("s"), "Identity | opset16 to opset16"),
    (Ir().parameter("a").layer("Result", "r", ["a"], 0, bogus=1), "Result | 'bogus'"),
    (Ir().parameter("a").layer("Convert", "c", ["a"]).result("c"), "Convert-1 | destination_type | missing"),
    (
        Ir().parameter("a").layer("Convert", "c", ["a"], destination_type="i33").result("c"),
        "destination_type | 'i33' | did you mean 'i32'",
    ),
    (
        Ir().parameter("a").layer("Reshape", "c", ["a", "a"], special_zero="maybe").result("c"),
        "special_zero | 'maybe' | true, 1, false, 0",
    ),
    (
        Ir().parameter("a").layer("Squeeze", "c", ["a"], allow_axis_skip="true").result("c"),
        "Squeeze-1 | 'allow_axis_skip'",
    ),
    (Ir().parameter("a"), "no output"),
    (Ir(), "no output"),
]


@pytest.mark.parametrize(("xml", "words"), [*NO_XML, *((TEXT.replace(old, new), words) for old, new, words in CHANGED)])
def test_a_file_that_is_wrong(xml: str | bytes, words: str) -> None:
    assert xml != TEXT
    assert_says(sentence_of(xml), words)


@pytest.mark.parametrize(("ir", "words"), LAYERS)
def test_layers_that_are_wrong(ir: Ir, words: str) -> None:
    assert_says(sentence_of(ir.xml()), words)


CONSTANTS: list[tuple[dict[str, Any], bytes | None, str]] = [
    ({}, None, "Const | 'c' | is in the weights | 12 bytes"),
    ({}, b"", "beyond the end | 12 bytes at offset 0 | up to byte 0"),
    ({}, RAW[:-1], "beyond the end | 12 bytes at offset 0 | up to byte 11"),
    ({"offset": 1}, RAW, "12 bytes at offset 1"),
    ({"offset": 2**62}, RAW, f"beyond the end | {2**62}"),
    ({"offset": -1}, RAW, "attribute offset | '-1'"),
    ({"offset": 2**64}, RAW, "attribute offset | digits"),
    ({"offset": ""}, RAW, "attribute offset | ''"),
    ({"size": -12}, RAW, "attribute size | '-12'"),
    ({"size": 8}, RAW, "attribute size | is 8 bytes, expected 12"),
    ({"size": 16}, RAW * 2, "attribute size | is 16 bytes, expected 12"),
    ({"size": 2**62, "shape": str(2**60)}, RAW, "beyond the end"),
    ({"size": 2**62}, RAW, "attribute size | expected 12"),
    ({"shape": f"{2**40},{2**40}"}, RAW, f"attribute size | expected {2**82}"),
    ({"shape": f"{2**62},{2**62},0", "size": 0}, RAW, "attribute shape | too large"),
    *(({"shape": shape}, RAW, f"must be known | '{shape}'") for shape in ("?", "1..3", "...", "-1")),
    ({"shape": "N"}, RAW, "attribute shape | 'N'"),
    ({"element_type": "F32"}, RAW, "did you mean 'f32'"),
    *(
        ({"element_type": name, "size": size}, RAW, f"{name} is unsupported | float32")
        for name, size in (("nf4", 2), ("string", 0))
    ),
    ({"ofset": "1"}, RAW, "'ofset' | did you mean 'offset'"),
]


@pytest.mark.parametrize(("changes", "weights", "words"), CONSTANTS)
def test_constants_with_a_problem(changes: dict[str, Any], weights: bytes | None, words: str) -> None:
    reading = read_openvino(Ir().constant("c", "f32", "3", RAW, **changes).result("c").xml(), weights)
    (problem,) = problems_of(reading)
    assert problem.node == "c"
    assert_says(str(problem), words)


@pytest.mark.parametrize("missing", ["element_type", "shape", "offset", "size"])
def test_constants_with_a_missing_attribute(missing: str) -> None:
    text = Ir().constant("c", "f32", "3", RAW).result("c").text()
    start = text.index(f' {missing}="')
    assert_says(sentence_of(text[:start] + text[text.index('"', start + len(missing) + 3) + 1 :], RAW), missing)


def test_of_very_many_problems_only_the_first_are_listed() -> None:
    sentence = sentence_of(TEXT.replace("</edges>", EDGE * 2000 + "</edges>"))
    assert sentence.count("is fed by two edges") == 50
    assert "and 1950 more of this kind" in sentence


def test_long_cycles_are_not_listed_whole() -> None:
    ir = Ir().parameter("a")
    for index in range(60):
        ir.layer("Subtract", f"s{index}", ["a", "a" if not index else f"s{index - 1}"])
    text = (
        ir.result("s1")
        .text()
        .replace(
            '<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>',
            '<edge from-layer="60" from-port="2" to-layer="1" to-port="1"/>',
        )
    )
    assert_says(sentence_of(text), "60 nodes in all | cycle")


def test_layers_that_cannot_be_read_are_foreign_nodes_and_every_problem_is_said_at_once() -> None:
    ir = Ir().parameter("a", "2,x").layer("MatMul", "b", ["a", "a"]).layer("Split", "two", ["b"], 2)
    ir.layer("Mine", "three", ["two"], opset="extension").layer("Subtract", "s", ["a", "a"], bogus=1)
    ir.layer("Subtract", "t", ["s", "b"], opset="opset99").parameter("c", "x").layer("Subtract", "u", ["t", "b"])
    reading = read_openvino(ir.result("u").result("c").xml(), None)
    problems = problems_of(reading)
    words = "3 unsupported operators | MatMul (opset1) node 'b' | 'two' | Mine (extension) node 'three' | allowed: Abs"
    assert_says(str(problems[0]), words)
    assert [problem.node for problem in problems] == ["", "a", "s", "t", "c"]
    foreign = {node.name: (node.inputs, node.outputs) for node in reading.graph.nodes if node.is_foreign}
    assert foreign.keys() == {"a", "b", "two", "three", "s", "t", "c"}
    assert foreign["two"] == (("b",), ("two", "two:1"))
    assert [node.name for node in reading.graph.nodes if not node.is_foreign] == ["u"]
    assert_says(sentence_of_writing(replace(reading.graph)), "not a supported operator")


@pytest.mark.parametrize("pair", [("sound", "broken"), ("broken", "sound"), ("broken", "broken")])
def test_a_comparison_says_that_nodes_cannot_be_read(pair: tuple[str, str], tmp_path: Path) -> None:
    """The constants are compared all the same, and equal ones do not make the models equal."""
    ir = Ir().parameter("a", "3").constant("b", "f32", "3", RAW).layer("Subtract", "s", ["a", "b"]).result("s")
    texts = {"sound": ir.text(), "broken": ir.text().replace('to-layer="2"', 'to-layer="9"')}
    for name, text in texts.items():
        (tmp_path / f"{name}.xml").write_text(text)
        (tmp_path / f"{name}.bin").write_bytes(ir.weights)
    report = eltwise.compare(*(tmp_path / f"{name}.xml" for name in pair))
    assert [one.status for one in report.tensors] == ["equal"]
    assert not report.is_good
    assert "there is no layer 9" in str(report)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path, beside = tmp_path / "net.xml", tmp_path / "net.bin"
    for place, words in ((path, "no such file"), (tmp_path, "a folder")):
        with pytest.raises(FileFormatError, match=words):
            read_openvino_file(place)
    path.write_bytes(Ir().constant("c", "f32", "3", RAW).result("c").xml())
    (problem,) = read_openvino_file(path).problems
    assert_says(str(problem), "is in the weights | a .bin beside")
    beside.write_bytes(RAW[:5])
    (problem,) = read_openvino_file(path).problems
    assert_says(str(problem), "beyond the end of net.bin | up to byte 5")
    beside.unlink()
    beside.mkdir()
    with pytest.raises(FileFormatError, match=r"net\.bin: this is a folder"):
        read_openvino_file(path)
    path.write_bytes(b"<html/>")
    with pytest.raises(FileFormatError, match=r"net\.bin: this is a folder|^net\.xml: "):
        read_openvino_file(path)


def test_places_that_cannot_be_written_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "net.xml").mkdir()
    for name, words in (
        ("absent/net.xml", "folder does not exist"),
        ("net.xml", "a folder"),
    ):
        with pytest.raises(FileFormatError, match=words):
            write_openvino_file(read(binary()), tmp_path / name)
    assert [found.name for found in tmp_path.iterdir()] == ["net.xml"]


def sentence_of_writing(graph: Graph) -> str:
    with pytest.raises(EltwiseError) as caught:
        write_openvino(graph)
    return str(caught.value)


def test_graphs_that_ir_cannot_say_are_refused() -> None:
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
    for words, bad in refused.items():
        assert_says(sentence_of_writing(bad), words)
