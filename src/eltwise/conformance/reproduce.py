"""The smallest failing case of a test as a folder: model, inputs, reference, what came, and a script that runs it."""

from __future__ import annotations

import json
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from eltwise import runtimes
from eltwise.conformance.cases import LETTERS, Case
from eltwise.conformance.contexts import CALL, SOURCES
from eltwise.conformance.models import build
from eltwise.conformance.results import Results, Shown, TestResult
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import UnsupportedError
from eltwise.formats.files import new_folder, write_into
from eltwise.formats.npy import npy_bytes
from eltwise.ops import registry
from eltwise.runtimes import Runtime
from eltwise.runtimes.registry import of_function

SCRIPT = "reproduce.py"


def reproduce(results: Results, key: str, folder: Path) -> tuple[str, ...]:
    """Write what shows the smallest failing case of a test with its runtime alone.

    Args:
        results: what was found.
        key: which test, for example ``onnxruntime/Sub-14/uint8/numpy/static``.
        folder: the folder; it must not exist, or be empty.

    Returns:
        The names of the files.

    Raises:
        NameUnknownError: if there is no such test.
        UnsupportedError: if the test passed, or its case is not in the results.
        FileFormatError: if the folder is not empty or cannot be written.
    """
    contents = files_of(results.find(key))
    with new_folder(folder) as new:
        for name, data in contents.items():
            write_into(new, name, data)
    return tuple(contents)


def files_of(test: TestResult) -> dict[str, bytes]:
    """Make the files of the smallest failing case of a test, by name.

    Raises:
        UnsupportedError: if the test passed, or its case is not in the results.
    """
    if test.outcome == "ok":
        raise UnsupportedError(f"the cell {test.key} passed: there is nothing to reproduce")
    if test.case is None:
        raise UnsupportedError(
            f"the results do not contain the failing case of {test.key}",
            hint="run the test again: eltwise conform with --runtime, --op and --type",
        )
    schema = registry.find(test.op)
    case = test.case.case(schema)
    before = [] if test.case.beside is None else [test.case.beside.case(schema)]
    expected = case.expected_or_none() if case.is_defined else None
    contents, inputs, model = _model([*before, case], test.source)
    contents |= {f"{name}.npy": npy_bytes(array) for name, array in inputs.items()}
    if expected is not None:
        contents["expected.npy"] = npy_bytes(expected)
    if test.case.got is not None:
        contents["got.npy"] = npy_bytes(test.case.got.array())
    runtime = _runtime(test.runtime)
    module, _colon, adapter = runtime.adapter.partition(":")
    about = {
        "about": _about(test, case),
        "adapter": adapter,
        "arguments": [_absolute(test.runtime)] if _is_function(test.runtime) else [],
        "environment": dict(runtime.environment),
        "model": model,
        "op": test.op,
        "steps": _steps(runtime, case),
        "attributes": dict(case.attributes),
        "inputs": {name: of_numpy(array.dtype).name for name, array in inputs.items()},
        "output": len(before),
        "expected": None if expected is None else of_numpy(expected.dtype).name,
    }
    contents["case.json"] = json.dumps(about, indent=2).encode()
    contents["adapter.py"] = _source(module)
    return contents | {SCRIPT: _source("eltwise.conformance.reproduce_script")}


def _runtime(name: str) -> Runtime:
    """The runtime, which need not be installed here."""
    if _is_function(name):
        return of_function(name)
    known = next((runtime for runtime in runtimes.RUNTIMES if runtime.name == name), None)
    return known or runtimes.find(name)


def _is_function(name: str) -> bool:
    return name.rpartition(":")[0].endswith(".py")


def _absolute(name: str) -> str:
    file, _colon, function = name.rpartition(":")
    return f"{Path(file).absolute()}:{function}"


def _source(module: str) -> bytes:
    """The source of a module."""
    package, _dot, name = module.rpartition(".")
    return (package_files(package) / f"{name}.py").read_bytes()


def _model(cases: list[Case], source: str) -> tuple[dict[str, bytes], dict[str, np.ndarray], str]:
    """The files of the model, the arrays for its inputs, and its name; no model for a call."""
    if source == CALL:
        return {}, dict(zip(LETTERS, cases[-1].operands, strict=False)), ""
    context = SOURCES[source]
    model = build([Case(case.schema, case.attributes, case.operands, context) for case in cases])
    if model.format == "onnx":
        return {"model.onnx": model.data}, model.inputs, "model.onnx"
    return {"model.xml": model.data, "model.bin": model.weights}, model.inputs, "model.xml"


def _steps(runtime: Runtime, case: Case) -> list[tuple[str, tuple[int, ...]]]:
    if not runtime.library:
        return []
    return [
        (step.definition.library_name(runtime.library, case.element_type), step.operands)
        for step in case.expression.steps
    ]


def _about(test: TestResult, case: Case) -> list[str]:
    """What the script prints first, a line each."""
    runtime = f"{test.runtime} {test.version}".rstrip()
    lines = [f"{runtime} on {case}, path {test.source}: {test.outcome}."]
    if test.explanation:
        lines.append(f"{test.explanation}.")
    if test.example is not None:
        named = zip(LETTERS.upper(), test.example.operands, strict=False)
        operands = ", ".join(f"{letter} = {_shown(element)}" for letter, element in named)
        expected, got = _shown(test.example.expected), _shown(test.example.got)
        lines.append(f"{operands}: expected {expected}, got {got}.")
    if test.message:
        lines.append(f"Message: {test.message[:300]}")
    return [" ".join(line.split()) for line in lines]


def _shown(element: Shown | None) -> str:
    return "nothing" if element is None else f"{element.value} ({element.bits})"
