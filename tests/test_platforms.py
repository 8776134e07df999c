"""What only some systems have is taken away, as on macOS and Windows, and everything still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TAKEN = {
    "darwin": ["os.sched_getaffinity", "mmap.MADV_HUGEPAGE", "os.pidfd_open", "os.memfd_create"],
    "win32": [
        *("os.sched_getaffinity", "os.register_at_fork", "os.fork", "os.killpg", "os.setsid", "os.getuid"),
        *("os.sysconf_names", "os.O_NOFOLLOW", "mmap.MAP_PRIVATE", "mmap.MADV_HUGEPAGE"),
        *("signal.SIGKILL", "os.pidfd_open", "os.getloadavg", "os.memfd_create"),
    ],
}
"""What the system lacks, of what Linux has; more than these are taken away one by one."""

SCRIPT = """
import ctypes, mmap, multiprocessing, os, platform, random, signal, subprocess, sys, tempfile, threading
import llvmlite.binding, ml_dtypes, numpy as np
llvmlite.binding.initialize_native_target()  # Finds its own library by the name of the system.
platform.machine(), platform.processor()
for name in sys.argv[2:]:
    module, _dot, function = name.partition(".")
    vars(sys.modules[module]).pop(function, None)
sys.platform = sys.argv[1]
import eltwise
from eltwise.kernels import dispatch, image, threads
eltwise.set_num_threads(2)
for count in (16, 200_000, 3_000_000):
    a, b = np.arange(count, dtype=np.float32), np.full(count, 3, np.float32)
    for _turn in range(120 if count < 1_000_000 else 3):
        result = eltwise.subtract(a, b)
    assert (result == a - b).all()
assert dispatch.has_compiler()
assert image.can_be_mapped() == (sys.platform == "linux")
assert threads.THREAD_POOL.workers == 1
from eltwise.runtimes.host import Host
from eltwise.runtimes.memory import SharedMemory
memory = SharedMemory()
offset = memory.put(result)
other = SharedMemory(memory.path)
assert (other.at(offset, result.dtype, result.shape) == result).all()
other.close(), memory.close()
"""


def run(folder: Path, system: str, taken: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", SCRIPT, system, *taken],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"ELTWISE_CACHE": str(folder / "cache"), "ELTWISE_NUM_THREADS": ""},
    )


@pytest.mark.parametrize("system", TAKEN)
def test_another_system(system: str, tmp_path: Path) -> None:
    for _turn in range(2):  # The second time kernels are read from the disk.
        done = run(tmp_path, system, TAKEN[system])
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKEN["win32"])
def test_without_one_function(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, "linux", [name])
    assert (done.returncode, done.stderr) == (0, "")
