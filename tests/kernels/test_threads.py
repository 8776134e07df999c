"""Threads and the kernel cache: how many, at once from several callers, and object code that is verified when read."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.core.machine import processors
from eltwise.kernels import disk_cache, threads

LARGE = 4 << 20


def test_set_num_threads() -> None:
    eltwise.set_num_threads(3)
    assert threads.num_threads() == 3
    for wrong in (0, -1, True, "2", 1.5):
        with pytest.raises(eltwise.EltwiseError, match="invalid number of threads"):
            eltwise.set_num_threads(wrong)  # type: ignore[arg-type]
    eltwise.set_num_threads(2)


def test_the_number_of_processors_is_known_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 2, 5}, raising=False)
    assert processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    for found, expected in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda found=found: found)
        assert processors() == expected
        monkeypatch.setattr(threads._state, "wanted", None)
        assert threads.num_threads() == expected


def test_only_one_module_asks_for_processors() -> None:
    asking = {
        path.name for path in Path(eltwise.__file__).parent.rglob("*.py") if "sched_getaffinity" in path.read_text()
    }
    assert asking == {"machine.py"}


@pytest.mark.parametrize(("text", "expected"), [("1", "1"), ("5", "5"), ("", str(processors()))])
def test_the_environment_says_how_many(text: str, expected: str) -> None:
    code = "from eltwise.kernels.threads import num_threads; print(num_threads())"
    environment = os.environ | {"ELTWISE_NUM_THREADS": text}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == expected


def test_several_callers_at_once_get_their_own_results() -> None:
    operands = [np.full(LARGE, number, np.float32) for number in range(6)]
    with ThreadPoolExecutor(6) as callers:
        results = list(callers.map(lambda operand: eltwise.subtract(operand, 1), operands))
    for number, result in enumerate(results):
        assert (result == number - 1).all()


def test_an_error_in_one_piece_reaches_the_caller() -> None:
    def fail() -> None:
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        threads.run_together([lambda: None, fail])


def test_what_pieces_need_is_let_go_though_no_helper_came(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[object] = []
    monkeypatch.setattr(threads, "_ask_helpers", lambda job, _count: late.append(job))
    kept = np.ones(8)
    memory = weakref.ref(kept)
    threads.run_together([lambda: None] * 4, 2, keep=kept)
    del kept
    assert late
    assert memory() is None


def test_calls_with_the_same_arrays_read_them_anew() -> None:
    a, b, out = (np.full(1 << 20, number, np.float32) for number in (5, 3, 0))
    for first in (5, 7, 9):
        a[:] = first
        assert (eltwise.subtract(a, b, out=out) == first - 3).all()
    # As many results elsewhere as are kept, and more.
    for place in range(40):
        assert (eltwise.subtract(a, b, out=np.empty((1 << 20) + place, np.float32)[place:]) == 6).all()
    for count in (1, 3, 2):
        eltwise.set_num_threads(count)
        assert (eltwise.subtract(a, b, out=out) == 6).all()


def test_object_code_is_verified_when_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_CACHE", str(tmp_path / "cache"))
    key = disk_cache.key_of("text", "target")
    assert disk_cache.load(key) is None
    disk_cache.store(key, b"object code")
    assert disk_cache.load(key) == b"object code"
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert disk_cache.load(key) is None
    file.write_bytes(b"")
    assert disk_cache.load(key) is None
    assert disk_cache.key_of("ab", "c") != disk_cache.key_of("a", "bc")


def test_the_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(disk_cache, "LARGEST_FOLDER", 1000)
    for number in range(8):
        disk_cache.store(f"{number}", bytes(200))
        os.utime(tmp_path / f"{number}.object", (number, number))
    disk_cache.store("last", bytes(200))
    left = {file.name for file in tmp_path.iterdir()}
    assert "last.object" in left
    assert "0.object" not in left
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 1000


def test_a_cache_that_is_off_or_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_CACHE", "off")
    disk_cache.store("key", b"code")
    assert disk_cache.load("key") is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ELTWISE_CACHE", str(tmp_path / "file" / "below"))
    disk_cache.store("key", b"code")
    assert disk_cache.load("key") is None


def warned() -> pytest.WarningsRecorder:
    return pytest.warns(RuntimeWarning, match="the kernel cache is not used")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which something is kept."""
    folder = tmp_path / "above" / "cache"
    monkeypatch.setenv("ELTWISE_CACHE", str(folder))
    disk_cache.store("key", b"object code")
    assert disk_cache.load("key") == b"object code"
    return folder


needs_owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system does not tell whose a file is")


@needs_owners
def test_the_cache_is_the_users_alone(kept: Path) -> None:
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in kept.iterdir()] == [0o600]


@needs_owners
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702, 0o720])
def test_a_cache_that_others_may_write_is_not_used_and_said_once(kept: Path, mode: int) -> None:
    kept.chmod(mode)
    with warned() as said:
        assert disk_cache.load("key") is None
        disk_cache.store("other", b"object code")
        assert disk_cache.load("key") is None
    assert len(said) == 1
    assert [file.name for file in kept.iterdir()] == ["key.object"]
    kept.chmod(0o755)
    assert disk_cache.load("key") == b"object code"


@needs_owners
@pytest.mark.parametrize(("mode", "is_used"), [(0o777, False), (0o1777, True), (0o755, True), (0o707, False)])
def test_a_folder_above_that_others_may_write_keeps_no_cache(kept: Path, mode: int, is_used: bool) -> None:
    kept.parent.chmod(mode)
    with contextlib.nullcontext() if is_used else warned():
        assert (disk_cache.load("key") is not None) == is_used


@needs_owners
def test_a_cache_of_somebody_else_is_not_used(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: kept.stat().st_uid + 1)
    with warned():
        assert disk_cache.load("key") is None


@needs_owners
def test_no_link_is_followed_into_or_in_the_cache(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept / "link.object").symlink_to(kept / "key.object")
    assert disk_cache.load("link") is None
    (kept.parent / "link").symlink_to(kept)
    monkeypatch.setenv("ELTWISE_CACHE", str(kept.parent / "link"))
    with warned():
        assert disk_cache.load("key") is None


@needs_owners
@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_a_file_that_others_may_write_is_not_read(kept: Path, mode: int) -> None:
    (kept / "key.object").chmod(mode)
    assert disk_cache.load("key") is None


def test_without_owners_the_folder_is_trusted(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.chmod(0o777)
    monkeypatch.delattr(os, "getuid", raising=False)
    monkeypatch.delattr(os, "O_NOFOLLOW", raising=False)
    assert disk_cache.load("key") == b"object code"


def test_a_call_warns_of_a_cache_that_others_may_write(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    code = """
import numpy, eltwise
for count in (1, 2):
    print((eltwise.subtract(numpy.ones(1 << 20, numpy.int32), numpy.ones((), numpy.int32)) == 0).all())
    print((eltwise.subtract(numpy.ones(1 << 20, numpy.int16), numpy.ones((), numpy.int16)) == 0).all())
"""
    environment = os.environ | {"ELTWISE_CACHE": str(tmp_path / "cache"), "ELTWISE_KERNELS": "compiled"}
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    assert done.stdout.split() == ["True"] * 4
    assert done.stderr.count("RuntimeWarning") == 1
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_second_process_reads_what_the_first_compiled(tmp_path: Path) -> None:
    code = """
import numpy, eltwise
a = numpy.arange(1 << 20, dtype=numpy.float32)
print(int((eltwise.subtract(a, 1) == a - 1).all()))
"""
    environment = os.environ | {"ELTWISE_CACHE": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.strip() == "1"
        assert len(list(tmp_path.iterdir())) == 1


def test_the_number_of_threads_may_change_while_others_compute() -> None:
    operand = np.full(LARGE, 3, np.float32)

    def compute(_turn: int) -> bool:
        return bool((eltwise.subtract(operand, 1) == 2).all())

    with ThreadPoolExecutor(2) as callers:
        results = callers.map(compute, range(24))
        for turn in range(200):
            eltwise.set_num_threads(2 + turn % 2)
        assert all(results)
    eltwise.set_num_threads(2)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import eltwise
eltwise.set_num_threads(3)
a, b = np.full(5_000_000, 7, np.int16), np.full(5_000_000, 9, np.int16)
caught = 0
for turn in range(40):
    timer = threading.Timer(0.0005 * (turn % 9), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            eltwise.subtract(a, b)
    except KeyboardInterrupt:
        caught += 1
    timer.join()
    result = eltwise.subtract(b, a)
    assert (result == 2).all()
print(caught)
"""


def test_an_interrupt_leaves_nothing_broken() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout == "40\n", done.stderr


FORKED = """
import contextlib
import os
import stat
import numpy as np
import eltwise
eltwise.set_num_threads(3)
a = np.arange(3_000_000, dtype=np.float32)
kept = eltwise.subtract(a, a[::-1])
children = []
for _child in range(4):
    child = os.fork()
    if child == 0:
        right = all((eltwise.subtract(a, a[::-1]) == kept).all() for _again in range(5))
        os._exit(0 if right else 1)
    children.append(child)
    assert (eltwise.subtract(a, a[::-1]) == kept).all()
print([os.waitpid(child, 0)[1] for child in children])
"""


def test_a_fork_leaves_nothing_broken() -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[0, 0, 0, 0]\n", done.stderr


SHARED = """
import contextlib
import os
import stat
import numpy as np
import eltwise
a, b = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
kept = eltwise.subtract(a, b)
freed = eltwise.subtract(a, b)
del freed
child = os.fork()
mine = eltwise.subtract(a, np.full(1 << 20, 6 if child else 2, np.float32))
if child == 0:
    kept[:] = 77
    os._exit(0 if (mine == -1).all() else 1)
print(os.waitpid(child, 0)[1], kept[0], set(mine))
"""


def test_a_fork_shares_no_result() -> None:
    done = subprocess.run([sys.executable, "-c", SHARED], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout == "0 1.0 {np.float32(-5.0)}\n", done.stderr


COMPILING = """
import os, threading, time
import numpy as np
import eltwise
from eltwise.kernels import jit
a = np.ones(1 << 20, np.float32)
compile_now, started = jit._compile, threading.Event()
jit._compile = lambda text: (started.set(), time.sleep(0.5), compile_now(text))[2]
thread = threading.Thread(target=eltwise.subtract, args=(a, a))
thread.start()
started.wait()
child = os.fork()
if child == 0:
    jit._compile = compile_now
    os._exit(0 if (eltwise.squared_difference(a, a + 2) == 4).all() else 1)
thread.join()
print(os.waitpid(child, 0)[1])
"""


def test_a_fork_while_a_kernel_is_compiled() -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", COMPILING],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "0\n", done.stderr


def test_without_another_thread_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_state", threads._State(wanted=4))
    monkeypatch.setattr(threads.threading.Thread, "start", refuse)
    done: list[int] = []
    threads.run_together([lambda: done.append(1)] * 9, 4)
    assert len(done) == 9


def test_what_one_raises_waits_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    began, goes_on, written = threading.Event(), threading.Event(), []

    def slow() -> None:
        began.set()
        goes_on.wait(10)
        written.append(1)

    def interrupted() -> None:
        began.wait(10)
        threading.Timer(0.2, goes_on.set).start()
        raise TimeoutError("planted")

    monkeypatch.setattr(threads, "_state", threads._State(wanted=2))
    with pytest.raises(TimeoutError, match="planted"):
        threads.run_together([slow, interrupted], 2)
    assert written == [1]
