"""What starting costs: no library that the call does not need; and the public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import eltwise
from eltwise.cli import COMMANDS
from eltwise.kernels import image

HEAVY = ("onnx", "lxml", "llvmlite", "google.protobuf", "click", "rich", "dask", "xarray", "torch")
CALL = "import numpy; a = numpy.ones(16, numpy.float32); eltwise.subtract(a, a)"
LARGE_CALL = "import numpy; a = numpy.ones(1 << 20, numpy.float32); eltwise.subtract(a, a)"
UNUSED = ("fractions", "json", "numpy.typing", "eltwise.ops.registry", "eltwise.ops.data_movement")
UNWRITTEN = ("real_steps", "invariant_divisor", "tiles", "conversions", "entry")
"""Modules of kernels that plain arithmetic has nothing of."""


@pytest.mark.parametrize(("code", "others"), [("", ("numpy",)), (CALL, ("ml_dtypes", "eltwise.ir.graph"))])
def test_import_and_a_small_call_load_little(code: str, others: tuple[str, ...]) -> None:
    code = f"import sys, eltwise; {code}\nprint([name for name in {HEAVY + others} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_a_large_call_of_arithmetic_loads_what_it_computes() -> None:
    """The kernel is in the disk cache at the second start; what a first start compiles may need more."""
    unused = (*UNUSED, *[f"eltwise.kernels.{name}" for name in UNWRITTEN], "eltwise.core.staging", "llvmlite.binding")
    code = f"import sys, numpy; before = set(sys.modules); import eltwise; {LARGE_CALL}"
    code += f"\nprint([name for name in {unused} if name in sys.modules and name not in before])"
    for start in (1, 2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
        if start == 2 and image.can_be_mapped():
            assert done.stdout.strip() == "[]"


def test_traces_and_comparisons_load_neither_conformance_tests_nor_asyncio() -> None:
    code = "import sys, eltwise.comparison.compare, eltwise.tracing.trace"
    code += "\nprint([name for name in ('asyncio', 'eltwise.conformance') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_assertions_of_equal_arrays_load_little() -> None:
    others = ("onnx", "llvmlite", "eltwise.ir", "eltwise.engine", "eltwise.comparison.causes", "eltwise.tracing")
    code = "import numpy, sys; from eltwise.testing import assert_same; assert_same(numpy.ones(9), numpy.ones(9))"
    code += f"\nprint([name for name in {others} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_the_process_of_a_runtime_loads_little() -> None:
    """Whoever starts it has looked for the runtime, and made its environment."""
    others = ("eltwise.runtimes.host", "eltwise.runtimes.registry", "eltwise.ops", "eltwise.kernels")
    code = f"import sys, eltwise.runtimes.worker\nprint([name for name in {others} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "-h"] for name in COMMANDS)], ids=" ".join)
def test_help_loads_no_library(arguments: list[str]) -> None:
    heavy = ("numpy", "onnx", "lxml", "llvmlite", "rich")
    ended = f"lambda: print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    code = f"import atexit, sys; atexit.register({ended}); from eltwise.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout
    assert done.stderr.strip() == "[]"


def test_public_names() -> None:
    promised = {"subtract", "squared_difference", "operator", "load", "save", "convert", "EltwiseError", "backend"}
    assert promised <= set(eltwise.__all__)
    for name in eltwise.__all__:
        assert getattr(eltwise, name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(eltwise, "substract")
