"""Stores by URL: whatever fsspec opens is read and written as a folder is."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import zarr

import eltwise
from eltwise.formats.file_states import state
from eltwise.formats.zarr_stores import open_store
from support.buckets import BUCKET
from support.onnx_models import sub_model
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def operands(seed: int, tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Two stores on disk, in a zip archive and behind URLs."""
    draw = np.random.default_rng(seed)
    a, b = (draw.standard_normal((23, 31), np.float32) for _ in "ab")
    for name, values in (("a", a), ("b", b)):
        store(tmp_path / f"{name}.zarr", values)
        place = f"{BUCKET}/{name}.zarr"
        zarr.create_array(place, shape=values.shape, chunks=(5, 7), dtype="f4", overwrite=True)[...] = values
    with zipfile.ZipFile(tmp_path / "ab.zip", "w") as archive:
        for file in tmp_path.rglob("*"):
            if file.is_file() and file.suffix != ".zip":
                archive.write(file, file.relative_to(tmp_path))
    return a, b


@pytest.mark.parametrize(
    ("first", "second", "output"),
    [
        (f"{BUCKET}/a.zarr", f"{BUCKET}/b.zarr", f"{BUCKET}/c1.zarr"),
        ("file://{}/a.zarr", "{}/b.zarr", "file://{}/c.zarr"),
        ("simplecache::file://{}/a.zarr", "local://{}/b.zarr", "{}/c.zarr"),
        ("zip://a.zarr::file://{}/ab.zip", "zip://b.zarr::file://{}/ab.zip", f"{BUCKET}/c2.zarr"),
    ],
)
def test_urls(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, first: str, second: str, output: str
) -> None:
    paths = [text.format(tmp_path) for text in (first, second, output)]
    command = ("apply", "Subtract-1", *paths[:2], "--output", paths[2])
    assert cli(*command) == (0, "", "")
    assert cli(*command) == (0, "", f"{paths[2]} is complete already\n")
    assert np.asarray(zarr.open_array(paths[2], mode="r")[...]).tobytes() == eltwise.subtract(*operands).tobytes()
    found = cli("reduce", "mean-squared-difference", *paths[:2], "--json")
    assert str(eltwise.mean_squared_difference(*operands)) in found[1]
    assert cli("compare", paths[0], tmp_path / "a.zarr")[0] == 0
    assert cli("compare", *paths[:2])[0] == 1


@pytest.mark.parametrize(
    "url",
    [
        "file://{}/a.zarr",
        "simplecache::file://{}/a.zarr",
        "zip://a.zarr::file://{}/a.zip",
        "zip://a.zarr::simplecache::file://{}/a.zip",
    ],
)
def test_a_process_that_lives_on_reads_what_a_store_holds_now(tmp_path: Path, url: str) -> None:
    """As a worker of a cluster does, job after job."""
    url, states = url.format(tmp_path), set[str]()
    for number in range(3):
        values = np.full((23 + number, 31), number, np.float32)
        store(tmp_path / "a.zarr", values, overwrite=True)
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            for file in (tmp_path / "a.zarr").rglob("*"):
                if file.is_file():
                    archive.write(file, file.relative_to(tmp_path))
        (tensor,) = open_store(url).values()
        np.testing.assert_array_equal(np.asarray(tensor.array), values)
        states.add(state(url))
    assert len(states) == 3


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense://x/a.zarr", "Protocol not known: nonsense"),
        ("s3://x/a.zarr", "s3fs"),
        (f"{BUCKET}/none.zarr", "cannot be read"),
    ],
)
def test_what_is_refused(
    cli: Cli,
    operands: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    words: str,
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    a, c = tmp_path / "a.zarr", tmp_path / "c.zarr"
    for command in (("apply", "Subtract-1", url, a, "--output", c), ("compare", url, a), ("compare", a, url)):
        code, _out, err = cli(*command)
        assert (code, words in err, err.count("\n"), c.exists()) == (2, True, 1, False)


@pytest.mark.parametrize("output", ["memory://c.zarr", "simplecache::memory://c.zarr"])
@pytest.mark.parametrize("command", ["apply", "run", "cluster"])
def test_an_output_that_ends_with_the_process_is_refused(cli: Cli, tmp_path: Path, command: str, output: str) -> None:
    a = store(tmp_path / "a.zarr", np.ones((3, 4), np.float32))
    onnx.save(sub_model(), tmp_path / "m.onnx")
    if command == "run":
        arguments = ["run", tmp_path / "m.onnx", "-i", f"x={a}", "-i", f"y={a}", "-o", f"z={output}"]
    else:
        cluster = ["--scheduler", "tcp://127.0.0.1:1"] if command == "cluster" else []
        arguments = ["apply", "Subtract-1", a, a, "-o", output, *cluster]
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    reason = "what is written to memory is gone when the command ends; name a file, or a store that lasts"
    assert err == f"eltwise: {output}: {reason}\n"


def test_a_cluster_without_an_output_is_refused(cli: Cli, tmp_path: Path) -> None:
    a = store(tmp_path / "a.zarr", np.ones((3, 4), np.float32))
    onnx.save(sub_model(), tmp_path / "m.onnx")
    arguments = ("run", tmp_path / "m.onnx", "-i", f"x={a}", "-i", f"y={a}", "--scheduler", "tcp://127.0.0.1:1")
    code, out, err = cli(*arguments)
    assert (code, out, "name a file with --output" in err) == (2, "", True)
