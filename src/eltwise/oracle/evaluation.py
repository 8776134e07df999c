"""The oracle: slow and exact results of every function under every broadcast rule, to compare with.

It shares nothing with the engine but the table of element types. The numbers are those of ``numbers`` and ``exact``;
``functions``, ``quantization``, ``power`` and ``real_functions`` compute with them, and ``broadcasting`` has the index
arithmetic. NumPy holds bits and Python's integers, and applies Python's arithmetic to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from eltwise.oracle import functions, power, quantization, real_functions
from eltwise.oracle.broadcasting import RuleName, flat_positions, place_all
from eltwise.oracle.elements import Elements, OracleRefusal, array_of, element_type_of, elements_of
from eltwise.oracle.functions import UndefinedError
from eltwise.oracle.signatures import FLOAT, Function


def _of_reals(x: Elements, *, name: str, **parameters: float) -> Elements:
    values = real_functions.correctly_rounded(name, array_of(*x), **parameters).values
    return elements_of(values)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    functions.FUNCTIONS
    | quantization.FUNCTIONS
    | power.FUNCTIONS
    | {
        name: Function(partial(_of_reals, name=name), (FLOAT,), parameters=function.parameters)
        for name, function in real_functions.FUNCTIONS.items()
    }
)
"""Every function of the oracle by name."""


def evaluate(
    function: str,
    *operands: npt.NDArray[Any] | None,
    rule: RuleName,
    axis: int = -1,
    enabled: bool = True,
    parameters: Mapping[str, object] = MappingProxyType({}),
) -> npt.NDArray[Any]:
    """Compute a function of the operands exactly, element by element.

    Args:
        function: what to compute, one of ``FUNCTIONS``; each result is the real one rounded once, but both steps of the
            squared difference are rounded to the element type.
        *operands: with any strides and byte order; None for one that is optional and absent.
        rule: the broadcast rule.
        axis: for ``pdpd`` and ``legacy``, the dimension of A that B starts at; -1 aligns the ends.
        enabled: for ``legacy``, whether ``broadcast=1`` was given; without it the shapes must be equal.
        parameters: the function's parameters that are not the default; numbers count exactly as they are.

    Returns:
        A new C-contiguous array in native byte order, with the shape that the rule gives: of the first operand's type,
        or of booleans, or of the type that a parameter or another operand states.

    Raises:
        OracleRefusal: where the function does not take the types; where the shapes do not broadcast; where the axis is
            out of range; where an integer is divided by 0.
        ValueError: for a function, parameter or rule that does not exist, or another number of operands.

    >>> import numpy as np
    >>> evaluate("subtract", np.array([[1], [2]], np.uint8), np.array([1, 2], np.uint8), rule="numpy").tolist()
    [[0, 255], [1, 0]]
    """
    if function not in FUNCTIONS:
        raise ValueError(f"there is no function {function!r}")
    definition = FUNCTIONS[function]
    if not definition.accepts([operand is not None for operand in operands]):
        raise ValueError(f"{function} does not take {len(operands)} operands")
    definition.check_types([None if operand is None else element_type_of(operand) for operand in operands])
    compute = partial(definition.compute, **definition.chosen(parameters))
    shape, elements = _broadcast(rule, operands, axis, enabled)
    try:
        result = compute(*elements)
    except UndefinedError as error:
        raise OracleRefusal(str(error)) from None
    return array_of(*result, shape)


def _broadcast(
    rule: RuleName, operands: Sequence[npt.NDArray[Any] | None], axis: int, enabled: bool
) -> tuple[tuple[int, ...], list[Elements | None]]:
    """The shape of the result, and the elements that each operand has for it."""
    present = [operand for operand in operands if operand is not None]
    shape, starts = place_all(rule, [operand.shape for operand in present], axis, enabled)
    elements = iter(
        Elements(element_type, bits[flat_positions(shape, operand.shape, start)])
        for operand, start in zip(present, starts, strict=True)
        for element_type, bits in [elements_of(operand)]
    )
    return shape, [None if operand is None else next(elements) for operand in operands]
