"""A model with all of its data inside, for those who are given it without its folder."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from onnx import ModelProto, TensorProto

from eltwise.core.errors import UnsupportedError
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.tensors import read_tensor, write_tensor
from eltwise.passes.onnx_versions.tensors_held import all_tensors


def inlined(model: ModelProto, folder: Path | None, largest: int) -> bytes:
    """Serialize a model with its external data inside.

    Args:
        model: the model, which stays as it is.
        folder: the folder of its file; None where that is not known.
        largest: how many bytes it may have.

    Raises:
        EltwiseError: where it has more, or its data cannot be read.
    """
    outside = [held.tensor for held in all_tensors(model) if held.tensor.data_location == TensorProto.EXTERNAL]
    size = model.ByteSize() + sum(_bytes_of(tensor) for tensor in outside)
    if size > largest:
        raise UnsupportedError(
            "the model is too large to be handed over", got=f"{size} bytes", allowed=f"{largest} bytes"
        )
    whole = deepcopy(model) if outside else model
    data = ExternalData(folder)
    for held in all_tensors(whole) if outside else ():
        if held.tensor.data_location == TensorProto.EXTERNAL:
            held.tensor.CopyFrom(write_tensor(held.tensor.name, read_tensor(held.tensor, data, held.operand)))
    made: bytes = whole.SerializeToString()
    return made


def _bytes_of(tensor: TensorProto) -> int:
    """How many bytes a tensor says that it has outside."""
    said = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 20 else 0
