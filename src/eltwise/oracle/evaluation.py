"""The oracle: slow and exact results of every function under every broadcast rule, to compare with.

It shares nothing with the engine but the table of element types. The numbers are those of ``numbers`` and ``exact``;
``functions``, ``quantization``, ``power`` and ``real_functions`` compute with them, and ``broadcasting`` has the index
arithmetic. NumPy holds bits and Python's integers, and applies Python's arithmetic to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.oracle import functions, power, quantization, real_functions
from eltwise.oracle.arithmetic import UndefinedError
from eltwise.oracle.broadcasting import RuleName, flat_positions, place
from eltwise.oracle.elements import Elements, OracleRefusal, Sizes, array_of, element_type_of, elements_of
from eltwise.oracle.signatures import FLOAT, Function


def _of_reals(x: Elements, *values: Elements | None, name: str, **parameters: float) -> Elements:
    """A real function; operands after the first are values of its parameters for each element."""
    names = [each for each, value in zip(parameters, values, strict=False) if value is not None]
    columns = [array_of(*each).astype(float).tolist() for each in values if each is not None]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(x.bits)
    bits = x.bits.copy()
    for row in set(rows):
        is_row = np.array([each == row for each in rows])
        chosen = parameters | dict(zip(names, row, strict=True))
        results = real_functions.correctly_rounded(name, array_of(x.element_type, x.bits[is_row]), **chosen).values
        bits[is_row] = elements_of(results).bits
    return x._replace(bits=bits)


def _real(name: str) -> Function:
    parameters = real_functions.FUNCTIONS[name].parameters
    operands = (FLOAT, *[replace(FLOAT, is_optional=True)] * len(parameters))
    return Function(partial(_of_reals, name=name), operands, parameters=parameters)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {name: _real(name) for name in real_functions.FUNCTIONS}
    | functions.FUNCTIONS
    | quantization.FUNCTIONS
    | power.FUNCTIONS
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
        axis: for ``pdpd`` and ``legacy``, the dimension of A that B starts at; -1 aligns the ends. A is the first
            operand, but of ``where`` the second; the others are B.
        enabled: for ``legacy``, whether ``broadcast=1`` was given; without it the shapes must be equal.
        parameters: the function's parameters that are not the default; numbers count exactly as they are. Those of
            real functions may be operands instead, after the first and in the order of the function.

    Returns:
        A new C-contiguous array in native byte order, with the shape that the rule gives: of the first operand's type,
        or of booleans, or of the type that a parameter or another operand states.

    Raises:
        OracleRefusal: where the function does not take the types; where the shapes do not broadcast; where the axis is
            out of range; where an integer is divided by 0.
        ValueError: for a function, parameter or rule that does not exist, or another number of operands.

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
    shape, elements = _broadcast(operands, partial(place, rule, axis=axis, enabled=enabled, base=definition.base))
    try:
        result = compute(*elements)
    except UndefinedError as error:
        raise OracleRefusal(str(error)) from None
    return array_of(*result, shape)


def _broadcast(
    operands: Sequence[npt.NDArray[Any] | None], placement: Callable[[list[Sizes]], tuple[Sizes, tuple[int, ...]]]
) -> tuple[Sizes, list[Elements | None]]:
    """The shape of the result, and the elements that each operand has for it."""
    present = [operand for operand in operands if operand is not None]
    shape, starts = placement([operand.shape for operand in present])
    elements = iter(
        Elements(element_type, bits[flat_positions(shape, operand.shape, start)])
        for operand, start in zip(present, starts, strict=True)
        for element_type, bits in [elements_of(operand)]
    )
    return shape, [None if operand is None else next(elements) for operand in operands]
