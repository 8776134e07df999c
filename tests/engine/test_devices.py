"""Arrays on a GPU: calls refuse them with the way out, comparisons read a copy, and libraries can run there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import ElementTypeError, EltwiseError
from eltwise.engine.intake import LIBRARIES, Kind
from eltwise.runtimes import Call, Host
from eltwise.runtimes.registry import find
from eltwise.testing import assert_same

X = np.array([0.5, -0.0, np.inf, 1e-40, 3.0], np.float32)


def _on_torch(array: np.ndarray) -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    return torch.from_numpy(array.copy()).cuda()


def _on_jax(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax")
    if jax.default_backend() == "cpu":
        pytest.skip("JAX has no GPU here")
    return jax.numpy.asarray(array)


def _on_cupy(array: np.ndarray) -> Any:
    return pytest.importorskip("cupy").asarray(array)


ON_DEVICE: dict[Kind, Callable[[np.ndarray], Any]] = {"torch": _on_torch, "jax": _on_jax, "cupy": _on_cupy}


def test_every_library_with_devices_is_tried_on_one() -> None:
    assert {kind for kind, library in LIBRARIES.items() if library.to_host} == set(ON_DEVICE)


@pytest.mark.parametrize("kind", ON_DEVICE)
def test_a_call_refuses_what_is_on_a_device(kind: Kind) -> None:
    value = ON_DEVICE[kind](X)
    for call in (eltwise.subtract, eltwise.mean_squared_difference):
        with pytest.raises(ElementTypeError, match="not in the host's memory") as caught:
            call(X, value)
        assert LIBRARIES[kind].to_host in str(caught.value)


@pytest.mark.parametrize("kind", ON_DEVICE)
def test_a_comparison_reads_what_is_on_a_device(kind: Kind) -> None:
    value, other = ON_DEVICE[kind](X), ON_DEVICE[kind](X + np.float32(1))
    assert_same(value, X)
    assert_same({"w": [value]}, {"w": [X]})
    assert eltwise.compare(value, X).is_good
    assert not eltwise.compare({"w": other}, {"w": value}).is_good
    with pytest.raises(AssertionError):
        assert_same(X, other)


def test_a_checkpoint_of_a_device_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "weights.pth"
    torch.save({"w": _on_torch(X)}, path)
    assert eltwise.compare(path, {"w": X}).is_good


@pytest.mark.parametrize("specification", ["torch:device=cuda", "jax:device=cuda", "cupy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_a_library_runs_on_a_device(specification: str, dtype: type) -> None:
    library: Any = specification.partition(":")[0]
    ON_DEVICE[library](X)
    a, b = np.arange(7, dtype=dtype), np.array([3], dtype)
    name = "sub" if specification.startswith("torch") else "subtract"
    with Host(find(specification), shares_memory=True) as host:
        answer = host.run(Call("Subtract-1", ((name, (0, 1)),)), (a, b))
        assert host.version().endswith(")"), "it names the device"
    (result,) = answer.arrays
    assert result is not None, answer
    assert result.dtype == dtype
    assert np.array_equal(result, a - b)


@pytest.mark.parametrize("specification", ["torch:device=cpu", "jax:device=cpu"])
def test_the_processor_is_a_device(specification: str) -> None:
    pytest.importorskip(specification.partition(":")[0])
    name = "sub" if specification.startswith("torch") else "subtract"
    with Host(find(specification)) as host:
        answer = host.run(Call("Subtract-1", ((name, (0, 1)),)), (X, X))
    assert answer.kind == "result"


@pytest.mark.parametrize("specification", ["torch:device=nonsense", "jax:device=nonsense"])
def test_a_device_that_is_not_there_cannot_be_started(specification: str) -> None:
    pytest.importorskip(specification.partition(":")[0])
    with Host(find(specification)) as host, pytest.raises(EltwiseError, match=r"cannot be started: .*nonsense"):
        host.version()


@pytest.mark.parametrize(("module", "function"), [("cupy", "asnumpy"), ("jax", "device_get")])
def test_a_comparison_copies_with_the_function_of_its_library(
    module: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against modules that do what their documentation says; neither need be here."""
    on_device = type("Array", (), {"__module__": module, "__dlpack_device__": lambda _self: (2, 0)})()
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{function: lambda _array: X.copy()}))
    assert_same(on_device, X)
    assert eltwise.compare({"w": on_device}, {"w": X}).is_good
    with pytest.raises(ElementTypeError, match="not in the host's memory"):
        eltwise.subtract(on_device, X)


def test_a_comparison_reads_tensors_that_calls_refuse() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, 3)
    assert eltwise.compare(layer.weight, layer.weight.detach()).is_good
    negative = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert_same(negative, np.float32([-2, 4]))
    with pytest.raises(ElementTypeError, match="on the device meta"):
        assert_same(torch.empty(3, device="meta"), torch.empty(3))
