"""The verdict: exit code 0 if and only if the outputs of the whole model were compared and are within the tolerance."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import eltwise
from eltwise import record
from eltwise.errors import UnsupportedError
from eltwise.runtimes.specification import arguments, split
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Outcome, Runner
from support import planted_runtimes
from support.model_pairs import REWRITES, SHAPE, generate, plant
from support.traced_models import CHAIN, PRODUCT, named, parsed

pytestmark = pytest.mark.usefixtures("planted", "local_hosts")

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}
"""Wider than the rounding of these models, and narrower than the effect of a fault."""

FAULTS: dict[str, set[str] | None] = {
    "Planted": set(),
    "Wrong": {"Relu"},
    "WrongFused": {"Mul", "Add"},
    "WrongBesideAnother": {"Neg"},
    "WrongAsAWhole": None,
    "WrongUnlessBasic": {"Relu"},
    "WrongUnlessBasic:optimization=basic": set(),
    "RefusingAsAWhole": set(),
    "RefusingSingleNodes": set(),
}
"""The runtimes with the operators that they compute wrong: None is whichever comes last."""

BLAMES = ("own", "in_graph", "fused", "changed")


def outputs_of(runtime: str, model: ModelProto, x: np.ndarray) -> dict[str, np.ndarray] | None:
    """What a runtime gives for the whole model, without a trace; None if it refuses it."""
    name, settings, _version, _python = split(runtime)
    try:
        loaded = vars(planted_runtimes)[name](**arguments(settings)).load(model.SerializeToString())
    except NotImplementedError:
        return None
    arrays = loaded.arrays(loaded.bind([x])())
    return dict(zip((value.name for value in model.graph.output), map(np.array, arrays), strict=True))


def agree(one: dict[str, np.ndarray] | None, other: dict[str, np.ndarray] | None) -> bool:
    """Whether two runtimes ran a model and have the same outputs within the tolerance."""
    return (
        one is not None
        and other is not None
        and all(np.allclose(one[name], other[name], **TOLERANCE, equal_nan=True) for name in one)
    )


def trace(*models: ModelProto, runtime: str, against: str, x: np.ndarray, segment: int = 1 << 26) -> TraceReport:
    tolerance = ", ".join(f"{name}={value}" for name, value in TOLERANCE.items())
    options = {"runtime": runtime, "against": against, "tolerance": tolerance, "segment": segment}
    return eltwise.trace(*models, inputs={"x": x}, **options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("no_joint_faults")
@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 1 << 30),
    fault=st.sampled_from(list(FAULTS)),
    against=st.sampled_from(("Planted", "float64", "another model")),
    is_changed=st.booleans(),
    rewrites=st.lists(st.integers(0, len(REWRITES) - 1), unique=True, max_size=3),
    is_swapped=st.booleans(),
    segment=st.sampled_from((1, 300, 1 << 26)),
)
def test_a_trace_is_good_if_and_only_if_the_whole_was_run_and_agrees(
    seed: int, fault: str, against: str, is_changed: bool, rewrites: list[int], is_swapped: bool, segment: int
) -> None:
    """Whatever the fault is, of a node, of nodes that are fused, of a level, or of the whole graph, on either side."""
    rng = random.Random(seed)  # noqa: S311 - models, not secrets
    first = second = generate(rng, rng.randrange(2, 12))
    if against == "another model":
        second = plant(first, rng)[0] if is_changed else first
        for number in rewrites:
            second = REWRITES[number](second, rng)
    x = np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)
    sides = [(fault, first), ("float64" if against == "float64" else "Planted", second)]
    (runtime, tested), (reference, other) = reversed(sides) if is_swapped and against != "float64" else sides
    models = [tested, other] if against == "another model" else [tested]
    report = trace(*models, runtime=runtime, against=reference, x=x, segment=segment)
    right = "Planted" if reference == "float64" else reference
    pair = outputs_of(runtime, tested, x), outputs_of(right, other, x)
    assert report.is_good == agree(*pair), str(report)
    if None not in pair:
        assert report.verdict == ("agree" if agree(*pair) else "disagree"), str(report)
    wrong = FAULTS[fault]
    if against != "another model" and wrong is not None:
        assert {node.op_type for node in report.nodes if node.blame in BLAMES} <= wrong, str(report)


@pytest.mark.parametrize("against", ["Planted", "float64", "exact", "another model"])
@pytest.mark.parametrize("segment", [1, 1 << 26])
def test_nodes_that_are_wrong_only_together_are_found_whatever_the_reference(against: str, segment: int) -> None:
    model = named(parsed(PRODUCT))
    others = [model] if against == "another model" else []
    name = "Planted" if others else against
    report = eltwise.trace(model, *others, runtime="WrongFused", against=name, segment=segment)
    assert (report.verdict, report.first_name) == ("disagree", "add_2")
    assert report.nodes[2].message == "wrong together, right one by one: mul_1, add_2"
    assert report.blamed is not None


@pytest.mark.parametrize("against", ["Planted", "float64", "WrongFused"])
@pytest.mark.parametrize("segment", [1, 400, 1 << 26])
@pytest.mark.parametrize("places", [2, 5])
def test_nodes_that_are_wrong_together_in_several_places_are_found(against: str, segment: int, places: int) -> None:
    """No part of the values makes the outputs right when it is given out, as long as other places are wrong."""
    nodes = [f"a{n} = Tanh(v{n}) p{n} = Mul(a{n}, y) v{n + 1} = Add(p{n}, v{n})" for n in range(places)]
    text = f"g (float[4, 5] v0, float[4, 5] y) => (float[4, 5] v{places}) {{ {' '.join(nodes)} }}"
    report = eltwise.trace(named(parsed(text)), runtime="WrongFused", against=against, segment=segment)
    node = report.first_node
    assert report.verdict == "disagree"
    assert node is not None
    assert (node.blame, node.op_type) == ("fused", "Add")
    assert node.message.startswith("wrong together, right one by one: mul_")


@pytest.mark.parametrize("fault", ["WrongFused", "WrongAsAWhole"])
def test_a_runtime_is_compared_with_its_own_parts(fault: str) -> None:
    report = eltwise.trace(named(parsed(PRODUCT)), runtime=fault, against=fault)
    assert report.verdict == "disagree"
    assert report.outputs[0].message == "the whole model gives other results than its parts"
    assert report.first_node is not None
    assert report.first_node.blame == "fused"


@pytest.mark.parametrize("blame", ["own", "in_graph", "fused"])
def test_a_difference_without_a_size_is_given_none(blame: str) -> None:
    report = eltwise.trace(named(parsed(PRODUCT)), runtime="WrongFused", against="WrongFused", switches=False)
    nodes = [replace(node, out=None, alone=None, blame=blame) for node in report.nodes]
    text = str(replace(report, nodes=tuple(nodes)))
    assert "first: " in text
    assert "cause: " in text
    assert "by -" not in text


@pytest.mark.parametrize("against", ["onnxruntime", "float64", "exact"])
def test_an_output_of_another_shape_than_that_of_the_parts_is_said_to_be(against: str) -> None:
    report = eltwise.trace(named(parsed(PRODUCT)), runtime="FlatAsAWhole", against=against, switches=False)
    message = "the whole model gives other results than its parts; the shape is [20] instead of [4, 5]"
    assert [output.message for output in report.outputs] == [message]


@pytest.mark.parametrize("segment", [1, 1 << 26])
@pytest.mark.parametrize("fault", ["WrongFused", "WrongAsAWhole"])
def test_two_models_agree_that_a_runtime_computes_alike(fault: str, segment: int) -> None:
    """What a runtime makes of both alike, as before and after a conversion, is no difference of the models."""
    model = named(parsed(PRODUCT))
    report = eltwise.trace(model, model, runtime=fault, against=fault, segment=segment)
    assert report.is_good, str(report)
    assert report.first_node is None
    assert any("the whole model gives other results than its parts" in note for note in report.notes)
    changed = named(parsed(PRODUCT.replace("Add", "Max")))
    for models in ((model, changed), (changed, model)):
        assert eltwise.trace(*models, runtime=fault, against=fault, segment=segment).verdict == "disagree"


def test_a_reference_that_is_wrong_only_as_a_whole_is_named() -> None:
    report = eltwise.trace(named(parsed(PRODUCT)), runtime="Planted", against="WrongFused")
    assert (report.verdict, report.first_name) == ("disagree", None)
    assert "WrongFused: the whole model gives other results than its parts; wrong together, right one by one: " in (
        str(report)
    )


@pytest.mark.parametrize(
    ("fault", "message"),
    [("HangingAsAWhole", "hung: no answer within 2 seconds"), ("RefusingAsAWhole", "refused: ")],
)
@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize("is_pair", [False, True])
def test_a_model_that_does_not_run_as_a_whole_is_not_good(
    fault: str, message: str, is_swapped: bool, is_pair: bool
) -> None:
    model = named(parsed(CHAIN))
    runtime, against = ("onnxruntime", fault) if is_swapped else (fault, "onnxruntime")
    report = eltwise.trace(model, *[model] * is_pair, runtime=runtime, against=against, limit=2)
    assert {node.status for node in report.nodes} == {"equal"}
    assert (report.verdict, report.is_good) == ("not_established", False)
    assert f"not established: output z: {fault}: {message}" in str(report)
    with pytest.raises(AssertionError, match="not established"):
        report.assert_within()


@pytest.mark.parametrize("against", ["float64", "onnxruntime", "exact"])
@pytest.mark.parametrize(("idle", "is_refused"), [("u = Exp(x)", False), ("u = local.Unknown(x)", True)])
def test_a_file_is_refused_also_for_nodes_that_no_output_depends_on(idle: str, is_refused: bool, against: str) -> None:
    model = parsed(f"g (float[4] x) => (float[4] z) {{ z = Neg(x) {idle} }}")
    report = eltwise.trace(model, runtime="onnxruntime", against=against, switches=False)
    assert report.verdict == ("not_established" if is_refused else "agree"), str(report)
    assert [output.status for output in report.outputs] == ["failed" if is_refused else "equal"]
    with pytest.raises(UnsupportedError, match="does not run the model") if is_refused else nullcontext():
        assert list(record(model, runtime="onnxruntime").values) == ["z"]


def test_outputs_that_only_one_model_has_are_not_established() -> None:
    less = named(parsed(CHAIN))
    more = onnx.ModelProto.FromString(less.SerializeToString())
    more.graph.output.add(name="c")
    for pair in ((less, more), (more, less)):
        report = eltwise.trace(*pair, runtime="onnxruntime", against="onnxruntime")
        assert report.verdict == "not_established"
        assert [output.status for output in report.outputs] == ["equal", "not_compared"]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_value_that_leaves_the_range_of_the_narrower_type_is_beyond_the_tolerance(is_swapped: bool) -> None:
    text = "g ({0}[4] x) => ({0}[4] z) {{ a = Mul(x, x) z = Relu(a) }}"
    pair = [named(parsed(text.format(kind))) for kind in ("float16", "float")]
    x = np.array([1, 2, 300, 400], np.float16)
    if is_swapped:
        pair, x = pair[::-1], x.astype(np.float32)
    report = eltwise.trace(*pair, runtime="onnxruntime", against="onnxruntime", inputs={"x": x})
    assert report.verdict == "disagree"
    single = eltwise.trace(named(parsed(text.format("float16"))), runtime="onnxruntime", against="float64",
                           inputs={"x": x.astype(np.float16)})  # fmt: skip
    assert (single.verdict, single.first_name) == ("disagree", "mul_0")
    assert single.first_node is not None
    assert (single.first_node.cause, single.right) == ("overflow", None)
    assert "2 of 4 results leave the range of float16 (65504)" in str(single)


def test_the_command_says_what_was_not_established(tmp_path: Path, cli: object) -> None:
    text = "g (float[4] x) => (float[4] z) { r = RandomNormalLike(x) z = Add(x, r) }"
    onnx.save(named(parsed(text)), tmp_path / "model.onnx")
    options = ["--runtime", "onnxruntime", "--against", "onnxruntime"]
    code, out, _err = cli("trace", tmp_path / "model.onnx", *options)
    assert code == 3
    assert "not established: output z: it depends on random values: RandomNormalLike" in out


@pytest.mark.parametrize("against", ["Planted", "float64", "exact"])
@pytest.mark.parametrize("segment", [1, 1 << 26])
def test_a_model_whose_nodes_are_refused_alone_is_compared_as_a_whole(against: str, segment: int) -> None:
    text = "g (float[4, 5] x, float[4, 5] y) => (float[4, 5] z) { a = Tanh(x) b = Mul(a, y) z = Add(b, x) }"
    report = eltwise.trace(named(parsed(text)), runtime="RefusingSingleNodes", against=against, segment=segment)
    assert report.is_good, str(report)
    assert {node.status for node in report.nodes} == {"failed"} if segment == 1 else {"equal", "within_tolerance"}


@pytest.mark.parametrize("against", ["Planted", "float64", "exact"])
def test_a_model_is_not_said_to_differ_from_parts_that_were_not_run(against: str) -> None:
    report = eltwise.trace(
        named(parsed(CHAIN)), runtime="RefusingSingleNodesAndWrong", against=against, segment=1, switches=False
    )
    assert (report.verdict, report.first_node) == ("disagree", None)
    assert report.outputs[0].beyond
    assert "than its parts" not in str(report)


def test_an_output_behind_what_float64_does_not_compute_is_not_established(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference goes on with the tested result there, so that what follows has been compared with itself."""
    run = Runner.run

    def refusing(runner: Runner, numbers: Iterable[int], *arguments: object, **options: object) -> Outcome:
        chosen = list(numbers)
        if runner.name == "float64" and any(runner.model.nodes[one].schema.name == "Exp" for one in chosen):
            return Outcome(message="refused")
        return run(runner, chosen, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "run", refusing)
    report = eltwise.trace(named(parsed(CHAIN)), runtime="Planted", against="float64")
    assert report.verdict == "not_established", str(report)
    assert "not established: output z: float64: it does not compute Exp 'exp_3'" in str(report)


def test_a_node_that_is_refused_alone_does_not_refuse_a_model_that_runs() -> None:
    """Also where no output is compared, as of random values."""
    text = "g (float[4, 5] x) => (float[4, 5] z) { a = Tanh(x) r = RandomNormalLike(a) z = Add(a, r) }"
    report = eltwise.trace(named(parsed(text)), runtime="RefusingSingleNodes", against="float64", segment=1)
    assert {output.status for output in report.outputs} == {"not_compared"}
    assert (report.verdict, report.is_refused) == ("not_established", False), str(report)
