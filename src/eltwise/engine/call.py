"""The calls of an operation on arrays: checked once, then found by the types and shapes of the arrays.

This is the one cache of a call. Its values are the callables that ``dispatch`` gave; what is looked up needs no check
again, since all that a check reads is part of the key.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError, ValueRangeError
from eltwise.core.shapes import of_sizes
from eltwise.engine.arrays import as_array, check_out, exact_scalar, is_scalar
from eltwise.ir.graph import TensorType
from eltwise.ir.infer import elementwise
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.float_mode import LEAST, ONE
from eltwise.kernels.numpy_kernel import Run
from eltwise.kernels.plan import Plan, make_plan
from eltwise.ops.schema import Operation

_MOST_CALLS = 4096

FEW = 1 << 12
"""Where the elements of two operands have at most this product, no result is large enough for a kernel."""

_ndarray = np.ndarray


class Calls:
    """The calls of one operation that are known.

    A key holds the types and shapes of the operands and of the result where the caller gives one. Two operands of few
    elements that broadcast as NumPy does are known by their type alone: NumPy's loops check their shapes.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.known: dict[Hashable, Run] = {}
        self._has_numpy_rule = operation.rule.name == "numpy" and not operation.expression().divides

    def apply(self, operands: Sequence[object], out: object = None) -> np.ndarray:
        """Compute the result of operands.

        Args:
            operands: arrays by any array protocol, and Python numbers that the arrays' type holds exactly.
            out: where the result goes: an array of the result's type and shape, which may overlap the operands.

        Returns:
            ``out``, or a new array.

        Raises:
            EltwiseError: for operands, shapes or types that the operator version does not allow.
        """
        known = self.known.get(_key(operands, out))
        if known is not None and LEAST * ONE != 0.0 and ONE + LEAST == ONE - LEAST:
            return known(*operands) if out is None else known(*operands, out)
        if float_mode.is_default() or not float_mode.can_be_set():
            return self._checked(operands, out)
        with float_mode.default_mode():  # Numbers are taken in it too.
            return self._checked(operands, out)

    def _checked(self, operands: Sequence[object], out: object) -> np.ndarray:
        """Check a call, keep it, and compute it."""
        try:
            arrays, element_type = self._arrays(operands)
            plan = self._plan(arrays, element_type)
            target = None if out is None else check_out(out, self.operation.result_type(element_type), plan.shape)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None
        run = self._run(arrays, element_type, plan, target)  # What is wrong here is the environment's fault.
        self._keep(arrays, target, element_type, plan, run)
        try:
            if not element_type.is_integer:
                float_mode.require_default()
            return run(*arrays) if target is None else run(*arrays, target)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None

    def _arrays(self, operands: Sequence[object]) -> tuple[list[np.ndarray], ElementType]:
        """The operands as arrays, Python numbers in the type of the first array."""
        schema = self.operation.schema
        check_count(self.operation, len(operands))
        names = [f"operand {schema.operand_name(index)}" for index in range(len(operands))]
        taken = {
            index: as_array(value, name)
            for index, (value, name) in enumerate(zip(operands, names, strict=True))
            if not is_scalar(value)
        }
        if not taken:
            raise ElementTypeError(
                "a Python number has no element type",
                operand=" and ".join(names),
                hint="make one operand an array, for example numpy.float32(2)",
            )
        first = next(iter(taken.values()))[1]
        arrays = [
            taken[index][0] if index in taken else exact_scalar(value, first, name)
            for index, (value, name) in enumerate(zip(operands, names, strict=True))
        ]
        return arrays, first

    def _plan(self, arrays: Sequence[np.ndarray], element_type: ElementType) -> Plan:
        types = [TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in arrays]
        _result, found = elementwise(self.operation, types)
        return make_plan(found, [array.shape for array in arrays], element_type.storage.itemsize)

    def _run(
        self, arrays: Sequence[np.ndarray], element_type: ElementType, plan: Plan, target: np.ndarray | None
    ) -> Run:
        expression = self.operation.expression(len(arrays))
        swapped = (target is not None and not target.dtype.isnative, *(not array.dtype.isnative for array in arrays))
        run = dispatch.prepare(expression, element_type, plan, [array.shape for array in arrays], swapped)
        if not (element_type.is_integer and self.operation.expression().divides) or 0 in plan.shape:
            return run

        schema = self.operation.schema
        name = f"operand {schema.operand_name(1)}"

        def divided(*arrays: np.ndarray) -> np.ndarray:
            check_divisor(arrays[1], plan, 1, name, schema.versioned_name)
            return run(*arrays)

        return divided

    def _keep(
        self,
        arrays: Sequence[np.ndarray],
        target: np.ndarray | None,
        element_type: ElementType,
        plan: Plan,
        run: Run,
    ) -> None:
        if len(self.known) >= _MOST_CALLS:
            self.known.clear()
        key = _key(arrays, target)
        if key is not None:
            self.known[key] = run
        expression = self.operation.expression(len(arrays))
        is_small = plan.bytes_of(element_type) <= FEW * element_type.storage.itemsize
        always_small = FEW * element_type.storage.itemsize < dispatch.least_bytes(expression, element_type)
        is_any_shape = len(arrays) == 2 and target is None and self._has_numpy_rule
        if is_any_shape and is_small and always_small and all(array.dtype.isnative for array in arrays):
            self.known[arrays[0].dtype] = run

    def check_again(self, operands: Sequence[np.ndarray]) -> None:
        """Say what is wrong with shapes that NumPy's loops refused; nothing where a signal's handler raised."""
        arrays, element_type = self._arrays(operands)
        try:
            self._plan(arrays, element_type)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None


@lru_cache(maxsize=1024)
def calls_of(operation: Operation) -> Calls:
    """The calls of an operation."""
    return Calls(operation)


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


def _key(operands: Sequence[object], out: object) -> Hashable:
    """What a call is kept by; None, which nothing is kept by, where something is not a plain array or read-only."""
    if len(operands) == 2:  # Written out, since a loop takes twice as long.
        a, b = operands
        if type(a) is not _ndarray or type(b) is not _ndarray:
            return None
        if out is None:
            return a.dtype, a.shape, b.dtype, b.shape
        if type(out) is not _ndarray or not out.flags.writeable:
            return None
        return a.dtype, a.shape, b.dtype, b.shape, out.dtype, out.shape, out.strides
    parts: list[Hashable] = []
    for array in operands:
        if type(array) is not _ndarray:
            return None
        parts += (array.dtype, array.shape)
    if out is not None:
        if type(out) is not _ndarray or not out.flags.writeable:
            return None
        parts += (out.dtype, out.shape, out.strides)
    return tuple(parts)
