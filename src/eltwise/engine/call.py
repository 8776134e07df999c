"""The calls of an operation on arrays: checked once, then found by the types and shapes of the arrays.

This is the one cache of a call. Its values are the callables that ``dispatch`` gave; what is looked up needs no check
again, since all that a check reads is part of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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

_FEW = 1 << 12
"""Where the elements of two operands have at most this product, no result is large enough for a kernel."""

_NUMPY, _UNSET = "numpy", -1
"""The defaults, which are these very objects where nothing else is given."""

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
        if known is not None and float_mode.is_default():
            return known(*operands) if out is None else known(*operands, out)
        with float_mode.default_mode():  # Numbers are taken in it too.
            return self._checked(operands, out)

    def _checked(self, operands: Sequence[object], out: object) -> np.ndarray:
        """Check a call, keep it, and compute it."""
        arrays, element_type, plan = self.check(operands)
        try:
            target = None if out is None else check_out(out, self.operation.result_type(element_type), plan.shape)
            if not element_type.is_integer:
                float_mode.require_default()
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None
        given = arrays if target is None else [*arrays, target]
        run = self._run(given, element_type, plan)
        self._keep(arrays, target, element_type, plan, run)
        try:
            return run(*given)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None

    def check(self, operands: Sequence[object]) -> tuple[list[np.ndarray], ElementType, Plan]:
        """Check operands: the arrays, Python numbers in the type of the first array; their type; where they lie."""
        try:
            arrays, element_type = self._arrays(operands)
            types = [TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in arrays]
            _result, found = elementwise(self.operation, types)
            return arrays, element_type, make_plan(found, [array.shape for array in arrays], element_type)
        except EltwiseError as error:
            raise error.located(operator=self.operation.schema.versioned_name) from None

    def _arrays(self, operands: Sequence[object]) -> tuple[list[np.ndarray], ElementType]:
        schema = self.operation.schema
        check_count(self.operation, len(operands))
        names = [f"operand {schema.operand_name(index)}" for index in range(len(operands))]
        taken = [
            None if is_scalar(value) else as_array(value, name, schema.types)
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
        return arrays, element_type

    def _run(self, arrays: Sequence[np.ndarray], element_type: ElementType, plan: Plan) -> Run:
        """What computes the operands, which come first, into the array that follows them or into a new one."""
        count = len(plan.operands)
        expression, operands, target = self.operation.expression(count), arrays[:count], arrays[count:]
        swapped = tuple(not array.dtype.isnative for array in operands)
        has_swapped = any(not array.dtype.isnative for array in target)
        shapes = [array.shape for array in operands]
        run = dispatch.prepare(expression, element_type, plan, shapes, (has_swapped, *swapped))
        if not (element_type.is_integer and expression.divides) or 0 in plan.shape:
            return run
        schema = self.operation.schema
        name = f"operand {schema.operand_name(1)}"

        def divided(*arrays: np.ndarray) -> np.ndarray:
            check_divisor(arrays[1], plan, 1, name, schema.versioned_name)
            return run(*arrays)

        return divided

    def _keep(
        self, arrays: list[np.ndarray], target: np.ndarray | None, element_type: ElementType, plan: Plan, run: Run
    ) -> None:
        if len(self.known) >= _MOST_CALLS:
            self.known.clear()
        key = _key(arrays, target)
        if key is not None:
            self.known[key] = run
        expression, few_bytes = self.operation.expression(len(arrays)), _FEW * element_type.storage.itemsize
        is_small = plan.bytes_of(element_type) <= few_bytes < dispatch.least_bytes(expression, element_type)
        is_any_shape = len(arrays) == 2 and target is None and self._has_numpy_rule
        if is_any_shape and is_small and all(array.dtype.isnative for array in arrays):
            self.known[arrays[0].dtype] = run


@lru_cache(maxsize=1024)
def calls_of(operation: Operation) -> Calls:
    """The calls of an operation."""
    return Calls(operation)


def of_two(operation: Operation, rebind: Callable[..., Calls] | None = None) -> Callable[..., np.ndarray]:
    """Make a function of two operands.

    Args:
        operation: what it computes.
        rebind: gives the calls of the operation with other attributes: the broadcast rule and the axis.
    """
    calls = calls_of(operation)
    known = calls.known

    def function(
        a: object, b: object, auto_broadcast: str = _NUMPY, axis: int = _UNSET, out: np.ndarray | None = None
    ) -> np.ndarray:
        if auto_broadcast is not _NUMPY or axis is not _UNSET:
            assert rebind is not None
            return rebind(auto_broadcast, axis).apply((a, b), out)
        # The look-up of ``apply``, written out: calls on few elements take little longer than this.
        if type(a) is _ndarray and type(b) is _ndarray:
            kind = a.dtype
            if out is None:
                is_few = kind is b.dtype and a.size * b.size <= _FEW
                run = known.get(kind if is_few else (kind, a.shape, b.dtype, b.shape))
                if run is not None and LEAST * ONE != 0.0 and ONE + LEAST == ONE - LEAST:  # is_default()
                    try:
                        return run(a, b)
                    except ValueError:
                        calls.check((a, b))  # NumPy's loops refused the shapes, or a signal's handler raised.
                        raise
            elif type(out) is _ndarray and out.flags.writeable:
                run = known.get((kind, a.shape, b.dtype, b.shape, out.dtype, out.shape, out.strides))
                if run is not None and LEAST * ONE != 0.0 and ONE + LEAST == ONE - LEAST:
                    return run(a, b, out)
        return calls.apply((a, b), out)

    return function


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
