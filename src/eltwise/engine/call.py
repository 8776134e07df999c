"""The calls of a computation on NumPy arrays: checked once, then found by the types and shapes of the arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from eltwise.core.broadcasting import is_blocked
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError, ValueRangeError
from eltwise.core.shapes import of_sizes
from eltwise.engine.arrays import as_array, check_out, exact_scalar
from eltwise.engine.call_cache import CallCache, SizelessCalls, key_of
from eltwise.engine.intake import is_scalar
from eltwise.ir.types import TensorType, elementwise
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.native import Records
from eltwise.kernels.numpy_kernel import Run
from eltwise.kernels.plan import Divisors, TypedCall, make_plan
from eltwise.ops.computation import Computation
from eltwise.ops.schema import Operation

AsOperand = Callable[[object, str, Sequence[ElementType]], tuple[Any, ElementType]]
"""Makes an array of an operand, or what has the shape of one, given its name and the allowed types for errors."""


_NUMBERS = {int, float}
_PLAIN = {*_NUMBERS, np.ndarray}
_ZERO_DIVISOR = "an integer cannot be divided by 0"


class Prepared(NamedTuple):
    """A call that was checked.

    Attributes:
        run: computes it, of the operands and of the array for the result where there is one.
        typed: what that is.
    """

    run: Run
    typed: TypedCall


def typed_call(computation: Computation, operands: Sequence[TensorType]) -> TypedCall:
    """Check operands of known types and shapes.

    Raises:
        EltwiseError: where they do not go together.
    """
    element_type, _result, broadcast = elementwise(computation, operands)
    assert element_type is not None
    ranks = [operand.shape.rank or 0 for operand in operands]
    if any(is_blocked(computation.rule, ranks[0], rank) for rank in ranks[1:]):
        raise UnsupportedError("operands with an element for each block are only supported for arrays in memory")
    plan = make_plan(broadcast, [operand.shape.sizes() for operand in operands], element_type)
    return TypedCall(computation.typed(element_type, [each.element_type for each in operands]), element_type, plan)


class Calls:
    """The calls of one computation.

    Attributes:
        computation: what is computed.
        cache: the calls that were checked.
        records: those that are made often, which are found without running Python.
        function: the builtin function that looks into the records, where somebody made one.
        of_any_size: what computes operands whose sizes were not met.
        rounds: whether results depend on the floating-point mode whatever the types are.
    """

    rounds = False

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.cache = CallCache[Prepared]()
        self.records = Records(len(computation.operands), gives_scalars=True)
        self.function: Callable[..., np.ndarray] | None = None
        self.of_any_size = SizelessCalls()

    def without_check(self, operands: Sequence[Any], out: object = None) -> np.ndarray | None:
        """The result of arrays like those of an earlier call; None where a call must be checked; see ``apply``."""
        if not float_mode.is_default():  # Numbers are converted in it too.
            return None
        key = key_of(operands, out)
        if key is None:
            operands = self._plain(operands)
            key = key_of(operands, out)
        prepared = self.cache.get(key)
        if prepared is None:
            return self.of_any_size.compute(key, operands) if out is None else None
        return prepared.run(*operands) if out is None else prepared.run(*operands, out)

    def _plain(self, operands: Sequence[Any]) -> Sequence[Any]:
        """NumPy's scalars and, beside nothing but arrays, Python's numbers as arrays of rank 0."""
        arrays = [np.asarray(each) if isinstance(each, np.generic) else each for each in operands]
        types = {type(each) for each in arrays}
        has_numbers = np.ndarray in types and not types.isdisjoint(_NUMBERS)
        return self._arrays(arrays, as_array)[0] if has_numbers and types <= _PLAIN else arrays

    def apply(self, operands: Sequence[object], out: object = None) -> np.ndarray:
        """Compute the result of operands.

        Args:
            operands: arrays by any array protocol, and Python numbers that the arrays' type holds exactly.
            out: where the result goes: an array of the result's type and shape, which may overlap the operands.

        Returns:
            ``out``, or a new array; a scalar where all operands have rank 0.

        Raises:
            EltwiseError: for operands, shapes or types that the computation does not allow.
        """
        with float_mode.default_mode():  # Numbers are converted in it too.
            try:
                arrays, prepared = self.prepared(operands, out)
                is_whole = prepared.typed.element_type.is_integer and not self.computation.expression.divides
                if self.rounds or not is_whole:
                    float_mode.require_default()
                return prepared.run(*arrays)
            except EltwiseError as error:
                raise error.located(operator=self.computation.name) from None

    def prepared(self, operands: Sequence[object], out: object = None) -> tuple[list[Any], Prepared]:
        """Check a call, or find one like it.

        Returns:
            The arrays of the operands, and that of the result where there is one; what computes it.

        Raises:
            EltwiseError: as ``apply`` does.
        """
        arrays: list[Any] = [*operands]
        key = key_of(arrays, out)
        prepared = self.cache.get(key)
        if prepared is None:
            arrays, types = self._arrays(operands, as_array)
        if key is None:  # Numbers and objects that were no arrays are some now.
            key = key_of(arrays, out)
            prepared = self.cache.get(key)
        if prepared is not None:
            return arrays if out is None else [*arrays, out], prepared
        if self._is_blocked(arrays):
            return calls_of(self.computation.aligned()).prepared(self._repeated(arrays, types), out)
        typed = self._typed(arrays, types)
        result_type = typed.expression.result_type(typed.element_type)
        target = None if out is None else check_out(out, result_type, typed.plan.shape)
        outs = [] if target is None else [target]
        prepared = self._prepare(arrays, outs, typed)
        self.cache.add(key or key_of(arrays, target), prepared)
        return [*arrays, *outs], prepared

    def check(self, operands: Sequence[object], as_operand: AsOperand = as_array) -> tuple[list[Any], TypedCall]:
        """Check operands before anything is computed.

        Args:
            operands: as for ``apply``, or what ``as_operand`` knows.
            as_operand: makes an array of an operand, or what has the shape of one.

        Returns:
            What ``as_operand`` gave, with Python numbers as arrays; what is computed of them.

        Raises:
            EltwiseError: for operands, shapes or types that the computation does not allow.
        """
        try:
            arrays, types = self._arrays(operands, as_operand)
            return arrays, self._typed(arrays, types)
        except EltwiseError as error:
            raise error.located(operator=self.computation.name) from None

    def _typed(self, arrays: Sequence[Any], types: Sequence[ElementType]) -> TypedCall:
        return typed_call(self.computation, _tensor_types(arrays, types))

    def _is_blocked(self, arrays: Sequence[Any]) -> bool:
        rule = self.computation.rule
        return len(arrays) > 1 and is_blocked(rule, len(arrays[0].shape), len(arrays[1].shape))

    def _repeated(self, arrays: Sequence[np.ndarray], types: Sequence[ElementType]) -> list[np.ndarray]:
        """Operands of which some have one element for each block of the first one, as operands of its shape."""
        elementwise(self.computation, _tensor_types(arrays, types))
        (first, *others), rule = arrays, self.computation.rule
        blocks = np.arange(first.shape[rule.axis]) // rule.block
        return [first, *(np.take(other, blocks, rule.axis) for other in others)]

    def _arrays(self, operands: Sequence[object], as_operand: AsOperand) -> tuple[list[Any], list[ElementType]]:
        """The arrays of operands, and their types: that of the first array for Python numbers."""
        computation = self.computation.computation(len(operands))
        names = computation.operands
        converted = [
            None if is_scalar(value) else as_operand(value, name, computation.allowed(index))
            for index, (value, name) in enumerate(zip(operands, names, strict=True))
        ]
        others = computation.other_types or (None,) * len(operands)
        typed = zip(converted, others, strict=True)
        element_type = next((each[1] for each, other in typed if each is not None and other is None), None)
        if element_type is None:
            untyped = [name for name, other in zip(names, others, strict=True) if other is None]
            one = "it" if len(untyped) == 1 else "one of them"
            raise _without_type(" and ".join(untyped), f"make {one} an array, for example numpy.float32(2)")
        types = [
            each[1] if each is not None else _type_of_number(name, element_type, other)
            for each, other, name in zip(converted, others, names, strict=True)
        ]
        arrays = [
            exact_scalar(value, of_scalar, name) if each is None else each[0]
            for each, value, of_scalar, name in zip(converted, operands, types, names, strict=True)
        ]
        return arrays, types

    def _prepare(self, operands: Sequence[np.ndarray], outs: Sequence[np.ndarray], typed: TypedCall) -> Prepared:
        """Prepare the computation of operands into an array or into a new one."""
        swapped = [not array.dtype.isnative for array in operands]
        has_swapped = any(not array.dtype.isnative for array in outs)
        divisors = Divisors((1,), lambda arrays: self.check_divisor(arrays, typed)) if typed.checks_divisor else None
        run = dispatch.prepare(typed, (has_swapped, *swapped), divisors, self.records)
        # Of no elements no divisor is looked at, and a scalar is no array.
        is_usual = bool(typed.plan.shape) and 0 not in typed.plan.shape and divisors is None and not any(swapped)
        if is_usual and self.computation.rule.name == "numpy":
            compute = dispatch.of_any_size(typed, keeps_shape=self.computation.keeps_shape)
            self.of_any_size.add(operands, compute)
        return Prepared(run if typed.plan.shape else _scalar(run, len(operands)), typed)

    def check_divisor(self, arrays: Sequence[np.ndarray], typed: TypedCall) -> None:
        """Refuse an integer divisor that holds a 0, before anything is written.

        Raises:
            ValueRangeError: naming the first index of the result that would be undefined.
        """
        if typed.checks_divisor:
            check_divisor(arrays[1], typed.plan.operands[1], self.computation.operands[1], self.computation.name)


def _type_of_number(name: str, element_type: ElementType, others: Sequence[ElementType] | None) -> ElementType:
    """The type of a Python number: that of the arrays, or the only one that the operand may have."""
    if others and element_type not in others and len(others) > 1:
        raise _without_type(name, "make it an array, which says its type")
    return element_type if not others or element_type in others else others[0]


def _without_type(name: str, hint: str) -> ElementTypeError:
    return ElementTypeError("a Python number has no element type", operand=name, hint=hint)


def _tensor_types(arrays: Sequence[Any], types: Sequence[ElementType]) -> list[TensorType]:
    return [TensorType(element_type, of_sizes(array.shape)) for array, element_type in zip(arrays, types, strict=True)]


def _scalar(run: Run, count: int) -> Run:
    """The same for operands of rank 0, which give a scalar where there is no array for the result."""

    def scalar(*arrays: np.ndarray) -> Any:
        return run(*arrays) if len(arrays) > count else run(*arrays)[()]

    return scalar


# Operators are made by name, and called with attributes, again and again: what is known of their calls must survive.
@lru_cache(maxsize=1024, typed=True)
def calls_of(source: Computation | Operation | str, *attributes: object) -> Calls:
    """The calls of a computation, or of an operator version with attributes: the same for the same arguments.

    Args:
        source: the computation; or an operation of as many operands as it names, or the versioned name of one.
        *attributes: with a versioned name the attributes: a name, its value, and so on.

    Raises:
        EltwiseError: for an operator version or attributes that there are not.
        TypeError: for an attribute whose value has no hash; no operator allows one.
    """
    if isinstance(source, Computation):
        return Calls(source)
    if isinstance(source, Operation):
        return calls_of(source.computation(len(source.schema.operands)))
    from eltwise.ops import registry  # The common functions are bound without a search.

    return calls_of(registry.find(source).bind(dict(zip(attributes[::2], attributes[1::2], strict=True))))  # type: ignore[arg-type]


@contextmanager
def without_index() -> Iterator[None]:
    """Leave the index out of the errors of a computation on a part, as it would be one of the part."""
    try:
        yield
    except ValueRangeError as error:
        if error.problem == _ZERO_DIVISOR:
            error.got = "0"
        raise


def check_divisor(divisor: np.ndarray, sizes: tuple[int, ...], name: str, operator: str) -> None:
    """Refuse an integer divisor that holds a 0.

    Args:
        divisor: the operand.
        sizes: its sizes with 1s around them to the result's rank.
        name: what errors call it.
        operator: what errors call the computation.

    Raises:
        ValueRangeError: naming the first index of the result that would be undefined.
    """
    if np.count_nonzero(divisor) == divisor.size:
        return
    padded = divisor.reshape(sizes)
    index = tuple(int(each) for each in np.unravel_index(int(np.argmax(padded == 0)), padded.shape))
    raise ValueRangeError(
        _ZERO_DIVISOR,
        operator=operator,
        operand=name,
        got=f"0 at index {list(index)} of the result",
    )
