"""Reductions of files: the bits of ``eltwise.reduce`` in memory, whatever the blocks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from safetensors.numpy import save_file

import eltwise
from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.engine.reduce import reducing_of
from eltwise.ops import registry
from eltwise.scale import blocks
from eltwise.scale.reductions import reduce_files
from eltwise.scale.sources import open_sources
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]
AXES = [None, 0, 1, (0, 2), (1, 2), (0, 1, 2), ()]


@pytest.fixture
def operands(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of which sums in another order have other bits."""
    draw = np.random.default_rng(seed)
    scale = np.float32(10) ** draw.integers(-12, 12, (13, 9, 14)).astype(np.float32)
    a, b = (draw.standard_normal((13, 9, 14), np.float32) * scale for _ in "ab")
    return a, b


def paths_of(folder: Path, operands: tuple[np.ndarray, np.ndarray], kind: str) -> list[str]:
    found = []
    for name, values in zip("ab", operands, strict=True):
        if kind == "npy":
            np.save(folder / f"{name}.npy", values)
        else:
            store(folder / f"{name}.zarr", values, chunks=(4, 3, 5) if name == "a" or kind == "zarr" else (13, 2, 9))
        found.append(str(folder / f"{name}.{'npy' if kind == 'npy' else 'zarr'}"))
    return found


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("kind", ["npy", "zarr", "misaligned"])
def test_the_same_bits_as_in_memory(
    operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, axis: Any, kind: str
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 400)
    sources = open_sources(paths_of(tmp_path, operands, kind), [None, None])
    for name in ("mean_squared_difference", "mean_absolute_difference", "max_absolute_difference"):
        found = reduce_files(reducing_of(name.replace("_", "-")), sources, axis)["result"]
        expected = np.asarray(getattr(eltwise, name)(*operands, axis=axis))
        assert (found.shape, found.dtype, found.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())
    for reduction in ("sum", "min"):
        found = reduce_files(reducing_of(reduction, eltwise.operator("Subtract-1")), sources, axis)["result"]
        assert found.tobytes() == eltwise.reduce(reduction, "Subtract-1", *operands, axis=axis).tobytes()


def test_the_command(cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    paths = paths_of(tmp_path, operands, "zarr")
    expected = eltwise.mean_squared_difference(*operands)
    assert cli("reduce", "mean-squared-difference", *paths) == (0, f"result: float64() [{expected}]\n", "")
    found = json.loads(cli("reduce", "mean", "SquaredDifference-1", *paths, "--json")[1])["results"]["result"]
    assert found == {
        "type": "float64",
        "shape": [],
        "values": [str(expected)],
        "hexadecimal": [float(expected).hex()],
    }
    assert cli("reduce", "mean-squared-difference", *paths, "--axis", "0,-1", "-o", tmp_path / "m.npy") == (0, "", "")
    by_axes = eltwise.mean_squared_difference(*operands, axis=(0, 2))
    assert np.load(tmp_path / "m.npy").tobytes() == by_axes.tobytes()


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.numpy is not None and each.bits >= 8], ids=str)
def test_the_command_gives_floats_of_every_type_in_full(cli: Cli, tmp_path: Path, element_type: ElementType) -> None:
    names = [str(tmp_path / f"{name}.npy") for name in "ab"]
    for name, values in zip(names, ([2, 1, 0], [1, 1, 0]), strict=True):
        np.save(name, np.array(values).astype(element_type.storage))
    options = ("--json", "--type", element_type.name)
    operator = "openvino.Equal-1" if element_type is BOOL else "Subtract-1"
    code, out, err = cli("reduce", "max", operator, *names, *options)
    if element_type not in registry.find(operator).types:
        assert (code, out) == (2, "")
        return
    assert code == 0, err
    result = json.loads(out)["results"]["result"]
    assert result["values"] == ["True" if element_type is BOOL else str(element_type.storage.type(1))]
    assert result.get("hexadecimal") == ([float(1).hex()] if element_type.kind == "float" else None)


def test_broadcasts_and_attributes(cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    a, b = operands[0], operands[1][0, :, 0].copy()
    store(tmp_path / "a.zarr", a, chunks=(4, 3, 5))
    np.save(tmp_path / "b.npy", b)
    options = ["--attr", "broadcast=1", "--attr", "axis=1", "--json"]
    code, out, _err = cli("reduce", "sum", "Sub-6", tmp_path / "a.zarr", tmp_path / "b.npy", *options)
    minus = eltwise.operator("Sub-6", broadcast=1, axis=1)
    assert code == 0
    assert json.loads(out)["results"]["result"]["values"] == [str(eltwise.reduce("sum", minus, a, b))]


def test_checkpoints(cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    for name, values in zip("ab", operands, strict=True):
        save_file({"x": values, "y": values[0]}, tmp_path / f"{name}.safetensors")
    files = [tmp_path / f"{name}.safetensors" for name in "ab"]
    found = json.loads(cli("reduce", "max-absolute-difference", *files, "--json")[1])["results"]
    expected = {
        name: str(eltwise.max_absolute_difference(*pair))
        for name, pair in (("x", operands), ("y", (operands[0][0], operands[1][0])))
    }
    assert {name: each["values"][0] for name, each in found.items()} == expected


def test_errors_of_checkpoints_name_the_tensor(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    tensors = {"good": np.ones(2), "flag": np.ones(2, bool), "none": np.ones(0), "large": np.full(2, 2**62)}
    for name, *command in (
        ("flag", "reduce", "sum", "Sub-14", file, file),
        ("flag", "apply", "Sub-14", file, file, "--output", tmp_path / "b.safetensors"),
        ("none", "reduce", "mean", "Max-13", file),
        ("large", "reduce", "sum", "Max-13", file),
    ):
        save_file({each: tensors[each] for each in ("good", name)}, file)
        assert f"a.safetensors: tensor {name!r}: " in cli(*command)[2]


def test_of_many_tensors_with_a_problem_all_are_counted(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    save_file({f"w{number}": np.ones(2, bool) for number in range(60)}, file)
    _code, out, err = cli("reduce", "sum", "Sub-14", file, file, "--json")
    assert err.startswith("eltwise: 60 problems:")
    assert "and 52 more of this kind" in json.loads(out)["error"][-1]["problem"]


def test_no_elements(cli: Cli, tmp_path: Path) -> None:
    for name, shape in (("a", (0, 1 << 40)), ("b", (1, 1 << 40))):
        zarr.create_array(str(tmp_path / f"{name}.zarr"), shape=shape, chunks=(1, 1024), dtype="f4")
    files = tmp_path / "a.zarr", tmp_path / "b.zarr"
    assert cli("reduce", "sum", "Subtract-1", *files)[1] == "result: float64() [0.0]\n"
    assert "the mean of no elements is undefined" in cli("reduce", "mean-squared-difference", *files)[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mean-squared", "a.zarr", "a.zarr"), "there is no reduction"),
        (("mean_squared_difference", "a.zarr", "a.zarr"), "did you mean 'mean-squared-difference'"),
        (("median", "Subtract-1", "a.zarr", "a.zarr"), "there is no reduction 'median'"),
        (("mean-squared-difference", "a.zarr"), "wrong number of operands"),
        (("mean-squared-difference", "a.zarr", "b.zarr", "--axis", "3"), "no axis of a result of rank 3"),
        (("mean-squared-difference", "a.zarr", "b.zarr", "--axis", "x"), "not axes, got 'x'"),
        (("mean-squared-difference", "a.zarr", "b.zarr", "--axis", ""), "an empty text is no value"),
        (("mean-squared-difference", "a.zarr", "b.zarr", "--axis", "0,"), "not axes, got '0,'"),
        (("mean-squared-difference", "a.zarr", "b.zarr", "--axis", "0,0"), "given twice"),
        (("mean-squared-difference", "a.zarr", "b.zarr", "--attr", "axis=1"), "has no attributes"),
        (("mean-squared-difference", "a.zarr", "broken.zarr"), "chunk [1, 0, 0]"),
    ],
)
def test_what_is_refused(
    cli: Cli,
    operands: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    paths_of(tmp_path, operands, "zarr")
    broken = store(Path("broken.zarr"), operands[0], chunks=(4, 3, 5))
    (broken / "c" / "1" / "0" / "0").write_bytes(b"no")
    code, _out, err = cli("reduce", *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
