"""Every adapter is right: both sides are run, on the engine and on real runtimes, for every legal run and axis."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest

import eltwise
from conversions import (
    ALL_RUNS,
    IR10,
    IR11,
    arrays,
    ask_onnxruntime,
    ask_openvino,
    converted,
    expected,
    feeds,
    legacy_model,
    onnx_of,
    pdpd_model,
    written,
    wrong_outputs,
)
from eltwise import oracle
from eltwise.core.dtypes import BY_NAME, FLOAT32, INT32, ElementType
from eltwise.ops import registry
from eltwise.passes import elementwise
from eltwise.passes.alignment import Alignment, align

LEGACY = [schema for schema in registry.ELEMENTWISE if schema.broadcasting == "legacy"]
OPENVINO = [schema for schema in registry.ELEMENTWISE if schema.domain == "openvino"]
CHOSEN = [FLOAT32, INT32]


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_the_cases_are_every_legal_axis_up_to_rank_5() -> None:
    seen = {(len(run.a), len(run.b), run.axis) for run in ALL_RUNS}
    for rank in range(6):
        for length in range(rank + 1):
            assert {(rank, length, axis) for axis in range(rank - length + 1)} <= seen
    assert any(run.a == (3, 3, 3) and run.b == (3,) and run.axis == 0 for run in ALL_RUNS)


@pytest.mark.parametrize("schema", LEGACY, ids=str)
def test_legacy_onnx_as_ir(schema: registry.ElementwiseSchema, process: ProcessPoolExecutor, seed: int) -> None:
    for element_type in [kind for kind in CHOSEN if kind in schema.types]:
        operands = arrays(ALL_RUNS, element_type, seed)
        right = expected(schema.function, "legacy", ALL_RUNS, operands)
        before = eltwise.load(legacy_model(ALL_RUNS, schema.name, schema.version, element_type))
        after, report = converted(before, IR11)
        assert len(report.changes) == len(ALL_RUNS)
        assert wrong_outputs(before.run(feeds(operands)), right) == []
        assert wrong_outputs(after.run(feeds(operands)), right) == []
        if find_spec("openvino") is not None:
            theirs = process.submit(ask_openvino, *written(after.graph), feeds(operands)).result()
            assert wrong_outputs(theirs, right) == []


@pytest.mark.parametrize(("opset", "element_type"), [(7, INT32), (17, FLOAT32)])
@pytest.mark.parametrize("schema", OPENVINO, ids=str)
def test_pdpd_as_onnx(
    schema: registry.ElementwiseSchema, opset: int, element_type: ElementType, process: ProcessPoolExecutor, seed: int
) -> None:
    operands = arrays(ALL_RUNS, element_type, seed)
    right = expected(schema.function, "pdpd", ALL_RUNS, operands)
    ir = pdpd_model(ALL_RUNS, schema.name, element_type)
    before = eltwise.load(ir.xml())
    after, _report = converted(before, onnx_of(opset))
    assert wrong_outputs(before.run(feeds(operands)), right) == []
    assert wrong_outputs(after.run(feeds(operands)), right) == []
    if find_spec("onnxruntime") is not None:
        theirs = process.submit(ask_onnxruntime, *written(after.graph), feeds(operands)).result()
        assert wrong_outputs(theirs, right) == []


def test_only_ranks_are_needed(process: ProcessPoolExecutor, seed: int) -> None:
    cases = [run for run in ALL_RUNS if run.axis is not None]
    operands = arrays(cases, INT32, seed)
    old = eltwise.load(legacy_model(cases, "Sub", 6, INT32, sizes_are_said=False))
    onto = eltwise.load(pdpd_model(cases, "Subtract", INT32, sizes_are_said=False).xml())
    for before, rule, target, ask in (
        (old, "legacy", IR11, ask_openvino),
        (onto, "pdpd", onnx_of(17), ask_onnxruntime),
    ):
        right = expected("subtract", rule, cases, operands)
        after, report = converted(before, target)
        assert report.assumptions
        assert {size for port in after.inputs for size in str(port.type.shape)} <= {"?", ","}
        assert wrong_outputs(after.run(feeds(operands)), right) == []
        if find_spec("openvino") is not None and find_spec("onnxruntime") is not None:
            theirs = process.submit(ask, *written(after.graph), feeds(operands)).result()
            assert wrong_outputs(theirs, right) == []


@pytest.mark.parametrize("schema", OPENVINO, ids=str)
@pytest.mark.parametrize("type_name", ["int8", "uint64", "float16", "bfloat16"])
def test_every_kind_of_type_there_and_back(schema: registry.ElementwiseSchema, type_name: str, seed: int) -> None:
    element_type, cases = BY_NAME[type_name], ALL_RUNS[::5]
    operands = arrays(cases, element_type, seed)
    right = expected(schema.function, "pdpd", cases, operands)
    first, _report = converted(eltwise.load(pdpd_model(cases, schema.name, element_type).xml()), onnx_of(17))
    second, _report = converted(first, IR11)
    third, _report = converted(second, onnx_of(17))
    for found in (first, second, third):
        assert wrong_outputs(found.run(feeds(operands)), right) == []
    assert third.graph == first.graph


@pytest.mark.parametrize(("inner", "given_as", "casts"), [("float16", "float32", 3), ("int64", "int64", 1)])
def test_ir_10_casts_at_its_ports_become_nodes(
    inner: str, given_as: str, casts: int, process: ProcessPoolExecutor, seed: int
) -> None:
    cases = ALL_RUNS[::3]
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
    # onnxruntime takes a cast to float16 that a cast back follows for nothing, so it is no witness for float16.
    if inner == "int64" and find_spec("onnxruntime") is not None:
        after, _report = converted(before, onnx_of(17))
        assert wrong_outputs(process.submit(ask_onnxruntime, *written(after.graph), given).result(), right) == []


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
    monkeypatch.setattr(elementwise, "align", wrong)
    cases = [run for run in ALL_RUNS if run.a == (3, 3, 3) and len(run.b) == 1]
    operands = arrays(cases, FLOAT32, seed)
    for rule, before, target in (
        ("legacy", eltwise.load(legacy_model(cases, "Sub", 6, FLOAT32)), IR11),
        ("pdpd", eltwise.load(pdpd_model(cases, "Subtract", FLOAT32).xml()), onnx_of(17)),
    ):
        after, _report = converted(before, target)
        right = expected("subtract", rule, cases, operands)
        found = {cases[int(name[1:])].axis for name in wrong_outputs(after.run(feeds(operands)), right)}
        assert found == ({0, 1} if wrong is ignoring_axis else {1, 2, -1, None})


def test_the_comparison_of_outputs_can_fail() -> None:
    zero = {"z": np.float32([0.0])}
    assert wrong_outputs({"z": np.float32([-0.0])}, zero) == ["z"]
    assert wrong_outputs({"z": np.float64([0.0])}, zero) == ["z"]
    assert oracle.same_bits(np.float32([0.0]), zero["z"])
