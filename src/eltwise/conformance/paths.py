"""The paths by which operands reach an operator: as run-time inputs, as constants, between neighbours, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from eltwise.conformance.cases import Case

ModelPath = Literal["static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours", "read-wider"]
Path = Literal[ModelPath, "call"]

READ_WIDER: ModelPath = "read-wider"
"""Not asked by the referee: a cast to float32 reads the result, and shows whether it was brought to its type before."""

MODEL_PATHS: tuple[ModelPath, ...] = tuple(path for path in get_args(ModelPath) if path != READ_WIDER)
"""Where a model holds the operator.

``static``: both operands are inputs with fixed shapes. ``dynamic``: inputs whose sizes are known at run time only.
``a-constant``, ``b-constant``, ``both-constant``: operands are in the model. ``neighbours``: the operator stands
between two others that take an input which changes no bit of an exact result: in ONNX the operator itself with its
neutral number (Sub 0, Add -0, Mul 1), in OpenVINO Subtract with 0.
"""

PATHS: tuple[Path, ...] = (*MODEL_PATHS, "call")
"""All of them; ``call`` hands arrays to a function."""

NEUTRAL = "neutral"
"""The name of the input that ``neighbours`` adds."""

_NEUTRAL_NUMBERS = {"add": -0.0, "multiply": 1.0}


def neutral(case: Case) -> np.ndarray:
    """What that input is for a case: a number that the operators around it leave every other number as it is with."""
    number = _NEUTRAL_NUMBERS.get(case.row.formula.name, 0.0) if case.row.domain == "ai.onnx" else 0.0
    return np.array(number).astype(case.a.dtype)


def a_is_constant(path: ModelPath) -> bool:
    """Whether operand A is in the model."""
    return path in ("a-constant", "both-constant")


def b_is_constant(path: ModelPath) -> bool:
    """Whether operand B is in the model."""
    return path in ("b-constant", "both-constant")


def input_names(count: int, path: ModelPath) -> tuple[str, ...]:
    """The inputs of a model of so many cases, in their order: ``a0``, ``b0``, ``a1``, and so on."""
    names: list[str] = []
    for number in range(count):
        names += [] if a_is_constant(path) else [f"a{number}"]
        names += [] if b_is_constant(path) else [f"b{number}"]
    return (*names, NEUTRAL) if path == "neighbours" else tuple(names)


def output_names(count: int) -> tuple[str, ...]:
    """The outputs of a model of so many cases, in their order."""
    return tuple(f"result{number}" for number in range(count))


def feeds(cases: Sequence[Case], path: ModelPath) -> dict[str, np.ndarray]:
    """The arrays for the inputs of the model of these cases, by name and in their order."""
    given: dict[str, np.ndarray] = {}
    for number, case in enumerate(cases):
        given |= {} if a_is_constant(path) else {f"a{number}": case.a}
        given |= {} if b_is_constant(path) else {f"b{number}": case.b}
    return given | ({NEUTRAL: neutral(cases[0])} if path == "neighbours" else {})
