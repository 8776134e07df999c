"""Tensors of PyTorch: what torch itself does with memory formats, ``out`` and compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise

torch = pytest.importorskip("torch")

MODEL = Path(__file__).parent.parent.parent / "examples" / "models" / "sub14_uint8.onnx"

COMPILED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "function": (lambda x, y: eltwise.subtract(x * 2, y) + 1, lambda x, y: x * 2 - y + 1),
    "operator": (lambda x, y: eltwise.operator("Sub-14")(x * 2, y) + 1, lambda x, y: x * 2 - y + 1),
    "shorthand": (lambda x, y: eltwise.max_absolute_difference(x * 2, y) + 1, lambda x, y: (x * 2 - y).abs().max() + 1),
    "reduce": (lambda x, y: eltwise.reduce("max", "Sub-14", x, y, axis=0) + 1, lambda x, y: (x - y).amax(0) + 1),
    "compare": (lambda x, y: x * eltwise.compare(x, y).is_good, lambda x, _y: x * 0),
}


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace the builtin")
@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_a_call_is_a_graph_break_of_a_compiled_function(name: str) -> None:
    """It was an assertion inside of Dynamo, which traced into the package and took its NumPy for PyTorch."""
    function, expected = COMPILED[name]
    compiled = torch.compile(function, backend="eager")
    for shape in ((2, 3), (4, 5)):
        x, y = torch.randn(shape), torch.randn(shape)
        for _ in range(3):
            assert torch.equal(compiled(x, y), expected(x, y))
    with pytest.raises(eltwise.errors.ElementTypeError, match=r"operand A is float32|have other types|float64"):
        torch.compile(lambda x: eltwise.add(x, y.double()), backend="eager")(x)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace the builtin")
@pytest.mark.slow
def test_a_model_is_a_graph_break_too() -> None:
    model = eltwise.load(MODEL)
    inputs = {name: torch.from_numpy(np.load(MODEL.with_suffix(f".{name}.npy"))) for name in "xy"}
    expected = model.run(inputs)["z"] + 1
    for function in (
        lambda x, y: model.run({"x": x, "y": y})["z"] + 1,
        lambda x, y: model(x=x, y=y)["z"] + 1,
        lambda x, y: eltwise.load(MODEL)(x=x, y=y)["z"] + 1,
    ):
        assert torch.equal(torch.compile(function, backend="eager")(**inputs), expected)
