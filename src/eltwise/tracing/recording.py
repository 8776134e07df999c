"""Recorded runs: a safetensors file with the inputs of a run and what came of it, in the place of a runtime.

Its tensors are ``input/NAME`` and ``value/NAME``; its metadata, all of it optional, are ``model``, the SHA-256 of the
model file, ``run``, the specification, ``version`` and ``machine``. Any program can write one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eltwise.core.border import public
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, FileFormatError, counted, errors_located, named
from eltwise.core.exit_codes import ExitCode
from eltwise.core.shapes import of_sizes
from eltwise.formats import files
from eltwise.formats.safetensors_files import dtype_of, header_of
from eltwise.formats.tensor_sets import open_tensors
from eltwise.ir.graph import Graph
from eltwise.tracing.inputs import InputRequest, check_inputs
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Partners
from eltwise.tracing.runner import Outcome, Runner, Values, is_float

ENDING = ".safetensors"
_INPUT, _VALUE = "input/", "value/"


class RecordingError(FileFormatError):
    """A recorded run that is not one of this model on these inputs, so that nothing can be established by it."""

    exit_code = ExitCode.NOT_ESTABLISHED


@dataclass(frozen=True)
class Recording:
    """A run that was made elsewhere.

    Attributes:
        inputs: the arrays of the inputs, by their names.
        values: what came of them: outputs, and perhaps values between, by their names.
        metadata: what the file says of the run.
        where: the file.
    """

    inputs: Values
    values: Values
    metadata: Mapping[str, str]
    where: str = ""

    @property
    def name(self) -> str:
        """What a report calls it: the file, and which runtime ran on what machine."""
        run, version = self.metadata.get("run", ""), self.metadata.get("version", "")
        run = run if version in run else f"{run} {version}".strip()
        described = ", ".join(filter(None, (run, self.metadata.get("machine", ""))))
        return f"{self.where} ({described})" if described else self.where

    @public
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file.

        Args:
            path: what ends in ``.safetensors``.

        Raises:
            EltwiseError: for another ending, for element types and names that safetensors does not have, and where it
                cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() != ENDING:
            raise files.unknown_ending(target, ENDING)
        pairs = [(_INPUT, self.inputs), (_VALUE, self.values)]
        arrays = {kind + name: array for kind, named_arrays in pairs for name, array in named_arrays.items()}
        described = []
        for name, array in arrays.items():
            with errors_located(operand=name.replace("/", " ", 1)):
                described.append((name, dtype_of(of_numpy(array.dtype)), array.shape, array.nbytes))
        header = header_of(described, dict(self.metadata))
        contents = (np.ascontiguousarray(array).tobytes() for array in arrays.values())
        files.write_atomically(target, chain([len(header).to_bytes(8, "little") + header], contents))


class RecordedRunner(Runner):
    """A recorded run in the place of a runtime: it has values, and runs nothing."""

    needs_inputs: ClassVar[bool] = False

    def __init__(self, recording: Recording, model: TracedModel, notes: Iterable[str], *, is_file: bool) -> None:
        """Take a recording whose values have the names of those of the graph."""
        self.recording, self.notes, self.is_file = recording, tuple(notes), is_file
        no_host: Any = None
        super().__init__(recording.where, no_host, model, missing="not in the recorded run")

    def _run(
        self,
        numbers: Sequence[int],
        _values: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None,
        _options: Mapping[str, Any],
    ) -> Outcome:
        """Give the recorded values of some nodes, whatever these read."""
        names, values = self.model.made_by(numbers) if outputs is None else outputs, self.recording.values
        return Outcome({name: values[name] for name in names if name in values})

    def doubt(self, result: np.ndarray, other: np.ndarray) -> str:
        """A NaN in a file may come of how it was written, so that it is no proof of what the runtime gives."""
        if not (self.is_file and is_float(result.dtype) and result.shape == other.shape):
            return ""
        count = int(np.count_nonzero(np.isnan(result) & ~np.isnan(other)))
        return f"the recorded run has NaN for {counted(count, 'number')}" if count else ""

    def partners(self) -> Partners:
        """The partner map: each recorded value and each input is that of the same model."""
        names = (*self.recording.values, *(port.value for port in self.model.graph.inputs))
        return Partners(self.model, self.model, {name: name for name in names}, is_identity=True)


@dataclass(frozen=True)
class RecordedRun:
    """A recorded run as one side of a trace.

    Attributes:
        recording: the run.
        is_tested: whether it is the one that is tested, and the runtime is the reference.
    """

    recording: Recording
    is_tested: bool

    def request(self, graph: Graph, inputs: object, seed: int) -> InputRequest:
        """The inputs that were recorded, of which none is drawn; those that are given must be the same.

        Raises:
            RecordingError: for a run of another model or of other inputs.
        """
        recording = self.recording
        where, digest = recording.where, recording.metadata.get("model")
        if digest and digest != digest_of(graph):
            hint = "record it anew"
            raise RecordingError("the run was recorded of another model file", where=where, got=digest, hint=hint)
        missing = [port.name for port in graph.inputs if port.name not in recording.inputs]
        if missing:
            raise RecordingError(f"the recorded run has no input {named(missing)}", where=where)
        try:
            recorded = InputRequest.of(graph, recording.inputs, seed)
            requested = check_inputs(graph, inputs)
        except EltwiseError as error:
            raise RecordingError(f"the recorded run is not of this model: {error}", where=where) from None
        for name, array in requested.items():
            if name not in recorded.arrays or array.tobytes() != recorded.arrays[name].tobytes():
                message = f"the run was recorded of another array for the input {name!r}"
                raise RecordingError(message, where=where, hint="leave out inputs: those that were recorded are used")
        return replace(recorded, source=f"those of {where}")

    def runner(self, model: TracedModel, _feeds: Values, _declared: Graph) -> RecordedRunner:
        """Its values in the place of a runtime.

        Raises:
            RecordingError: for values that the model does not have, or that have another type or shape there.
        """
        recording = self.recording
        graph, where, values = model.graph, recording.where, Values()
        ports = {name: port.value for port in graph.outputs for name in port.names}
        names = {name: value for value, aliases in graph.tensor_names for name in aliases} | ports
        extra = [name for name in recording.values if not {name, names.get(name)} & model.producer.keys()]
        constant = [name for name in extra if name in ports]
        if len(extra) > len(constant):
            unknown = named([name for name in extra if name not in constant])
            hint = "leave them out, or name those of the model"
            raise RecordingError(f"the model has no values {unknown}", where=where, hint=hint)
        for name, array in recording.values.items():
            value = names.get(name, name)
            declared = model.type_of(value)
            got = f"{of_numpy(array.dtype)}({of_sizes(array.shape)})"
            is_typed = declared.element_type in (None, of_numpy(array.dtype))
            if not (is_typed and model.may_have(value, array.shape)):
                message = f"the recorded value {name!r} has another type or shape than the model's"
                raise RecordingError(message, where=where, got=got, allowed=str(declared))
            values[value] = array
        return RecordedRunner(replace(recording, values=values), model, notes_of(recording), is_file=True)


def is_recording(text: object) -> bool:
    """Whether the specification of a run is the path of a recorded one."""
    return isinstance(text, str) and text.lower().endswith(ENDING)


def read_recording(path: Path) -> Recording:
    """Read a recorded run.

    Raises:
        FileFormatError: if the file cannot be read.
        RecordingError: if it holds something else.
    """
    tensors = open_tensors(path)
    if tensors.unreadable:
        raise next(iter(tensors.unreadable.values()))
    groups: dict[str, Values] = {_INPUT: {}, _VALUE: {}}
    for name, tensor in tensors.items():
        kind = next((kind for kind in groups if name.startswith(kind)), None)
        if kind is None:
            allowed = "input/NAME and value/NAME"
            raise RecordingError("not a recorded run", where=str(path), got=f"a tensor {name!r}", allowed=allowed)
        groups[kind][name.removeprefix(kind)] = tensor.array
    if not groups[_VALUE]:
        raise RecordingError("the recorded run has no values", where=str(path), allowed="tensors named value/NAME")
    return Recording(groups[_INPUT], groups[_VALUE], dict(tensors.metadata), str(path))


def digest_of(graph: Graph) -> str:
    """The SHA-256 of the file that a graph was read from."""
    file: Any = graph.message
    if graph.origin.domain != "ai.onnx":
        return hashlib.sha256(file.xml).hexdigest()
    return hashlib.sha256(file.data or file.model.SerializeToString()).hexdigest()


def notes_of(recording: Recording) -> Iterable[str]:
    """What restricts a trace against a recorded run."""
    if not recording.metadata.get("model"):
        yield f"{recording.where} does not say of which model file it is: that it is of this one is not proved"
    if note := recording.metadata.get("note"):
        yield f"{recording.where}: {note}"
    count = sum(int(np.isnan(array).any()) for array in recording.values.values() if is_float(array.dtype))
    if count:
        yield f"{counted(count, 'recorded value')} with NaN"
