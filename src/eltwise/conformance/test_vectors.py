"""The cases as files, for runtimes in any language: ONNX's backend-test layout, OpenVINO IR, and a manifest.

The same selection, extent and seed give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from eltwise.conformance import models, paths
from eltwise.conformance.cases import Case
from eltwise.conformance.paths import ModelPath
from eltwise.conformance.questions import Subject, groups
from eltwise.conformance.results import Extent
from eltwise.conformance.verdicts import Truth
from eltwise.core.dtypes import of_numpy
from eltwise.formats.folders import new_folder, write_into
from eltwise.formats.npy_files import npy_bytes
from eltwise.ir.graph import Tensor
from eltwise.oracle import OracleRefusal
from eltwise.version import VERSION

MANIFEST = "manifest.json"

Tell = Callable[[int, int, str], None]
"""Told before each subject on each path: how many are done, how many there are, and which it is."""

_EXACT = b'{"rtol": 0.0, "atol": 0.0}\n'
"""What ONNX's backend tests read beside a model: no tolerance."""


@dataclass(frozen=True)
class _Place:
    """Where a case comes from, which also names it."""

    subject: Subject
    path: ModelPath
    number: int

    @property
    def name(self) -> str:
        operator = str(self.subject.schema).lower().replace("-", "").replace(".", "_")
        parts = (operator, self.subject.element_type, self.subject.rule, self.path.replace("-", "_"))
        return f"test_{'_'.join(map(str, parts))}_{self.number:04d}"


def export(
    folder: Path, subjects: Sequence[Subject], chosen: Sequence[ModelPath], extent: Extent, seed: int, tell: Tell
) -> int:
    """Write the cases of some subjects into a new folder.

    Args:
        folder: where to; it must not exist, or be empty. It is made beside its place and renamed.
        subjects: what the cases are of.
        chosen: how the operands reach the operator in the models.
        extent: how many cases each has.
        seed: what random values are drawn with.
        tell: is told of the progress.

    Returns:
        How many cases there are.

    Raises:
        FileFormatError: where the folder is taken or cannot be written.
    """
    entries = []
    with new_folder(folder) as beside:
        for place, case, expected in _cases(subjects, chosen, extent, seed, tell):
            contents, entry = _written(place, case, expected)
            for name, data in contents.items():
                write_into(beside, name, data)
            entries.append(entry)
        about = {"made_by": f"eltwise {VERSION}", "extent": extent, "seed": seed}
        lines = ",\n".join(json.dumps(entry) for entry in entries)
        write_into(beside, MANIFEST, f'{json.dumps(about)[:-1]}, "cases": [\n{lines}\n]}}\n'.encode())
        write_into(beside, "README.md", (package_files("eltwise.conformance") / "kit.md").read_bytes())
    return len(entries)


def _cases(
    subjects: Sequence[Subject], chosen: Sequence[ModelPath], extent: Extent, seed: int, tell: Tell
) -> Iterator[tuple[_Place, Case, np.ndarray | None]]:
    """Each case with its place and its exact result; None where it must be refused."""
    truth = Truth()
    wanted = [(subject, path) for path in chosen for subject in subjects]
    for done, (subject, path) in enumerate(wanted):
        tell(done, len(wanted), f"{subject}/{path}")
        cases = [case for group in groups(subject, path, extent, seed, True) for case in group]
        for number, case in enumerate(cases):
            yield _Place(subject, path, number), case, truth.of(case)


def _written(place: _Place, case: Case, expected: np.ndarray | None) -> tuple[dict[str, bytes], dict[str, object]]:
    """The files of a case by their paths in the kit, and its entry of the manifest."""
    built = models.build([case], place.path)
    folder = f"{built.dialect}/{'refuse' if expected is None else 'compute'}/{place.name}"
    inputs = paths.feeds([case], place.path)
    outputs = {} if expected is None else {built.outputs[0]: expected}
    if built.dialect == "onnx":
        contents = {f"{folder}/model.onnx": built.data, f"{folder}/data.json": _EXACT}
        data = f"{folder}/test_data_set_0"
        files = {name: f"{data}/input_{number}.pb" for number, name in enumerate(inputs)}
        files |= {name: f"{data}/output_{number}.pb" for number, name in enumerate(outputs)}
        contents |= {files[name]: _tensor_bytes(name, array) for name, array in (inputs | outputs).items()}
    else:
        contents = {f"{folder}/model.xml": built.data, f"{folder}/model.bin": built.weights}
        files = {name: f"{folder}/{name}.npy" for name in inputs | outputs}
        contents |= {files[name]: npy_bytes(array) for name, array in (inputs | outputs).items()}
    entry: dict[str, object] = {
        "name": place.name,
        "op": str(place.subject.schema),
        "dtype": place.subject.element_type.name,
        "broadcast": place.subject.rule,
        "path": place.path,
        "attributes": dict(case.attributes),
        "operands": [{"dtype": of_numpy(array.dtype).name, "shape": list(array.shape)} for array in (case.a, case.b)],
        "expected": "refused" if expected is None else "ok",
        "model": next(iter(contents)),
        "inputs": {name: files[name] for name in inputs},
        "outputs": {name: files[name] for name in outputs},
    }
    return contents, entry | ({"why": _reason(case)} if expected is None else {})


def _tensor_bytes(name: str, array: np.ndarray) -> bytes:
    from eltwise.formats.onnx.tensors import write_tensor

    written: bytes = write_tensor(name, Tensor(array, of_numpy(array.dtype))).SerializeToString(deterministic=True)
    return written


def _reason(case: Case) -> str:
    """Why a case must be refused, in the oracle's words."""
    try:
        case.expected()
    except OracleRefusal as refusal:
        return str(refusal)
    raise AssertionError("only what must be refused has a reason")
