"""What a golden is recorded of: arrays as they are, or a model that is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eltwise.comparison.intake import attributes_of
from eltwise.core.containers import CONTAINERS, dotted, form_of, leaves
from eltwise.core.errors import AttributeValueError, ElementTypeError
from eltwise.formats.registry import FORMATS
from eltwise.ir.tensor_sets import TensorSet
from eltwise.model import Model, read
from eltwise.testing.bounds import Bounds, bounds_of
from eltwise.testing.leaves import arrays_of, opened
from eltwise.testing.meaning import metadata_of
from eltwise.testing.models import runtime_of
from eltwise.testing.modules import ModuleRun, is_module
from eltwise.tracing.inputs import check_inputs
from eltwise.tracing.record import record_whole
from eltwise.tracing.recording import Recording


@dataclass(frozen=True)
class Arrays:
    """Arrays, which have no inputs that are known, and what decides on their meaning, as texts of the metadata."""

    values: Mapping[str, Any]
    metadata: Mapping[str, str]

    def recording(self, _recorded: Mapping[str, Any]) -> Recording:
        """The arrays."""
        return Recording({}, dict(self.values), dict(self.metadata))

    def bounds(self, _recording: Recording) -> Bounds:
        """Nothing is known of how they were computed: every bit counts."""
        return (), {}


@dataclass(frozen=True)
class ModelRun:
    """A model, the runtime that runs it, and its inputs."""

    model: Model
    runtime: str
    inputs: Mapping[str, object]
    seed: int

    def recording(self, recorded: Mapping[str, Any]) -> Recording:
        """Run it on the inputs, on those that were recorded where they are not given, or else on random ones."""
        known = {port.name for port in (*self.model.inputs, *self.model.optional_inputs)}
        feeds = {name: array for name, array in recorded.items() if name in known}
        feeds |= check_inputs(self.model.graph, self.inputs)
        recording = record_whole(self.model, self.runtime, feeds, self.seed)
        metadata = {name: text for name, text in recording.metadata.items() if name != "model"}
        return Recording(recording.inputs, recording.values, metadata)

    def bounds(self, recording: Recording) -> Bounds:
        """Those that follow from float64; eltwise computes every bit as it is defined."""
        if self.runtime == "eltwise":
            return (), {}
        return bounds_of(self.model, self.runtime, recording.inputs, recording.values)


Subject = Arrays | ModelRun | ModuleRun


def subject_of(
    value: object,
    name: str,
    inputs: Mapping[str, object] | Sequence[object] | None,
    runtimes: tuple[str, Sequence[str]],
    seed: int,
) -> Subject:
    """Tell models and modules from arrays.

    Args:
        value: what is checked.
        name: of a single array.
        inputs: of a model or a module.
        runtimes: the specification of what runs a model, which may be empty, and those that the project prefers.
        seed: of the inputs that are drawn.

    Raises:
        EltwiseError: for what is neither, and for options of models with arrays.
    """
    if is_module(value):
        if runtimes[0]:
            raise AttributeValueError("a module runs in PyTorch", operand="runtime", got=runtimes[0])
        return ModuleRun(value, inputs)
    is_file = isinstance(value, str | os.PathLike) and Path(value).suffix.lower() in {one.ending for one in FORMATS}
    if is_file or isinstance(value, Model) or hasattr(value, "graph"):
        source: Any = value
        model = read(source, reads_weights=False)
        if not isinstance(inputs, Mapping | None):
            got = type(inputs).__name__
            raise AttributeValueError("the inputs of a model are given by name", operand="inputs", got=got)
        return ModelRun(model, runtimes[0] or runtime_of(model, runtimes[1]), {} if inputs is None else inputs, seed)
    if inputs is not None or runtimes[0]:
        option = "runtime" if inputs is None else "inputs"
        raise AttributeValueError("only a model or a module has this", operand=option, got=type(value).__name__)
    return _arrays(value, name)


def _arrays(value: object, name: str) -> Arrays:
    """The arrays of a side; a single one has the name of the golden."""
    side = opened(value, "actual")
    arrays = arrays_of(side, name)
    if isinstance(side, TensorSet):
        if side.models:
            hint = "check each model by its path"
            raise ElementTypeError("a golden of a folder holds no models", operand=name, got=side.where, hint=hint)
        return Arrays(arrays, metadata_of(side, {}))
    objects = {dotted(keys) or name: leaf for keys, leaf in leaves(side, "actual")}
    attributes = attributes_of(side, "actual", name)
    attributes.parameters[CONTAINERS] = form_of(side)  # A single array is no container, which counts, too.
    return Arrays(arrays, metadata_of(attributes, objects))
