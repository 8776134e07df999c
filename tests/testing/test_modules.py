"""Goldens of PyTorch modules: what is recorded, which tolerances follow, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from eltwise.comparison.tolerance import parse_tolerances
from eltwise.core.errors import EltwiseError
from eltwise.testing.golden import Golden
from eltwise.tracing.recording import read_recording
from support.goldens import updated

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
X = np.random.default_rng(5).standard_normal((4, 8)).astype(np.float32)


def block() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(), nn.Linear(16, 3)).eval()


class Function(nn.Module):  # type: ignore[misc]
    """A module of one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any = None) -> Any:
        return self.function(x) if y is None else self.function(x, y)


@pytest.mark.parametrize("function", [lambda x: x.add_(1) * 2, lambda x: (x, x.mul_(2)), lambda x: x.zero_()])
def test_a_module_may_write_to_its_inputs(golden: Golden, function: Any) -> None:
    """Each run gets what was given, which is what the golden holds."""
    given = torch.from_numpy(X.copy())
    updated(golden).check("in_place", Function(function), (given,))
    recording = read_recording(golden.folder / "in_place.safetensors")
    assert recording.inputs["x"].tobytes() == given.numpy().tobytes() == X.tobytes()
    golden.check("in_place", Function(function), (given,))
    golden.check("in_place", Function(function))


@pytest.mark.parametrize(
    "inputs",
    [{"input": X}, (X,), [torch.from_numpy(X)], {"input": torch.from_numpy(X)}],
    ids=["name", "order", "list", "tensor"],
)
def test_a_module_is_recorded_and_compared_with_the_bound_of_float64(golden: Golden, inputs: Any) -> None:
    module = block()
    with pytest.raises(AssertionError, match="there is no golden"):
        golden.check("block", module, inputs)
    updated(golden).check("block", module, inputs)
    recording = read_recording(golden.folder / "block.safetensors")
    (tolerance,) = parse_tolerances(recording.metadata["tolerance"])
    (terms,) = json.loads(recording.metadata["bounds"])["outputs"]
    with torch.no_grad():
        result, wide = module(torch.from_numpy(X)).numpy(), block().double()(torch.from_numpy(X).double()).numpy()
    assert recording.values["output"].tobytes() == result.tobytes()
    assert recording.inputs["input"].tobytes() == X.tobytes()
    assert terms["error"] == np.abs(result - wide).max()
    assert (terms["unit_roundoff"], terms["nodes"]) == (2.0**-24, pytest.approx(8, abs=6))
    assert (tolerance.pattern, recording.metadata["run"]) == (
        "output",
        "torch module torch.nn.modules.container.Sequential",
    )
    assert 0 < tolerance.atol < 1e-5
    golden.check("block", module, inputs)
    golden.check("block", module)
    with torch.no_grad():
        module[0].weight[0] *= 1.01
    with pytest.raises(AssertionError, match="output: float32"):
        golden.check("block", module)
    with pytest.raises(AssertionError, match=r"inputs of the golden(.|\n)*input: float32"):
        golden.check("block", block(), (X + 1,))


def test_nested_outputs_and_narrow_types_keep_names_and_bits(golden: Golden) -> None:
    module = Function(lambda x, y: {"sum": x + y, "both": [x * 2, (y, (x.size(0), 1.5))]})
    x = torch.from_numpy(X).bfloat16()
    updated(golden).check("nested", module, (x, x))
    values = read_recording(golden.folder / "nested.safetensors").values
    assert [(name, str(array.dtype)) for name, array in values.items()][:2] == [
        ("sum", "bfloat16"),
        ("both.0", "bfloat16"),
    ]
    assert {"both.1.0", "both.1.1.0", "both.1.1.1"} < values.keys()
    golden.check("nested", module)


def sampled(x: torch.Tensor, mode: str) -> torch.Tensor:
    grid = x.tanh().view(1, 4, -1, 2)
    return nn.functional.grid_sample(x.view(1, 1, 4, -1), grid, mode, align_corners=True)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (torch.round, "round rounds or compares floats; give one"),
        (lambda x: x * (x > 0), "gt rounds or compares"),
        (lambda x: x.sort().values + x.argmax(), "argmax rounds or compares"),
        (lambda x: x.int() + x, "rounds or compares"),
        (lambda x: x.gather(1, x.topk(2).indices.flip(0)), "topk rounds or compares"),
        (lambda x: torch.div(x, 0.5, rounding_mode="trunc"), "div rounds or compares"),
        (torch.sgn, "sgn rounds or compares"),
        (nn.functional.hardshrink, "hardshrink rounds or compares"),
        (lambda x: nn.functional.threshold(x, 0.5, 0.0), "threshold rounds or compares"),
        (lambda x: x + torch.unique(x).sum(), "unique2 rounds or compares"),
        (lambda x: sampled(x, "nearest"), "grid_sampler_2d rounds or compares"),
        (torch.sqrt, "the results are not finite"),
        (lambda x: x.half() @ torch.ones(8, 2), "the module does not run"),
        (nn.functional.dropout, "two runs of the module differ in output; call its eval()"),
        (lambda x: "text", "a golden holds arrays and numbers, got 'text'"),
    ],
)
def test_what_gives_no_bound_is_refused(golden: Golden, function: Any, message: str) -> None:
    with pytest.raises(EltwiseError, match=message.replace("(", r"\(").replace(")", r"\)")):
        updated(golden).check("x", Function(function), (X,))
    assert not golden.folder.exists()


def test_a_sampler_of_several_elements_has_no_steps(golden: Golden) -> None:
    updated(golden).check("sampled", Function(lambda x: sampled(x, "bilinear")), (X,))
    assert golden.folder.exists()


@pytest.mark.parametrize("function", [torch.relu, lambda x: nn.functional.max_pool1d(x, 2), lambda x: x.topk(2).values])
def test_what_has_no_steps_has_a_bound(golden: Golden, function: Any) -> None:
    updated(golden).check("x", Function(function), (X,))
    golden.check("x", Function(function))


def test_steps_are_compared_with_a_tolerance_that_is_given_and_integers_exactly(golden: Golden) -> None:
    updated(golden).check("steps", Function(torch.round), (X,), atol=0.1)
    golden.check("steps", Function(torch.round))
    updated(golden).check("index", Function(lambda x: x.argmax(1)), (X,))
    golden.check("index", Function(lambda x: x.argmax(1)))
    with pytest.raises(AssertionError, match="output: int64"):
        golden.check("index", Function(lambda x: x.argmin(1)))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, "a module needs inputs"),
        ({"z": X}, "forward does not take these inputs"),
        ((X, X, X), "forward does not take these inputs"),
        (([X, X],), "an input of a module is one array, got x"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(golden: Golden, inputs: Any, message: str) -> None:
    with pytest.raises(EltwiseError, match=message):
        updated(golden).check("x", Function(torch.relu), inputs)


def test_a_module_has_no_other_runtime(golden: Golden) -> None:
    with pytest.raises(EltwiseError, match="a module runs in PyTorch, got onnxruntime"):
        updated(golden).check("x", block(), (X,), runtime="onnxruntime")
