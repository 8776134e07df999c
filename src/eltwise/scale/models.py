"""Models on files larger than memory: block by block where they are element-wise, else as a whole where they fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.engine.io_binding import Symbols, bound_inputs, match, refuse_conversion
from eltwise.formats.file_states import States, state
from eltwise.formats.registry import files_of
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Tensor, of_array
from eltwise.model import Model, load
from eltwise.scale.apply import check_target, compute_files
from eltwise.scale.block_graphs import block_call
from eltwise.scale.blocks import BlockCall, as_operand
from eltwise.scale.jobs import JobOutcome, Resources
from eltwise.scale.sources import Sources, absolute, open_sources


@dataclass(frozen=True)
class ModelOutput:
    """An output of a model: a ``BlockComputation``.

    Attributes:
        path: of the model.
        inputs: the names of its inputs, in the order of the tensors.
        output: the name of the output.
        loaded: the model; workers of a cluster load it from its path.
    """

    path: str
    inputs: tuple[str, ...]
    output: str
    loaded: Model | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[ModelOutput], tuple[object, ...]]:
        return ModelOutput, (self.path, self.inputs, self.output)

    def identity(self) -> object:
        """The model's path, its inputs and the output."""
        return [self.path, *self.inputs, self.output]

    def states(self) -> States:
        """The states of the model's file and of those with its constants."""
        model = self.loaded or load(self.path)
        return {str(file): state(str(file)) for file in files_of(model.graph, Path(self.path)) if file.exists()}

    def call(self, tensors: Sequence[Tensor]) -> BlockCall:
        """Check the types and shapes of inputs; see ``BlockComputation``.

        Raises:
            UnsupportedError: where the output cannot be computed block by block.
        """
        model = self.loaded or load(self.path)
        for port in model.graph.inputs:
            refuse_conversion(port, port.inner_type)
        symbols: Symbols = {}
        bound = bound_inputs(model.graph, dict(zip(self.inputs, tensors, strict=True)), symbols, as_operand)
        port = next(port for port in model.outputs if port.name == self.output)
        call = block_call(model.graph, port, bound)
        match(port.type.shape, call.shape, f"output {port.name!r}", symbols)
        refuse_conversion(port, call.result_type)
        return call


def run_files(
    path: str,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    resources: Resources,
    loaded: Model | None = None,
) -> dict[str, JobOutcome]:
    """Run a model on .npy files, zarr stores or checkpoints, and write outputs, one after the other.

    An element-wise output is computed block by block, and resumed where it was ended, as by ``apply_files``. A model
    that is not element-wise runs on whole arrays, if its inputs fit into the memory that may be used.

    Args:
        path: of the model.
        inputs: for each input, by its name, a path or the URL of a zarr store.
        outputs: for some outputs, by their names, the path or URL to write; its ending selects the format.
        resources: what may be used.
        loaded: the model, where it is loaded already.

    Raises:
        EltwiseError: for a model or inputs that do not go together, before anything is read; for inputs that are too
            large; for blocks that cannot be read or written.
    """
    model = loaded or load(path)
    ports = [model.graph.find_input(name) for name in inputs]
    sources = open_sources(list(inputs.values()), [port.type.element_type for port in ports])
    model_outputs = {name: ModelOutput(absolute(path), tuple(inputs), name, model) for name in outputs}
    _check_targets(sources, outputs, files_of(model.graph, Path(path)))
    try:
        for output in model_outputs.values():
            sources.calls(output)
    except UnsupportedError as error:
        return _run_whole(model, model_outputs, sources, outputs, resources, error.located(where=path))
    return {name: compute_files(output, sources, outputs[name], resources) for name, output in model_outputs.items()}


def _check_targets(sources: Sources, outputs: Mapping[str, str], inputs: Sequence[Path]) -> None:
    for text in outputs.values():
        check_target(sources, text, inputs)
    for number, text in enumerate(outputs.values()):
        if absolute(text) in map(absolute, list(outputs.values())[:number]):
            raise FileFormatError("two outputs have one name", where=text, hint="give each its own")


def _run_whole(
    model: Model,
    model_outputs: Mapping[str, ModelOutput],
    sources: Sources,
    outputs: Mapping[str, str],
    resources: Resources,
    reason: UnsupportedError,
) -> dict[str, JobOutcome]:
    """Run a model on whole arrays."""
    size = sum(tensor.size * tensor.storage.itemsize for each in sources.sets for tensor in each.values())
    if resources.scheduler is not None or sources.is_named:
        reason.hint = "such a model runs on one array an input, and on this machine"
        raise reason
    if size > resources.memory:
        reason.hint = f"such a model needs its inputs in memory: --memory {-(-size // (1 << 20))}MiB"
        raise reason
    names = next(iter(model_outputs.values())).inputs
    states = {
        name: text
        for each in (*sources.states(), *(each.states() for each in model_outputs.values()))
        for name, text in each.items()
    }
    arrays = [next(iter(each.values())).array for each in sources.sets]
    results = model.run(dict(zip(names, arrays, strict=True)))
    outcomes = {}
    for name, text in outputs.items():
        whole = TensorSet(name, {name: of_array(name, results[name])}, is_one=True)
        result = _Result((model_outputs[name].identity(), sources.identities()), states)
        outcomes[name] = compute_files(result, Sources((name,), (None,), (whole,)), text, resources)
    return outcomes


@dataclass(frozen=True)
class _Result:
    """A result in memory, as a ``BlockComputation`` of that one tensor."""

    made_of: object
    read_from: States = field(hash=False)

    def identity(self) -> object:
        return self.made_of

    def states(self) -> States:
        return self.read_from

    def call(self, tensors: Sequence[Tensor]) -> BlockCall:
        (tensor,) = tensors
        axes = tuple(range(len(tensor.shape)))
        return BlockCall(lambda blocks: blocks[0], (tensor,), (axes,), tensor.shape, tensor.element_type)
