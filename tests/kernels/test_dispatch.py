"""Which kernel computes a call, and that a machine without a compiler runs everything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WITHOUT_COMPILER = """
import sys, warnings
sys.modules["llvmlite"] = None
sys.modules["llvmlite.binding"] = None
import numpy as np
import eltwise
a = np.arange(1 << 19, dtype=np.float32).reshape(-1, 4)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _again in range(3):
        assert (eltwise.squared_difference(a, a[:1]) == (a - a[:1]) ** 2).all()
        assert eltwise.subtract(a.astype(np.float16), a[:1].astype(np.float16)).shape == a.shape
notices = [str(one.message) for one in caught if "eltwise" in str(one.message)]
print(len(notices), notices[0])
"""
ASKED = """
import numpy as np
import eltwise
from eltwise.kernels import compiled
calls = []
run = compiled.Call.__call__
compiled.Call.__call__ = lambda *arguments: (calls.append(1), run(*arguments))[1]
for size in (4, 1 << 19):
    a = np.arange(size, dtype=np.float32)
    for _again in range(3):
        assert (eltwise.subtract(a, a[::-1]) == a - a[::-1]).all()
print(len(calls))
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def test_without_a_compiler_everything_runs_and_one_notice_says_so() -> None:
    done = python(WITHOUT_COMPILER)
    assert done.stdout.startswith("1 eltwise computes without compiled kernels, which is slower: "), done.stderr


# Where all kernels are compiled, the first call makes a record, which computes the others.
@pytest.mark.parametrize(("kernels", "calls"), [("numpy", "0"), ("compiled", "2"), ("auto", "3"), ("", "3")])
def test_the_kernels_that_are_asked_for_are_taken(kernels: str, calls: str) -> None:
    assert python(ASKED, ELTWISE_KERNELS=kernels).stdout.strip() == calls


def test_kernels_that_there_are_not_are_refused_by_name() -> None:
    done = python(ASKED, ELTWISE_KERNELS="fast")
    assert "ELTWISE_KERNELS: unknown kind of kernels, got 'fast'; allowed: auto, numpy, compiled" in done.stderr
