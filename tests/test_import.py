"""What ``import eltwise`` costs: no heavy library before the first file, and the public names."""

from __future__ import annotations

import subprocess
import sys

import eltwise


def test_import_loads_no_file_library() -> None:
    heavy = ("onnx", "lxml", "llvmlite", "google.protobuf", "typer", "rich", "dask", "xarray", "torch")
    code = f"import sys, eltwise; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_public_names() -> None:
    promised = {"subtract", "squared_difference", "operator", "load", "save", "convert", "EltwiseError", "backend"}
    assert promised <= set(eltwise.__all__)
    for name in eltwise.__all__:
        assert getattr(eltwise, name)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(eltwise, "substract")
