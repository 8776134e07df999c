"""A PyTorch program as one side of a trace: its values by the names of an ONNX model that was exported from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.errors import UnsupportedError, named
from eltwise.formats import files
from eltwise.ir.graph import Graph, Tensor
from eltwise.model import Model as Loaded
from eltwise.runtimes import Answer, Host, Model, Runtime, find
from eltwise.runtimes.specification import split
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.model import TracedModel
from eltwise.tracing.recording import (
    RecordedRun,
    RecordedRunner,
    Recording,
    RecordingError,
    is_recording,
    read_recording,
)
from eltwise.tracing.references import REFERENCES
from eltwise.tracing.runner import Values, cast_float, copied, is_float

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

ENDING = ".pt2"
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in \S+\n\s*([^\n]*)')
_FLOATS = ("float16", "float32", "float64")
_TRACE, _RULE = "pkg.torch.onnx.stack_trace", "pkg.onnxscript.rewriter.rule_name"
_ADAPTER, _EXPORTER = (f"eltwise.runtimes.exported_program:{name}" for name in ("ExportedProgram", "Exporter"))


@dataclass(frozen=True)
class ProgramRun:
    """A program as one side of a trace; it may take ``limit`` seconds."""

    path: Path
    name: str
    limit: float
    is_tested: bool

    def request(self, graph: Graph, inputs: object, seed: int) -> InputRequest:
        """The inputs of the model that was exported from it."""
        return InputRequest.of(graph, inputs, seed)

    def runner(self, model: TracedModel, feeds: Values, declared: Graph) -> RecordedRunner:
        """Its values in the place of a runtime; what is said of the model is of it as it is declared.

        Outputs are matched by position, other values by the names that the exporter has not changed. What is left is
        matched by its contents.

        Raises:
            RecordingError: where the model has other inputs than the program, as where one was baked into the graph.
            UnsupportedError: where PyTorch does not run it.
        """
        program = Model(files.read_bytes(self.path))
        with Host(program_runtime(self.name), self.limit) as host:
            version = host.version()
            inputs = self._described(host.run(program, ()))[0]["inputs"]
            arrays = _ordered(inputs, model.graph, feeds, str(self.path))
            description, program_values = self._described(host.run(program, arrays))
        outputs = {one: port.value for one, port in zip(description["outputs"], model.graph.outputs, strict=False)}
        values, rest = Values(), Values()
        for name, array in program_values.items():
            value = outputs.get(name, name)
            is_matched = name in outputs or (value in model.producer and model.may_have(value, array.shape))
            (values if is_matched else rest)[value] = array
        recording = Recording({}, values, {"run": self.name, "version": version}, str(self.path))
        runner = RecordedRunner(recording, model, notes_of_program(description, declared), is_file=False)
        runner.missing = "not among the values of the program"
        runner.unmatched = {name: array for name, array in rest.items() if name not in model.producer}
        return runner

    def _described(self, answer: Answer) -> tuple[dict[str, Any], Values]:
        """What the runtime tells of the program, and the values of its nodes by their names."""
        description, *arrays = _arrays_of(answer, "run", self.path)
        described = json.loads(description.tobytes())
        pairs = zip(described["values"], arrays, strict=True)
        return described, copied({name: array for name, array in pairs if array is not None})


def is_program(source: object) -> bool:
    """Whether a model is the path of an exported program."""
    return isinstance(source, str | Path) and str(source).lower().endswith(ENDING)


def program_runtime(specification: str) -> Runtime:
    """The runtime of exported programs.

    Raises:
        UnsupportedError: for another runtime than torch.
    """
    if split(specification).name != "torch":
        message = f"the runtime {specification!r} does not run an exported program"
        raise UnsupportedError(message, allowed="torch", hint="name torch for the .pt2 file")
    return replace(find(specification), adapter=_ADAPTER, loads_models=True)


def with_export(
    model: Source | Loaded, other: Source | Loaded | None, names: tuple[str, str], limit: float
) -> tuple[Source | Loaded, Source | Loaded | None]:
    """The two models of a trace: of a program alone also the bytes of the ONNX model that PyTorch exports from it.

    The export may take ``limit`` seconds.

    Raises:
        UnsupportedError: where neither is torch, and where PyTorch does not export it.
    """
    if other is not None or not is_program(model):
        return model, other
    path = Path(str(model))
    is_reference = split(names[0]).name != "torch" == split(names[1]).name
    runtime = replace(program_runtime(names[is_reference]), adapter=_EXPORTER)
    hint = "install onnxscript beside torch, or give the model that you exported as the second one"
    with Host(runtime, limit) as host:
        exported = _arrays_of(host.run(Model(files.read_bytes(path)), ()), "export", path, hint)[0].tobytes()
    return (exported, path) if is_reference else (path, exported)


def _arrays_of(answer: Answer, verb: str, path: Path, hint: str = "") -> tuple[Any, ...]:
    """The arrays of an answer, the first of them bytes.

    Raises:
        UnsupportedError: where there are none.
    """
    if answer.kind != "result" or answer.arrays[0] is None:
        message = f"PyTorch does not {verb} the program ({answer.kind}): {answer.message}"
        raise UnsupportedError(message, where=str(path), hint=hint)
    return answer.arrays


def _ordered(inputs: Mapping[str, str], graph: Graph, feeds: Values, where: str) -> list[np.ndarray]:
    """The arrays for a program, by name or else by position, in its types."""
    ports = {port.name: port.value for port in graph.inputs}
    if len(inputs) != len(ports):
        missing, extra = [name for name in inputs if name not in ports], [name for name in ports if name not in inputs]
        message = f"the program has the inputs {named(list(inputs))}, and the model {named(list(ports))}"
        baked = f"{named(missing)} was baked into the graph when it was exported" if missing and not extra else ""
        raise RecordingError(f"{message}: {baked}" if baked else message, where=where, hint="export it again")
    values = [ports[name] for name in inputs] if inputs.keys() == ports.keys() else list(ports.values())
    arrays = [feeds[value] for value in values]
    types = inputs.values()
    return [
        cast_float(array, np.dtype(kind)) if is_float(array.dtype) and kind in _FLOATS else array
        for array, kind in zip(arrays, types, strict=True)
    ]


def notes_of_program(program: Mapping[str, Any], graph: Graph) -> Iterator[str]:
    """What is no fault of a runtime: training mode, other types, weights that are not those of the program."""
    if program["training"]:
        yield f"the program is in training mode: {named(program['training'])}"
    for port, (name, kind) in zip(graph.inputs, program["inputs"].items(), strict=True):
        declared = port.type.element_type
        if declared is not None and declared.name != kind:
            yield f"the input {name!r} is {kind} in the program and {declared} in the model"
    rewritten = {name for node in _nodes(graph) if _RULE in _metadata(node) for name in node.input}
    types, differing = list[str](), list[str]()
    for name, tensor in graph.constants:
        if name not in program["weights"] or name in rewritten or not isinstance(tensor, Tensor):
            continue
        kind, _shape, digest = program["weights"][name]
        if tensor.array.dtype.name != kind:
            types.append(f"{name} ({kind}, in the model {tensor.array.dtype.name})")
        elif hashlib.sha256(tensor.array.tobytes()).hexdigest() != digest:
            differing.append(name)
    for text, names in (("weights of another type", types), ("weights that are not those of the program", differing)):
        if names:
            yield f"{text}: {named(names)}"


def source_line(graph: Graph, value: str) -> str:
    """The line of Python that made the node of a value, as PyTorch's exporter notes it; empty where it did not."""
    node = next((node for node in _nodes(graph) if value in node.output), None)
    frames = _FRAME.findall(_metadata(node).get(_TRACE, "")) if node is not None else []
    outside = [frame for frame in frames if "/torch/" not in frame[0].replace("\\", "/")] or frames
    if not outside:
        return ""
    path, number, text = outside[-1]
    folder = Path.cwd()
    shown = Path(path).relative_to(folder) if Path(path).is_relative_to(folder) else path
    return f"{shown}:{number}: {text}".rstrip(": ")


def given_side(model: object, other: object, names: tuple[str, str], limit: float) -> RecordedRun | ProgramRun | None:
    """The run whose values are given, if one is: a recorded one, or that of a PyTorch program of ``limit`` seconds.

    Raises:
        UnsupportedError: where there is nothing to compare it with.
    """
    runtime, against = names
    paths, programs = [is_recording(name) for name in names], [is_program(one) for one in (model, other)]
    if not any(paths) and not any(programs):
        return None
    if all(paths):
        hint = "compare two recorded runs with `eltwise compare`"
        raise UnsupportedError("one of the runs must be made by a runtime", got=f"{runtime} and {against}", hint=hint)
    if paths[0] and against in REFERENCES:
        hint = "name that run with against"
        raise UnsupportedError(f"a run whose values are given is not compared with {against}", hint=hint)
    if any(programs):
        if any(paths) or all(programs):
            hint = "eltwise trace PROGRAM.pt2 MODEL.onnx --runtime torch --against RUNTIME"
            raise UnsupportedError("an exported program is compared with a model that was exported from it", hint=hint)
        name = runtime if programs[0] else against
        return ProgramRun(Path(str(model if programs[0] else other)), name, limit, is_tested=programs[0])
    if other is not None:
        raise UnsupportedError("a recorded run is of one model", got="two models", hint="give the one that was run")
    return RecordedRun(read_recording(Path(runtime if paths[0] else against)), is_tested=paths[0])


def _nodes(graph: Graph) -> list[Any]:
    message = getattr(getattr(graph.message, "model", None), "graph", None)
    return [] if message is None else list(message.node)


def _metadata(node: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}
