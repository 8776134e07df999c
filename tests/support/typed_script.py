"""A user's program, which tests/test_typing.py has checked by mypy and pyright; it is not run."""

from __future__ import annotations

from typing import Literal, assert_type

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import eltwise as e


def on_arrays(a: NDArray[np.float32], b: NDArray[np.float32], i: NDArray[np.int8]) -> None:
    assert_type(e.subtract(a, b), NDArray[np.float32])
    assert_type(e.subtract(a, 2), NDArray[np.float32])
    assert_type(e.subtract(2, a), NDArray[np.float32])
    assert_type(e.subtract(a, b, a), NDArray[np.float32])
    assert_type(e.divide(i, i, floor=False), NDArray[np.int8])
    assert_type(e.less(a, b), NDArray[np.bool_])
    assert_type(e.absolute(i), NDArray[np.int8])
    assert_type(e.subtract(np.float32(1), 2), np.float32)
    assert_type(e.mean_squared_difference(a, b), np.float64)
    e.mean_squared_difference(a, b, axis=0, keepdims=True).tolist()
    e.subtract(a, b, auto_broadcast="pdpd", axis=0)
    e.reduce("max", "Sub-14", a, b, axis=0, where=a > b, initial=0)


class Tensor:
    """What type checkers see of a tensor of PyTorch."""

    def detach(self) -> Tensor:
        return self


def on_other_arrays(x: xr.DataArray, t: Tensor, a: NDArray[np.float32]) -> None:
    assert_type(e.subtract(t, t), Tensor)
    assert_type(e.subtract(t, a), Tensor)
    assert_type(e.subtract(a, t), Tensor)
    assert_type(e.maximum(t, 0.0), Tensor)
    assert_type(e.mean_squared_difference(t, t), Tensor)
    e.subtract(x, x)


def on_models(path: str) -> list[str]:
    model = e.load(path)
    inputs = model.random_inputs(seed=1, N=2)
    assert_type(inputs, dict[str, np.ndarray])
    shapes = [port.shape for port in model.inputs]
    assert_type(shapes, list[tuple[int | str | None, ...] | None])
    converted, report = e.convert(model, "openvino", verify=True)
    names = [change.node for change in report]
    converted.save("out.xml")
    problems = e.check(model)
    names += [problem.hint for problem in problems if not problems.is_good]
    for finding in e.check(model, "onnxruntime:threads=1", severity="precision").findings:
        assert_type(finding.severity, Literal["sign of zero or NaN", "precision", "wrong values", "refused"])
    e.repair(model, "openvino", severity="refused")
    try:
        e.operator("Sub", opset=17)
    except e.errors.ShapeError as error:
        names.append(error.allowed)
    with e.set_num_threads(2):
        e.compare(inputs, inputs, rtol=1e-3, ulp=1).assert_within()
    e.testing.assert_same(inputs, [1.0, None], err_msg="the inputs", check_dtype=False)
    e.testing.assert_close(inputs, inputs, {"x*": "ulp<=1"})
    e.testing.assert_same_model(model, "other.onnx", inputs=inputs, rtol=1e-3)
    e.record(model, runtime="onnxruntime", inputs=inputs, values="all").save("run.safetensors")
    return names
