"""One cell's smallest failing case as a folder: the model, its inputs, what is exact, what came, and a short script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eltwise.conformance import models, paths
from eltwise.conformance.cases import Case
from eltwise.conformance.cells import Cell, Shown
from eltwise.conformance.paths import MODEL_PATHS
from eltwise.conformance.results import Results
from eltwise.conformance.scripts import Request, script
from eltwise.core.errors import UnsupportedError
from eltwise.formats.folders import new_folder, write_into
from eltwise.formats.npy_files import npy_bytes
from eltwise.ops import registry

SCRIPT = "reproduce.py"


def reproduce(results: Results, key: str, folder: Path) -> tuple[str, ...]:
    """Write what shows one cell's smallest failing case with its runtime alone.

    Args:
        results: what was found.
        key: which cell, for example ``onnxruntime/Sub-14/uint8/numpy/static``.
        folder: where to; it must not exist, or be empty. It is made beside its place and renamed.

    Returns:
        The names of the files.

    Raises:
        NameUnknownError: where there is no such cell.
        UnsupportedError: where the cell is right, or its case is not in the results.
        FileFormatError: where the folder is not empty or cannot be written.
    """
    contents = files_of(results.find(key))
    with new_folder(folder) as beside:
        for name, data in contents.items():
            write_into(beside, name, data)
    return tuple(contents)


def files_of(cell: Cell) -> dict[str, bytes]:
    """Make the files of a cell's smallest failing case, by name.

    Raises:
        UnsupportedError: where the cell is right, or its case is not in the results.
    """
    if cell.verdict == "ok":
        raise UnsupportedError(f"the cell {cell.key} is right: there is nothing to reproduce")
    if cell.case is None:
        raise UnsupportedError(
            f"the results do not hold the failing case of the cell {cell.key}",
            hint="judge it anew: eltwise conform with --runtime, --op and --type",
        )
    case = cell.case.case(registry.find(cell.op))
    expected = case.expected_or_none()
    before = [] if cell.case.beside is None else [cell.case.beside.case(case.schema)]
    contents, inputs, model = _model_and_inputs([*before, case], cell.path)
    contents |= {f"{name}.npy": npy_bytes(array) for name, array in inputs.items()}
    if expected is not None:
        contents["expected.npy"] = npy_bytes(expected)
    if cell.case.got is not None:
        contents["got.npy"] = npy_bytes(cell.case.got.array())
    text = script(Request(cell.runtime, case, inputs, model, expected, _about(cell, case), len(before)))
    return contents | {SCRIPT: text.encode()}


def _model_and_inputs(cases: Sequence[Case], path: str) -> tuple[dict[str, bytes], dict[str, np.ndarray], str]:
    """The model's files, the arrays for its inputs, and its name; no model for the path ``call``."""
    for model_path in MODEL_PATHS:
        if model_path == path:
            built = models.build(cases, model_path)
            inputs = paths.feeds(cases, model_path)
            if built.dialect == "onnx":
                return {"model.onnx": built.data}, inputs, "model.onnx"
            return {"model.xml": built.data, "model.bin": built.weights}, inputs, "model.xml"
    return {}, {"a": cases[-1].a, "b": cases[-1].b}, ""


def _about(cell: Cell, case: Case) -> tuple[str, ...]:
    """What a script shows, a line each."""
    runtime = f"{cell.runtime} {cell.version}".rstrip()
    lines = [f"{runtime} on {case}, path {cell.path}: {cell.verdict}."]
    if cell.explanation:
        lines.append(f"{cell.explanation}.")
    example = cell.example
    if example is not None:
        got, expected = _shown(example.got), _shown(example.expected)
        lines.append(f"A = {_shown(example.a)}, B = {_shown(example.b)}: expected {expected}, got {got}.")
    if cell.message:
        whose = "In its own words" if cell.verdict == "refused" else "In words"
        lines.append(f"{whose}: {cell.message[:300]}")
    return tuple(lines)


def _shown(shown: Shown | None) -> str:
    return "nothing" if shown is None else f"{shown.value} ({shown.bits})"
