"""The runtimes by name: where the adapter of each is, and what it can be asked. Nothing is imported to list them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from eltwise.core.errors import FileMissingError, UnsupportedError, unknown_name
from eltwise.ops.schema import Domain
from eltwise.runtimes import specification
from eltwise.runtimes.specification import DEVICE, ONNXRUNTIME, OPENVINO, Option, Settings

BOTH: tuple[Domain, ...] = ("ai.onnx", "openvino")
RULES = ("legacy", "numpy", "none", "pdpd", "axis", "channel")

_HERE = "eltwise.runtimes"


@dataclass(frozen=True)
class Runtime:
    """One runtime, as data."""

    name: str  # Its name; with settings, a version or an interpreter, the specification.
    adapter: str  # The module and the class that speak to it, imported in its own process only.
    packages: tuple[str, ...] = ()  # What must be installed.
    domains: tuple[Domain, ...] = BOTH  # Whose operators it has; those of its model files where it loads models.
    loads_models: bool = True  # Whether it loads model files.
    calls: bool = False  # Whether single operators can be called on arrays.
    rules: tuple[str, ...] = RULES  # The broadcast rules that it has.
    checks: bool = True  # Whether it can be given mixed types and foreign attributes, which it must refuse.
    only: tuple[str, ...] = ()  # The names of the operand sources that it can be tested with; empty for all.
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)  # Variables that are set for its process.
    options: tuple[Option, ...] = ()  # What may be chosen.
    settings: Settings = ()  # What was chosen.
    version: str = ""  # The version that is asked for; empty for the installed one.
    python: str = ""  # The interpreter that has it; empty for this one.
    library: str = ""  # For a library of array functions, whose names for the primitives it has.

    @property
    def is_installed(self) -> bool:
        """Whether its packages are installed here or come with it; none is imported to find out."""
        return bool(self.version or self.python) or all(map(_is_installed, self.packages))


@cache
def _is_installed(package: str) -> bool:
    return package in sys.modules or find_spec(package) is not None


def _library(name: str, names: str = "", options: tuple[Option, ...] = ()) -> Runtime:
    """A library of array functions: it broadcasts as NumPy does, and takes whatever it is given."""
    return Runtime(
        name,
        f"{_HERE}.libraries:{name.title()}",
        (name,),
        loads_models=False,
        calls=True,
        rules=("numpy",),
        checks=False,
        options=options,
        library=names or name,
    )


RUNTIMES: tuple[Runtime, ...] = (
    Runtime("eltwise", f"{_HERE}.eltwise:Eltwise", calls=True, environment={"ELTWISE_KERNELS": "compiled"}),
    Runtime(
        "eltwise-numpy",
        f"{_HERE}.eltwise:Eltwise",
        calls=True,
        only=("static", "call"),
        environment={"ELTWISE_KERNELS": "numpy"},
    ),
    Runtime("onnxruntime", f"{_HERE}.onnxruntime:OnnxRuntime", ("onnxruntime",), ("ai.onnx",), options=ONNXRUNTIME),
    Runtime("onnx-reference", f"{_HERE}.onnx_reference:OnnxReference", ("onnx",), ("ai.onnx",)),
    Runtime("openvino", f"{_HERE}.openvino:OpenVino", ("openvino",), ("openvino",), options=OPENVINO),
    Runtime("openvino-onnx", f"{_HERE}.openvino:OpenVino", ("openvino",), ("ai.onnx",), options=OPENVINO),
    Runtime(
        "openvino-evaluate",
        f"{_HERE}.openvino:OpenVinoEvaluate",
        ("openvino",),
        ("openvino",),
        only=("static", "dynamic", "a-constant", "b-constant"),
    ),
    _library("numpy"),
    _library("torch", options=(DEVICE,)),
    _library("jax", options=(DEVICE,)),
    _library("cupy", names="numpy"),
    _library("numexpr", names="numpy"),
)
_ADAPTERS: Mapping[tuple[str, Domain | None], str] = {("openvino", "ai.onnx"): "openvino-onnx"}
"""The adapters of runtimes that have one for each format."""

BY_NAME = {runtime.name: runtime for runtime in RUNTIMES}


def adapter_of(name: str, domain: Domain | None) -> Runtime | None:
    """The runtime of a name, installed or not; of one with an adapter for each format, that for models of a domain."""
    return BY_NAME.get(_ADAPTERS.get((name, domain), name))


def installed() -> tuple[Runtime, ...]:
    """The runtimes that are installed."""
    return tuple(runtime for runtime in RUNTIMES if runtime.is_installed)


def find(name: str, *, only_models: bool = False, domain: Domain | None = None) -> Runtime:
    """Find a runtime by its specification, or make one of a function, named ``FILE.py:FUNCTION``.

    Args:
        name: the specification.
        only_models: whether it is to load model files; an error names only those that do.
        domain: of the operators in its model files, where a runtime has an adapter for each.

    Raises:
        NameUnknownError: for an unknown name, option or value, with the nearest known one.
        AttributeValueError: for a specification of another form.
        UnsupportedError: for a runtime that is not installed.
        FileFormatError: if the function's file does not exist.
    """
    if is_function(name):
        file, _colon, function = name.rpartition(":")
        if not Path(file).is_file():
            hint = "a function is named FILE.py:FUNCTION"
            raise FileMissingError("there is no such file", where=str(Path(file)), hint=hint)
        if not function.isidentifier():
            raise unknown_name("function", function, ["run"], where=str(Path(file)))
        return of_function(name, loads_models=only_models)
    parts = specification.split(name)
    runtime = adapter_of(parts.name, domain)
    if runtime is None:
        names = [one.name for one in RUNTIMES if one.loads_models or not only_models]
        raise unknown_name("runtime", parts.name, [*names, "FILE.py:FUNCTION", *(["FILE.safetensors"] * only_models)])
    if parts.version and not runtime.packages:
        raise UnsupportedError(f"{runtime.name} is part of this package and has no other version here", got=name)
    if parts.python and not os.access(parts.python, os.X_OK):
        hint = f"name the interpreter that has {runtime.name}: {runtime.name}@path/to/python"
        raise FileMissingError("there is no such interpreter", where=parts.python, hint=hint)
    if not (parts.version or parts.python or runtime.is_installed):
        missing = " and ".join(package for package in runtime.packages if not _is_installed(package))
        raise UnsupportedError(
            f"the runtime {name!r} needs {missing}, which is not installed", hint=f"install it: pip install {missing}"
        )
    specification.check(runtime.name, parts.settings, runtime.options)
    full_name = str(parts._replace(name=runtime.name))
    return (
        replace(runtime, name=full_name, settings=parts.settings, version=parts.version, python=parts.python)
        if full_name != runtime.name
        else runtime
    )


def is_function(name: object) -> bool:
    """Whether a specification is that of a function, ``FILE.py:FUNCTION``."""
    return isinstance(name, str) and name.rpartition(":")[0].endswith(".py")


def of_function(name: str, *, loads_models: bool = False) -> Runtime:
    """The runtime of a function, whether it exists or not: one for calls, or one for models, as it is asked for."""
    adapter = f"{_HERE}.python_file:Python{'Model' if loads_models else 'Function'}"
    domains: tuple[Domain, ...] = ("ai.onnx",) if loads_models else BOTH
    return Runtime(name, adapter, (), domains, loads_models, calls=not loads_models, checks=False)
