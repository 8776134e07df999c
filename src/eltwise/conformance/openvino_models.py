"""Cases as OpenVINO IR: the .xml and the .bin, written by the format's specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np

from eltwise.conformance.cases import LETTERS, Case
from eltwise.conformance.models import NEUTRAL, Value, output_names, values_of
from eltwise.core.dtypes import FLOAT32, ElementType, of_numpy
from eltwise.ops import registry
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

    def text(self) -> str:
        """The .xml."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return (
            f'<?xml version="1.0"?>\n<net name="case" version="11">\n<layers>\n{layers}\n</layers>\n'
            f"<edges>\n{edges}\n</edges>\n</net>\n"
        )


def build(cases: Sequence[Case]) -> tuple[bytes, bytes]:
    """Build the .xml and the .bin; ``models.build`` says what they hold."""
    net = _Net()
    for value in values_of(cases):
        _given(net, value)
    for number, case in enumerate(cases):
        _op(net, case, number)
    for name in output_names(cases):
        net.add("Result", f"{name}_result", {}, [name])
    return net.text().encode(), bytes(net.weights)


def _given(net: _Net, value: Value) -> None:
    """Add the layer of an input or a constant."""
    array = value.array
    element_type = of_numpy(array.dtype)
    data: dict[str, object] = {"element_type": element_type.ir}
    if value.is_constant:
        raw = packed(array)
        data |= {"shape": ",".join(map(str, array.shape)), "offset": len(net.weights), "size": len(raw)}
        net.weights += raw
        net.add("Const", value.name, data, output=(element_type, array.shape))
        return
    sizes = [-1] * array.ndim if value.is_dynamic else list(array.shape)
    data = {"shape": ",".join("?" if size < 0 else str(size) for size in sizes), **data}
    net.add("Parameter", value.name, data, output=(element_type, sizes))


def _op(net: _Net, case: Case, number: int) -> None:
    """Add the layer of a case, and those around it."""
    context = case.context
    result_type = case.result_type
    given: dict[str, object] = {} if len(case.operands) == 1 else {"auto_broadcast": "numpy"}
    given |= {_IN_IR.get(name, name): _text(value) for name, value in case.attributes}
    if given.get("auto_broadcast") == "pdpd":
        given = {_IN_IR["axis"]: -1} | given
    sizes = [-1] * max(operand.ndim for operand in case.operands) if context.is_dynamic else list(_result_shape(case))
    operands = [f"{letter}{number}" for letter in LETTERS[: len(case.operands)]]
    if context.producer:
        operands[context.produced] = _producer(net, case, number, operands[context.produced])
    result = f"result{number}"
    between = f"between{number}" if context.consumer else result
    net.add(case.schema.name, between, given, operands, (result_type, sizes))
    if context.consumer == "Cast":
        net.add("Convert", result, {"destination_type": FLOAT32.ir}, [between], (FLOAT32, sizes))
    elif context.consumer == "neutral":
        net.add("Subtract", result, {**_NUMPY}, [between, NEUTRAL], (result_type, sizes))


def _producer(net: _Net, case: Case, number: int, operand: str) -> str:
    """Add the layer that makes an operand; gives its name."""
    context, made = case.context, f"made{number}"
    shape = case.operands[context.produced].shape
    output = case.element_type, [-1] * len(shape) if context.is_dynamic else list(shape)
    if context.producer == NEUTRAL:
        net.add("Subtract", made, {**_NUMPY}, [operand, NEUTRAL], output)
    elif context.producer == "Cast":
        net.add("Convert", made, {"destination_type": case.element_type.ir}, [f"x{number}"], output)
    else:
        inputs = [f"{letter}{number}" for letter in "xy"[: len(case.around)]]
        net.add(registry.find(context.producer).name, made, {**_NUMPY} if len(inputs) > 1 else {}, inputs, output)
    return made


def _text(value: object) -> object:
    """An attribute as IR spells it."""
    return str(value).lower() if isinstance(value, bool) else value


def _result_shape(case: Case) -> tuple[int, ...]:
    """The result's shape; for what must be refused A's, since a port must have one."""
    try:
        return case.shape()
    except OracleRefusal:
        return case.operands[0].shape


def _port(number: int, element_type: ElementType, sizes: Sequence[int], name: str = "") -> str:
    """A port; that of a result has a name, by which callers feed and fetch."""
    dimensions = "".join(f"<dim>{size}</dim>" for size in sizes)
    names = f" names={quoteattr(name)}" if name else ""
    return f'<port id="{number}" precision="{element_type.ir_precision}"{names}>{dimensions}</port>'


def packed(array: np.ndarray) -> bytes:
    """The bytes of an array in a .bin: two 4-bit elements a byte, the first one low."""
    if of_numpy(array.dtype).bits != 4:
        return array.tobytes()
    nibbles = np.frombuffer(array.tobytes(), np.uint8) & 15
    even = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8)).reshape(-1, 2)
    return bytes((even[:, 0] | even[:, 1] << 4).astype(np.uint8))
