"""A real cluster of processes on this machine: workers and clients that die, two clients, a corrupt chunk."""

from __future__ import annotations

import json
import operator
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from distributed import Client, LocalCluster

import eltwise
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.scale import cluster as cluster_tasks
from eltwise.scale.apply import apply_files, compute_chunk
from eltwise.scale.blocks import Application
from eltwise.scale.cluster import claimed, connected, run_on
from eltwise.scale.jobs import Resources
from eltwise.scale.journal import Entry
from eltwise.scale.sources import open_sources
from support.onnx_models import model, node, value
from support.stores import begun, chunk_files, read, store
from support.waiting import wait_for

Cli = Callable[..., tuple[int, str, str]]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, protocol="tcp", host="127.0.0.1"
    ) as made:
        yield made


def _stores(seed: int, folder: Path, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    a, b = (draw.standard_normal((200, 200), np.float32) for _ in "ab")
    for name, values in (("a", a), ("b", b)):
        store(folder / f"{name}.zarr", values, chunks=(chunk, chunk))
    return a, b


@pytest.fixture
def operands(seed: int, tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Two stores of 400 chunks."""
    return _stores(seed, tmp_path, 10)


@pytest.fixture
def few_chunks(seed: int, tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Two stores of 25 chunks, of which the tests that end no process need no more."""
    return _stores(seed, tmp_path, 40)


def command(folder: Path, cluster: LocalCluster, output: str = "c.zarr") -> tuple[object, ...]:
    return line(folder, cluster.scheduler_address, output)


def line(folder: Path, address: str, output: str = "c.zarr") -> tuple[object, ...]:
    files = folder / "a.zarr", folder / "b.zarr"
    return "apply", "Subtract-1", *files, "--output", folder / output, "--scheduler", address


def started(*arguments: object) -> subprocess.Popen[bytes]:
    called = [sys.executable, "-m", "eltwise", *map(str, arguments)]
    return subprocess.Popen(called, stderr=subprocess.PIPE)  # noqa: S603


def test_the_same_bits_in_memory_from_files_with_threads_of_dask_and_on_a_cluster(
    cli: Cli, cluster: LocalCluster, few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    import dask.array as da

    files = tmp_path / "a.zarr", tmp_path / "b.zarr"
    lazily = eltwise.subtract(*map(da.from_zarr, map(str, files))).compute(scheduler="threads")
    expected = eltwise.subtract(*few_chunks)
    assert cli(*command(tmp_path, cluster)) == (0, "", "")
    assert cli(*command(tmp_path, cluster)[:-3], tmp_path / "c.npy") == (0, "", "")
    found = [read(tmp_path / "c.zarr"), read(tmp_path / "c.npy"), lazily, few_chunks[0] - few_chunks[1]]
    assert {each.tobytes() for each in found} == {expected.tobytes()}
    for options, axis in (((), None), (("--axis", "0"), 0)):
        arguments = ("reduce", "mean-squared-difference", *files, *options, "--json")
        found = cli(*arguments, "--scheduler", cluster.scheduler_address)  # type: ignore[assignment]
        assert found == cli(*arguments)
        expected = np.asarray(eltwise.mean_squared_difference(*few_chunks, axis=axis)).reshape(-1)  # type: ignore[unreachable]
        assert json.loads(found[1])["results"]["result"]["values"] == [str(each) for each in expected]
        lazy = eltwise.mean_squared_difference(*map(da.from_zarr, map(str, files)), axis=axis)
        assert np.asarray(lazy.compute(scheduler="threads")).tobytes() == expected.tobytes()
        with connected(cluster.scheduler_address) as client:
            assert np.asarray(client.compute(lazy).result()).tobytes() == expected.tobytes()


def test_a_model_on_a_cluster(
    cli: Cli, cluster: LocalCluster, few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    nodes = [node("Sub", ["a", "b"], ["d"]), node("Mul", ["d", "d"], ["z"])]
    onnx.save(model(nodes, [value("a", None), value("b", None)], [value("z", None)]), tmp_path / "m.onnx")
    files = [text for name in "ab" for text in ("-i", f"{name}={tmp_path / name}.zarr")]
    scheduler = ("--scheduler", cluster.scheduler_address)
    assert cli("run", tmp_path / "m.onnx", *files, "-o", tmp_path / "z.zarr", *scheduler) == (0, "", "")
    assert read(tmp_path / "z.zarr").tobytes() == np.square(few_chunks[0] - few_chunks[1]).tobytes()


@pytest.mark.parametrize("is_reduced", [False, True])
@pytest.mark.parametrize("lack", ["files", "the store"])
def test_a_worker_that_has_not_all_of_an_input_ends_the_job(
    cli: Cli,
    cluster: LocalCluster,
    few_chunks: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_reduced: bool,
    lack: str,
) -> None:
    """The client sees other files than the workers, which share a disk with it here."""
    if lack == "files":
        monkeypatch.setattr("eltwise.scale.sources.extent", lambda path: f"another {path}")
    else:
        monkeypatch.setattr("eltwise.scale.sources.absolute", lambda text: f"{text}-elsewhere")
    called = command(tmp_path, cluster)
    if is_reduced:
        called = ("reduce", "mean-squared-difference", *called[2:4], *called[-2:])
    code, out, err = cli(*called)
    assert (code, out) == (2, "")
    assert ("on a worker of the cluster as it is here" if lack == "files" else "no such file") in err
    assert err.count("\n") == 1
    assert not (tmp_path / "c.zarr").exists() or not read(tmp_path / "c.zarr").any()


def test_another_job_of_the_same_names_reads_the_files_again(
    cli: Cli, cluster: LocalCluster, few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    a, target = few_chunks[0], tmp_path / "c.zarr"
    for chunks, other in (((40, 40), "b"), ((25, 50), "a")):
        store(tmp_path / "b.zarr", few_chunks["ab".index(other)], chunks=chunks, overwrite=True)
        assert cli(*command(tmp_path, cluster)) == (0, "", "")
        assert read(target).tobytes() == eltwise.subtract(a, few_chunks["ab".index(other)]).tobytes()
        shutil.rmtree(target)


def test_a_worker_is_killed(cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        workers: dict[str, int] = client.run(os.getpid)
    running = started(*command(tmp_path, cluster))
    wait_for(lambda: len(chunk_files(begun(tmp_path / "c.zarr"))) > 50)
    os.kill(min(workers.values()), signal.SIGKILL)
    _out, err = running.communicate(timeout=600)
    assert (running.returncode, b"Traceback" in err) == (0, False)
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()


def test_the_client_is_killed_and_the_command_resumed(
    cli: Cli, cluster: LocalCluster, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    target = tmp_path / "c.zarr"
    running = started(*command(tmp_path, cluster))
    journal = target.with_name(f".{target.name}.eltwise") / "journal"
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


def is_quiet(target: Path) -> bool:
    """Whether the workers have ended what the dead client wanted."""
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
    running.communicate(timeout=600)
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
        assert sorted(run_on(client, operator.neg, range(count), size, Resources())) == sorted(range(1 - count, 1))


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
    sources = open_sources(texts, (None, None)).named()
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


def test_a_block_of_zeros_is_written_too(operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    texts, target = (str(tmp_path / "a.zarr"),) * 2, str(tmp_path / "c.zarr")
    minus = eltwise.operator("Subtract-1")
    apply_files(minus, texts, target)
    (tmp_path / "c.zarr" / "c" / "0" / "1").unlink()
    compute_chunk(Application(minus.operation), open_sources(texts, (None, None)).named(), target, target, (1, None))
    assert len(chunk_files(tmp_path / "c.zarr")) == 400


class Processes:
    """A scheduler, and workers that nothing starts again."""

    def __init__(self, folder: Path) -> None:
        file = folder / "scheduler.json"
        self._started = [self._start("scheduler", "--port", "0", "--scheduler-file", str(file))]
        wait_for(file.exists)
        wait_for(lambda: bool(file.read_text()))
        self.address: str = json.loads(file.read_text())["address"]

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        called = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            *options,
        ]
        return subprocess.Popen(called, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603

    @property
    def scheduler(self) -> subprocess.Popen[bytes]:
        return self._started[0]

    def add_worker(self, *options: str) -> None:
        self._started.append(self._start("worker", self.address, "--no-nanny", "--nthreads", "1", *options))

    def await_worker(self) -> None:
        with connected(self.address) as client:
            wait_for(lambda: bool(client.nthreads()))

    def kill_workers(self) -> None:
        for process in self._started[1:]:
            process.kill()
            process.wait()

    def kill(self) -> None:
        self.kill_workers()
        self.scheduler.kill()
        self.scheduler.wait()


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    monkeypatch.setattr("eltwise.scale.cluster._QUIET_SECONDS", 0.3)
    made = Processes(tmp_path)
    try:
        yield made
    finally:
        made.kill()


LACKS = "the cluster has no running workers"


def test_a_cluster_without_workers(
    cli: Cli, processes: Processes, few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """What is waited for is said, also in a pipe, and not for ever."""
    files, network = (tmp_path / "a.zarr", tmp_path / "b.zarr"), tmp_path / "m.onnx"
    nodes, inputs = [node("Sub", ["a", "b"], ["z"])], [value("a", None), value("b", None)]
    onnx.save(model(nodes, inputs, [value("z", None)]), network)
    for called in (
        ("apply", "Subtract-1", *files, "--output", tmp_path / "c.zarr"),
        ("reduce", "sum", "Subtract-1", *files),
        ("run", network, "-i", f"a={files[0]}", "-i", f"b={files[1]}", "-o", tmp_path / "z.zarr"),
    ):
        code, out, err = cli(*called, "--scheduler", processes.address, "--wait", 1)
        assert (code, out) == (2, "")
        assert err.splitlines() == [
            f"{processes.address}: {LACKS}; waiting up to 1 s",
            f"eltwise: {processes.address}: {LACKS}, for 1 s; start workers, and run the same command again",
        ]


def test_an_adaptive_cluster_without_workers_starts_some(
    few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """It starts workers when it is given tasks, which waited for workers."""
    texts, output = (str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")), str(tmp_path / "c.zarr")
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as adaptive:
        adaptive.adapt(minimum=0, maximum=1, interval="100ms")
        resources = Resources(scheduler=adaptive.scheduler_address, wait=60)
        apply_files(eltwise.operator("Subtract-1"), texts, output, resources)
    assert read(tmp_path / "c.zarr").tobytes() == (few_chunks[0] - few_chunks[1]).tobytes()


def test_a_worker_without_eltwise_is_told(
    cli: Cli, processes: Processes, few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """Dask's worker ends where it cannot unpickle a task, and a client would wait for the next one."""
    preload = tmp_path / "without_eltwise.py"
    preload.write_text("import sys\nsys.modules['eltwise'] = None\n")
    processes.add_worker("--preload", str(preload))
    code, out, err = cli(*line(tmp_path, processes.address))
    assert (code, out) == (2, "")
    assert "a task of the cluster failed (No module named 'eltwise.scale'" in err
    assert "every worker needs this version of eltwise" in err


def test_a_worker_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions differ in bits where one of them is wrong: a result would mix both."""
    sent = pickle.dumps(cluster_tasks._Task(str, [1, 2]))
    assert pickle.loads(sent) == ["1", "2"]  # noqa: S301
    monkeypatch.setattr(cluster_tasks, "VERSION", "0.1.9")
    with pytest.raises(UnsupportedError, match=r"got eltwise 0\.1\.9 on a worker") as refused:
        pickle.loads(sent)  # noqa: S301
    assert refused.value.hint == "every worker needs this version of eltwise"


def job(processes: Processes, folder: Path, **resources: Any) -> Callable[[], Any]:
    texts = str(folder / "a.zarr"), str(folder / "b.zarr")
    used = Resources(scheduler=processes.address, **{"wait": 60, **resources})
    return partial(apply_files, eltwise.operator("Subtract-1"), texts, str(folder / "c.zarr"), used)


def after_blocks(count: int, action: Callable[[], object]) -> Callable[[int, int, str], None]:
    """Progress that does something once, when at least so many of 400 blocks are done."""
    pending = [action]

    def tell(done: int, size: int, _name: str) -> None:
        if done * 400 >= count * size and pending:
            pending.pop()()

    return tell


def test_workers_that_come_late(processes: Processes, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    said: list[str] = []

    def say(sentence: str) -> None:
        said.append(sentence)
        processes.add_worker()

    job(processes, tmp_path, say=say)()
    assert said[0] == f"{processes.address}: {LACKS}; waiting up to 60 s"
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()


def test_all_workers_die(processes: Processes, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    """The blocks are kept, whether no worker comes, or another one."""
    processes.add_worker()
    processes.await_worker()
    with pytest.raises(FileFormatError, match=f"{LACKS}, for 1 s"):
        job(processes, tmp_path, wait=1, progress=after_blocks(50, processes.kill_workers))()
    kept = begun(tmp_path / "c.zarr").parent.with_name("journal").read_bytes().count(b"\n") - 1
    assert 50 <= kept < 400
    processes.add_worker()
    said: list[str] = []

    def say(sentence: str) -> None:
        said.append(sentence)
        processes.add_worker()

    outcome = job(processes, tmp_path, say=say, progress=after_blocks(kept + 50, processes.kill_workers))()
    assert outcome.resumed == kept
    assert set(said) == {f"{processes.address}: {LACKS}; waiting up to 60 s"}
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()


def test_all_workers_are_paused(
    processes: Processes,
    few_chunks: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask pauses a worker whose memory is nearly full; they were waited for without a word and without end."""
    with monkeypatch.context() as patched:
        patched.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE", "0.000001")
        processes.add_worker("--memory-limit", "1GiB")
    processes.await_worker()
    with connected(processes.address) as client:
        wait_for(lambda: not client.sync(client.scheduler.ncores_running))
    with pytest.raises(FileFormatError, match=f"{LACKS}, for 1 s"):
        job(processes, tmp_path, wait=1)()
    job(processes, tmp_path, say=lambda _sentence: processes.add_worker())()
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*few_chunks).tobytes()


def test_a_scheduler_that_freezes_or_dies(
    processes: Processes, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    processes.add_worker()
    processes.await_worker()
    said: list[str] = []

    def say(sentence: str) -> None:
        said.append(sentence)
        processes.scheduler.send_signal(signal.SIGCONT)

    freeze = partial(processes.scheduler.send_signal, signal.SIGSTOP)
    job(processes, tmp_path, progress=after_blocks(50, freeze), say=say)()
    assert set(said) == {f"{processes.address}: the scheduler does not answer; waiting up to 60 s"}
    assert read(tmp_path / "c.zarr").tobytes() == eltwise.subtract(*operands).tobytes()
    shutil.rmtree(tmp_path / "c.zarr")
    with pytest.raises(FileFormatError, match="the connection to the scheduler was lost"):
        job(processes, tmp_path, progress=after_blocks(50, processes.kill))()
    assert len(chunk_files(begun(tmp_path / "c.zarr"))) >= 50
    assert capfd.readouterr().err == ""


@contextmanager
def listening(answer: bytes | None, *, is_closed: bool) -> Iterator[int]:
    """Something on a port that is no scheduler."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _address = server.accept()
                except OSError:
                    return
                connections.append(connection)
                if answer is not None:
                    connection.sendall(answer)
                if is_closed:
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield int(server.getsockname()[1])
        finally:
            for connection in connections:
                connection.close()


FORM = "this is not the address of a scheduler"
ADDRESSES = {
    **dict.fromkeys(["x", "tcp://", "tcp://:", "tcp://host", "tcp://h:x", "tcp://h:0", "tls://h:99999"], FORM),
    "": "an empty text is no value",
    **dict.fromkeys(["nonsense://x", "://", "http://127.0.0.1:80"], "unknown protocol of a scheduler"),
    "tcp://127.0.0.1:9": "cannot be reached (Connection refused)",
    "tcp://no.such.host.invalid:8786": "cannot be reached",
    "\x1b]0;PWN\x07:1": "cannot be reached",
    "tcp://127.0.0.1:{silent}": "cannot be reached (no answer within",
    "tcp://127.0.0.1:{http}": "cannot be reached (something else listens there)",
    "tcp://127.0.0.1:{junk}": "cannot be reached (",
    "tcp://127.0.0.1:{closed}": "cannot be reached (",
    "tls://127.0.0.1:{silent}": "cannot be reached (",
    "ws://127.0.0.1:{http}": "cannot be reached (",
    "tcp://127.0.0.1:{worker}": "cannot be reached (a Worker listens there)",
    "inproc://1/2/3": "cannot be reached (",
}


@contextmanager
def ports(cluster: LocalCluster) -> Iterator[dict[str, int]]:
    (worker, *_others) = cluster.scheduler.workers
    with (
        listening(None, is_closed=False) as silent,
        listening(b"HTTP/1.1 400 Bad Request\r\n\r\n", is_closed=True) as http,
        listening(bytes(range(256)) * 9, is_closed=False) as junk,
        listening(None, is_closed=True) as closed,
    ):
        yield {
            "silent": silent,
            "http": http,
            "junk": junk,
            "closed": closed,
            "worker": int(worker.rpartition(":")[2]),
        }


def test_what_is_no_scheduler(
    cli: Cli,
    cluster: LocalCluster,
    few_chunks: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One sentence, and nothing is made."""
    monkeypatch.setattr("eltwise.scale.schedulers.ANSWER_SECONDS", 1.0)
    files = tmp_path / "a.zarr", tmp_path / "b.zarr"
    with ports(cluster) as numbers:
        for number, (address, words) in enumerate(ADDRESSES.items()):
            start = ("apply", "Subtract-1", *files, "--output", tmp_path / "c.zarr")
            line = start if number % 2 else ("reduce", "sum", "Subtract-1", *files)
            code, out, err = cli(*line, "--scheduler", address.format(**numbers))
            assert (code, out, err.count("\n")) == (2, "", 1), (address, err)
            assert words in err, address
            assert err.isascii(), address
            assert "\x1b" not in err
            assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


def test_a_process_ends_soon_where_there_is_no_scheduler(
    cluster: LocalCluster, few_chunks: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """With the times as they are, and with all that the end of a process writes to stderr."""
    files = tmp_path / "a.zarr", tmp_path / "b.zarr"
    with ports(cluster) as numbers:
        addresses = ["x", "tcp://", *(f"tcp://127.0.0.1:{numbers[name]}" for name in ("silent", "http"))]
        runs = [started("reduce", "sum", "Subtract-1", *files, "--scheduler", address) for address in addresses]
        for run in runs:
            _out, err = run.communicate(timeout=600)
            assert (run.returncode, err.count(b"\n"), err[:8]) == (2, 1, b"eltwise:")
