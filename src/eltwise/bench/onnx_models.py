"""The workloads as ONNX models, for the runtimes that take nothing else."""

from __future__ import annotations

from eltwise.bench.workloads import Formula, Workload

INPUT_NAMES = ("a", "b", "c", "d")
OUTPUT_NAME = "result"
_OPSET = 14

_NODES: dict[Formula, tuple[tuple[str, tuple[str, str], str], ...]] = {
    "subtract": (("Sub", ("a", "b"), OUTPUT_NAME),),
    "squared_difference": (("Sub", ("a", "b"), "difference"), ("Mul", ("difference", "difference"), OUTPUT_NAME)),
    "nested": (
        ("Sub", ("a", "b"), "left"),
        ("Sub", ("c", "d"), "right"),
        ("Sub", ("left", "right"), OUTPUT_NAME),
    ),
}


def model_bytes(workload: Workload) -> bytes:
    """Write a workload as a serialized ONNX model; its inputs are a, b, c and d, its output is ``result``."""
    from onnx import helper

    number = workload.element_type.onnx_number
    nodes = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in _NODES[workload.formula]]
    inputs = [
        helper.make_tensor_value_info(name, number, shape)
        for name, shape in zip(INPUT_NAMES, workload.shapes, strict=False)
    ]
    result = helper.make_tensor_value_info(OUTPUT_NAME, number, workload.result_shape)
    opsets = [helper.make_opsetid("", _OPSET)]
    graph = helper.make_graph(nodes, "workload", inputs, [result])
    version = helper.find_min_ir_version_for(opsets)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
    return bytes(model.SerializeToString())
