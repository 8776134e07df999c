"""A reduction of a computation's results on arrays: partials of parts, and the result of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index

import numpy as np

from eltwise.core.broadcasting import Rule
from eltwise.core.casting import cast
from eltwise.core.dtypes import ElementType, by_name
from eltwise.core.errors import AttributeValueError, ElementTypeError, ValueRangeError, shown
from eltwise.engine.arrays import Axis
from eltwise.engine.call import calls_of
from eltwise.engine.rounding import rounded
from eltwise.kernels import float_mode
from eltwise.kernels.extremes import Extremes
from eltwise.kernels.partials import reduced
from eltwise.kernels.plan import TypedCall
from eltwise.kernels.reduction import Elements, Partial, Reduction, default_type
from eltwise.ops.computation import Computation
from eltwise.ops.expression import COMPOSITES
from eltwise.ops.openvino_operators import BY_VERSIONED_NAME
from eltwise.ops.schema import Computable

_TYPES = BY_VERSIONED_NAME["Subtract-1"].types
ABSOLUTE_DIFFERENCE = Computation(
    COMPOSITES["absolute_difference"], Rule("numpy"), _TYPES, "absolute difference", ("operand A", "operand B")
)
"""The absolute difference of two operands, which no operator is; of integers its bits are those of an unsigned one."""

SQUARED_DIFFERENCE = replace(
    ABSOLUTE_DIFFERENCE, expression=COMPOSITES["squared_difference"], name="squared difference"
)
"""The squared difference of two operands: of integers the real one, where the operator's wraps around."""


@dataclass(frozen=True)
class Reducing:
    """What is reduced, and how.

    Attributes:
        reduction: the reduction.
        source: its results are the elements.
        dtype: of the result; None for the default of the elements' type.
    """

    reduction: Reduction
    source: Computable
    dtype: ElementType | None

    @property
    def is_extreme(self) -> bool:
        """Whether a result is one of the elements: the minimum or the maximum."""
        return self.reduction in ("min", "max")

    def is_squared(self, element_type: ElementType) -> bool:
        """Whether the elements are the squares of absolute differences, which no integer type holds."""
        return element_type.is_integer and self.source == SQUARED_DIFFERENCE

    def elements_type(self, element_type: ElementType) -> ElementType:
        """The type of the elements, for operands of a type: differences of integers are unsigned."""
        if element_type.kind == "signed" and self.source in (ABSOLUTE_DIFFERENCE, SQUARED_DIFFERENCE):
            return by_name(f"u{element_type.name}")
        return self.source.result_type(element_type)

    def default_type(self, element_type: ElementType) -> ElementType:
        """The type of the result where none is asked for, for operands of a type."""
        return default_type(self.reduction, self.elements_type(element_type))

    def result_type(self, element_type: ElementType) -> ElementType:
        """The type of the result, for operands of a type.

        Raises:
            ElementTypeError: where the dtype that was asked for does not hold such results.
        """
        elements = self.elements_type(element_type)
        dtype = self.dtype or default_type(self.reduction, elements)
        is_whole = elements.kind != "float" and self.reduction != "mean"
        if dtype.kind == "float" or (dtype.is_integer and is_whole) or (dtype is elements and self.is_extreme):
            return dtype
        raise ElementTypeError(
            f"the {self.reduction} of {elements.name} elements is no {dtype.name}",
            operand="dtype",
            allowed="an integer or a float type" if is_whole else "a float type",
        )

    def check_count(self, count: int, outputs: int) -> None:
        """Refuse a mean, minimum or maximum of no elements.

        Raises:
            ValueRangeError: where there is a result of no elements.
        """
        if count == 0 and outputs and self.reduction != "sum":
            raise ValueRangeError(f"the {self.reduction} of no elements is undefined", hint="only their sum is: 0")

    def partial(
        self, operands: Sequence[object], axis: Axis, most_threads: int | None = None
    ) -> tuple[Partial, ElementType]:
        """Reduce arrays on so many threads at most; the partial, and the element type of the operands."""
        with float_mode.only_default_mode():
            calls = calls_of(self.source.computation(len(operands)))
            arrays, (_run, typed) = calls.prepared(operands)
            calls.check_divisor(arrays, typed)
            axes = normalized_axes(axis, len(typed.plan.shape))
            partial = reduced(self.elements(typed, axes), arrays, most_threads)
            return partial, typed.element_type

    def elements(self, typed: TypedCall, axes: tuple[int, ...]) -> Elements:
        """What is reduced over axes, where the source is computed of operands of these types and shapes."""
        expression, element_type, plan = typed
        is_squared = self.is_squared(element_type)
        if is_squared:
            expression = ABSOLUTE_DIFFERENCE.expression
        elif element_type.kind == "float" and self.source == ABSOLUTE_DIFFERENCE:
            expression = COMPOSITES["absolute_difference_of_floats"]  # The same bits, in fewer instructions.
        elements_type = self.elements_type(element_type)
        return Elements(self.reduction, expression, element_type, elements_type, plan, axes, is_squared)

    def finished(self, partial: Partial, element_type: ElementType, counts: np.ndarray | None = None) -> np.ndarray:
        """The result of a partial of everything.

        Args:
            partial: the partial.
            element_type: of the operands.
            counts: how many elements each output has, where those of the partial are not all of them.

        Raises:
            ValueRangeError: where the result's type does not hold it, or there is nothing to reduce.
        """
        dtype, count = self.result_type(element_type), partial.count
        with float_mode.only_default_mode():
            if isinstance(partial, Extremes):
                self.check_count(count, partial.values.size)
                return _converted(partial.values, partial.element_type, dtype)
            self.check_count(count if counts is None else int(counts.min(initial=1)), partial.special.size)
            divisor = count if counts is None else counts
            return rounded(partial, divisor if self.reduction == "mean" else 1, dtype)


def _converted(values: np.ndarray, source: ElementType, target: ElementType) -> np.ndarray:
    if target.is_integer and source is not target and values.size:
        low, high = target.limits
        least, most = (int(each) for each in (values.min(), values.max()))
        if least < low or most > high:
            raise ValueRangeError(
                f"{target.name} does not hold the result",
                got=str(most if most > high else least),
                allowed=f"{low} to {high}",
            )
    return cast(values, source, target, saturate=False)


def normalized_axes(axis: Axis, rank: int) -> tuple[int, ...]:
    """The axes of a result of a rank, in order and not negative.

    Raises:
        AttributeValueError: where an axis is no integer, out of range or there twice.
    """
    if axis is None:
        return tuple(range(rank))
    requested = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    fields = {"operand": "axis", "got": shown(axis)}
    try:
        numbers = [index(each) for each in requested]
    except TypeError:
        raise AttributeValueError("not an axis", allowed="an integer, several, or None for all", **fields) from None
    if any(isinstance(each, bool) for each in requested) or not all(-rank <= number < rank for number in numbers):
        allowed = f"{-rank} to {rank - 1}" if rank else "none"
        raise AttributeValueError(f"no axis of a result of rank {rank}", allowed=allowed, **fields)
    axes = sorted(number % rank for number in numbers)
    if len(set(axes)) != len(axes):
        raise AttributeValueError("an axis is given twice", **fields)
    return tuple(axes)
