"""The smallest failing case of a test as a folder: model, inputs, reference, what came, and a script that runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from eltwise import runtimes
from eltwise.conformance.cases import CALL, LETTERS, SOURCES, Case
from eltwise.conformance.compare import References
from eltwise.conformance.models import build
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import TestResult
from eltwise.conformance.runner import steps_of
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import NameUnknownError, UnsupportedError
from eltwise.core.escaping import on_one_line, shortened
from eltwise.formats.files import new_folder, write_into
from eltwise.formats.npy import npy_bytes
from eltwise.formats.registry import of_bytes
from eltwise.runtimes import Runtime
from eltwise.runtimes.registry import is_function, of_function
from eltwise.runtimes.specification import arguments

SCRIPT = "reproduce.py"


def reproduce(results: ConformanceReport, key: str, folder: Path) -> tuple[str, ...]:
    """Write what shows the smallest failing case of a test with its runtime alone; returns the names of the files.

    The key of a test is for example ``onnxruntime/Sub-14/uint8/numpy/static``.

    Raises:
        NameUnknownError: if there is no such test.
        UnsupportedError: if the test passed, or its case is not in the results.
        FileFormatError: if the folder is not empty or cannot be written.
    """
    try:
        test = results[key]
    except NameUnknownError as error:
        error.allowed = f"the {len(results)} tests of the results, each RUNTIME/OPERATOR/TYPE/BROADCAST/SOURCE"
        raise
    return write_case(files_of(test), folder)


def files_of(test: TestResult) -> dict[str, bytes]:
    """Make the files of the smallest failing case of a test, by name.

    Raises:
        UnsupportedError: if the test passed, or its case is not in the results.
    """
    if test.outcome == "ok":
        raise UnsupportedError(f"the test {test.key} passed: there is nothing to reproduce")
    if test.failing is None:
        raise UnsupportedError(
            f"the results do not contain the failing case of {test.key}",
            hint="run the test again: eltwise conform with --runtime, --op and --type",
        )
    case, co_resident = test.failing.case, test.failing.co_resident
    expected = References().of(case)
    contents, inputs = dict[str, bytes](), dict(zip(LETTERS, case.operands, strict=False))
    if test.source != CALL:
        context = SOURCES[test.source]
        built = build([replace(each, context=context) for each in (*co_resident, case)])
        contents, inputs = model_files(built.data, built.weights), built.inputs
    return contents | files_of_case(
        test.runtime,
        _about(test, case),
        inputs,
        expected,
        test.failing.got,
        model=next(iter(contents), ""),
        op=test.op,
        steps=steps_of(_runtime(test.runtime)[0].library, case),
        attributes=dict(case.attributes),
        output=len(co_resident),
    )


def model_files(data: bytes, weights: bytes) -> dict[str, bytes]:
    """The files of a model by name, the one to load first."""
    return {"model.xml": data, "model.bin": weights} if of_bytes(data).domain == "openvino" else {"model.onnx": data}


def files_of_case(
    name: str,
    about: Sequence[str],
    inputs: Mapping[str, np.ndarray],
    expected: np.ndarray | None,
    got: np.ndarray | None,
    *,
    output: int = 0,
    **program: object,
) -> dict[str, bytes]:
    """Make the files of a case beside its model, by name: arrays, the adapter of its runtime, and the script.

    Args:
        name: the name of the runtime.
        about: what the script prints first, a line each.
        inputs: the arrays by the names of their files.
        expected: what is right; None where the runtime must refuse.
        got: what the runtime gave.
        output: which output of the program is compared.
        program: the file of the model as ``model``, or what ``Call`` holds.
    """
    contents = {f"{file}.npy": npy_bytes(array) for file, array in inputs.items()}
    results = (("expected", expected), ("got", got))
    contents |= {f"{file}.npy": npy_bytes(array) for file, array in results if array is not None}
    runtime, is_function = _runtime(name, loads_models=bool(program.get("model")))
    module, _colon, adapter = runtime.adapter.partition(":")
    file, _colon, function = name.rpartition(":")
    case = {
        "about": list(map(on_one_line, about)),
        "adapter": adapter,
        "arguments": [f"{Path(file).absolute()}:{function}"] if is_function else [],
        "options": dict(arguments(runtime.settings)),
        "environment": dict(runtime.environment),
        **program,
        "inputs": {key: of_numpy(array.dtype).name for key, array in inputs.items()},
        "output": output,
        "expected": None if expected is None else of_numpy(expected.dtype).name,
    }
    contents["case.json"] = json.dumps(case, indent=2).encode()
    contents["adapter.py"] = _source(module)
    return contents | {SCRIPT: _source("eltwise.conformance.reproduce_script")}


def write_case(contents: Mapping[str, bytes], folder: Path) -> tuple[str, ...]:
    """Write the files of a case into a new folder; returns their names.

    Raises:
        FileFormatError: if the folder is not empty or cannot be written.
    """
    with new_folder(folder) as new:
        for name, data in contents.items():
            write_into(new, name, data)
    return tuple(contents)


def _runtime(name: str, *, loads_models: bool = False) -> tuple[Runtime, bool]:
    """The runtime, which need not be installed here, and whether it is a function in a file."""
    if is_function(name):
        return of_function(name, loads_models=loads_models), True
    known = next((runtime for runtime in runtimes.RUNTIMES if runtime.name == name), None)
    return known or runtimes.find(name), False


def _source(module: str) -> bytes:
    """The source of a module."""
    package, _dot, name = module.rpartition(".")
    return (package_files(package) / f"{name}.py").read_bytes()


def _about(test: TestResult, case: Case) -> list[str]:
    """What the script prints first, a line each."""
    lines = [f"{test.runtime} {test.version}".rstrip() + f" on {case}, path {test.source}: {test.outcome}."]
    if test.explanation:
        lines.append(f"{test.explanation}.")
    if test.example is not None:
        operands = ", ".join(f"{name.upper()} = {test.example[name]}" for name in LETTERS if name in test.example)
        expected, got = (test.example[name] or "nothing" for name in ("expected", "got"))
        lines.append(f"{operands}: expected {expected}, got {got}.")
    if test.message:
        lines.append(f"Message: {shortened(test.message, 300)}")
    return [" ".join(line.split()) for line in lines]
