"""ONNX's own backend tests for Sub, driven by its own runner, and the backend's other promises."""

from __future__ import annotations

import importlib
import unittest
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnx.backend.base
import pytest
from onnx import helper
from onnx.backend.test import BackendTest, loader

import eltwise
import eltwise.backend


def onnx_sub_tests() -> list[unittest.TestCase]:
    with pytest.MonkeyPatch.context() as patch:
        # Making the cases of all other operators takes five seconds.
        patch.setattr(loader, "import_recursive", lambda package: importlib.import_module(f"{package.__name__}.sub"))
        runner = BackendTest(eltwise.backend.EltwiseBackend, __name__)
        runner.include(r"^test_sub")
        cases = [runner.test_cases[name] for name in runner.test_cases]
    return [
        kind(name)
        for kind in cases
        for name in unittest.TestLoader().getTestCaseNames(kind)
        if name.startswith("test_sub") and name.endswith("_cpu")
    ]


ONNX_SUB_TESTS = onnx_sub_tests()


def test_onnx_has_its_nine_tests_of_sub() -> None:
    assert len(ONNX_SUB_TESTS) >= 9


@pytest.mark.parametrize("case", ONNX_SUB_TESTS, ids=lambda case: case.id().rpartition(".")[2])
def test_onnx_backend_test(case: unittest.TestCase) -> None:
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.run(result)
    assert not result.skipped
    assert result.wasSuccessful(), result.errors + result.failures


def test_a_wrong_backend_fails_the_onnx_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    right = eltwise.backend.EltwiseRep.run
    monkeypatch.setattr(
        eltwise.backend.EltwiseRep, "run", lambda self, inputs, **_: tuple(-array for array in right(self, inputs))
    )
    case = next(case for case in ONNX_SUB_TESTS if "bcast" in case.id())
    result = unittest.TestResult()
    case.run(result)
    assert not result.wasSuccessful()


def model(opset: int = 14, operator: str = "Sub") -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N"]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node(operator, ["x", "y"], ["z"])], "g", infos[:2], infos[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def test_it_is_onnx_backend() -> None:
    assert issubclass(eltwise.backend.EltwiseBackend, onnx.backend.base.Backend)
    assert eltwise.backend.supports_device("CPU")
    assert eltwise.backend.supports_device("CPU:0")
    assert not eltwise.backend.supports_device("CUDA")


def test_prepare_and_run_by_position_and_by_name() -> None:
    a, b = np.array([1, 2], np.float32), np.array([5, 3], np.float32)
    prepared = eltwise.backend.prepare(model())
    by_position, by_name = prepared.run([a, b]), prepared.run({"y": b, "x": a})
    assert by_position.z.tolist() == by_name[0].tolist() == [-4.0, -1.0]  # type: ignore[attr-defined]
    assert eltwise.backend.run_model(model(), (a, b))[0].tolist() == [-4.0, -1.0]


def test_run_node_takes_the_opset() -> None:
    node = helper.make_node("Sub", ["a", "b"], ["c"], broadcast=1, axis=0)
    a, b = np.array([[1, 2], [3, 4]], np.float64), np.array([1, 3], np.float64)
    assert eltwise.backend.run_node(node, [a, b], opset_version=6)[0].tolist() == [[0, 1], [0, 1]]
    with pytest.raises(eltwise.EltwiseError, match="Sub-14"):
        eltwise.backend.run_node(node, [a, b])
    plain = helper.make_node("Sub", ["a", "a"], ["c"])
    values = np.array([1, 2], ml_dtypes.bfloat16)
    assert eltwise.backend.run_node(plain, [values])[0].dtype == ml_dtypes.bfloat16


def test_is_compatible_says_what_load_does() -> None:
    assert eltwise.backend.is_compatible(model())
    assert not eltwise.backend.is_compatible(model(operator="Gemm"))
    assert not eltwise.backend.is_compatible(model(), device="CUDA")
    with pytest.raises(eltwise.EltwiseError, match="1 inputs are given; allowed: 2"):
        eltwise.backend.prepare(model()).run([np.array([1], np.float32)])
    with pytest.raises(eltwise.EltwiseError, match="device"):
        eltwise.backend.prepare(model(), device="CUDA")
