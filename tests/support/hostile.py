"""Names that speak to a terminal, files in which everything is called so, and what of them may reach a terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import zarr
from onnx import TensorProto, helper
from zarr.storage import LocalStore

from support.openvino_models import Ir

MARK = "PWN"
"""In every name, so that a test can tell that names were printed at all."""

IN_XML = f"{MARK}\x7f\x9b31m\x85\u202e\u2066\u2028\u200b\n\r\t\U000e0041"
NAME = f"\x1b]0;{MARK}\x07\x1b[8m\x00\b{IN_XML}"
IN_FILES = f"\x1b]0;{MARK}\x07\x1b[8m\r\n#?%23\x7f\u202e\x9b{os.fsdecode(bytes([0x9B]))}"
"""Of a file: the last sign is the byte 0x9B, which Python reads as half a surrogate; some mean something in a URL."""

# What rich writes: colours, the cursor hidden, shown and moved up, a line erased from its beginning.
_BY_RICH = re.compile(r"\x1b\[(?:\d{1,3}(?:;\d{1,3})*)?m|\x1b\[\?25[lh]\r?|\r?\x1b\[1A|\r?\x1b\[2K")


def spoken(text: str, *, is_terminal: bool = False) -> list[str]:
    """What of an output speaks to a terminal, each with what is around it; nothing in a good one."""
    hostile = re.findall(r"\x1b\[8m", text)
    left = _BY_RICH.sub("", text) if is_terminal else text
    return hostile + [
        repr(left[max(place - 30, 0) : place + 30])
        for place, sign in enumerate(left)
        if sign != "\n" and not sign.isprintable()
    ]


def _value(name: str, shape: object, element_type: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape, doc_string=NAME)  # type: ignore[arg-type]


def onnx_model(
    *, op: str = "Sub", opset: int = 14, domain: str = "", element_type: int = TensorProto.FLOAT, constant: float = 1
) -> onnx.ModelProto:
    """``z = (x - y) - c``; everything that has a name has a hostile one, and an attribute too where the domain is."""
    is_legacy = opset < 7
    array = np.full((2,) if is_legacy else (2, 3), constant, helper.tensor_dtype_to_np_dtype(element_type))
    ends = [_value(name + NAME, (f"n{NAME}" if domain else 2, 3), element_type) for name in "xyz"]
    aligned = {"broadcast": 1, "axis": 0} if is_legacy else {}
    more = {"attr" + NAME: NAME} if domain else {}
    nodes = [
        helper.make_node(op, ["x" + NAME, "y" + NAME], ["t" + NAME], "first" + NAME, NAME, domain, **more),
        helper.make_node("Sub", ["t" + NAME, "c" + NAME], ["z" + NAME], "second" + NAME, NAME, **aligned),  # type: ignore[arg-type]
    ]
    tensors = [onnx.numpy_helper.from_array(array, "c" + NAME)]
    graph = helper.make_graph(nodes, "graph" + NAME, ends[:2], ends[2:], tensors, NAME)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=8, producer_name=NAME, producer_version=NAME, doc_string=NAME
    )
    helper.set_model_props(model, {NAME: NAME})
    return model


def ir_model(op: str = "Subtract") -> bytes:
    """The same as an IR of uint8, with the names that XML can hold."""
    ir = Ir(name="net" + IN_XML)
    for name in "ab":
        ir.parameter(name + IN_XML, "2,3", "u8", names=name + IN_XML)
    ir.layer(op, "minus" + IN_XML, inputs=["a" + IN_XML, "b" + IN_XML])
    return ir.result("minus" + IN_XML, "z" + IN_XML).xml()


def checkpoint(path: Path, value: float, **more: Any) -> None:
    """Two tensors of hostile names; ``more`` are entries of the header."""
    array = np.full((2, 3), value, np.float32)
    entry = {"dtype": "F32", "shape": [2, 3]}
    header = {"__metadata__": {NAME: NAME}, **more}
    header |= {"w" + NAME: {**entry, "data_offsets": [0, 24]}, "v" + NAME: {**entry, "data_offsets": [24, 48]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + array.tobytes() * 2)


RUNTIME = '''
"""A runtime that is wrong, and says so with words that speak to a terminal."""
import sys
import numpy as np
NAME = {name!r}
__version__ = NAME
def wrong(op, *operands, **attributes):
    print(NAME, file=sys.stderr)
    return operands[0]
def failing(op, *operands, **attributes):
    raise RuntimeError(NAME)
'''

_IN_TOML = json.dumps(NAME.replace("\U000e0041", ""))  # TOML has no surrogate pairs.
RULES = f"""
[{_IN_TOML}]
version = {_IN_TOML}
machine = {_IN_TOML}
date = {_IN_TOML}
opsets = [7]
file_versions = [3]
measured = [{{op = ["Sub-7"], type = ["float32"], broadcast = ["numpy"]}}]
rules = [{{severity = "refused", fault = "refused", where = {{op = ["Sub"]}}}}]
"""


class Files:
    """A folder of a hostile name with files of hostile names in it, each with names inside."""

    model: Path
    other: Path
    of_bytes: Path
    foreign: Path
    legacy: Path
    bad: Path

    def __init__(self, parent: Path) -> None:
        self.folder = parent / f"folder{IN_FILES}"
        self.folder.mkdir()
        self.x = self._array("x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
        self.y = self._array("y.npy", np.ones((2, 3), np.float32))
        self.bytes = self._array("bytes.npy", np.ones((2, 3), np.uint8))
        self.npz = self.path("arrays.npz")
        np.savez(self.npz, **{"x" + IN_XML: np.ones((2, 3), np.float32), "y" + IN_XML: np.ones(2, np.int8)})  # type: ignore[arg-type]
        self.a, self.b = self.path("a.safetensors"), self.path("b.safetensors")
        checkpoint(self.a, 1.5)
        checkpoint(self.b, 2.5)
        self.unreadable = self.path("unreadable.safetensors")
        checkpoint(self.unreadable, 1.5, **{NAME: {"dtype": "F6_E2M3", "shape": [0], "data_offsets": [0, 0]}})
        self.store = self.path("a.zarr")
        group = zarr.open_group(LocalStore(self.store), mode="w", attributes={NAME: NAME})
        names = {"dimension_names": ("n" + NAME, "m"), "attributes": {NAME: NAME}}
        group.create_array("w" + IN_FILES[:-1], shape=(2, 3), chunks=(1, 3), dtype="f4", **names)[...] = 1
        self.array = self.path("x.zarr")
        zarr.create_array(LocalStore(self.array), shape=(2, 3), chunks=(1, 3), dtype="f4", **names)[...] = 1
        self.models()
        self.runtime = self.path("runtime.py")
        self.runtime.write_text(RUNTIME.format(name=NAME))
        self.rules = self.path("rules.toml")
        self.rules.write_text(RULES)

    def models(self) -> None:
        for name, made in (
            ("model", onnx_model()),
            ("other", onnx_model(constant=2)),
            ("legacy", onnx_model(op="Sub", opset=6)),
            ("bytes", onnx_model(element_type=TensorProto.UINT8)),
            ("foreign", onnx_model(op="op" + NAME, domain="domain" + NAME)),
            ("bad", onnx_model(op="Less")),
        ):
            setattr(self, name if name != "bytes" else "of_bytes", self.path(f"{name}.onnx"))
            self.path(f"{name}.onnx").write_bytes(made.SerializeToString())
        self.ir = self.path("model.xml")
        self.ir.write_bytes(ir_model())
        self.ir.with_suffix(".bin").write_bytes(b"")

    def path(self, name: str) -> Path:
        stem, dot, ending = name.rpartition(".")
        return self.folder / f"{stem}{IN_FILES}{dot}{ending}"

    def _array(self, name: str, array: np.ndarray) -> Path:
        np.save(self.path(name), array)
        return self.path(name)


def damaged(path: Path, folder: Path) -> Path:
    """A copy of a file or a store, with another hostile name, of which the second half of each file is gone."""
    copy = folder / f"damaged{path.name}"
    if path.is_dir():
        shutil.copytree(path, copy, dirs_exist_ok=True)
    else:
        shutil.copy(path, copy)
    for file in [each for each in copy.rglob("*") if each.is_file()] if path.is_dir() else [copy]:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return copy
