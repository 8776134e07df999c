"""The model that holds some cases: one file in the format of their operator, built without the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from eltwise.conformance.cases import LETTERS, Case

NEUTRAL = "neutral"
"""The name of the input that holds the 0 which the nodes around an op subtract."""


class Value(NamedTuple):
    """A value that a model is given, as an input or a constant."""

    name: str
    array: np.ndarray
    is_constant: bool
    is_dynamic: bool


@dataclass(frozen=True)
class BuiltModel:
    """A model as bytes.

    Attributes:
        format: ``onnx`` or ``openvino``.
        data: the content of the .onnx or .xml file.
        weights: the content of the .bin file; empty for ONNX.
        inputs: the arrays for its inputs by name, in order.
        outputs: the names of its outputs: one a case, in their order, then those of shared producers.
    """

    format: Literal["onnx", "openvino"]
    data: bytes
    weights: bytes
    inputs: dict[str, np.ndarray]
    outputs: tuple[str, ...]


def build(cases: Sequence[Case]) -> BuiltModel:
    """Build one model that holds the op of each case; the same cases give the same bytes.

    The cases are of one operator version and result type. A case that must be refused is built all the same.
    """
    from eltwise.conformance import onnx_models, openvino_models

    inputs = {value.name: value.array for value in values_of(cases) if not value.is_constant}
    outputs = output_names(cases)
    if cases[0].schema.domain == "ai.onnx":
        return BuiltModel("onnx", onnx_models.build(cases), b"", inputs, outputs)
    xml, weights = openvino_models.build(cases)
    return BuiltModel("openvino", xml, weights, inputs, outputs)


def values_of(cases: Sequence[Case]) -> Iterator[Value]:
    """What the model of some cases is given, in the order of its inputs: ``a0`` and ``b0`` for the first case.

    The operands of its producer are ``x0`` and ``y0``.
    """
    neutral: np.ndarray | None = None
    for number, case in enumerate(cases):
        context = case.context
        given = dict(zip(LETTERS, case.operands, strict=False))
        if context.producer not in ("", NEUTRAL):
            del given[LETTERS[context.produced]]
            given |= dict(zip("xy", case.around, strict=False))
        names = [*LETTERS[: len(case.operands)], *"xy"]
        for name, array in given.items():
            is_constant = names.index(name) in context.constants
            yield Value(f"{name}{number}", array, is_constant, context.is_dynamic)
        if context.has_neutral:
            neutral = np.zeros((), case.operands[0].dtype)
    if neutral is not None:
        yield Value(NEUTRAL, neutral, False, False)


def output_names(cases: Sequence[Case]) -> tuple[str, ...]:
    """The outputs of the model of some cases."""
    results = (f"result{number}" for number in range(len(cases)))
    return (*results, *(f"made{number}" for number, case in enumerate(cases) if case.context.is_shared))
