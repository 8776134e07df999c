"""ONNX's backend interface: what ONNX's own backend test runner, and others that know it, can drive.

Source: ``onnx.backend.base``.

>>> model = onnx.load("examples/models/sub14_uint8.onnx")
>>> run_model(model, [np.uint8([[1], [2], [3], [4]]), np.uint8([1, 1, 1, 1, 1])]).z.shape
(4, 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from eltwise.core.errors import EltwiseError, GraphError
from eltwise.engine.arrays import as_array
from eltwise.model import Model, load


class EltwiseRep(BackendRep):
    """A prepared model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **_kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: the arrays by name, or in the order of the model's required inputs; a single array for one input.
            **_kwargs: nothing is read from them.

        Returns:
            The outputs in the model's order; their names are the fields.
        """
        results = self.model.run(_by_name(inputs, [port.name for port in self.model.inputs]))
        return namedtupledict("Outputs", list(results))(*results.values())


def _by_name(inputs: Any, *choices: Sequence[str], node: str = "") -> dict[str, object]:
    """The arrays by name: given so, or one for each name of the first of several choices that has as many."""
    if isinstance(inputs, dict):
        return inputs
    arrays = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    for names in choices:
        if len(names) == len(arrays):
            return dict(zip(names, arrays, strict=True))
    needed = ", ".join(choices[0])
    raise GraphError(f"{len(arrays)} inputs are given", node=node, allowed=f"{len(choices[0])} ({needed})")


class EltwiseBackend(Backend):
    """The backend; every call goes through the same reader, inference and execution as ``eltwise.load``."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_kwargs: Any) -> bool:
        """Whether the model runs here: every operator, type and shape of it."""
        if not cls.supports_device(device):
            return False
        try:
            load(model)
        except EltwiseError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_kwargs: Any) -> EltwiseRep:
        """Check a model and make it ready to run.

        Raises:
            EltwiseError: with every problem of every node.
        """
        _check_device(device)
        return EltwiseRep(load(model))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node, in the opset ``opset_version`` (the newest where it is not given).

        The types and shapes of the inputs are those of the arrays; ``outputs_info`` is not needed.
        """
        _check_device(device)
        names = list(dict.fromkeys(name for name in node.input if name))
        feeds = _by_name(inputs, names, list(node.input), node=node.name)
        opset = int(kwargs.get("opset_version", onnx.defs.onnx_opset_version()))
        declared = [_value_info(name, feeds[name]) for name in names]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", declared, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return cls.run_model(model, feeds, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU."""
        return device.split(":", maxsplit=1)[0].upper() == "CPU"


def _check_device(device: str) -> None:
    if not EltwiseBackend.supports_device(device):
        raise GraphError("this device is not supported", got=device, allowed="CPU")


def _value_info(name: str, value: object) -> onnx.ValueInfoProto:
    array, element_type = as_array(value, f"input {name!r}")
    return helper.make_tensor_value_info(name, element_type.onnx_number, array.shape)


prepare = EltwiseBackend.prepare
run_model = EltwiseBackend.run_model
run_node = EltwiseBackend.run_node
supports_device = EltwiseBackend.supports_device
is_compatible = EltwiseBackend.is_compatible
