"""Cases as OpenVINO IR: the .xml as text and the bytes of the .bin, written by the format's specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.paths import (
    CHAINED,
    NEUTRAL,
    READ_WIDER,
    ModelPath,
    is_followed,
    needs_neutral,
    neutral,
    operands,
    output_names,
)
from eltwise.core.dtypes import FLOAT32, ElementType, of_numpy
from eltwise.oracle import OracleRefusal

_IN_IR = {"axis": "auto_broadcast.auto_broadcast_axis"}
"""How IR spells an attribute where it differs from the specification's name."""

_NUMPY: dict[str, object] = {"auto_broadcast": "numpy"}
"""The attributes of the layers before and behind."""


@dataclass
class _Net:
    """A net that grows; values are named by the layer that makes them."""

    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytearray = field(default_factory=bytearray)
    makers: dict[str, tuple[int, int]] = field(default_factory=dict)
    ports: dict[str, tuple[ElementType, Sequence[int]]] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        name: str,
        data: dict[str, object],
        inputs: Sequence[str] = (),
        output: tuple[ElementType, Sequence[int]] | None = None,
    ) -> None:
        """Add a layer that reads the values of others; ``output`` is the type and the sizes of its own."""
        number = len(self.layers)
        for index, value in enumerate(inputs):
            layer, port = self.makers[value]
            self.edges.append(f'<edge from-layer="{layer}" from-port="{port}" to-layer="{number}" to-port="{index}"/>')
        read = "".join(_port(index, *self.ports[value]) for index, value in enumerate(inputs))
        made = "" if output is None else f"<output>{_port(len(inputs), *output, name)}</output>"
        attributes = "".join(f" {key}={quoteattr(str(value))}" for key, value in data.items())
        self.layers.append(
            f'<layer id="{number}" name={quoteattr(name)} type="{kind}" version="opset1">'
            + (f"<data{attributes}/>" if data else "")
            + (f"<input>{read}</input>" if read else "")
            + f"{made}</layer>"
        )
        if output is not None:
            self.makers[name], self.ports[name] = (number, len(inputs)), output

    def text(self, version: int = 11) -> str:
        """The .xml."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return (
            f'<?xml version="1.0"?>\n<net name="case" version="{version}">\n<layers>\n{layers}\n</layers>\n'
            f"<edges>\n{edges}\n</edges>\n</net>\n"
        )


def build(cases: Sequence[Case], path: ModelPath) -> tuple[bytes, bytes]:
    """Build the .xml and the .bin; ``models.build`` says what they hold."""
    net = _Net()
    for number, case in enumerate(cases):
        for name, array, is_constant, is_dynamic in operands(case, number, path):
            _operand(net, name, array, constant=is_constant, dynamic=is_dynamic)
    if needs_neutral(cases, path):
        _operand(net, NEUTRAL, neutral(cases[0]), constant=False, dynamic=False)
    for number, case in enumerate(cases):
        _operator(net, case, number, path)
    for name in output_names(cases, path):
        net.add("Result", f"{name}_result", {}, [name])
    return net.text().encode(), bytes(net.weights)


def smallest(version: int) -> bytes:
    """The .xml of the smallest IR of a version: two numbers subtracted from themselves."""
    net = _Net()
    net.add("Parameter", "x", {"shape": "2", "element_type": "f32"}, output=(FLOAT32, (2,)))
    net.add("Subtract", "y", {"auto_broadcast": "numpy"}, ["x", "x"], (FLOAT32, (2,)))
    net.add("Result", "y_result", {}, ["y"])
    return net.text(version).encode()


def _operand(net: _Net, name: str, array: np.ndarray, *, constant: bool, dynamic: bool) -> None:
    element_type = of_numpy(array.dtype)
    data: dict[str, object] = {"element_type": element_type.ir}
    if not constant:
        sizes = [-1] * array.ndim if dynamic else list(array.shape)
        data = {"shape": ",".join("?" if size < 0 else str(size) for size in sizes), **data}
        net.add("Parameter", name, data, output=(element_type, sizes))
        return
    raw = packed(array)
    data |= {"shape": ",".join(map(str, array.shape)), "offset": len(net.weights), "size": len(raw)}
    net.weights += raw
    net.add("Const", name, data, output=(element_type, array.shape))


def _operator(net: _Net, case: Case, number: int, path: ModelPath) -> None:
    """Add the layer of a case, and those before and behind it that its path has."""
    element_type = of_numpy(case.a.dtype)
    given: dict[str, object] = {"auto_broadcast": "numpy"}
    given |= {_IN_IR.get(name, name): value for name, value in case.attributes}
    if given["auto_broadcast"] == "pdpd":
        given = {_IN_IR["axis"]: -1} | given
    is_dynamic = path == "dynamic" or (case.around is not None and case.around.is_dynamic)
    sizes = [-1] * max(case.a.ndim, case.b.ndim) if is_dynamic else list(_result_shape(case))
    a, b = _made_operands(net, case, number, path)
    followed, result = is_followed(case, path), f"result{number}"
    between = f"between{number}" if followed or path == READ_WIDER else result
    net.add(case.schema.name, between, given, [a, b], (element_type, sizes))
    if path == READ_WIDER:
        net.add("Convert", result, {"destination_type": FLOAT32.ir}, [between], (FLOAT32, sizes))
    elif followed:
        net.add("Subtract", result, {**_NUMPY}, [between, NEUTRAL], (element_type, sizes))


def _made_operands(net: _Net, case: Case, number: int, path: ModelPath) -> tuple[str, str]:
    """The names of the operands, of which a layer before may make one."""
    a, b, around = f"a{number}", f"b{number}", case.around
    element_type = of_numpy(case.a.dtype)
    if path == "neighbours":
        before = f"before{number}"
        net.add("Subtract", before, {**_NUMPY}, [a, NEUTRAL], (element_type, case.a.shape))
        return before, b
    if path != CHAINED or around is None or not around.has_maker:
        return a, b
    made, operand = f"made{number}", case.a if around.slot == "a" else case.b
    sizes = [-1] * operand.ndim if around.is_dynamic else list(operand.shape)
    if around.maker is None:
        net.add("Convert", made, {"destination_type": element_type.ir}, [f"x{number}"], (element_type, sizes))
    else:
        net.add(around.maker.name, made, {**_NUMPY}, [f"x{number}", f"y{number}"], (element_type, sizes))
    return (made, b) if around.slot == "a" else (a, made)


def _result_shape(case: Case) -> tuple[int, ...]:
    """The result's shape; for what must be refused A's, since a port must say something."""
    try:
        return case.placement().shape
    except OracleRefusal:
        return case.a.shape


def _port(number: int, element_type: ElementType, sizes: Sequence[int], name: str = "") -> str:
    """A port; that of a result has a name, by which callers feed and fetch."""
    dimensions = "".join(f"<dim>{size}</dim>" for size in sizes)
    names = f" names={quoteattr(name)}" if name else ""
    return f'<port id="{number}" precision="{element_type.ir_precision}"{names}>{dimensions}</port>'


def packed(array: np.ndarray) -> bytes:
    """The bytes of an array as a .bin and OpenVINO's tensors hold it: two 4-bit elements a byte, the first one low."""
    if of_numpy(array.dtype).bits != 4:
        return array.tobytes()
    nibbles = np.frombuffer(array.tobytes(), np.uint8) & 15
    even = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8)).reshape(-1, 2)
    return bytes((even[:, 0] | even[:, 1] << 4).astype(np.uint8))


def unpacked(raw: bytes, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    """The array of such bytes; the inverse of ``packed``."""
    if element_type.bits != 4:
        return np.frombuffer(raw, element_type.storage).reshape(shape).copy()
    data = np.frombuffer(raw, np.uint8)
    nibbles = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if element_type.kind == "signed":
        nibbles = (nibbles ^ 8) - 8  # The sign is extended, as ml_dtypes holds the type.
    return nibbles.astype(np.uint8).view(element_type.storage).reshape(shape)
