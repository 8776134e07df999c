"""The findings that were measured once stay findable: their values are predicted, and the runtimes still show them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eltwise import runtimes
from eltwise.conformance.findings import findings
from eltwise.conformance.results import Extent
from eltwise.conformance.run import RunSettings, run_tests
from eltwise.conformance.selection import Job, Selection
from eltwise.core.dtypes import BY_NAME
from eltwise.faults.catalog import fault_of
from eltwise.faults.families import AFFECTED_BY_OTHER_NODES, OTHER_SHAPE
from eltwise.faults.record import AS_SPECIFIED, Operation
from eltwise.faults.values import patterns_of, values_of
from eltwise.ops import registry
from eltwise.oracle import array_of

FINDINGS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "findings.json").read_text(encoding="utf-8"))
"""Measured with onnxruntime 1.31.1, onnx 1.23.2 and OpenVINO 2026.4.1 on a processor with bfloat16 instructions.

Each has a test that shows it, its outcome, the fault model that explains it, and one element of the smallest case.
"""

NOT_BY_VALUE = {"", OTHER_SHAPE, AFFECTED_BY_OTHER_NODES}


def operation_of(finding: dict[str, Any]) -> Operation:
    _runtime, op, dtype, _rule, _source = finding["test"].split("/")
    return Operation(registry.find(op).expression(), BY_NAME[dtype])


def numbered(finding: dict[str, Any]) -> str:
    return f"{FINDINGS.index(finding) + 1} {finding['finding']}".replace(" ", "-")


@pytest.mark.parametrize("finding", [finding for finding in FINDINGS if "example" in finding], ids=numbered)
def test_the_values_of_a_finding_are_predicted(finding: dict[str, Any]) -> None:
    operation = operation_of(finding)
    element_type, example = operation.element_type, finding["example"]
    a, b, expected, got = (array_of(element_type, [int(example[name], 16)]) for name in ("a", "b", "expected", "got"))
    operands = [values_of(array, element_type) for array in (a, b)]
    assert operation.predict(AS_SPECIFIED, operands) == patterns_of(expected, element_type)
    reasons = [fault_of(operation, tuple(slugs)) for slugs in finding["reasons"]]
    predicted = [operation.predict(fault, operands) for fault in reasons if fault is not None]
    assert patterns_of(got, element_type) in predicted


@pytest.mark.parametrize("finding", FINDINGS, ids=numbered)
def test_the_fault_of_a_finding_is_known(finding: dict[str, Any]) -> None:
    slugs = tuple(finding["fault"].split("+"))
    assert finding["fault"] in NOT_BY_VALUE or fault_of(operation_of(finding), slugs)


RENAMED = {
    "a_clamped_to_float32": "a_prepared_for_bfloat16",
    "b_flushed": "a_flushed",
}
"""What explains the same values and is tried before."""


class _Findings(Selection):
    """The tests of the findings alone, in one run: a process for each would take longer than the test."""

    def jobs(self, extent: Extent = "usual") -> Iterator[Job]:
        keys = {finding["test"] for finding in FINDINGS}
        return (job for job in super().jobs("usual") if job.key in keys)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference", "openvino", "openvino-onnx", "openvino-evaluate"])
def test_the_runtime_still_shows_its_findings(name: str) -> None:
    runtime = next(runtime for runtime in runtimes.RUNTIMES if runtime.name == name)
    if not runtime.is_installed:
        pytest.skip(f"{name} is not installed; the extra 'runtimes' has it")
    if name.startswith("openvino") and "bf16" not in _version(name) and name != "openvino-evaluate":
        pytest.skip("this processor has no bfloat16 instructions")
    findings = [finding for finding in FINDINGS if finding["test"].startswith(f"{name}/")]
    tests = {test.key: test for test in run_tests(_Findings((runtime,)), RunSettings("quick"), lambda *_: None).tests}
    missing = []
    for finding in findings:
        test, expected = tests[finding["test"]], {finding["fault"], RENAMED.get(finding["fault"])}
        if test.outcome != finding["outcome"] or (finding["fault"] and not expected & set(test.faults)):
            missing.append((finding["finding"], finding["test"], test.outcome, test.explanation))
    assert missing == []


def _version(name: str) -> str:
    with runtimes.Host(runtimes.find(name)) as host:
        return host.version()


def test_the_examples_are_of_wrong_values() -> None:
    examples = [finding["example"] for finding in FINDINGS if "example" in finding]
    assert len(examples) > 50
    assert all(example["expected"] != example["got"] for example in examples)
    assert len(FINDINGS) == 75
    assert np.unique([finding["test"] for finding in FINDINGS]).size > 60


def test_no_sentence_tells_a_result_from_itself() -> None:
    """Where a test has other shapes and other values, its example shows one of them only."""
    selection = Selection((runtimes.find("onnx-reference"),), ("Equal-1", "Sub-1"), ("int32",), (), ("static",))
    results = run_tests(selection, RunSettings("usual"), lambda *_: None)
    assert {OTHER_SHAPE} < {fault for test in results.tests for fault in test.faults}
    for test in results.tests:
        assert (
            test.example is None or test.example.get("got") is None or test.example["got"] != test.example["expected"]
        )
    for finding in findings(results.tests):
        match = re.search(r"returns (.+) instead of (.+?)[;.]", finding.smallest)
        assert match is None or match[1] != match[2], finding.smallest
