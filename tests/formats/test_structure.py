"""The structure of models: every change of a node shows beside equal constants, and no change of inner names does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import onnx
import pytest
from onnx import FunctionProto, GraphProto, ModelProto, parser

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
    "Sub (x, w)": ("Add (x, w)", "A has 1 more Sub-14; B has 1 more Add-14"),
    "Sub (a, b)": ("Sub (b, a)", "the same nodes are connected otherwise"),
    "alpha = 0.5": ("alpha = 0.25", "1 node of LeakyRelu-16 with other values of attributes"),
    "q = Neg (b)": ("n = Neg (b)\n q = Neg (n)", "B has 1 more Neg-13"),
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


def _of_defaults(schema: onnx.defs.OpSchema, *, is_written: bool) -> onnx.ModelProto | None:
    """A model of a node whose attributes are left out or have their defaults; None where it has none."""
    node = onnx.helper.make_node(schema.name, ["x"] * max(schema.min_input, 1), ["y"], domain=schema.domain)
    defaults = [each for each in schema.attributes.values() if each.default_value.type]
    for each in defaults if is_written else ():
        node.attribute.append(each.default_value)
        node.attribute[-1].doc_string = "what it is"
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:])
    version = onnx.helper.make_opsetid(schema.domain, schema.since_version)
    return onnx.helper.make_model(graph, opset_imports=[version], ir_version=8) if defaults else None


def test_an_attribute_that_has_its_default_may_be_left_out(tmp_path: Path) -> None:
    """In every version of every operator that has one."""
    count = 0
    for schema in onnx.defs.get_all_schemas_with_history():
        one, other = (_of_defaults(schema, is_written=is_written) for is_written in (False, True))
        if not schema.domain and one is not None and other is not None:
            assert eltwise.compare(one, other).is_good, (schema.name, schema.since_version)
            count += 1
    assert count > 200
    model = MODEL.replace("alpha = 0.5", "alpha = 0.01")
    assert compared(tmp_path, model, model.replace(" <alpha = 0.01>", "")) == ""
    assert compared(tmp_path, MODEL, model.replace(" <alpha = 0.01>", ""))


def test_models_without_constants_are_compared_by_their_nodes(tmp_path: Path) -> None:
    model = MODEL.replace("<float[3] w = {1, 2, 3}>\n", "").replace("Sub (x, w)", "Neg (x)")
    model = model.replace("  k = Constant <value_float = 2.0> ()\n", "").replace("Mul (d, k)", "Mul (d, d)")
    assert compared(tmp_path, model, model) == ""
    assert "B has 1 more Abs-13" in compared(tmp_path, model, model.replace("Neg (x)", "Abs (x)"))


def test_names_the_order_of_nodes_and_the_kind_of_constant_are_no_structure(tmp_path: Path) -> None:
    model = MODEL.replace("Sub (a, b)", "Sub (aa, b)").replace("a = Sub (x, w)", "aa = Sub (x, w)")
    model = model.replace("LeakyRelu <alpha = 0.5> (a)", "LeakyRelu <alpha = 0.5> (aa)")
    constant = "  k = Constant <value_float = 2.0> ()\n"
    model = model.replace(constant, "").replace("{1, 2, 3}>", "{1, 2, 3}, float k = {2}>")
    assert compared(tmp_path, MODEL, model) == ""


NESTED = """<ir_version: 9, opset_import: ["" : 17, "one" : 1, "two" : 1]>
g (float x, float v, float[3] rows, bool c) => (float[3] y, float z)
<float w = {2}>
{
  a = Sub (x, w)
  y = Scan <num_scan_inputs = 1, body = s (float row) => (float r) {
    b = Div (row, a)
    d = If (c) <
      then_branch = t () => (float p) { p = Pow (v, b) },
      else_branch = e () => (float q) { q = Mod <fmod = 1> (b, row) }
    >
    r = Sub (d, x)
  }> (rows)
  m = one.f (a, x)
  z = two.f (m, v)
}
<domain: "one", opset_import: ["" : 17]> f <alpha: float = 0.5> (h, i) => (k) {
  j = LeakyRelu <alpha: float = @alpha> (h)
  k = Sub (j, i)
}
<domain: "two", opset_import: ["" : 17]> f (h, i) => (k) {
  j = Neg (h)
  k = Div (j, i)
}
"""


def _bodies(
    body: GraphProto | FunctionProto, around: tuple[str, ...] = ()
) -> Iterator[tuple[onnx.NodeProto, list[str]]]:
    """Each node of a graph, and of those in it, with the values that it may read."""
    names = [each if isinstance(each, str) else each.name for each in body.input]
    names += [each.name for each in body.initializer] if isinstance(body, GraphProto) else []
    visible = (*around, *names, *(name for node in body.node for name in node.output))
    for node in body.node:
        yield node, [name for name in visible if name not in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _bodies(attribute.g, visible)


def _all_nodes(model: ModelProto) -> list[tuple[onnx.NodeProto, list[str]]]:
    return [pair for body in (model.graph, *model.functions) for pair in _bodies(body)]


def _in_reverse(model: ModelProto) -> ModelProto:
    """The same with the nodes of each graph in reverse order."""
    model = deepcopy(model)
    inner = [one.g for node, _names in _all_nodes(model) for one in node.attribute if one.HasField("g")]
    for body in (model.graph, *model.functions, *inner):
        nodes = [deepcopy(node) for node in reversed(body.node)]
        del body.node[:]
        body.node.extend(nodes)
    return model


def test_each_operand_counts_in_graphs_of_any_depth_and_order() -> None:
    """Every other value that is visible there is another computation: of the graph, around it, or of a function."""
    model, count = parser.parse_model(NESTED), 0
    assert eltwise.compare(model, model).is_good
    assert eltwise.compare(model, _in_reverse(model)).is_good
    for number, (node, names) in enumerate(_all_nodes(model)):
        for operand, name in enumerate(node.input):
            for other in set(names) - {name}:
                changed = deepcopy(model)
                _all_nodes(changed)[number][0].input[operand] = other
                if other in {result for each in changed.graph.node for result in each.output} - {"a", "m"}:
                    continue  # It may be a cycle.
                for one, two in ((model, changed), (_in_reverse(model), _in_reverse(changed))):
                    assert not eltwise.compare(one, two).is_good, (node.op_type, name, other)
                count += 1
    assert count > 60


def test_defaults_of_the_attributes_of_functions_are_structure() -> None:
    """Also which of two functions of one name has them; not where a call states the same."""
    model = parser.parse_model(NESTED)
    other = parser.parse_model(NESTED.replace("alpha: float = 0.5", "alpha: float = 0.25"))
    report = eltwise.compare(model, other)
    assert "1 node of one.f with other values of attributes" in report.others[0].explanation
    for same in (deepcopy(model), deepcopy(other)):
        (call,) = (node for node, _names in _all_nodes(same) if (node.domain, node.op_type) == ("one", "f"))
        call.attribute.append(onnx.helper.make_attribute("alpha", 0.5))
        assert eltwise.compare(model, same).is_good
        assert not eltwise.compare(other, same).is_good
    exchanged = parser.parse_model(NESTED)
    for node in exchanged.graph.node:
        node.domain = {"one": "two", "two": "one"}.get(node.domain, "")
    assert not eltwise.compare(model, exchanged).is_good


OVERLOADS = """<ir_version: 10, opset_import: ["" : 17, "one" : 1]> g (float x) => (float y) { y = one.f:CALLED (x) }
<domain: "one", overload: "p", opset_import: ["" : 17]> f (x) => (y) { y = Exp (x) }
<domain: "one", overload: "q", opset_import: ["" : 17]> f (x) => (y) { y = Tanh (x) }
"""


def test_which_overload_of_a_function_is_called_is_structure() -> None:
    one, same, other = (parser.parse_model(OVERLOADS.replace("CALLED", called)) for called in "ppq")
    assert eltwise.compare(one, same).is_good
    assert "A has 1 more one.f.p; B has 1 more one.f.q" in eltwise.compare(one, other).others[0].explanation


PORTS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, float[2] v) => (float[2] y, float[2] z) { y = Sub (x, v) z = Neg (v) }
"""
OTHER_NAMES = {
    "an input": ({"x": "input"}, "input 0 is called 'x' in A and 'input' in B"),
    "an output": ({"z": "logits"}, "output 1 is called 'z' in A and 'logits' in B"),
    "exchanged inputs": ({"x": "v", "v": "x"}, "input 0 is called 'x' in A and 'v' in B"),
    "exchanged outputs": ({"y": "z", "z": "y"}, "output 0 is called 'y' in A and 'z' in B"),
}


@pytest.mark.parametrize("change", OTHER_NAMES)
def test_the_names_by_which_callers_address_a_model_are_a_difference(change: str, tmp_path: Path) -> None:
    """Who asks for an output by its name gets another one, or none."""
    names, phrase = OTHER_NAMES[change]
    other = re.sub(r"\b[xvyz]\b", lambda name: names.get(name[0], name[0]), PORTS)
    assert compared(tmp_path, PORTS, PORTS) == ""
    assert phrase in compared(tmp_path, PORTS, other)
    assert compared(tmp_path, other, PORTS)


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
        ('kernel="2, 2"', 'kernel="3, 3"', "1 node of MaxPool with other values of attributes"),
        ('type="ReLU"', 'type="Sigmoid"', "A has 1 more ReLU-1; B has 1 more openvino.Sigmoid-1"),
        ('name="', 'name="x', ""),
        (' auto_broadcast="numpy"', "", ""),
    ):
        assert old in text
        (tmp_path / "b.xml").write_text(text.replace(old, new))
        difference = nodes(tmp_path / "a.xml", tmp_path / "b.xml")
        assert (phrase in difference) if phrase else not difference


TWO = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y)
<float[2] a = {1, 2}, float[2] b = {3, 5}>
{
  p = Sub (x, a)
  q = Mul (p, b)
  s = ConstantOfShape <value = float[1] {7}> (n)
  t = ConstantOfShape <value = float[1] {8}> (n)
  u = Sub (s, t)
  v = Add (q, u)
  k = Constant <value_float = 2.0> ()
  l = Constant <value_float = 3.0> ()
  w = Sub (v, k)
  y = Mul (w, l)
}
""".replace("float[2] b = {3, 5}", "float[2] b = {3, 5}, int64[1] n = {2}")

WIRED = {
    "initializers": [("Sub (x, a)", "Sub (x, b)"), ("Mul (p, b)", "Mul (p, a)")],
    "one for both": [("Mul (p, b)", "Mul (p, a)")],
    "constants of nodes": [("Sub (v, k)", "Sub (v, l)"), ("Mul (w, l)", "Mul (w, k)")],
    "tensors in attributes": [("Sub (s, t)", "Sub (t, s)")],
}


@pytest.mark.parametrize("change", WIRED)
@pytest.mark.parametrize("names", [{}, {"a": "layer.a", "b": "layer.b", "k": "layer.k"}, {"a": "b", "b": "a"}])
def test_a_node_that_reads_another_constant_is_a_difference(change: str, names: dict[str, str], tmp_path: Path) -> None:
    """Also where both constants have new names, or exchanged ones."""
    other = TWO
    for old, new in WIRED[change]:
        other = other.replace(old, new)
    renamed = onnx.parser.parse_model(other)
    for node in renamed.graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
    for tensor in renamed.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    onnx.save(onnx.parser.parse_model(TWO), paths[0])
    onnx.save(renamed, paths[1])
    for one, two in (paths, paths[::-1]):
        report = eltwise.compare(one, two)
        assert not report.is_good
        assert names == {"a": "b", "b": "a"} or "connected otherwise" in report.others[0].explanation


def test_which_of_equal_constants_a_node_reads_is_no_difference(tmp_path: Path) -> None:
    """Exporters number constants anew, and write equal ones once."""
    one = TWO.replace("b = {3, 5}", "b = {1, 2}")
    assert compared(tmp_path, one, one.replace("Sub (x, a)", "Sub (x, b)").replace("Mul (p, b)", "Mul (p, a)")) == ""
    assert "connected otherwise" in compared(tmp_path, one, one.replace("Sub (v, k)", "Sub (k, v)"))


def test_opsets_and_the_types_of_inputs_are_structure(tmp_path: Path) -> None:
    model = '<ir_version: 8, opset_import: ["" : 11]> g (float[N,3] x) => (float[N,3] y) { y = Softmax (x) }'
    assert compared(tmp_path, model, model) == ""
    assert compared(tmp_path, model, model.replace("N", "batch")) == ""
    assert compared(tmp_path, model, model.replace(": 11]", ": 12]")) == ""
    assert "A has 1 more Softmax-11; B has 1 more Softmax-13" in compared(
        tmp_path, model, model.replace(": 11]", ": 13]")
    )
    phrase = compared(tmp_path, model, model.replace("float[", "float16["))
    assert "input 0 is float32(?,3) in A and float16(?,3) in B" in phrase
    assert "input 0 is float32(?,3) in A and float32(2,3) in B" in compared(tmp_path, model, model.replace("N", "2"))
    more = model.replace("(float[N,3] x)", "(float[N,3] x, float[2] z)")
    assert "A has 1 input, B 2" in compared(tmp_path, model, more)


def test_constants_and_parameters_of_an_ir_are_wired_too(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset13

    for name, is_swapped in (("a", False), ("b", True), ("c", False)):
        x = opset13.parameter([2], openvino.Type.f32)
        constants = [opset13.constant([1.0, 2.0], name="one"), opset13.constant([3.0, 5.0], name="two")]
        first, second = (opset13.convert(each, "f32") for each in (constants[::-1] if is_swapped else constants))
        openvino.save_model(
            openvino.Model([opset13.subtract(opset13.multiply(x, first), second)], [x]), tmp_path / f"{name}.xml"
        )
    assert "connected otherwise" in nodes(tmp_path / "a.xml", tmp_path / "b.xml")
    assert nodes(tmp_path / "a.xml", tmp_path / "c.xml") == ""
    text = (tmp_path / "c.xml").read_text()
    for old, new in (
        ('element_type="f32" shape="2"', 'element_type="f16" shape="2"'),
        ('shape="2" element_type="f32"', 'shape="2" element_type="f16"'),
    ):
        text = text.replace(old, new)
    (tmp_path / "c.xml").write_text(text)
    assert "input 0 is float32(2) in A and float16(2) in B" in nodes(tmp_path / "a.xml", tmp_path / "c.xml")


VERSIONS = [
    ("Sub (x, x)", 13, 14, ""),
    ("Sub (x, x)", 7, 22, ""),
    ("Sub (x, x)", 6, 7, "A has 1 more Sub-6; B has 1 more Sub-14"),
    ("Clip <min = 0.0> (x)", 5, 6, "A has 1 more Clip-1; B has 1 more Clip-6"),
    ("MatMul (x, x)", 8, 13, ""),
    ("Sin (x)", 21, 22, ""),
    ("Softmax (x)", 12, 13, "A has 1 more Softmax-11; B has 1 more Softmax-13"),
    ("Gelu (x)", 20, 25, ""),
]


@pytest.mark.parametrize(("node", "one", "other", "phrase"), VERSIONS)
def test_of_two_versions_of_an_operator_the_meaning_counts(
    node: str, one: int, other: int, phrase: str, tmp_path: Path
) -> None:
    """What decides is the computation, or of an operator that eltwise does not run ONNX's text."""
    models = [
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[2,2] x) => (float[2,2] y) {{ y = {node} }}'
        for opset in (one, other)
    ]
    difference = compared(tmp_path, *models)
    assert difference.startswith(phrase)
    assert bool(difference) == bool(phrase)
    report = str(eltwise.compare(tmp_path / "a.onnx", tmp_path / "b.onnx"))
    assert "metadata that differs, which does not count: opset_import" in report


def test_a_domain_that_no_node_uses_is_no_difference(tmp_path: Path) -> None:
    other = MODEL.replace('["" : 17]', '["" : 17, "ai.onnx.ml" : 3]')
    assert compared(tmp_path, MODEL, other) == ""
    assert "does not count: opset_import" in str(eltwise.compare(tmp_path / "a.onnx", tmp_path / "b.onnx"))


CALL = """<ir_version: 10, opset_import: ["" : 17, "l" : 1]> g (float[4] x) => (float[4] y) {{ y = l.f {0} (x) }}
<domain: "l", opset_import: ["" : 17]> f {1} (a) => (c) {{ c = LeakyRelu <alpha: float = @slope> (a) }}"""
SLOPES = {
    ("", "<slope>"): 0.01,  # What LeakyRelu has where it is left out.
    ("", "<slope: float = 0.01>"): 0.01,
    ("", "<slope: float = 0.02>"): 0.02,
    ("<slope = 0.01>", "<slope>"): 0.01,
    ("<slope = 0.02>", "<slope>"): 0.02,
    ("<slope = 0.02>", "<slope: float = 0.01>"): 0.02,
}


@pytest.mark.parametrize("one", SLOPES)
@pytest.mark.parametrize("other", SLOPES)
def test_an_attribute_of_a_call_counts_by_its_value_wherever_that_stands(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    report = eltwise.compare(*(parser.parse_model(CALL.format(*each)) for each in (one, other)))
    assert report.is_good == (SLOPES[one] == SLOPES[other])
    assert report.is_good or "1 node of l.f with other values of attributes" in str(report)
