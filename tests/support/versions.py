"""Models of old opsets for the tests of conversion between opsets: many nodes in one, so that a runtime starts once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import eltwise
from eltwise.core.dtypes import FLOAT32, ElementType
from eltwise.formats.onnx.writer import kept_bytes
from eltwise.passes.report import PassReport
from support.conversions import ALL_RUNS, Run
from support.onnx_models import model, node, value

Form = Literal["static", "symbolic", "unknown", "initializer", "shared", "both"]
"""How B is given: as an input with sizes, symbols or nothing but its rank; as an initializer that one node reads, that
two nodes read, or that is an input too, as files of IR version 3 have it."""

FORMS: tuple[Form, ...] = ("static", "symbolic", "unknown", "initializer", "shared", "both")

ONE_ELEMENT = [
    Run(a, (1,) * rank, axis)
    for a in ((), (3,), (3, 3), (2, 3, 4, 5))
    for rank in range(len(a) + 1)
    for axis in (None, 0, 1, 9)
]
EQUAL = [Run(a, a, axis) for a in ((), (1,), (3, 3), (2, 0, 3)) for axis in (None, 0, 5)]
LEGAL = [*ALL_RUNS, *ONE_ELEMENT, *EQUAL]
"""Every legal run and axis up to rank 5, and the shapes for which ``axis`` says nothing, with one out of range."""

IN_RANGE = [case for case in LEGAL if case.axis in (None, -1) or case.axis <= len(case.a) - len(case.b)]
"""Those that stay legal where the sizes are not known."""


def cases_of(form: Form) -> list[Run]:
    return IN_RANGE if form in ("symbolic", "unknown") else LEGAL


def old_model(
    cases: Sequence[Run],
    operator: str,
    opset: int,
    form: Form = "static",
    given: Sequence[tuple[np.ndarray, np.ndarray]] = (),
    element_type: ElementType = FLOAT32,
) -> onnx.ModelProto:
    """A model with a node for each case; ``given`` holds the values of B that go into the model."""
    number = element_type.onnx_number
    result = TensorProto.BOOL if operator in ("Equal", "Greater", "Less") else number
    nodes, inputs, outputs, tensors = [], [], [], []
    for index, case in enumerate(cases):
        axis = {} if case.axis is None else {"axis": case.axis}
        names = [f"a{index}", f"b{index}"]
        nodes.append(node(operator, names, [f"z{index}"], f"n{index}", broadcast=1, **axis))
        inputs.append(value(names[0], _sizes(case.a, form, names[0]), number))
        outputs.append(value(f"z{index}", _sizes(case.a, form, names[0]), result))
        if form in ("initializer", "shared", "both"):
            tensors.append(numpy_helper.from_array(given[index][1], names[1]))
        if form not in ("initializer", "shared"):
            inputs.append(value(names[1], _sizes(case.b, form, names[1]), number))
        if form == "shared":
            nodes.append(node("Identity", [names[1]], [f"same{index}"]))
            outputs.append(value(f"same{index}", case.b, number))
    return model(nodes, inputs, outputs, opset, ir_version=3 if form == "both" else 4, initializers=tensors)


def _sizes(shape: tuple[int, ...], form: Form, name: str) -> list[int | str | None]:
    if form == "symbolic":
        return [f"{name}_{place}" for place in range(len(shape))]
    return [None] * len(shape) if form == "unknown" else list(shape)


def convert_onnx_bytes(data: bytes, opset: int) -> tuple[bytes, PassReport]:
    """The bytes of a model in another opset."""
    converted, report = eltwise.convert(data, opset=opset)
    return kept_bytes(converted.graph)[0], report


def in_opset(made: onnx.ModelProto | bytes, opset: int) -> tuple[onnx.ModelProto, PassReport]:
    """A model in another opset, by its bytes, which are checked to be a whole and valid model."""
    data = made if isinstance(made, bytes) else made.SerializeToString()
    converted, report = convert_onnx_bytes(data, opset)
    again = onnx.load_from_string(converted)
    onnx.checker.check_model(again)
    return again, report


def text_of(made: onnx.ModelProto) -> str:
    return onnx.printer.to_text(made)
