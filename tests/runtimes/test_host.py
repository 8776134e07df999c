"""The process of a runtime: crashes, hangs and broken frames are answers, and no process is left behind."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eltwise import runtimes
from eltwise.core.dtypes import BY_NAME
from eltwise.core.errors import FileFormatError, NameUnknownError, UnsupportedError
from eltwise.runtimes import Call, Host, StoppedError, wire
from eltwise.runtimes.memory import SharedMemory
from support.waiting import wait_for

MAPPING = """
import mmap, pathlib, beside
with open(pathlib.Path(__file__).with_name("library"), "rb") as file:
    library = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)
offset = 1
def run(op, a, b):
    return a - offset
"""
PLANTED = str(Path(__file__).parents[1] / "support" / "planted.py")
CALL = Call("Sub-14", (("subtract", (0, 1)),))
OPERANDS = [np.array([[5, 7, 9]], np.int32), np.array([[1, 2, 3]], np.int32)]


def planted(function: str) -> runtimes.Runtime:
    return runtimes.find(f"{PLANTED}:{function}")


def is_running(number: int) -> bool:
    """Whether a process lives; one that has ended and waits to be asked for its exit code does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_call_gives_its_result() -> None:
    with Host(planted("exact")) as host:
        assert host.version().startswith("1.2 (file ")
        answer = host.run(CALL, OPERANDS)
        assert (answer.kind, answer.message, answer.mode) == ("result", "", "")
        assert np.array_equal(answer.arrays[0], [[4, 5, 6]])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "words"),
    [("reading_nothing", "SIGSEGV"), ("leaving", "exit code 3: out of order")],
)
def test_a_crash_is_an_answer_and_the_next_call_gets_a_new_process(function: str, words: str) -> None:
    with Host(planted(function)) as host:
        for _time in range(2):
            answer = host.run(CALL, OPERANDS)
            assert answer.kind == "crashed"
            assert words in answer.message
            assert not host.is_running


def test_a_hang_is_an_answer() -> None:
    with Host(planted("hanging"), limit=0.5) as host:
        three = np.zeros((3, 3), np.int32)
        answer = host.run(CALL, [three, three])
        assert (answer.kind, answer.message) == ("hung", "no answer within 0.5 seconds")
        assert host.run(CALL, OPERANDS).kind == "result"


def test_after_many_hangs_nothing_more_is_run() -> None:
    three = np.zeros((3, 3), np.int32)
    with Host(planted("hanging"), limit=0.5, most_hung=2) as host:
        for inputs, kind in [([three, three], "hung"), (OPERANDS, "result"), *[([three, three], "hung")] * 2]:
            answer = host.run(CALL, inputs)
            assert (answer.kind, "not run" in answer.message) == (kind, False)
        answer = host.run(CALL, OPERANDS)
        assert (answer.kind, answer.message) == ("hung", "not run: 2 answers in a row did not come within 0.5 seconds")
        host.hung = 0
        assert host.run(CALL, OPERANDS).kind == "result"


def test_a_refusal_and_what_is_not_an_array_are_told() -> None:
    with Host(planted("raising")) as host:
        answer = host.run(CALL, OPERANDS)
        assert (answer.kind, answer.message) == ("refused", "RuntimeError: there is no kernel for this")
    with Host(planted("giving_lists")) as host:
        answer = host.run(CALL, OPERANDS)
        assert (answer.kind, answer.arrays) == ("result", (None,))
        assert answer.message == "gave a list instead of a NumPy array"


@pytest.mark.parametrize("size", [3, 5000])  # The larger ones lie in shared memory.
def test_who_writes_to_its_operands_is_refused_whatever_it_gives(size: int) -> None:
    operands = [np.full((1, size), value, np.int32) for value in (5, 3)]
    with Host(planted("writing_into_operands"), shares_memory=True) as host:
        answer = host.run(CALL, operands)
        assert (answer.kind, answer.message) == ("refused", "it wrote to its input 1")


def test_threads_take_turns() -> None:
    """Also while the process starts, when it says that it is ready before it answers."""
    for _time in range(3):
        with Host(planted("raising")) as host, ThreadPoolExecutor(4) as pool:
            versions = [pool.submit(host.version) for _thread in range(2)]
            answers = [pool.submit(host.run, CALL, OPERANDS) for _thread in range(3)]
            assert {answer.result(timeout=600).kind for answer in answers} == {"refused"}
            assert len({version.result(timeout=600) for version in versions}) == 1


def test_memory_that_is_broken_shows_when_the_process_leaves() -> None:
    with Host(planted("breaking_its_memory")) as host:
        empty = np.zeros((2, 0, 3), np.int32), np.zeros((1, 1, 3), np.int32)
        assert host.run(CALL, empty).kind == "result"
        assert "SIGABRT" in host.leave()
        assert host.run(CALL, OPERANDS).kind == "result"
        assert host.leave() == ""


def test_what_a_runtime_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "child"
    monkeypatch.setenv("PLANTED_CHILD", str(said))
    with Host(planted("computing_beside_a_child")) as host:
        assert host.run(CALL, OPERANDS).kind == "result"
        assert is_running(int(said.read_text()))
    wait_for(lambda: not is_running(int(said.read_text())))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's end")
def test_a_runtime_ends_when_its_parent_is_killed() -> None:
    code = (
        "from eltwise import runtimes\n"
        f"host = runtimes.Host(runtimes.find({f'{PLANTED}:exact'!r})); host.version()\n"
        "print(host._process.pid, flush=True); input()"
    )
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        number = int(parent.stdout.readline())
        assert is_running(number)
        parent.kill()
    wait_for(lambda: not is_running(number))


def test_another_thread_can_stop_it() -> None:
    with Host(planted("hanging")) as host:
        host.version()
        threading.Timer(0.3, host.stop).start()
        three = np.zeros((3, 3), np.int32)
        with pytest.raises(StoppedError):
            host.run(CALL, [three, three])
        with pytest.raises(StoppedError):
            host.version()


def test_a_runtime_that_cannot_start_says_why() -> None:
    with Host(planted("no_such_function")) as host, pytest.raises(UnsupportedError, match="no function 'no_such_f"):
        host.version()
    broken = replace(planted("exact"), adapter="no_such_module:X")
    with Host(broken) as host, pytest.raises(UnsupportedError, match="cannot be started: ModuleNotFoundError"):
        host.version()


@pytest.mark.parametrize("name", ["mine.py", "beside.py", "library"])
def test_the_version_of_a_file_tells_every_change_of_what_it_loads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change within a second and of equal size, too, which Python does not see by its cached bytecode."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    tmp_path = tmp_path / "r"  # Which is part of the mode of what is mapped.
    tmp_path.mkdir()
    (tmp_path / "mine.py").write_text(MAPPING)
    (tmp_path / "beside.py").write_text("SUBTRACTED = 1\n")
    (tmp_path / "library").write_text("subtracted 1\n")
    versions, results = [], []
    for text in ("1", "2"):
        file = tmp_path / name
        file.write_text(file.read_text().replace("subtracted 1", f"subtracted {text}").replace("= 1", f"= {text}"))
        os.utime(file, (1e9, 1e9))
        with Host(runtimes.find(f"{tmp_path / 'mine.py'}:run")) as host:
            versions.append(host.version())
            results.append(host.run(CALL, OPERANDS).arrays[0])
    assert versions[0] != versions[1]
    if name == "mine.py":
        assert np.array_equal(results[0] - 1, results[1])  # type: ignore[arg-type,operator]


def test_a_runtime_that_is_changed_while_it_runs_does_not_go_on(tmp_path: Path) -> None:
    """Its process is started anew after a crash, and has the new code."""
    file = tmp_path / "mine.py"
    file.write_text("import os\ndef run(op, *operands):\n    os._exit(3)\n")
    with Host(runtimes.find(f"{file}:run")) as host:
        assert host.run(CALL, OPERANDS).kind == "crashed"
        file.write_text("def run(op, *operands):\n    return operands[0]\n")
        for _time in range(2):
            with pytest.raises(UnsupportedError, match="was changed while it was in use, got"):
                host.run(CALL, OPERANDS)


def test_a_start_has_a_limit_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr("eltwise.runtimes.host._START_LIMIT", 0.5)
    with (
        Host(runtimes.find(f"{file}:run"), 0.5) as host,
        pytest.raises(UnsupportedError, match=r"cannot be started: it was not ready within 0\.5 seconds"),
    ):
        host.version()


def test_names_are_known_or_refused_with_the_nearest() -> None:
    with pytest.raises(NameUnknownError, match="did you mean 'onnxruntime'"):
        runtimes.find("onnxruntim")
    with pytest.raises(FileFormatError, match="there is no such file"):
        runtimes.find("./no_such_file.py:run")
    missing = replace(planted("exact"), packages=("no_such_package",))
    assert not missing.is_installed
    assert len({runtime.name for runtime in runtimes.RUNTIMES}) == len(runtimes.RUNTIMES)


def test_frames_are_read_back_and_broken_ones_refused() -> None:
    message = wire.Message({"kind": "result"}, (np.arange(6, dtype=np.int16).reshape(2, 3),))
    data = wire.encode(message)
    again = wire.receive(io.BytesIO(data))
    assert again is not None
    assert again.fields == message.fields
    assert np.array_equal(again.arrays[0], message.arrays[0])
    assert wire.receive(io.BytesIO(data[:-1])) is None
    for head, body in (
        (b"{}", b""),
        (b"[]", b""),
        (b"nonsense", b""),
        (b'{"arrays": [{"dtype": "int16", "shape": [3]}]}', b"1234"),
        (b'{"arrays": [{"dtype": "int16", "shape": [-1]}]}', b"1234"),
        (b'{"arrays": [{"dtype": "string", "shape": [1]}]}', b"1234"),
        (b'{"arrays": [{"dtype": "int99", "shape": [1]}]}', b"1234"),
    ):
        with pytest.raises(FileFormatError):
            wire.decode(head, body)
    with pytest.raises(FileFormatError, match="too large"):
        wire.receive(io.BytesIO(b"\xff" * 8))


@pytest.mark.parametrize("shape", [(3,), (1000, 70)])
def test_arrays_of_shared_memory_are_those_that_were_sent(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    with Host(planted("exact"), shares_memory=True) as host:
        for _time in range(3):  # Later runs use the same memory, and more of it.
            shape = (*shape, 2)
            a, b = (generator.integers(0, 99, shape).astype(np.int32) for _operand in range(2))
            answer = host.run(CALL, [a, b], results=[(BY_NAME["int32"], shape)])
            assert np.array_equal(answer.arrays[0], a - b)  # type: ignore[arg-type]


def test_an_array_outside_of_the_shared_memory_is_refused() -> None:
    memory = SharedMemory()
    memory.put(np.arange(9))
    frame = wire.encode(wire.Message({}, (np.zeros(4096, np.uint8),)), memory)
    text = frame[8:].replace(b'"at": 128', b'"at": 99999999')
    assert text != frame[8:]
    with pytest.raises(FileFormatError, match="the array does not lie in the shared memory"):
        wire.decode(text, b"", memory)
    memory.close()
