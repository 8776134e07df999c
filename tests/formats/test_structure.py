"""The structure of models: every change of a node shows beside equal constants, and no change of names does."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import eltwise

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x, bool c) => (float[2,3] y)
<float[3] w = {1, 2, 3}>
{
  a = Sub (x, w)
  b = LeakyRelu <alpha = 0.5> (a)
  k = Constant <value_float = 2.0> ()
  d = If (c) <
    then_branch = t () => (float[2,3] p) { p = Sub (a, b) },
    else_branch = e () => (float[2,3] q) { q = Neg (b) }
  >
  y = Mul (d, k)
}
"""

OTHER_NODES = {
    "Sub (x, w)": ("Add (x, w)", "A has 1 more Sub; B has 1 more Add"),
    "Sub (a, b)": ("Sub (b, a)", "the same nodes are connected otherwise"),
    "alpha = 0.5": ("alpha = 0.25", "1 node of LeakyRelu with other attributes"),
    "q = Neg (b)": ("n = Neg (b)\n q = Neg (n)", "B has 1 more Neg"),
    "Mul (d, k)": ("Mul (d, d)", "the same nodes are connected otherwise"),
}


def nodes(a: Path, b: Path) -> str:
    """How the nodes of two models differ, which decides on the verdict alone; empty where they do not."""
    report = eltwise.compare(a, b)
    (others,) = report.others
    assert report.is_good == (others.status == "equal") == (others.explanation == "")
    if a.suffix == ".onnx":
        assert eltwise.compare(onnx.load(a), onnx.load(b)).others == report.others
    return others.explanation


def compared(folder: Path, one: str, other: str) -> str:
    paths = [folder / "a.onnx", folder / "b.onnx"]
    for path, text in zip(paths, (one, other), strict=True):
        onnx.save(parser.parse_model(text), path)
    return nodes(*paths)


@pytest.mark.parametrize("text", OTHER_NODES)
def test_other_nodes_beside_equal_constants_are_a_difference(text: str, tmp_path: Path) -> None:
    replacement, phrase = OTHER_NODES[text]
    assert phrase in compared(tmp_path, MODEL, MODEL.replace(text, replacement))
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder, name in zip(folders, "ab", strict=True):
        folder.mkdir()
        (tmp_path / f"{name}.onnx").rename(folder / "net.onnx")
    report = eltwise.compare(*folders)
    assert [(each.name, phrase in each.explanation) for each in report.others] == [("net", True)]
    assert not report.is_good


def test_models_without_constants_are_compared_by_their_nodes(tmp_path: Path) -> None:
    model = MODEL.replace("<float[3] w = {1, 2, 3}>\n", "").replace("Sub (x, w)", "Neg (x)")
    model = model.replace("  k = Constant <value_float = 2.0> ()\n", "").replace("Mul (d, k)", "Mul (d, d)")
    assert compared(tmp_path, model, model) == ""
    assert "B has 1 more Abs" in compared(tmp_path, model, model.replace("Neg (x)", "Abs (x)"))


def test_names_the_order_of_nodes_and_the_kind_of_constant_are_no_structure(tmp_path: Path) -> None:
    model = MODEL.replace("Sub (a, b)", "Sub (aa, b)").replace("a = Sub (x, w)", "aa = Sub (x, w)")
    model = model.replace("LeakyRelu <alpha = 0.5> (a)", "LeakyRelu <alpha = 0.5> (aa)")
    constant = "  k = Constant <value_float = 2.0> ()\n"
    model = model.replace(constant, "").replace("{1, 2, 3}>", "{1, 2, 3}, float k = {2}>")
    assert compared(tmp_path, MODEL, model) == ""


def test_attributes_of_an_ir_are_structure_too(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset13

    x = opset13.parameter([1, 1, 5, 5], openvino.Type.f32)
    y = opset13.max_pool(opset13.relu(x), [1, 1], [1, 1], [0, 0], [0, 0], [2, 2])
    openvino.save_model(
        openvino.Model([opset13.add(y.output(0), opset13.constant([2.0], openvino.Type.f32))], [x]), tmp_path / "a.xml"
    )
    text = (tmp_path / "a.xml").read_text()
    (tmp_path / "b.bin").write_bytes((tmp_path / "a.bin").read_bytes())
    for old, new, phrase in (
        ('kernel="2, 2"', 'kernel="3, 3"', "1 node of MaxPool with other attributes"),
        ('type="ReLU"', 'type="Sigmoid"', "A has 1 more ReLU; B has 1 more Sigmoid"),
        ('name="', 'name="x', ""),
    ):
        assert old in text
        (tmp_path / "b.xml").write_text(text.replace(old, new))
        difference = nodes(tmp_path / "a.xml", tmp_path / "b.xml")
        assert (phrase in difference) if phrase else not difference
