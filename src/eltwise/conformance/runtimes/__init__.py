"""The runtimes that can be judged: their names, where they live, and what each can be asked. Nothing is imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path as FilePath

from eltwise.conformance.paths import MODEL_PATHS, PATHS, Path
from eltwise.core.errors import FileFormatError, UnsupportedError, unknown_name
from eltwise.ops.schema import Domain

BOTH: tuple[Domain, ...] = ("ai.onnx", "openvino")
RULES = ("legacy", "numpy", "none", "pdpd")


@dataclass(frozen=True)
class Runtime:
    """One runtime, as data.

    Attributes:
        name: what it is called.
        adapter: the module and the class that speak to it, imported in its own process only.
        packages: what must be installed.
        domains: whose operators it reads.
        paths: how operands can reach it.
        rules: the broadcast rules that it has; a library of functions on arrays has one.
        checks: whether mixed types and foreign attributes, which it must refuse, can be put to it at all.
        environment: variables that are set for its process.
    """

    name: str
    adapter: str
    packages: tuple[str, ...] = ()
    domains: tuple[Domain, ...] = BOTH
    paths: tuple[Path, ...] = MODEL_PATHS
    rules: tuple[str, ...] = RULES
    checks: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_installed(self) -> bool:
        """Whether its packages are here; none is imported to find out."""
        return all(map(_is_here, self.packages))


@cache
def _is_here(package: str) -> bool:
    return package in sys.modules or find_spec(package) is not None


_HERE = "eltwise.conformance.runtimes"
_LIBRARY = {"paths": ("call",), "rules": ("numpy",), "checks": False}
_EVALUATE: tuple[Path, ...] = ("static", "dynamic", "a-constant", "b-constant")

RUNTIMES: tuple[Runtime, ...] = (
    Runtime("eltwise", f"{_HERE}.own:Eltwise", paths=PATHS, environment={"ELTWISE_KERNELS": "compiled"}),
    Runtime(
        "eltwise-numpy", f"{_HERE}.own:Eltwise", paths=("static", "call"), environment={"ELTWISE_KERNELS": "numpy"}
    ),
    Runtime("onnxruntime", f"{_HERE}.onnx_runtime:OnnxRuntime", ("onnxruntime",), ("ai.onnx",)),
    Runtime("onnx-reference", f"{_HERE}.onnx_reference:OnnxReference", ("onnx",), ("ai.onnx",)),
    Runtime("openvino", f"{_HERE}.open_vino:OpenVino", ("openvino",), ("openvino",)),
    Runtime("openvino-onnx", f"{_HERE}.open_vino:OpenVino", ("openvino",), ("ai.onnx",)),
    Runtime("openvino-evaluate", f"{_HERE}.open_vino:Evaluate", ("openvino",), ("openvino",), _EVALUATE),
    Runtime("numpy", f"{_HERE}.libraries:Numpy", ("numpy",), **_LIBRARY),  # type: ignore[arg-type]
    Runtime("torch", f"{_HERE}.libraries:Torch", ("torch",), **_LIBRARY),  # type: ignore[arg-type]
    Runtime("jax", f"{_HERE}.libraries:Jax", ("jax",), **_LIBRARY),  # type: ignore[arg-type]
)
BY_NAME = {runtime.name: runtime for runtime in RUNTIMES}


def installed() -> tuple[Runtime, ...]:
    """The runtimes that are here."""
    return tuple(runtime for runtime in RUNTIMES if runtime.is_installed)


def find(name: str) -> Runtime:
    """Find a runtime by its name, or make one of a callable, named ``FILE.py:FUNCTION``.

    Raises:
        NameUnknownError: for a name that is not known, with the nearest that is.
        UnsupportedError: for a runtime that is not installed.
        FileFormatError: where the callable's file does not exist.
    """
    file, _colon, function = name.rpartition(":")
    if file.endswith(".py"):
        return _callable(name, FilePath(file), function)
    runtime = BY_NAME.get(name)
    if runtime is None:
        raise unknown_name("runtime", name, [*BY_NAME, "FILE.py:FUNCTION"])
    if not runtime.is_installed:
        missing = " and ".join(package for package in runtime.packages if not _is_here(package))
        raise UnsupportedError(
            f"the runtime {name!r} needs {missing}, which is not installed", hint=f"install it: pip install {missing}"
        )
    return runtime


def _callable(name: str, file: FilePath, function: str) -> Runtime:
    if not file.is_file():
        raise FileFormatError("there is no such file", where=str(file), hint="a callable is named FILE.py:FUNCTION")
    if not function.isidentifier():
        raise unknown_name("function", function, ["run"], where=str(file))
    return Runtime(name, f"{_HERE}.callables:Function", paths=("call",))
