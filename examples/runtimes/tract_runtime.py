"""tract (https://github.com/sonos/tract) as a runtime: ``--runtime examples/runtimes/tract_runtime.py:load``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import tract

__version__ = version("tract")

Arrays = dict[str, np.ndarray]


def load(data: bytes) -> Callable[[Arrays], Arrays]:
    """Load the bytes of an ONNX model; what is returned runs it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        model = tract.onnx().load(path)
    inputs = [model.input_name(number) for number in range(model.input_count())]
    outputs = [value.name for value in onnx.load_from_string(data).graph.output]  # tract calls them by their nodes.
    runnable = model.into_model().into_runnable()

    def run(arrays: Arrays) -> Arrays:
        results = runnable.run([arrays[name] for name in inputs])
        return {name: result.to_numpy() for name, result in zip(outputs, results, strict=True)}

    return run
