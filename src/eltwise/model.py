"""A model that runs: loaded from a file or from memory, checked as a whole, run on arrays, saved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from eltwise.core.border import check_seed, public, stripped, untraced
from eltwise.core.errors import (
    ArgumentTypeError,
    EltwiseError,
    FileFormatError,
    GraphError,
    UnsupportedError,
    raise_all,
)
from eltwise.engine.arrays import OtherT
from eltwise.engine.random_inputs import random_inputs
from eltwise.engine.runner import Runner
from eltwise.formats import registry
from eltwise.ir.graph import Port
from eltwise.passes.analysis import Analysis

if TYPE_CHECKING:
    from onnx import ModelProto

    from eltwise.formats.registry import Source
    from eltwise.kernels.dump import Kind


class Model:
    """A model that can be saved, and run if every operator in it is one of eltwise's.

    ``load`` gives models that can be run; ``convert`` takes and gives any ONNX model. ``problems`` says why one cannot
    be run, and is empty where it can.

    >>> model = load("examples/models/sub14_uint8.onnx")
    >>> model(x=np.uint8([[1], [2], [3], [4]]), y=np.uint8([1, 1, 1, 1, 1]))["z"].shape
    (4, 5)
    """

    def __init__(self, analysis: Analysis) -> None:
        if not isinstance(analysis, Analysis):
            hint = "eltwise.load(path) loads a model"  # type: ignore[unreachable]
            raise ArgumentTypeError("not the analysis of a graph", got=type(analysis).__name__, hint=hint)
        self.analysis = analysis
        self.graph = analysis.graph

    @cached_property
    @untraced
    def _runner(self) -> Runner:
        raise_all(self.problems)
        return Runner(self.graph, self.outputs)

    @cached_property
    def problems(self) -> tuple[EltwiseError, ...]:
        """Why it cannot be run; empty where it can."""
        return self.analysis.problems

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for a run, a sentence each, which names the node."""
        return tuple(self.analysis.inference.assumptions)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs that a run needs, in the file's order: their names, types and shapes."""
        return self.graph.inputs

    @property
    def optional_inputs(self) -> tuple[Port, ...]:
        """The inputs that have a value in the file, which a run may replace."""
        return self.graph.optional_inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs in the file's order, with their inferred types and shapes."""
        return self.analysis.inference.outputs

    def __eq__(self, other: object) -> bool:
        return self.graph == other.graph if isinstance(other, Model) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inputs = ", ".join(f"{port.name}: {port.type}" for port in self.inputs)
        outputs = ", ".join(f"{port.name}: {port.type}" for port in self.outputs)
        return f"Model({inputs} -> {outputs})"

    @overload
    def run(self, inputs: Mapping[str, OtherT]) -> dict[str, OtherT]: ...  # type: ignore[overload-overlap]
    @overload
    def run(self, inputs: Mapping[str, object]) -> dict[str, np.ndarray]: ...
    def run(self, inputs: Mapping[str, object]) -> dict[str, Any]:
        """Run the model.

        Args:
            inputs: for each input, by its name, its array (by any array protocol), a tensor of PyTorch or JAX, or a
                Python number. Where a graph does only element-wise operations with it, a Dask array or a DataArray.

        Returns:
            New arrays by output name: of the inputs' library, and lazy where they are.

        Raises:
            EltwiseError: for inputs that are missing, unknown or do not fit what the model declares; and where the
                model holds operators that eltwise does not run, naming them.
        """
        try:
            self._check_feeds(inputs)
            return self._runner.run(inputs)
        except EltwiseError as error:
            raise stripped(error)  # noqa: B904 - it is the same error

    def __call__(self, /, **inputs: Any) -> dict[str, Any]:
        """Run the model on inputs that are given as arguments; see ``run``."""
        try:
            return self._runner.run(inputs)
        except EltwiseError as error:
            raise stripped(error)  # noqa: B904 - it is the same error

    @public
    def random_inputs(self, seed: int = 0, **sizes: int) -> dict[str, np.ndarray]:
        """Draw arrays for the inputs.

        Args:
            seed: of the random numbers.
            **sizes: of the symbols in the declared shapes, such as ``N=2``; those that are not given are chosen.

        Raises:
            EltwiseError: for a symbol that there is not, and for inputs whose type or rank is not declared.
        """
        check_seed(seed)
        return random_inputs(self.inputs, int(seed), sizes)

    def save(self, path: str | os.PathLike[str], external_data: bool = False) -> tuple[str, ...]:
        """Save the model; see ``eltwise.save``."""
        return save(self, path, external_data)

    def __reduce__(self) -> tuple[type[Model], tuple[Analysis]]:
        return Model, (self.analysis,)  # What runs it is machine code.

    @public
    def proto(self) -> ModelProto:
        """The model as an ``onnx.ModelProto``, with external data where it is.

        Raises:
            UnsupportedError: for a model that is not ONNX's.
        """
        from eltwise.formats.onnx.writer import write_model_proto

        return write_model_proto(self.graph)

    @public
    def explain(self, inputs: Mapping[str, object], kind: Kind = "plan") -> str:
        """Run the model and tell how: which nodes one kernel computed, and how it was built.

        Args:
            inputs: as for ``run``.
            kind: ``"plan"`` for the loops, ``"llvm"`` for LLVM's text, ``"asm"`` for the processor's instructions.

        Raises:
            EltwiseError: as ``run`` does, and for another kind.
        """
        from eltwise.engine import explain

        self._check_feeds(inputs)
        return explain.explain(self._runner, inputs, kind)

    def _check_feeds(self, inputs: object) -> None:
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            raise GraphError(
                "the inputs are given by name",
                got=type(inputs).__name__,
                allowed=f"a dict of {', '.join(port.name for port in self.inputs) or 'no inputs'}",
            )


@public
def load(source: Source, weights: bytes | None = None) -> Model:
    """Load a model.

    Args:
        source: the path of an .onnx or .xml file (its .bin is looked for beside it), the bytes of one, a file that is
            open for reading bytes, or an ``onnx.ModelProto``.
        weights: for the bytes of an .xml file, those of its .bin.

    Raises:
        EltwiseError: with every problem of every node, where there is one.

    >>> load("examples/models/sub14_uint8.onnx")
    Model(x: uint8(4,1), y: uint8(5) -> z: uint8(4,5))
    """
    model = read(source, weights)
    raise_all(model.problems)
    return model


def read(source: Source | Model, weights: bytes | None = None, *, reads_weights: bool = True) -> Model:
    """Read a model, whatever operators are in it; its problems are not raised.

    The arguments are those of ``registry.read``; a model comes back itself.

    Raises:
        EltwiseError: if there is no model: no such file, truncated, not of a known format.
    """
    if isinstance(source, Model):
        return source
    reading = registry.read(source, weights, reads_weights=reads_weights)
    name = Path(source).name if isinstance(source, str | os.PathLike) else ""
    return Model(Analysis(reading.graph, name, reading.problems))


@public
def save(model: Model, path: str | os.PathLike[str], external_data: bool = False) -> tuple[str, ...]:
    """Save a model to an .onnx file, or to an .xml file with its .bin beside it.

    A model that was not changed has the same bytes, but for the name of external data that goes to another folder. A
    changed ONNX model keeps all that its file says beside the change; a changed IR keeps what its file says of itself
    and of its graph as a whole, not what it says of single layers and ports (rt_info).

    Args:
        model: what ``load`` or ``convert`` gave.
        path: the file; its ending says the format, which must be the one that the model has.
        external_data: for .onnx, whether large tensors go to a .data file beside it (they do above 1 GiB). External
            data of the loaded file stays external.

    Returns:
        What the loaded file said and the new one does not say, a phrase each; nothing where all is kept.

    Raises:
        EltwiseError: where the format cannot say what the model holds, or the file cannot be written. Then the
            file that was there, if any, is as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(load("examples/models/sub14_uint8.onnx"), f"{folder}/copy.onnx")
    ()
    """
    if not all(map(isinstance, (model, path), (Model, str | os.PathLike))):
        got = f"{type(model).__name__} and {type(path).__name__}"
        raise FileFormatError("only a loaded model can be saved, and to a path", got=got)
    target, graph = Path(path), model.graph
    model_format = registry.of_path(target)
    if model_format.domain != graph.origin.domain:
        raise UnsupportedError(
            f"the model is {registry.of_domain(graph.origin.domain).name}, and the ending is {model_format.name}'s",
            where=str(target),
            hint="convert it first, with eltwise.convert or `eltwise convert`",
        )
    registry.write_file(graph, target, external_data)
    return () if model_format is registry.ONNX or graph.untouched else graph.not_held
