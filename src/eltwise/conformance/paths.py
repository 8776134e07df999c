"""The paths by which operands reach an operator: as run-time inputs, as constants, between neighbours, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.core.dtypes import of_numpy
from eltwise.ops import primitives

ModelPath = Literal[
    "static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours", "read-wider", "chained"
]
Path = Literal[ModelPath, "call"]

READ_WIDER: ModelPath = "read-wider"
"""Not asked by the referee: a cast to float32 reads the result, and shows whether it was brought to its type before."""

CHAINED: ModelPath = "chained"
"""Not asked by the referee: each case says itself what stands around its node."""

MODEL_PATHS: tuple[ModelPath, ...] = tuple(path for path in get_args(ModelPath) if path not in (READ_WIDER, CHAINED))
"""Where a model holds the operator.

``static``: both operands are inputs with fixed shapes. ``dynamic``: inputs whose sizes are known at run time only.
``a-constant``, ``b-constant``, ``both-constant``: operands are in the model. ``neighbours``: the operator stands
between two others that take an input which changes no bit of an exact result: in ONNX the operator itself with its
neutral number (Sub 0, Add -0, Mul 1), in OpenVINO Subtract with 0.
"""

PATHS: tuple[Path, ...] = (*MODEL_PATHS, "call")
"""All of them; ``call`` hands arrays to a function."""

NEUTRAL = "neutral"
"""The name of the input that the nodes take which change no bit."""

_CONSTANT: dict[ModelPath, str] = {"a-constant": "a", "b-constant": "b", "both-constant": "ab"}
"""Which operands are in the model."""


def neutral(case: Case) -> np.ndarray:
    """What that input is for a case: a number that the operators around it leave every other number as it is with."""
    function = case.schema.function if case.schema.domain == "ai.onnx" else "subtract"
    element_type = of_numpy(case.a.dtype)
    return np.array(primitives.find(function).identity_number(element_type)).astype(case.a.dtype)


class Operand(NamedTuple):
    """A value that a model is given: its name, the array, whether it is in the model, and whether its sizes are."""

    name: str
    array: np.ndarray
    is_constant: bool
    is_dynamic: bool


def operands(case: Case, number: int, path: ModelPath) -> tuple[Operand, ...]:
    """What the nodes of a case take, in the order of the model's inputs: ``a0`` and ``b0`` for the case number 0.

    What another node makes is not given; that node's own operands are, as ``x0`` and ``y0``.
    """
    around = case.around
    if path != CHAINED or around is None:
        constant = _CONSTANT.get(path, "")
        given = (("a", case.a), ("b", case.b))
        return tuple(Operand(f"{name}{number}", array, name in constant, path == "dynamic") for name, array in given)
    values = {"a": case.a, "b": case.b}
    if around.has_maker:
        del values[around.slot]
        values |= {"x": around.x} if around.is_cast else {"x": around.x, "y": around.y}
    return tuple(
        Operand(f"{name}{number}", array, name in around.constants, around.is_dynamic) for name, array in values.items()
    )


def has_constants(path: ModelPath) -> bool:
    """Whether operands may be in the model."""
    return path in _CONSTANT or path == CHAINED


def is_followed(case: Case, path: ModelPath) -> bool:
    """Whether a node that changes no bit reads the result of a case."""
    return path == "neighbours" or (case.around is not None and case.around.is_followed)


def needs_neutral(cases: Sequence[Case], path: ModelPath) -> bool:
    """Whether the model of some cases has the input that changes no bit."""
    return any(is_followed(case, path) for case in cases)


def input_names(cases: Sequence[Case], path: ModelPath) -> tuple[str, ...]:
    """The inputs of the model of some cases, in their order: ``a0``, ``b0``, ``a1``, and so on."""
    return tuple(feeds(cases, path))


def output_names(cases: Sequence[Case], path: ModelPath) -> tuple[str, ...]:
    """The outputs of the model of some cases: the result of each, then ``made0`` and so on that others read."""
    results = (f"result{number}" for number in range(len(cases)))
    shared = (f"made{number}" for number, case in enumerate(cases) if path == CHAINED and _is_shared(case))
    return (*results, *shared)


def _is_shared(case: Case) -> bool:
    return case.around is not None and case.around.is_shared


def feeds(cases: Sequence[Case], path: ModelPath) -> dict[str, np.ndarray]:
    """The arrays for the inputs of the model of these cases, by name and in their order."""
    given = {
        operand.name: operand.array
        for number, case in enumerate(cases)
        for operand in operands(case, number, path)
        if not operand.is_constant
    }
    return given | ({NEUTRAL: neutral(cases[0])} if needs_neutral(cases, path) else {})
