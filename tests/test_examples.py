"""The published examples of the specification texts, and every example model, run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import eltwise
from eltwise import oracle
from eltwise.formats.tensor_files import parse_tensor_file, read_tensor_file
from eltwise.ops import registry
from support.scripts import script

EXAMPLES = Path(__file__).parent.parent / "examples"
PUBLISHED = json.loads((EXAMPLES / "published.json").read_text())["cases"]
INDEX = json.loads((EXAMPLES / "models" / "index.json").read_text())
AS_PRINTED = 1.5e-8  # The texts print eight decimals of x, of y and of z, so the last bit of z may differ.

# The shapes that the texts of Sub-1 and Sub-6 give as supported with broadcast=1, and those of the OpenVINO texts.
LEGACY = [((), None), ((1, 1), None), ((5,), None), ((4, 5), None), ((3, 4), 1), ((2,), 0)]
OPENVINO = [("none", (256, 56), (256, 56), (256, 56)), ("numpy", (8, 1, 6, 1), (7, 1, 5), (8, 7, 6, 5))]


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["name"])
@pytest.mark.parametrize("operator", ["Sub-7", "Sub-13", "Sub-14", "Subtract-1"])
def test_the_numbers_of_the_onnx_text(case: dict[str, dict[str, list[float]]], operator: str) -> None:
    x, y, z = (np.array(case[key]["values"], np.float32).reshape(case[key]["shape"]) for key in "xyz")  # type: ignore[arg-type]
    got = eltwise.operator(operator)(x, y)
    assert got.shape == z.shape
    assert got.dtype == np.float32
    tolerance = AS_PRINTED + np.spacing(np.abs(z)) if x.size > 6 else np.zeros_like(z)
    assert (np.abs(got.astype(np.float64) - z) <= tolerance).all()


@pytest.mark.parametrize(("shape", "axis"), LEGACY)
@pytest.mark.parametrize("operator", ["Sub-1", "Sub-6"])
def test_the_shapes_of_the_legacy_texts(operator: str, shape: tuple[int, ...], axis: int | None) -> None:
    a = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    b = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) * 7 + 1
    attributes = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    got = eltwise.operator(operator, **attributes)(a, b)
    start = 4 - len(shape) if axis is None else axis
    aligned = b.reshape((1,) * start + shape + (1,) * (4 - start - len(shape)))
    assert got.tobytes() == (a - aligned).tobytes()
    with pytest.raises(eltwise.EltwiseError, match="broadcast is 0 or absent"):
        eltwise.operator(operator)(a, b)


@pytest.mark.parametrize(("auto_broadcast", "a_shape", "b_shape", "shape"), OPENVINO)
@pytest.mark.parametrize("operator", ["Subtract-1", "SquaredDifference-1"])
def test_the_shapes_of_the_openvino_texts(
    operator: str, auto_broadcast: str, a_shape: tuple[int, ...], b_shape: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    bound = eltwise.operator(operator, auto_broadcast=auto_broadcast)
    assert bound.infer_shape(a_shape, b_shape).shape.sizes() == shape
    a = np.arange(np.prod(a_shape), dtype=np.int32).reshape(a_shape)
    b = np.arange(np.prod(b_shape), dtype=np.int32).reshape(b_shape)
    difference = a - b
    assert (bound(a, b) == (difference if operator == "Subtract-1" else difference**2)).all()


def known_result(entry: dict[str, Any], operands: list[np.ndarray]) -> np.ndarray:
    """What the specification prints, or what the reference computes."""
    if entry["known"] == "text":
        printed: np.ndarray = np.load(EXAMPLES / "models" / entry["model"].replace(".onnx", ".z.npy"))
        return printed
    operation = registry.find(entry["operator"]).bind(entry["attributes"])
    rule = operation.rule
    return oracle.evaluate(operation.function, *operands, rule=rule.name, axis=rule.axis, enabled=rule.enabled)


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["model"])
def test_every_example_model_gives_what_is_known(entry: dict[str, Any]) -> None:
    path = EXAMPLES / "models" / entry["model"]
    model = eltwise.load(path)
    files = [parse_tensor_file(str(path.with_suffix(f".{port.name}.npy"))) for port in model.inputs]
    operands = [read_tensor_file(file, port.type.element_type) for file, port in zip(files, model.inputs, strict=True)]
    (result,) = model.run(dict(zip([port.name for port in model.inputs], operands, strict=True))).values()
    known = known_result(entry, operands)
    if entry["known"] == "text":
        distance = np.abs(result.astype(np.float64) - known.astype(np.float64))
        assert result.shape == known.shape
        assert (distance <= AS_PRINTED + np.spacing(np.abs(known))).all()
    else:
        assert oracle.same_bits(result, known)


def test_the_example_models_are_what_their_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = script("examples/make_models.py")
    monkeypatch.setattr(maker, "HERE", tmp_path)
    monkeypatch.setattr(maker, "MODELS", tmp_path / "models")
    (tmp_path / "published.json").write_text((EXAMPLES / "published.json").read_text())
    maker.main()
    made = {path.name for path in (tmp_path / "models").iterdir()}
    assert made == {path.name for path in (EXAMPLES / "models").iterdir()}
    for entry in INDEX:
        name = str(entry["model"])
        mine, theirs = (eltwise.load(folder / name) for folder in (tmp_path / "models", EXAMPLES / "models"))
        assert mine.graph == theirs.graph
    assert (tmp_path / "models" / "index.json").read_text() == (EXAMPLES / "models" / "index.json").read_text()


def test_the_oracle_agrees_with_the_texts() -> None:
    for case in PUBLISHED:
        x, y = (np.array(case[key]["values"], np.float32).reshape(case[key]["shape"]) for key in "xy")
        assert oracle.same_bits(eltwise.subtract(x, y), oracle.evaluate("subtract", x, y, rule="numpy"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_demonstration_of_files_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["demo_scale.py", str(tmp_path / "demo")])
    monkeypatch.setenv("PYTHONPATH", str(Path(eltwise.__file__).parents[1]))
    assert script("examples/demo_scale.py").main() == 0
    names = ("c.zarr", "on-a-cluster.zarr", "squared.zarr")
    results = [np.asarray(zarr.open_array(str(tmp_path / "demo" / name))[...]) for name in names]
    assert results[0].any()
    assert results[0].tobytes() == results[1].tobytes()
    assert np.square(results[0]).tobytes() == results[2].tobytes()
