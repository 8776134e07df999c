"""How long a trace of two runtimes takes, and how much memory, beside a script that keeps all intermediate values.

``python -m benchmarks.run traces`` makes a model of 1,000 nodes, runs ``eltwise.trace`` on it and the script, each in a
process of its own, in turns, and prints a table. Memory is that of all processes, shared pages counted once.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SCRIPT = """
import sys
import numpy as np, onnx, onnxruntime, openvino
model = onnx.load(sys.argv[1])
names = [value for node in model.graph.node for value in node.output]
outputs = {value.name for value in model.graph.output}
model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
feeds = {"x": np.load(sys.argv[2])}
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
wanted = dict(zip([value.name for value in session.get_outputs()], session.run(None, feeds)))
core = openvino.Core()
network = core.read_model(sys.argv[1])
network.add_outputs([name for name in names if name not in outputs])
compiled = core.compile_model(network, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
result = compiled(feeds)
got = {name: result[port] for port in compiled.outputs for name in port.names}
for name in names:
    a, b = wanted[name], got[name]
    gap = np.abs(a - b)
    figures = gap.max(), gap.mean(), np.nanmax(gap / np.abs(a)), np.isclose(b, a, rtol=1e-3, atol=1e-5).all()
"""

TRACE = """
import sys
import numpy as np, eltwise
from eltwise.runtimes import Runtime, registry
float32 = Runtime("openvino-f32", "benchmarks.traces:float32", ("openvino",), ("ai.onnx",))
registry.BY_NAME[float32.name] = float32
given = {"x": np.load(sys.argv[2])}
report = eltwise.trace(
    sys.argv[1], runtime=float32.name, against="onnxruntime", inputs=given, segment=int(sys.argv[3])
)
assert len(report.nodes) == int(sys.argv[4])
"""


def float32() -> object:
    """The adapter of an OpenVINO that computes float32 as such on every processor, so that the runtimes agree."""
    from eltwise.runtimes.openvino import OpenVino

    return OpenVino(precision="f32")


def model(nodes: int, side: int) -> onnx.ModelProto:
    """A network of 1 x 1 convolutions and element-wise nodes whose values are all of one size."""
    rng, channels = np.random.default_rng(0), 64
    made, constants = [], {}
    for number in range(nodes):
        kind = ("Conv", "Relu", "Add", "Sigmoid")[number % 4]
        read = [f"v{number}"]
        if kind == "Conv":
            weights = rng.standard_normal((channels, channels, 1, 1)) / np.sqrt(channels)
            constants[f"w{number}"] = weights.astype(np.float32)
            read.append(f"w{number}")
        elif kind == "Add":
            read.append(f"v{number - 2}")
        made.append(helper.make_node(kind, read, [f"v{number + 1}"], f"{kind}_{number}"))
    made[0].input[0], made[-1].output[0] = "x", "y"
    for node in made:
        node.input[:] = ["x" if name == "v0" else name for name in node.input]
    shape = [1, channels, side, side]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(made, "network", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def measured(arguments: list[str]) -> tuple[float, float, float]:
    """Run Python in a process of its own: the seconds, those of processors, and the MiB with all that it starts."""
    begin, before = time.perf_counter(), _processor_seconds()
    paths = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-W", "ignore", "-c", *arguments]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})  # noqa: S603 - this interpreter
    peaks = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, peaks))
    watcher.start()
    failed = process.wait()
    seconds = time.perf_counter() - begin
    watcher.join()
    if failed:
        raise SystemExit(failed)
    return seconds, _processor_seconds() - before, peaks[0]


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(process: subprocess.Popen[bytes], peaks: list[float]) -> None:
    while process.poll() is None:
        peaks[0] = max(peaks[0], sum(map(_memory, _tree(process.pid))))
        time.sleep(0.1)


def _tree(root: int) -> list[int]:
    """A process and all that it started."""
    found = [root]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, children.read_text().split())
    return found


def _memory(process: int) -> float:
    """The MiB of a process, of shared pages its part."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.run traces", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--side", type=int, default=64, help="of the images; 64 makes values of 1 MiB")
    parser.add_argument("--segment", type=int, default=64, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("model.onnx", "x.npy")]
        onnx.save(model(options.nodes, options.side), files[0])
        np.save(files[1], np.random.default_rng(1).standard_normal((1, 64, options.side, options.side), np.float32))
        runs = {
            "eltwise.trace": [TRACE, *files, str(options.segment << 20), str(options.nodes)],
            "all values kept": [SCRIPT, *files],
        }
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runs}
        for _round in range(options.rounds):
            for name, command in runs.items():
                found[name].append(measured(command))
    print("| | seconds | processor seconds | MiB |\n|---|---|---|---|")
    for name, results in found.items():
        seconds, used, memory = (median(values) for values in zip(*results, strict=True))
        print(f"| {name} | {seconds:.2f} | {used:.2f} | {memory:.0f} |")
    ratio = median(one[0] / other[0] for one, other in zip(*found.values(), strict=True))
    print(f"\ntime of the trace over that of the script: {ratio:.2f}")
