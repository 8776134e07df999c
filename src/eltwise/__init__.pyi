"""Signatures of the public names, made of the tables of the package by tests/support/stub.py."""

# Arrays of other libraries are told from NumPy's by methods that only they have, which type checkers cannot know.
# mypy: disable-error-code="overload-overlap"

from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from eltwise import backend as backend
from eltwise import errors as errors
from eltwise import testing as testing
from eltwise.comparison.compare import compare as compare
from eltwise.conformance.conform import conform as conform
from eltwise.conversion import convert as convert
from eltwise.core.errors import EltwiseError as EltwiseError
from eltwise.engine.api import Operator as Operator
from eltwise.engine.api import operator as operator
from eltwise.engine.api import operators as operators
from eltwise.engine.arrays import Axis as _Axis
from eltwise.engine.arrays import OtherT as _OtherT
from eltwise.engine.arrays import Plain as _Plain
from eltwise.engine.reduce import reduce as reduce
from eltwise.kernels.pool import memory_pool as memory_pool
from eltwise.kernels.threads import get_num_threads as get_num_threads
from eltwise.kernels.threads import set_num_threads as set_num_threads
from eltwise.model import Model as Model
from eltwise.model import load as load
from eltwise.model import save as save
from eltwise.scale.deltas import delta as delta
from eltwise.scale.deltas import restore as restore
from eltwise.targets.check import check as check
from eltwise.targets.repair import repair as repair
from eltwise.tracing.record import record as record
from eltwise.tracing.trace import trace as trace
__all__ = [
    "EltwiseError",
    "Model",
    "Operator",
    "__version__",
    "absolute",
    "add",
    "backend",
    "check",
    "compare",
    "conform",
    "convert",
    "delta",
    "divide",
    "equal",
    "errors",
    "get_num_threads",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "load",
    "max_absolute_difference",
    "maximum",
    "mean_absolute_difference",
    "mean_squared_difference",
    "memory_pool",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "operator",
    "operators",
    "record",
    "reduce",
    "repair",
    "restore",
    "save",
    "set_num_threads",
    "squared_difference",
    "subtract",
    "testing",
    "trace",
]

__version__: str

_S = TypeVar("_S", bound=np.generic)
_Rule = Literal["numpy", "none", "pdpd"]

@overload
def add(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a + b by OpenVINO's Add-1; the result has the operands' type."""
@overload
def add(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def add(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def add(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def add(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def add(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def add(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def subtract(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a - b by OpenVINO's Subtract-1; the result has the operands' type."""
@overload
def subtract(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def subtract(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def subtract(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def subtract(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def subtract(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def subtract(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def multiply(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a * b by OpenVINO's Multiply-1; the result has the operands' type."""
@overload
def multiply(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def multiply(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def multiply(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def multiply(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def multiply(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def multiply(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def divide(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _OtherT:
    """Compute a // b by OpenVINO's Divide-1; the result has the operands' type."""
@overload
def divide(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _OtherT: ...
@overload
def divide(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> NDArray[_S]: ...
@overload
def divide(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> NDArray[_S]: ...
@overload
def divide(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _S: ...
@overload
def divide(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _S: ...
@overload
def divide(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> Any: ...

@overload
def maximum(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute max(a, b) by OpenVINO's Maximum-1; the result has the operands' type."""
@overload
def maximum(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def maximum(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def maximum(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def maximum(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def maximum(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def maximum(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def minimum(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute min(a, b) by OpenVINO's Minimum-1; the result has the operands' type."""
@overload
def minimum(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def minimum(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def minimum(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def minimum(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def minimum(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def minimum(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def negative(x: _OtherT) -> _OtherT:
    """Compute -x by OpenVINO's Negative-1; the result has the operands' type."""
@overload
def negative(x: NDArray[_S], out: NDArray[_S] | None = None) -> NDArray[_S]: ...
@overload
def negative(x: _S) -> _S: ...
@overload
def negative(x: object, out: np.ndarray | None = None) -> Any: ...

@overload
def absolute(x: _OtherT) -> _OtherT:
    """Compute abs(x) by OpenVINO's Abs-1; the result has the operands' type."""
@overload
def absolute(x: NDArray[_S], out: NDArray[_S] | None = None) -> NDArray[_S]: ...
@overload
def absolute(x: _S) -> _S: ...
@overload
def absolute(x: object, out: np.ndarray | None = None) -> Any: ...

@overload
def squared_difference(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute (a - b) * (a - b) by OpenVINO's SquaredDifference-1; the result has the operands' type."""
@overload
def squared_difference(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def squared_difference(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def squared_difference(a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
@overload
def squared_difference(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def squared_difference(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
@overload
def squared_difference(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def equal(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a == b by OpenVINO's Equal-1; the result has booleans."""
@overload
def equal(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def equal(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def equal(a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def equal(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def equal(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def equal(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def not_equal(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a != b by OpenVINO's NotEqual-1; the result has booleans."""
@overload
def not_equal(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def not_equal(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def not_equal(a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def not_equal(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def not_equal(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def not_equal(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def less(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a < b by OpenVINO's Less-1; the result has booleans."""
@overload
def less(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def less(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def less(a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def less(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def less(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def less(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def less_equal(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a <= b by OpenVINO's LessEqual-1; the result has booleans."""
@overload
def less_equal(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def less_equal(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def less_equal(a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def less_equal(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def less_equal(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def less_equal(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def greater(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a > b by OpenVINO's Greater-1; the result has booleans."""
@overload
def greater(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def greater(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def greater(a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def greater(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def greater(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def greater(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def greater_equal(a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT:
    """Compute a >= b by OpenVINO's GreaterEqual-1; the result has booleans."""
@overload
def greater_equal(a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
@overload
def greater_equal(a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def greater_equal(a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
@overload
def greater_equal(a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def greater_equal(a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
@overload
def greater_equal(a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

@overload
def mean_squared_difference(a: _OtherT, b: _OtherT | _Plain, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> _OtherT:
    """Compute the mean of (a - b) * (a - b): exactly, and rounded once."""
@overload
def mean_squared_difference(a: _Plain, b: _OtherT, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> _OtherT: ...
@overload
def mean_squared_difference(a: _Plain, b: _Plain, axis: None = None, dtype: None = None, *, dim: None = None, keepdims: Literal[False] = False, where: object = True) -> np.float64: ...
@overload
def mean_squared_difference(a: object, b: object, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> Any: ...

@overload
def mean_absolute_difference(a: _OtherT, b: _OtherT | _Plain, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> _OtherT:
    """Compute the mean of abs(a - b): exactly, and rounded once."""
@overload
def mean_absolute_difference(a: _Plain, b: _OtherT, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> _OtherT: ...
@overload
def mean_absolute_difference(a: _Plain, b: _Plain, axis: None = None, dtype: None = None, *, dim: None = None, keepdims: Literal[False] = False, where: object = True) -> np.float64: ...
@overload
def mean_absolute_difference(a: object, b: object, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> Any: ...

@overload
def max_absolute_difference(a: _OtherT, b: _OtherT | _Plain, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, initial: object = None, where: object = True) -> _OtherT:
    """Compute the maximum of abs(a - b); NaN where an element is."""
@overload
def max_absolute_difference(a: _Plain, b: _OtherT, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, initial: object = None, where: object = True) -> _OtherT: ...
@overload
def max_absolute_difference(a: _Plain, b: _Plain, axis: None = None, dtype: None = None, *, dim: None = None, keepdims: Literal[False] = False, initial: object = None, where: object = True) -> Any: ...
@overload
def max_absolute_difference(a: object, b: object, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, initial: object = None, where: object = True) -> Any: ...

