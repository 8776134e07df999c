"""Make the networks of the guide on traces: operators of many kinds around one that a runtime computes differently.

Run ``python examples/make_networks.py``; it writes the same files to ``examples/networks`` every time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

HERE = Path(__file__).parent / "networks"
SIZES = (1, 3, 32, 32)
BLOCKS = 6


def motion() -> ModelProto:
    """How much a picture changed: an 8-bit difference that wraps around, then filters and a decision."""
    nodes = [
        helper.make_node("Sub", ["frame", "background"], ["difference"], name="subtract_background"),
        helper.make_node("Cast", ["difference"], ["wide"], name="to_float", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["level_0"], name="normalize"),
    ]
    for number in range(1, BLOCKS + 1):
        before, after, names = f"level_{number - 1}", f"level_{number}", [f"{part}_{number}" for part in "abcd"]
        pads: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        nodes += [
            helper.make_node("AveragePool", [before], names[:1], name=f"smooth_{number}", **pads),
            helper.make_node("Sub", [before, names[0]], names[1:2], name=f"edges_{number}"),
            helper.make_node("Tanh", names[1:2], names[2:3], name=f"limit_{number}"),
            helper.make_node("MaxPool", names[2:3], names[3:], name=f"spread_{number}", **pads),
            helper.make_node("Add", [names[0], names[3]], [after], name=f"join_{number}"),
        ]
    nodes += [
        helper.make_node("GlobalMaxPool", [f"level_{BLOCKS}"], ["strongest"], name="strongest"),
        helper.make_node("Flatten", ["strongest"], ["flat"], name="flatten"),
        helper.make_node("Softmax", ["flat"], ["motion"], name="decide", axis=1),
    ]
    background = np.random.default_rng(7).integers(0, 256, SIZES).astype(np.uint8)
    constants = {"background": background, "scale": np.float32(1 / 255)}
    graph = helper.make_graph(
        nodes,
        "motion",
        [helper.make_tensor_value_info("frame", TensorProto.UINT8, SIZES)],
        [helper.make_tensor_value_info("motion", TensorProto.FLOAT, (1, 3))],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


RESIZE = """<ir_version: 8, opset_import: ["" : 17]>
resize (float[1, 1, 1, 3] x) => (float[1, 1, 1, 6] y)
<float scale = {1.0}, int8 zero = {0}, int64[4] sizes = {1, 1, 1, 6}> {
    q = QuantizeLinear (x, scale, zero)
    d = DequantizeLinear (q, scale, zero)
    r = Resize <mode = "linear"> (d, , , sizes)
    p = QuantizeLinear (r, scale, zero)
    y = DequantizeLinear (p, scale, zero)
}"""
"""A resize between quantized values, which onnxruntime computes in integers up to version 1.24."""


def main() -> None:
    """Write the files."""
    HERE.mkdir(exist_ok=True)
    (HERE / "resize.onnx").write_bytes(parser.parse_model(RESIZE).SerializeToString(deterministic=True))
    np.save(HERE / "row.npy", np.array([[[[2, 6, 4]]]], np.float32))
    (HERE / "motion.onnx").write_bytes(motion().SerializeToString(deterministic=True))
    frame = np.random.default_rng(8).integers(0, 256, SIZES).astype(np.uint8)
    np.save(HERE / "frame.npy", frame)


if __name__ == "__main__":
    main()
