"""Conversions run: on the engine and on real runtimes, for every legal position and axis of B, and on random graphs."""

from __future__ import annotations

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BY_NAME, FLOAT32, INT32, ElementType
from eltwise.passes import align_broadcast
from eltwise.passes.align_broadcast import Alignment, align
from support.conversions import (
    ALL_RUNS,
    IR10,
    IR11,
    Run,
    arrays,
    ask,
    converted,
    expected,
    feeds,
    legacy_model,
    onnx_of,
    pdpd_model,
    written,
    wrong_outputs,
)
from support.openvino_models import Ir

SOME_RUNS = ALL_RUNS[::9]
"""Enough where another operator or type is converted in the same way."""


def test_the_cases_are_every_legal_axis_up_to_rank_5() -> None:
    seen = {(len(run.a), len(run.b), run.axis) for run in ALL_RUNS}
    for rank in range(6):
        for length in range(rank + 1):
            assert {(rank, length, axis) for axis in range(rank - length + 1)} <= seen
    assert any(run.a == (3, 3, 3) and run.b == (3,) and run.axis == 0 for run in ALL_RUNS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "operator", "opset", "function", "element_type", "cases"),
    [
        ("legacy", "Sub", 6, "subtract", FLOAT32, ALL_RUNS),
        ("legacy", "Sub", 6, "subtract", INT32, SOME_RUNS),
        ("legacy", "Add", 6, "add", INT32, SOME_RUNS),
        ("legacy", "Mul", 1, "multiply", FLOAT32, SOME_RUNS),
        ("pdpd", "Subtract", 17, "subtract", FLOAT32, ALL_RUNS),
        ("pdpd", "Subtract", 7, "subtract", INT32, SOME_RUNS),
        ("pdpd", "SquaredDifference", 17, "squared_difference", FLOAT32, SOME_RUNS),
        ("pdpd", "Multiply", 7, "multiply", INT32, SOME_RUNS),
    ],
)
@pytest.mark.parametrize("sizes_are_said", [True, False])
def test_every_axis_in_the_other_format(
    rule: oracle.RuleName,
    operator: str,
    opset: int,
    function: str,
    element_type: ElementType,
    cases: list[Run],
    sizes_are_said: bool,
    seed: int,
) -> None:
    cases = cases if sizes_are_said else [run for run in cases if run.axis is not None]
    operands = arrays(cases, element_type, seed)
    right, given = expected(function, rule, cases, operands), feeds(operands)
    if rule == "legacy":
        before, target = eltwise.load(legacy_model(cases, operator, opset, element_type, sizes_are_said)), IR11
    else:
        before = eltwise.load(pdpd_model(cases, operator, element_type, sizes_are_said).xml())
        target = onnx_of(opset)
    after, report = converted(before, target)
    assert bool(report.assumptions) != sizes_are_said
    if not sizes_are_said:
        assert {size for port in after.inputs for size in str(port.type.shape)} <= {"?", ","}
    assert wrong_outputs(before.run(given), right) == []
    assert wrong_outputs(after.run(given), right) == []
    runtime = "openvino" if rule == "legacy" else "onnxruntime"
    assert wrong_outputs(ask(runtime, after.graph, given), right) == []


@pytest.mark.parametrize("type_name", ["int8", "uint64", "float16", "bfloat16"])
def test_there_and_back_and_there_again(type_name: str, seed: int) -> None:
    element_type, cases = BY_NAME[type_name], SOME_RUNS
    operands = arrays(cases, element_type, seed)
    right = expected("squared_difference", "pdpd", cases, operands)
    first, _report = converted(eltwise.load(pdpd_model(cases, "SquaredDifference", element_type).xml()), onnx_of(17))
    second, _report = converted(first, IR11)
    third, _report = converted(second, onnx_of(17))
    for found in (first, second, third):
        assert wrong_outputs(found.run(feeds(operands)), right) == []
    assert third.graph == first.graph


SELECTED = [
    (condition, other)
    for other in [run for run in ALL_RUNS if len(run.a) == 4 and run.axis is not None][::3]
    for condition in ALL_RUNS
    if (condition.a, condition.axis) == (other.a, other.axis)
][::7]
"""Two operands of different shapes that start at one axis of a third."""


def test_operands_that_broadcast_onto_the_second_one(seed: int) -> None:
    """Select's condition and last operand lie in the second one; each is aligned by itself, in a repair, too."""
    ir = Ir()
    generator, given, right = np.random.default_rng(seed), dict[str, np.ndarray](), dict[str, np.ndarray]()
    for index, (condition, run) in enumerate(SELECTED):
        shapes = {"c": condition.b, "t": run.a, "e": run.b}
        values = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        operands = [np.asarray(values["c"] > 0), values["t"], values["e"]]
        assert run.axis is not None
        right[f"z{index}"] = oracle.evaluate("where", *operands, rule="pdpd", axis=run.axis)
        names = [f"{name}{index}" for name in shapes]
        given |= dict(zip(names, operands, strict=True))
        for name, shape, type_name in zip(names, shapes.values(), ("boolean", "f32", "f32"), strict=True):
            ir.parameter(name, ",".join(map(str, shape)), type_name)
        axis = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": run.axis}
        ir.layer("Select", f"n{index}", names, names=f"z{index}", **axis)  # type: ignore[arg-type]
        ir.result(f"n{index}", f"r{index}")
    before = eltwise.load(ir.xml())
    after, _report = converted(before, onnx_of(17))
    aligned, _report = align_broadcast.align_broadcast(before.graph, lambda _node: True)
    assert {node.bound.rule.name for node in aligned.nodes if node.schema.name == "Select"} == {"numpy"}
    for outputs in (before.run(given), after.run(given), eltwise.load(*written(aligned)).run(given)):
        assert wrong_outputs(outputs, right) == []


@pytest.mark.parametrize(("inner", "given_as", "casts"), [("float16", "float32", 3), ("int64", "int64", 1)])
def test_ir_10_casts_at_its_ports_become_nodes(inner: str, given_as: str, casts: int, seed: int) -> None:
    cases = SOME_RUNS
    ir = pdpd_model(cases, "Subtract", BY_NAME[inner])
    ir.version = "10"
    before = eltwise.load(ir.xml())
    assert {str(port.type.element_type) for port in before.inputs} == {given_as}
    given = feeds(arrays(cases, BY_NAME[given_as], seed))
    right = before.run(given)
    for target in (onnx_of(17), IR11):
        after, report = converted(before, target)
        assert wrong_outputs(after.run(given), right) == []
        assert sum(f"{inner} inside" in str(change) for change in report.changes) == casts * len(cases)
    if inner == "int64":  # onnxruntime takes a cast to float16 that a cast back follows for nothing.
        assert wrong_outputs(ask("onnxruntime", converted(before, onnx_of(17))[0].graph, given), right) == []


def test_a_model_whose_types_ir_10_has_goes_there(seed: int) -> None:
    cases = ALL_RUNS[::7]
    before = eltwise.load(legacy_model(cases, "Sub", 6, INT32))
    operands = arrays(cases, INT32, seed)
    after, _report = converted(before, IR10)
    assert wrong_outputs(after.run(feeds(operands)), expected("subtract", "legacy", cases, operands)) == []


# The proof that the comparison can fail: adapters that are right but for one thing.


def ignoring_axis(rule: object, *rest: object) -> Alignment:
    return Alignment(attributes=align(rule, *rest).attributes)  # type: ignore[arg-type]


def aligning_at_the_start(rule: object, a: object, b: object, *rest: object) -> Alignment:
    right = align(rule, a, b, *rest)  # type: ignore[arg-type]
    return Alignment(right.attributes, a.rank - b.rank if b.rank else 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [ignoring_axis, aligning_at_the_start])
def test_a_wrong_adapter_is_found(wrong: object, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(align_broadcast, "align", wrong)
    cases = [run for run in ALL_RUNS if run.a == (3, 3, 3) and len(run.b) == 1]
    operands = arrays(cases, FLOAT32, seed)
    for rule, before, target in (
        ("legacy", eltwise.load(legacy_model(cases, "Sub", 6, FLOAT32)), IR11),
        ("pdpd", eltwise.load(pdpd_model(cases, "Subtract", FLOAT32).xml()), onnx_of(17)),
    ):
        after, _report = converted(before, target)
        right = expected("subtract", rule, cases, operands)  # type: ignore[arg-type]
        found = {cases[int(name[1:])].axis for name in wrong_outputs(after.run(feeds(operands)), right)}
        assert found == ({0, 1} if wrong is ignoring_axis else {1, 2, -1, None})


def test_the_comparison_of_outputs_can_fail() -> None:
    zero = {"z": np.array([0.0], np.float32)}
    assert wrong_outputs({"z": np.array([-0.0], np.float32)}, zero) == ["z"]
    assert wrong_outputs({"z": np.array([0.0], np.float64)}, zero) == ["z"]
    assert oracle.same_bits(np.array([0.0], np.float32), zero["z"])
