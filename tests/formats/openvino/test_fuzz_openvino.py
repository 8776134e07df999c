"""Damaged IR files: whatever is done to a valid one, reading it ends in a model or in an ``EltwiseError``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from eltwise.core.errors import EltwiseError
from eltwise.formats.openvino.reader import read_openvino
from eltwise.ir.infer_graph import infer_graph
from support.openvino_models import Ir, binary, problems_of, written_anew


def _rich(version: str) -> Ir:
    """A file with every kind of layer."""
    ir = Ir(version).parameter("a", "1,2,3", names="x,y").parameter("b", "?,..4,3", "f16")
    ir.constant("axes", "i64", "1", np.int64(0).tobytes())
    ir.constant("target", "i32", "2", np.array([0, -1], "<i4").tobytes()).constant("c", "i4", "3", b"\x1f\x08")
    ir.constant("d", "f32", "3", bytes(range(12))).layer("Squeeze", "q", ["a", "axes"], opset="opset15")
    ir.layer("Unsqueeze", "u", ["q", "axes"]).layer("Reshape", "h", ["q", "target"], special_zero="true")
    ir.layer("Convert", "v", ["c"], destination_type="f32").layer("Identity", "i", ["h"], opset="opset16")
    pdpd = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": "1"}
    ir.layer("Subtract", "s", ["i", "d"], **pdpd).layer("SquaredDifference", "t", ["s", "v"], auto_broadcast="numpy")  # type: ignore[arg-type]
    ir.rest = '<rt_info><k value="v"/><p><q value="w"/></p></rt_info>'
    return ir.result("t", "r0", "own").result("u", "r1").result("b", "r2")


SEEDS = [
    (ir.xml(), ir.weights) for ir in (_rich("10"), _rich("11"), binary(), binary(auto_broadcast="pdpd", version="10"))
]
SCRAPS = [
    *["", "0", "1", "-1", "-0", "2", "7", "63", "65", str(2**31), str(2**63 - 1), str(2**63), str(2**64), "9" * 5000],
    *["a", "b", "c", "s", "t", "r0", "?", "...", "..", "1..", "..0", "2..1", "1,1", "0,0", "," * 70, "-1,-1", "N"],
    *[f"{2**40},{2**40}", f"{2**62},{2**62},0", "1," * 63 + "1", "none", "pdpd", "explicit", "true", "FALSE", "maybe"],
    *["f32", "f16", "i4", "u1", "nf4", "boolean", "string", "dynamic", "FP32", "opset1", "opset15", "opset16"],
    *["opset17", "extension", "Const", "Parameter", "Result", "Reshape", "Squeeze", "Unsqueeze", "Convert", "Add"],
    *["Identity", "\\", "\\,", "é\u2028", " ", "\n", "x" * 3000, "%s", "{0}", "10", "11", "12"],
]
ACTIONS = ["value", "value", "value", "edge", "drop", "copy", "move", "rename", "add", "text"]
TAGS = ["net", "layers", "layer", "edges", "edge", "data", "input", "output", "port", "dim", "rt_info", "value", "x"]


def examine(xml: bytes, weights: bytes | None) -> None:
    """Read as ``eltwise.load`` does; what has no problems must also be written and read again."""
    try:
        reading = read_openvino(xml, weights)
    except EltwiseError as error:
        problems = [error]
    else:
        problems = problems_of(reading)
    assert all(isinstance(problem, EltwiseError) and str(problem) for problem in problems)
    if problems:
        return
    try:
        written = written_anew(reading.graph)
    except EltwiseError:
        return
    assert read_openvino(*written).graph == reading.graph


def mutate(tree: etree._Element, data: st.DataObject) -> None:
    """Do one thing to a tree that leaves it XML."""
    elements = list(tree.iter())
    element = data.draw(st.sampled_from(elements))
    parent = element.getparent()
    named = [one for one in elements if one.attrib]
    match data.draw(st.sampled_from(ACTIONS)):
        case "value":
            target = data.draw(st.sampled_from(named))
            name = data.draw(st.sampled_from(sorted(target.attrib)))
            target.set(name, data.draw(st.sampled_from(SCRAPS)))
        case "edge":
            edges = [one for one in elements if one.tag == "edge" and one.attrib]
            if edges:
                target = data.draw(st.sampled_from(edges))
                name = data.draw(st.sampled_from(sorted(target.attrib)))
                target.set(name, str(data.draw(st.integers(0, 16))))
        case "drop":
            name = data.draw(st.sampled_from(["", *sorted(element.attrib)]))
            if name:
                del element.attrib[name]
            elif parent is not None:
                parent.remove(element)
        case "copy" if parent is not None:
            parent.insert(data.draw(st.integers(0, len(parent))), etree.fromstring(etree.tostring(element)))
        case "move" if parent is not None:
            other = data.draw(st.sampled_from([one for one in elements if element not in (one, *one.iterancestors())]))
            other.append(element)
        case "rename":
            element.tag = data.draw(st.sampled_from(TAGS))
        case "add":
            names = ["axis", "auto_broadcast", "bogus", "names", "output_names", "id", "shape", "special_zero"]
            element.set(data.draw(st.sampled_from(names)), data.draw(st.sampled_from(SCRAPS)))
        case "text":
            element.text = data.draw(st.sampled_from(SCRAPS))


def test_the_seeds_have_no_problems() -> None:
    for xml, weights in SEEDS:
        reading = read_openvino(xml, weights)
        assert reading.problems == ()
        assert infer_graph(reading.graph).problems == []


@pytest.mark.slow
@settings(max_examples=1500)
@given(st.sampled_from(SEEDS), st.integers(1, 4), st.data())
def test_files_with_other_elements_and_values(seed: Any, count: int, data: Any) -> None:
    tree = etree.fromstring(seed[0])
    for _ in range(count):
        mutate(tree, data)
    examine(etree.tostring(tree, encoding="utf-8"), seed[1])


@pytest.mark.slow
@settings(max_examples=1500)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=4),
)
def test_files_with_other_bytes(seed: Any, changes: Any) -> None:
    xml = bytearray(seed[0])
    for place, inserted, removed in changes:
        start = place % len(xml)
        xml[start : start + removed] = inserted
    examine(bytes(xml), seed[1])


@settings(max_examples=300)
@given(st.sampled_from(SEEDS), st.one_of(st.none(), st.binary(max_size=40)), st.integers(0, 10_000))
def test_files_that_end_early_and_other_weights(seed: Any, weights: Any, length: int) -> None:
    examine(seed[0], weights)
    examine(seed[0][: length % len(seed[0])], weights)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_file(data: Any) -> None:
    examine(data, None)
    examine(b"<net version='11' name='m'><layers>" + data, None)
