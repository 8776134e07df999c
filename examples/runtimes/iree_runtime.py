"""IREE (https://iree.dev) as a runtime: ``--runtime examples/runtimes/iree_runtime.py:load``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import iree.compiler
import iree.runtime
import numpy as np
import onnx
import onnx.shape_inference

__version__ = version("iree-base-compiler")

Arrays = dict[str, np.ndarray]


def load(data: bytes) -> Callable[[Arrays], Arrays]:
    """Compile the bytes of an ONNX model for this processor; what is returned runs it."""
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(data))  # The importer refuses unknown shapes.
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    outputs = [value.name for value in graph.output]
    dtypes = [onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in graph.output]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "model.mlir"
        source.write_bytes(model.SerializeToString())
        command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(source), "-o", str(target)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a tool of IREE's
        if done.returncode:
            raise NotImplementedError(done.stderr)
        options = ["--iree-llvmcpu-target-cpu=host"]
        compiled = iree.compiler.compile_file(str(target), target_backends=["llvm-cpu"], extra_args=options)
    config = iree.runtime.Config("local-task")
    module = iree.runtime.load_vm_module(iree.runtime.VmModule.copy_buffer(config.vm_instance, compiled), config)
    function = module[graph.name]

    def run(arrays: Arrays) -> Arrays:
        results = function(*(arrays[name] for name in inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        named = zip(outputs, results, dtypes, strict=True)
        return {name: np.asarray(result).view(dtype) for name, result, dtype in named}  # Its integers have no sign.

    return run
