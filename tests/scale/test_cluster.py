"""A real cluster of processes on this machine: workers and clients that die, two clients, a corrupt chunk."""

from __future__ import annotations

import json
import operator
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from distributed import Client, LocalCluster

import eltwise
from eltwise.scale.apply import apply_files, compute_chunk
from eltwise.scale.blocks import Application
from eltwise.scale.cluster import claimed, connected, run_on
from eltwise.scale.journal import Entry
from eltwise.scale.sources import open_sources
from onnx_models import model, node, value
from stores import chunk_files, read, store, wait_for

Cli = Callable[..., tuple[int, str, str]]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, protocol="tcp", host="127.0.0.1"
    ) as made:
        yield made


@pytest.fixture
def operands(seed: int, tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Two stores of 400 chunks."""
    draw = np.random.default_rng(seed)
    a, b = (draw.standard_normal((200, 200), np.float32) for _ in "ab")
    for name, values in (("a", a), ("b", b)):
        store(tmp_path / f"{name}.zarr", values, chunks=(10, 10))
    return a, b


def command(folder: Path, cluster: LocalCluster, output: str = "c.zarr") -> tuple[object, ...]:
    files = folder / "a.zarr", folder / "b.zarr"
    return "apply", "Subtract-1", *files, "--output", folder / output, "--scheduler", cluster.scheduler_address


def started(*arguments: object) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "eltwise", *map(str, arguments)]
    return subprocess.Popen(line, stderr=subprocess.PIPE)  # noqa: S603


def test_the_same_bits_in_memory_from_files_with_threads_of_dask_and_on_a_cluster(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    import dask.array as da

    files = tmp_path / "a.zarr", tmp_path / "b.zarr"
    lazily = eltwise.subtract(*map(da.from_zarr, map(str, files))).compute(scheduler="threads")
    expected = eltwise.subtract(*operands)
    assert cli(*command(tmp_path, cluster)) == (0, "", "")
    assert cli(*command(tmp_path, cluster)[:-3], tmp_path / "c.npy") == (0, "", "")
    found = [read(tmp_path / "c.zarr"), read(tmp_path / "c.npy"), lazily, operands[0] - operands[1]]
    assert {each.tobytes() for each in found} == {expected.tobytes()}
    for options, axis in (((), None), (("--axis", "0"), 0)):
        arguments = ("reduce", "mean-squared-difference", *files, *options, "--json")
        found = cli(*arguments, "--scheduler", cluster.scheduler_address)
        assert found == cli(*arguments)
        expected = np.asarray(eltwise.mean_squared_difference(*operands, axis=axis)).reshape(-1)
        assert json.loads(found[1])["result"]["values"] == [str(each) for each in expected]
        lazy = eltwise.mean_squared_difference(*map(da.from_zarr, map(str, files)), axis=axis)
        assert np.asarray(lazy.compute(scheduler="threads")).tobytes() == expected.tobytes()
        with connected(cluster.scheduler_address) as client:
            assert np.asarray(client.compute(lazy).result()).tobytes() == expected.tobytes()


def test_a_model_on_a_cluster(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    nodes = [node("Sub", ["a", "b"], ["d"]), node("Mul", ["d", "d"], ["z"])]
    onnx.save(model(nodes, [value("a", None), value("b", None)], [value("z", None)]), tmp_path / "m.onnx")
    files = [text for name in "ab" for text in ("-i", f"{name}={tmp_path / name}.zarr")]
    scheduler = ("--scheduler", cluster.scheduler_address)
    assert cli("run", tmp_path / "m.onnx", *files, "-o", tmp_path / "z.zarr", *scheduler) == (0, "", "")
    assert read(tmp_path / "z.zarr").tobytes() == np.square(operands[0] - operands[1]).tobytes()


def test_another_job_of_the_same_names_reads_the_files_again(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    a, target = operands[0], tmp_path / "c.zarr"
    for chunks, other in (((10, 10), "b"), ((25, 50), "a")):
        store(tmp_path / "b.zarr", operands["ab".index(other)], chunks=chunks, overwrite=True)
        assert cli(*command(tmp_path, cluster)) == (0, "", "")
        assert read(target).tobytes() == eltwise.subtract(a, operands["ab".index(other)]).tobytes()
        shutil.rmtree(target)


def test_a_worker_is_killed(cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    with Client(cluster.scheduler_address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        workers: dict[str, int] = client.run(os.getpid)  # type: ignore[no-untyped-call]
    running = started(*command(tmp_path, cluster))
    wait_for(lambda: len(chunk_files(begun(tmp_path / "c.zarr"))) > 50)
    os.kill(min(workers.values()), signal.SIGKILL)
    _out, err = running.communicate(timeout=120)
    assert (running.returncode, b"Traceback" in err) == (0, False)
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()


def test_the_client_is_killed_and_the_command_resumed(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    target = tmp_path / "c.zarr"
    running = started(*command(tmp_path, cluster))
    journal = begun(target).with_name("journal")
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 50)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    wait_for(lambda: is_quiet(begun(target)))
    before, done = chunk_files(begun(target)), journal.read_bytes().count(b"\n") - 1
    assert 50 <= done <= len(before)
    code, _out, err = cli(*command(tmp_path, cluster))
    assert (code, err) == (0, f"resumed: {done} of 400 blocks were done before\n")
    assert len(set(chunk_files(target).items()) & set(before.items())) >= done
    assert read(target).tobytes() == eltwise.subtract(*operands).tobytes()


def begun(target: Path) -> Path:
    """The store in which a target is written."""
    return target.with_name(f".{target.name}.eltwise") / "data"


def is_quiet(target: Path) -> bool:
    """Whether the workers have ended what the dead client wanted."""
    import time

    before = chunk_files(target)
    time.sleep(0.5)
    return chunk_files(target) == before


def test_a_second_client_is_refused(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    running = started(*command(tmp_path, cluster))
    wait_for(lambda: len(chunk_files(begun(tmp_path / "c.zarr"))) > 5)
    code, _out, err = cli(*command(tmp_path, cluster))
    assert (code, "another process writes this target" in err) == (2, True)
    running.communicate(timeout=120)
    assert running.returncode == 0
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()


def test_a_second_client_of_a_cluster_is_refused_where_a_store_has_no_locks(cluster: LocalCluster) -> None:
    address, target = cluster.scheduler_address, "s3://bucket/c.zarr"
    with connected(address) as first, claimed(first, target), connected(address) as second:
        claim = claimed(second, target)
        with pytest.raises(eltwise.EltwiseError, match="another client of the cluster writes this target"):
            claim.__enter__()
    with connected(address) as client, claimed(client, target):
        pass


@pytest.mark.parametrize(("size", "count"), [(8 << 20, 40), (1, 40), (1, 1000), (1, 0)])
def test_every_number_once(cluster: LocalCluster, size: int, count: int) -> None:
    with connected(cluster.scheduler_address) as client:
        assert sorted(run_on(client, operator.neg, range(count), size)) == sorted(range(1 - count, 1))


def test_a_corrupt_chunk_names_itself(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    chunk: Any = tmp_path / "b.zarr" / "c" / "7" / "11"
    whole = chunk.read_bytes()
    chunk.write_bytes(b"no")
    code, _out, err = cli(*command(tmp_path, cluster))
    assert code == 2
    assert "chunk [7, 11]" in err
    assert "399 of 400 blocks are kept" in err
    assert err.count("\n") == 1
    chunk.write_bytes(whole)
    note = f"begun anew, since {tmp_path / 'b.zarr'} changed since {tmp_path / 'c.zarr'} was begun\n"
    assert cli(*command(tmp_path, cluster)) == (0, "", note)
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()


def test_a_block_that_is_there_is_not_computed_again(operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    texts = str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")
    target = str(tmp_path / "c.zarr")
    minus = eltwise.operator("Subtract-1")
    apply_files(minus, texts, target)
    entries: list[Entry] = []
    sources = open_sources(texts, (None, None))
    chunk = partial(compute_chunk, Application(minus.operation), sources, target, target)
    for number in range(3):
        done = chunk((number, None))
        assert (done.name, done.failure, done.is_old, done.entry is None) == ("", None, False, False)
        entries += [done.entry] if done.entry else []
    before = chunk_files(tmp_path / "c.zarr")
    (tmp_path / "c.zarr" / "c" / "0" / "1").unlink()
    assert [chunk((number, entry)).is_old for number, entry in enumerate(entries)] == [True, False, True]
    after = chunk_files(tmp_path / "c.zarr")
    assert [name for name in before if before[name] != after[name]] == ["c/0/1"]


def test_a_scheduler_that_is_not_there(cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    files = tmp_path / "a.zarr", tmp_path / "b.zarr"
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        for command in (("reduce", "sum"), ("apply",)):
            output = () if command[0] == "reduce" else ("--output", tmp_path / "c.zarr")
            code, _out, err = cli(*command, "Subtract-1", *files, *output, "--scheduler", address)
            assert code == 2
            assert "the scheduler cannot be reached" in err
            assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]
