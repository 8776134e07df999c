"""An ExportedProgram of PyTorch, saved by ``torch.export.save``: it is run node by node, and every value is given out.

The first array of an answer holds JSON: the names of the values that follow, and what else is known of the program.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import InputKind

from eltwise.runtimes.libraries import Torch

_TRAINING = {"batch_norm": 5, "dropout": 2, "native_dropout": 2, "_native_batch_norm_legit_functional": 5}
"""The operators that have a training mode, with the position of the argument that switches it on."""


class ExportedProgram:
    """Programs run on the CPU."""

    def __init__(self, threads: int = 0) -> None:
        self._torch = Torch(threads)

    def version(self) -> str:
        """The version of PyTorch."""
        return version("torch")

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> LoadedProgram:
        """Load a program."""
        del weights, path
        return LoadedProgram(self._torch, torch.export.load(io.BytesIO(data)))


class Exporter(ExportedProgram):
    """Programs are not run but exported to ONNX, by PyTorch's own exporter."""

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Any:
        """Load a program."""
        del weights, path
        return _Export(torch.export.load(io.BytesIO(data)))


class _Export:
    """A program whose one result is the bytes of its ONNX model."""

    def __init__(self, program: Any) -> None:
        self._program = program

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Export it; there are no inputs."""
        del inputs, outputs
        return self._export

    def _export(self) -> Any:
        return torch.onnx.export(self._program, verbose=False).model_proto.SerializeToString()

    def arrays(self, result: bytes) -> list[object]:
        """The bytes."""
        return [np.frombuffer(result, np.uint8)]


class LoadedProgram:
    """A program that is ready."""

    def __init__(self, library: Torch, program: Any) -> None:
        self._library, self._program = library, program
        signature = program.graph_signature
        self._specs = signature.input_specs
        self._weights = {**program.constants, **program.state_dict}
        self._inputs = [spec.arg.name for spec in self._specs if spec.kind is InputKind.USER_INPUT]
        self._outputs = [str(name) for name in signature.user_outputs]

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Run on inputs in the order of the program; without any, only the description is given."""
        if outputs is not None:
            raise NotImplementedError("a program makes its own results")
        return lambda: self._run(inputs) if inputs else {}

    def arrays(self, result: dict[str, np.ndarray]) -> list[object]:
        """The description, and the values in the order of their names in it."""
        description = json.dumps({**self._description(), "values": list(result)}).encode()
        return [np.frombuffer(description, np.uint8), *result.values()]

    def _run(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        arrays = iter(map(self._library.given, inputs))
        operands = [
            next(arrays) if spec.kind is InputKind.USER_INPUT else self._weights[spec.target] for spec in self._specs
        ]
        values: dict[str, np.ndarray] = {}
        interpreter = torch.fx.Interpreter(self._program.graph_module)
        run_node = interpreter.run_node

        def record(node: Any) -> Any:
            result = run_node(node)
            if node.op == "call_function" and isinstance(result, torch.Tensor):
                values[node.name] = self._library.array(result.detach())
            return result

        interpreter.run_node = record
        with torch.no_grad():
            interpreter.run(*operands)
        return values

    def _description(self) -> dict[str, object]:
        nodes = {node.name: node for node in self._program.graph.nodes}
        inputs = {name: _type_of(nodes[name].meta.get("val")) for name in self._inputs}
        weights = {
            name: [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), self._digest(tensor)]
            for name, tensor in self._weights.items()
            if isinstance(tensor, torch.Tensor)
        }
        training = [name for name, node in nodes.items() if _is_training(node)]
        return {"inputs": inputs, "outputs": self._outputs, "weights": weights, "training": training}

    def _digest(self, tensor: Any) -> str:
        return hashlib.sha256(self._library.array(tensor.detach()).tobytes()).hexdigest()


def _type_of(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else type(value).__name__


def _is_training(node: Any) -> bool:
    name = getattr(node.target, "_opname", "")
    position = _TRAINING.get(name)
    return position is not None and len(node.args) > position and node.args[position] is True
