"""Make small arrays and checkpoints, and run every command for files larger than memory on them.

``python examples/demo_scale.py [FOLDER]``: the files and the results are written to the folder, by default
``build/demo-scale``. The commands are the same for files of any size; a Dask cluster of two processes is started for
those that run on one.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import zarr
from onnx import TensorProto, helper
from safetensors.numpy import save_file

SHAPE, CHUNKS = (2048, 4096), (512, 1024)


def main() -> int:
    """Run the demonstration; 1 if a command fails, or a restored checkpoint differs."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo-scale").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_arrays(folder)
    make_model(folder)
    make_checkpoints(folder)
    ended = [
        run(folder, "apply Subtract-1 a.zarr b.zarr --output c.zarr"),
        run(folder, "apply Subtract-1 a.zarr b.zarr --output c.zarr"),
        run(folder, "run model.onnx --input a=a.zarr --input b=b.zarr --output squared=squared.zarr --memory 1GiB"),
        run(folder, "reduce mean-squared-difference a.zarr b.zarr"),
        run(folder, "reduce mean-squared-difference a.zarr b.zarr --axis 0"),
        run(folder, "apply Sub-14 tuned.safetensors base.safetensors --output delta.safetensors"),
        run(folder, "delta tuned.safetensors base.safetensors --output delta.eltd"),
        run(folder, "restore base.safetensors delta.eltd --output restored.safetensors"),
        on_a_cluster(folder),
    ]
    is_same = (folder / "restored.safetensors").read_bytes() == (folder / "tuned.safetensors").read_bytes()
    print(f"restored.safetensors has {'the same bytes as' if is_same else 'OTHER BYTES THAN'} tuned.safetensors")
    return int(any(ended) or not is_same)


def make_arrays(folder: Path) -> None:
    """Two zarr arrays with a few chunks of values; chunks that are not there are zeros."""
    draw = np.random.default_rng(0)
    for name in "ab":
        array = zarr.create_array(str(folder / f"{name}.zarr"), shape=SHAPE, chunks=CHUNKS, dtype="float32")
        array[:512, :1024] = draw.standard_normal((512, 1024), np.float32)
        array[-512:, -1024:] = draw.standard_normal((512, 1024), np.float32)


def make_model(folder: Path) -> None:
    """An element-wise model: the square of a difference."""
    a, b, squared = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("a", "b", "squared"))
    nodes = [helper.make_node("Sub", ["a", "b"], ["d"]), helper.make_node("Mul", ["d", "d"], ["squared"])]
    graph = helper.make_graph(nodes, "square", [a, b], [squared])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "model.onnx")


def make_checkpoints(folder: Path) -> None:
    """A network of two layers that learns a function with Adam, and the same after a few more small steps."""
    draw = np.random.default_rng(0)
    weights = {
        "in.weight": draw.standard_normal((512, 64), np.float32) / np.float32(8),
        "in.bias": np.zeros(512, np.float32),
        "out.weight": draw.standard_normal((64, 512), np.float32) / np.float32(23),
    }
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in weights.items()}
    for step in range(1, 301):
        x = draw.standard_normal((128, 64), np.float32)
        hidden = np.maximum(x @ weights["in.weight"].T + weights["in.bias"], 0)
        error = (hidden @ weights["out.weight"].T - np.sin(3 * x)) / len(x)
        back = (error @ weights["out.weight"]) * (hidden > 0)
        slopes = {"in.weight": back.T @ x, "in.bias": back.sum(axis=0), "out.weight": error.T @ hidden}
        for name, slope in slopes.items():
            first, second = moments[name]
            first += (slope - first) * np.float32(0.1)
            second += (slope * slope - second) * np.float32(0.001)
            rate = np.float32((1e-3 if step <= 280 else 1e-5) * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step))
            weights[name] -= rate * first / (np.sqrt(second) + np.float32(1e-8))
        if step in (280, 300):
            save_file(weights, folder / ("base.safetensors" if step == 280 else "tuned.safetensors"))


def run(folder: Path, command: str) -> int:
    """Show a command and run it in the folder."""
    print(f"$ eltwise {command}", flush=True)
    arguments = [sys.executable, "-m", "eltwise", *shlex.split(command)]
    return subprocess.run(arguments, cwd=folder, check=False).returncode  # noqa: S603


def on_a_cluster(folder: Path) -> int:
    """Run two commands on a cluster of two processes."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", protocol="tcp", host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address
        return max(
            run(folder, f"apply Subtract-1 a.zarr b.zarr --output on-a-cluster.zarr --scheduler {address}"),
            run(folder, f"reduce mean-squared-difference a.zarr b.zarr --scheduler {address}"),
        )


if __name__ == "__main__":
    sys.exit(main())
