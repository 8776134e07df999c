"""The constants of an OpenVINO IR as lazy tensors: where each lies in the .bin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eltwise.core.dtypes import BOOL
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats import files
from eltwise.formats.file_tensors import FileRange, OpenFile, of_file
from eltwise.formats.lazy_tensors import LazyTensor, TensorSet
from eltwise.formats.openvino.document import LARGEST_XML, Layer, read_net
from eltwise.formats.openvino.layers import place_of_constant


def read_constants(path: Path) -> TensorSet:
    """Find the constants of a model; their elements are not read."""
    try:
        layers = [layer for layer in read_net(files.read_bytes(path, LARGEST_XML)).layers if layer.kind == "const"]
    except EltwiseError as error:
        raise error.located(where=str(path)) from None
    found, beside = TensorSet(str(path)), path.with_suffix(".bin")
    if layers and not beside.exists():
        raise FileFormatError("there is no file with the constants beside the .xml", where=str(path), got=beside.name)
    file = OpenFile(beside) if layers else None
    for layer in layers:
        found.add(layer.name, _opened, layer, file)
    return found


def _opened(layer: Layer, file: OpenFile) -> LazyTensor:
    element_type, sizes, offset, _size = place_of_constant(layer)
    tensor = of_file(layer.name, element_type, sizes, file, offset)
    if element_type is BOOL and isinstance(tensor.source, FileRange):  # Each byte but 0 is true in an IR.
        clean = lambda data: (data != 0).view(np.uint8)  # noqa: E731
        return replace(tensor, source=replace(tensor.source, clean=clean))
    return tensor
