"""Two models in one runtime: where their nodes differ the model is named, and never the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.errors import UnsupportedError
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Outcome, Runner
from support.local_hosts import use_local_hosts
from support.traced_models import parsed

UNARY = ("Identity", "Neg", "Abs", "Relu", "Exp", "Unsqueeze")
STEPS = (*UNARY, "Rounded", "One", "Two")
X = {"x": np.float32([-1.387, 0.31, 2.0003, -0.5001])}


@pytest.fixture(autouse=True, scope="module")
def _local() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_local_hosts(patch)
        yield


def chain(steps: Sequence[str], prefix: str = "v") -> onnx.ModelProto:
    """Steps one after another: operators, rounding to float16, and the sum with a copy of one of two constants."""
    nodes, value = list[NodeProto](), "x"
    for number, step in enumerate(steps):
        result = "z" if number == len(steps) - 1 else f"{prefix}{number}"
        made = {
            "Unsqueeze": [helper.make_node("Unsqueeze", [value, "axes"], [result], f"step_{number}")],
            "Rounded": [
                helper.make_node("Cast", [value], [f"{result} half"], f"half_{number}", to=TensorProto.FLOAT16),
                helper.make_node("Cast", [f"{result} half"], [result], f"step_{number}", to=TensorProto.FLOAT),
            ],
            "Minus": [helper.make_node("Sub", [value, "One"], [result], f"step_{number}")],
            "Rest": [helper.make_node("Sub", ["One", value], [result], f"step_{number}")],
            **{
                name: [
                    helper.make_node("Identity", [name], [f"{result} copy"], f"copy_{number}"),
                    helper.make_node("Add", [value, f"{result} copy"], [result], f"step_{number}"),
                ]
                for name in ("One", "Two")
            },
        }
        nodes += made.get(step, [helper.make_node(step, [value], [result], f"step_{number}")])
        value = result
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
    ends = [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    arrays = {"axes": np.int64([0]), "One": np.float32([1, 2, 3, 4]), "Two": np.float32([1, 2, 3, 5])}
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "chain", ports, ends, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def trace(model: onnx.ModelProto | Path, other: onnx.ModelProto | Path, tolerance: str | None = None) -> TraceReport:
    return eltwise.trace(
        model, other, runtime="onnxruntime", against="onnxruntime", inputs=X, tolerance=tolerance, switches=False
    )


@pytest.mark.usefixtures("no_joint_faults")
@settings(deadline=None, max_examples=150)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    others=st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    common=st.lists(st.sampled_from(STEPS), max_size=2),
    prefix=st.sampled_from(("v", "w")),
    tolerance=st.sampled_from((None, "ulp<=8")),
)
def test_no_runtime_is_blamed_for_what_the_models_have(
    steps: list[str], others: list[str], common: list[str], prefix: str, tolerance: str | None
) -> None:
    model, other = chain([*common, *steps]), chain([*common, *others], prefix)
    report = trace(model, other, tolerance)
    blames = {node.blame for node in report.nodes}
    assert blames <= {None, "changed", "inherited", "not_isolated"}, str(report)
    equal = [node for node in report.nodes if int(node.name.rpartition("_")[2]) < len(common)]
    assert all(node.is_within for node in equal), str(report)
    assert not report.is_reproducible
    assert "--reproduce" not in str(report)
    names = [f"{node.op_type} {node.name!r}" for node in other.graph.node]
    for node in report.nodes:
        if "has several nodes in its place" not in node.message and node.message.endswith("in its place"):
            assert any(name in node.message for name in (*names, "the value", "the constant")), str(report)
    if steps == others:
        assert report.is_good, str(report)
        assert all(node.is_within for node in report.nodes), str(report)


PAIRS = {
    "Identity, Neg": "the other model has Neg 'step_0' in its place",
    "Identity, Relu": "the other model has Relu 'step_0' in its place",
    "Identity, Unsqueeze": "the other model has Unsqueeze 'step_0' in its place",
    "Relu, Identity": "the other model has the value 'x' in its place",
    "Neg Identity, Neg Relu": "the other model has Relu 'step_1' in its place",
    "Neg Relu, Neg Identity": "the other model has the value 'v0' in its place",
    "Minus, Rest": "the other model has its operands exchanged",
    "Neg, Abs": "the other model has Abs 'step_0' in its place",
    "One, Two": "the constant B, 'One', is not A, 'Two' of the other model: they differ by 1 at most",
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_node_that_the_other_model_has_not_is_changed(pair: str, tmp_path: Path) -> None:
    model, other = (chain(steps.split()) for steps in pair.split(", "))
    report = trace(model, other)
    node = report.first_node
    assert node is not None, str(report)
    assert (node.blame, node.message) == ("changed", PAIRS[pair])
    assert not any("not in the other model" in note for note in report.notes), str(report)
    with pytest.raises(UnsupportedError, match="no node is wrong as a model of its own"):
        report.reproduce(tmp_path / "case")


def test_no_option_of_a_runtime_is_tried_where_only_the_models_differ() -> None:
    report = eltwise.trace(chain(["Neg"]), chain(["Abs"]), runtime="onnxruntime", against="onnxruntime", inputs=X)
    assert (report.verdict, report.switches) == ("disagree", None), str(report)


def test_an_output_that_copies_another_constant_is_changed() -> None:
    models = [
        parsed(f"g (float[4] x) => (float[4] z) <float[4] k = {{1, 2, 3, {last}}}> {{ z = Identity(k) }}")
        for last in (4, 5)
    ]
    report = trace(models[0], models[1])
    assert report.first_node is not None
    assert report.first_node.blame == "changed"
    assert report.first_node.message.startswith("the constant B, 'k', is not A, 'k' of the other model")


@pytest.mark.parametrize("pair", ["Exp, Rounded Exp", "Rounded Exp, Exp"])
def test_rounding_that_one_model_has_is_no_fault_of_the_next_node(pair: str) -> None:
    model, other = (chain(steps.split()) for steps in pair.split(", "))
    report = trace(model, other, "ulp<=8")
    assert (report.verdict, report.first_node) == ("disagree", None), str(report)
    assert "no node is shown to be wrong alone; first beyond the tolerance" in str(report)


NESTED = """
<ir_version: 9, opset_import: ["" : 17, "p" : 1]>
g (float[4] x) => (float[4] z)
<float[4] k = {1, 2, 3, 4}, float[2] rows = {1, 2}>
{
  a = Neg (x)
  m, n = Scan <num_scan_inputs = 1, body = s (float[4] t, float row) => (float[4] u, float[4] r) {
    b = Mul (t, k)
    c = Constant <value = float {0.25}> ()
    u = Mul (b, c)
    r = p.f (u)
  }> (a, rows)
  e = p.h (m)
  j = ReduceSum <keepdims = 0> (n, axes)
  z = Add (e, j)
}
<domain: "p", opset_import: ["" : 17, "p" : 1]> f (i) => (o) { o = Softplus (i) }
<domain: "p", opset_import: ["" : 17, "p" : 1]> h <slope: float = 0.5> (i) => (o) {
  q = p.f (i)
  v = Neg (q)
  o = LeakyRelu <alpha: float = @slope> (v)
}
""".replace("rows = {1, 2}>", "rows = {1, 2}, int64[1] axes = {0}>")

INSIDE = {
    "{1, 2, 3, 4}": ("{1, 2, 3, 5}", "the constant B, 'k', is not A, 'k' of the other model: they differ by 1 at most"),
    "float {0.25}": ("float {0.125}", "the other model has another attribute 'body'"),
    "b = Mul (t, k)": ("b = Sub (t, k)", "the other model has another attribute 'body'"),
    "Softplus (i)": ("Exp (i)", "the other model has another function 'p.f'"),
    "slope: float = 0.5": ("slope: float = -2", "the other model has another function 'p.h'"),
}


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("is_external", [False, True])
def test_what_another_model_has_in_bodies_and_functions_is_changed(
    place: str, is_external: bool, tmp_path: Path
) -> None:
    """Also in what a body reads from around it, and where constants lie in other files of one name."""
    text, message = INSIDE[place]
    sources = list[Path]()
    for name, model in (("one", NESTED), ("other", NESTED.replace(place, text))):
        (tmp_path / name).mkdir()
        sources.append(tmp_path / name / "m.onnx")
        external = {"location": "w", "size_threshold": 0, "convert_attribute": True} if is_external else {}
        onnx.save(onnx.parser.parse_model(model), sources[-1], save_as_external_data=is_external, **external)
    report = trace(*sources)
    assert report.verdict == "disagree"
    first, *others = (node for node in report.nodes if node.is_beyond)
    assert (first.blame, first.message) == ("changed", message), str(report)
    assert {node.blame for node in others} <= {"changed", "inherited"}, str(report)


UNSEEN = """
<ir_version: 9, opset_import: ["" : 17, "p" : 1]>
g (float[4] x, bool is_first) => (float[4] z)
{
  a = Abs (x)
  b = LeakyRelu <alpha = 0.5> (a)
  z = If (is_first) <
    then_branch = t () => (first) { first = Neg (b) },
    else_branch = e () => (second) { second = p.f (b) }
  >
}
<domain: "p", opset_import: ["" : 17]> f (i) => (o) { o = Exp (i) }
"""


@pytest.mark.parametrize(
    ("text", "other", "change"),
    [
        ("alpha = 0.5", "alpha = 0.25", "'b': the other model has another attribute 'alpha'"),
        ("p.f (b)", "Exp (b)", "'z': the other model has another attribute 'else_branch'"),
        ("o = Exp (i)", "o = Abs (i)", "'z': the other model has another function 'p.f'"),
        ("b)", "b)", None),
    ],
)
def test_what_changes_no_output_on_these_inputs_has_a_line(text: str, other: str, change: str | None) -> None:
    """As a branch that these inputs do not take: whether both models mean the same is not shown by their outputs."""
    models = (onnx.parser.parse_model(one) for one in (UNSEEN, UNSEEN.replace(text, other)))
    inputs = X | {"is_first": np.array(True)}
    report = eltwise.trace(*models, runtime="onnxruntime", against="onnxruntime", inputs=inputs)
    assert report.is_good, str(report)
    lines = [note for note in report.notes if "the other model has" in note]
    expected = [] if change is None else [f"{change}, which takes no output beyond the tolerance on these inputs"]
    assert lines == expected, str(report)


DEFAULTS = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[1,2,7,7] x, float[3,2,3,3] w) => (float[y1,y2,y3,y4] z)
{
  a = LeakyRelu (x)
  b = Conv (a, w)
  z = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
}
"""
WRITTEN = {
    "LeakyRelu (x)": "LeakyRelu <alpha = 0.01> (x)",
    "Conv (a, w)": """Conv <auto_pad = "NOTSET", dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]>
        (a, w)""",
    "strides = [2, 2]>": "strides = [2, 2], storage_order = 0, dilations = [1, 1], pads = [0, 0, 0, 0], ceil_mode = 0>",
}


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_runtime_is_to_blame_where_the_other_model_writes_defaults_out(
    text: str, swapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every optimizer does: a wrong node has another attribute only where that has another meaning."""
    models = [onnx.parser.parse_model(one) for one in (DEFAULTS, DEFAULTS.replace(text, WRITTEN[text]))]
    number = [*WRITTEN].index(text)
    run = Runner.run

    def planted(runner: Runner, numbers: Iterable[int], *arguments: object, **options: object) -> Outcome:
        outcome = run(runner, numbers, *arguments, **options)  # type: ignore[arg-type]
        name = "abz"[number]
        is_wrong = runner.name == "onnxruntime:optimization=basic" and name in outcome.values
        return replace(outcome, values=outcome.values | {name: outcome.values[name] + 1}) if is_wrong else outcome

    monkeypatch.setattr(Runner, "run", planted)
    pair = models[::-1] if swapped else models
    report = eltwise.trace(*pair, runtime="onnxruntime:optimization=basic", against="onnxruntime", switches=False)
    blamed = [(node.blame, node.op_type) for node in report.nodes if node.is_wrong_itself]
    assert blamed == [("own", ("LeakyRelu", "Conv", "MaxPool")[number])], str(report)
    assert not [note for note in report.notes if "another" in note], str(report)
