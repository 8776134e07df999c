"""Every command where only the packages are installed that eltwise requires: it works, or names what to install."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.cli import COMMANDS
from eltwise.core.exit_codes import ExitCode
from support.stores import store

GOOD, FINDINGS, BAD_INPUT, NOT_ESTABLISHED, _INTERRUPTED = ExitCode
ROOT = Path(__file__).parents[2]
MODEL, INPUTS = "sub6_axis1.onnx", ("--input", "x=sub6_axis1.x.npy", "--input", "y=sub6_axis1.y.npy")
RUNTIME = ("--runtime", "onnxruntime")
QUICK = ("conform", "--quick", "--op", "Sub-14", "--type", "uint8")
DIFFERENCE = ("reduce", "mean-squared-difference")

CALLS: dict[tuple[str, ...], ExitCode | str] = {
    ("demo", "--no-such-option"): "",
    ("run", MODEL, *INPUTS): GOOD,
    ("run", MODEL, "--input", "x=a.zarr", "--input", "y=sub6_axis1.y.npy", "--output", "z=c.npy"): "zarr",
    ("run", MODEL, *INPUTS, "--output", "z=c.zarr"): "zarr",
    ("apply", "Abs-13", "a.npy"): GOOD,
    ("apply", "Abs-13", "trained.safetensors", "-o", "c.safetensors"): GOOD,
    ("apply", "Abs-13", "a.npy", "-o", "c.zarr"): "zarr",
    ("apply", "Abs-13", "a.zarr", "-o", "c.npy"): "zarr",
    ("apply", "Abs-13", "s3://bucket/a.zarr", "-o", "c.npy"): "zarr",
    ("apply", "Abs-13", "a.npy", "-o", "c.zarr", "--scheduler", "tcp://127.0.0.1:9"): "zarr",
    ("ops",): GOOD,
    ("show", "Sub-6"): GOOD,
    ("infer", "Sub-14", "2,3", "3"): GOOD,
    ("check", MODEL): GOOD,
    ("check", MODEL, "--target", "openvino"): NOT_ESTABLISHED,
    ("convert", MODEL, "out.xml", "--verify"): GOOD,
    ("repair", MODEL, "out.onnx", "--target", "onnxruntime", "--no-run"): GOOD,
    ("compare", "trained.safetensors", "converted.safetensors", "--json", "r.json", "--html", "r.html"): FINDINGS,
    ("compare", "a.npy", "a.zarr"): "zarr",
    ("compare", "a.npy", "a.h5"): "h5py",
    ("compare", "a.npy", "a.nc"): "h5py",
    ("compare", "a.npy", "a.gguf"): "gguf",
    ("compare", "a.npy", "a.pth"): "torch",
    ("compare", "a.npy", "hf://org/model"): "huggingface_hub",
    ("trace", MODEL, *INPUTS, *RUNTIME, "--against", "float64"): "onnxruntime",
    ("record", MODEL, *INPUTS, *RUNTIME, "-o", "r.safetensors"): "onnxruntime",
    (*DIFFERENCE, "a.npy", "a.npy"): GOOD,
    (*DIFFERENCE, "a.zarr", "a.zarr"): "zarr",
    (*DIFFERENCE, "a.npy", "a.npy", "--scheduler", "tcp://127.0.0.1:9"): "distributed",
    ("delta", "converted.safetensors", "trained.safetensors", "-o", "d.eltd"): "zstandard",
    ("restore", "trained.safetensors", "present.eltd", "-o", "c.safetensors"): "zstandard",
    (*QUICK, "--runtime", "eltwise"): GOOD,
    (*QUICK, *RUNTIME): "onnxruntime",
    (*QUICK, "--runtime", "torch"): "torch",
    ("reproduce", "nothing.json", "eltwise/Sub-14", "--output", "case"): "",
    ("accuracy", "--runtime", "eltwise", "--op", "Exp"): "flint",
    ("targets",): GOOD,
    ("targets", "--refresh", *RUNTIME): "onnxruntime",
    ("report",): GOOD,
}
"""What each call ends with, or the package that it names; "" for another error."""

ALONE = """
import contextlib, io, json, sys, traceback
modules, distributions, calls = json.load(sys.stdin)
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in modules else self.finder.find_spec(name, path, target)
    def find_distributions(self, context):
        every = getattr(self.finder, "find_distributions", lambda _context: ())(context)
        return [one for one in every if one.name not in distributions]
sys.meta_path = [Without(finder) for finder in sys.meta_path]
from eltwise.cli import main
results = []
for call in calls:
    sys.argv, out, err, code = ["eltwise", *call], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            code = traceback.format_exc()
    results.append([code, err.getvalue()])
print(json.dumps(results))
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def what_is_not_required() -> tuple[list[str], list[str]]:
    """The modules and the names of all installed packages but eltwise and those that it requires."""
    required, names = set[str](), ["eltwise"]
    while names:
        name = normal(names.pop())
        if name in required:
            continue
        required.add(name)
        with suppress(PackageNotFoundError):  # One is for another system.
            lines = [line for line in requires(name) or () if "extra ==" not in line]
            names += [match[0] for match in map(re.compile(r"[\w.-]+").match, lines) if match]
    owners = packages_distributions()
    modules = [module for module, of_module in owners.items() if not set(map(normal, of_module)) & required]
    return modules, [name for each in owners.values() for name in each if normal(name) not in required]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in (*(ROOT / "examples/models").glob("sub6_axis1*"), *(ROOT / "examples/checkpoints").glob("*")):
        shutil.copy(file, tmp_path)
    values = np.load(tmp_path / "sub6_axis1.x.npy")
    np.save(tmp_path / "a.npy", values)
    store(tmp_path / "a.zarr", values, chunks=values.shape)
    eltwise.delta(tmp_path / "converted.safetensors", tmp_path / "trained.safetensors", tmp_path / "present.eltd")
    for name, begin in (("a.h5", b"\x89HDF\r\n\x1a\n"), ("a.nc", b"\x89HDF\r\n\x1a\n"), ("a.gguf", b"GGUF\3\0\0\0")):
        (tmp_path / name).write_bytes(begin.ljust(64, b"\0"))
    (tmp_path / "a.pth").write_bytes(b"\x80\2}q\0.")
    return tmp_path


def test_every_command_works_or_names_what_to_install(folder: Path) -> None:
    assert {call[0] for call in CALLS} == set(COMMANDS)
    modules, distributions = what_is_not_required()
    assert {"zarr", "dask", "onnxruntime", "h5py", "flint"} <= {*modules}
    before = {path.name for path in folder.iterdir()}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", ALONE],
        input=json.dumps([modules, distributions, list(CALLS)]),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert not ended.returncode, ended.stderr
    for (call, expected), (code, err) in zip(CALLS.items(), json.loads(ended.stdout), strict=True):
        if isinstance(expected, ExitCode):
            assert code == expected, (call, err)
        else:
            assert (code, err.count("\n")) == (BAD_INPUT, 1), (call, code, err)
            assert not expected or (f"{expected}" in err and "pip install" in err), (call, err)
    written = {path.name for path in folder.iterdir()} - before
    assert written == {"c.safetensors", "out.xml", "out.bin", "out.onnx", "r.json", "r.html"}
