"""The calls of an operation on arrays: checked once, then found by the types and shapes of the arrays.

The callables that ``dispatch`` gave are kept; what is looked up needs no check again, since all that a check reads is
part of the key. A call that is made often gets a record, which is found without running Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError, ValueRangeError
from eltwise.core.shapes import of_sizes
from eltwise.engine.arrays import as_array, check_out, exact_scalar, is_scalar, kind_of
from eltwise.ir.types import TensorType, elementwise
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.native import Records
from eltwise.kernels.numpy_kernel import Run
from eltwise.kernels.plan import Plan, make_plan
from eltwise.ops.schema import ElementwiseSchema, Operation

Take = Callable[[object, str, Sequence[ElementType]], tuple[Any, ElementType]]

KeptT = TypeVar("KeptT")

_MOST_CALLS = 4096


class Calls:
    """The calls of one operation that are known.

    A key holds the types and shapes of the operands and of the result where the caller gives one.

    Attributes:
        records: the calls that are made often.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.known: dict[Hashable, Run] = {}
        self._plans: dict[Hashable, tuple[ElementType, Plan]] = {}
        self.records = Records(len(operation.schema.operands))

    @cached_property
    def function(self) -> Callable[..., np.ndarray]:
        """The operation as a function of its operands and of ``out``."""

        def function(*operands: object, out: object = None) -> np.ndarray:
            return self.apply(operands, out)

        return self.records.builtin(function, self.operation.schema.versioned_name)

    def apply(self, operands: Sequence[object], out: object = None) -> np.ndarray:
        """Compute the result of operands.

        Args:
            operands: arrays by any array protocol or of one of the libraries Dask, xarray, PyTorch and JAX, and Python
                numbers that the arrays' type holds exactly.
            out: where the result goes: an array of the result's type and shape, which may overlap the operands.

        Returns:
            ``out``, or a new array: of the operands' library, and lazy where they are.

        Raises:
            EltwiseError: for operands, shapes or types that the operator version does not allow.
        """
        known = self.known.get(_key(operands, out))
        if known is not None and float_mode.is_default():
            return known(*operands) if out is None else known(*operands, out)
        with float_mode.default_mode():  # Numbers are taken in it too.
            return self._checked(operands, out)

    def _checked(self, operands: Sequence[object], out: object) -> np.ndarray:
        """Check a call, keep it, and compute it."""
        try:
            if any(kind_of(operand) for operand in operands):
                from eltwise.engine import array_libraries  # Few calls are on arrays of other libraries.

                result: np.ndarray = array_libraries.apply(self.operation, operands, out)
                return result
            arrays, element_type, plan = self.check(operands)
            target = None if out is None else check_out(out, self.operation.result_type(element_type), plan.shape)
            if not element_type.is_integer:
                float_mode.require_default()
            given = arrays if target is None else [*arrays, target]
            run = self._run(given, element_type, plan)
            _keep(self.known, _key(arrays, target), run)
            return run(*given)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None

    def check(self, operands: Sequence[object], take: Take = as_array) -> tuple[list[Any], ElementType, Plan]:
        """Check operands before anything is computed.

        Args:
            operands: as for ``apply``.
            take: makes an array of an operand, or what has the shape of one, and gives its element type.

        Returns:
            What ``take`` made, Python numbers in the type of the first array; the element type; where they lie.

        Raises:
            EltwiseError: for operands, shapes or types that the operator version does not allow.
        """
        key = _key(operands, None) if take is as_array else None
        if key in self._plans:
            return list(operands), *self._plans[key]
        try:
            arrays, types = self._arrays(operands, take)
            shapes = [array.shape for array in arrays]
            _result, found = elementwise(self.operation, list(map(TensorType, types, map(of_sizes, shapes))))
            element_type = types[0]
            plan = make_plan(found, shapes, element_type)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None
        _keep(self._plans, key, (element_type, plan))
        return arrays, element_type, plan

    def _arrays(self, operands: Sequence[object], take: Take) -> tuple[list[Any], list[ElementType]]:
        """What is made of the operands, and their types: that of the first array for Python numbers."""
        schema = self.operation.schema
        check_count(self.operation, len(operands))
        names = [f"operand {schema.operand_name(index)}" for index in range(len(operands))]
        taken = [
            None if is_scalar(value) else take(value, name, schema.types)
            for value, name in zip(operands, names, strict=True)
        ]
        element_type = next((each[1] for each in taken if each is not None), None)
        if element_type is None:
            raise ElementTypeError(
                "a Python number has no element type",
                operand=" and ".join(names),
                hint="make one operand an array, for example numpy.float32(2)",
            )
        arrays = [
            exact_scalar(value, element_type, name) if each is None else each[0]
            for each, value, name in zip(taken, operands, names, strict=True)
        ]
        return arrays, [element_type if each is None else each[1] for each in taken]

    def _run(self, arrays: Sequence[np.ndarray], element_type: ElementType, plan: Plan) -> Run:
        """What computes the operands, which come first, into the array that follows them or into a new one."""
        count = len(plan.operands)
        expression, operands, target = self.operation.expression(count), arrays[:count], arrays[count:]
        swapped = tuple(not array.dtype.isnative for array in operands)
        has_swapped = any(not array.dtype.isnative for array in target)
        is_checked = element_type.is_integer and expression.divides and 0 not in plan.shape
        has_records = not is_checked and len(operands) == self.records.operands
        run = dispatch.prepare(
            expression, element_type, plan, (has_swapped, *swapped), self.records if has_records else None
        )
        if not is_checked:
            return run
        schema = self.operation.schema
        name = f"operand {schema.operand_name(1)}"

        def divided(*arrays: np.ndarray) -> np.ndarray:
            check_divisor(arrays[1], plan, 1, name, schema.versioned_name)
            return run(*arrays)

        return divided


@lru_cache(maxsize=1024)
def calls_of(operation: Operation) -> Calls:
    """The calls of an operation."""
    return Calls(operation)


@lru_cache(maxsize=256)
def by_numpy_rule(operation: Operation) -> Operation:
    """The same on operands that have the result's rank: these broadcast as NumPy does, whatever the rule was."""
    schema = operation.schema
    assert isinstance(schema, ElementwiseSchema)
    return Operation(replace(schema, broadcasting="numpy"), operation.given)


@contextmanager
def without_index() -> Iterator[None]:
    """Leave the index out of the errors of a computation on a part, as it would be one of the part."""
    try:
        yield
    except ValueRangeError as error:
        error.got = error.got.partition(" at index")[0]
        raise


def check_count(operation: Operation, count: int) -> None:
    """Refuse another number of operands than an operator version takes.

    Raises:
        GraphError: naming the numbers.
    """
    schema = operation.schema
    if count >= schema.required_operands and (schema.is_variadic or count <= len(schema.operands)):
        return
    least = len(schema.operands)
    raise GraphError(
        "wrong number of operands",
        operator=schema.versioned_name,
        got=str(count),
        allowed=f"{least} or more" if schema.is_variadic else str(least),
    )


def check_divisor(divisor: np.ndarray, plan: Plan, number: int, name: str, operator: str) -> None:
    """Refuse an integer divisor that holds a 0, before anything is written.

    Raises:
        ValueRangeError: naming the first index of the result that would be undefined.
    """
    if np.count_nonzero(divisor) == divisor.size:
        return
    padded = divisor.reshape(plan.operands[number])
    index = tuple(int(each) for each in np.unravel_index(int(np.argmax(padded == 0)), padded.shape))
    raise ValueRangeError(
        "an integer cannot be divided by 0",
        operator=operator,
        operand=name,
        got=f"0 at index {list(index)} of the result",
    )


def _keep(kept: dict[Hashable, KeptT], key: Hashable, value: KeptT) -> None:
    if len(kept) >= _MOST_CALLS:
        kept.clear()
    if key is not None:
        kept[key] = value


def _key(operands: Sequence[object], out: object) -> Hashable:
    """What a call is kept by; None, which nothing is kept by, where something is not a plain array or read-only."""
    parts: list[Hashable] = []
    for array in operands:
        if type(array) is not np.ndarray:
            return None
        parts += (array.dtype, array.shape)
    if out is not None:
        if type(out) is not np.ndarray or not out.flags.writeable:
            return None
        parts += (out.dtype, out.shape, out.strides)
    return tuple(parts)
