"""Signatures of the public names, made of the tables of the package by tests/support/stub.py."""

# Arrays of other libraries are told from NumPy's by methods that only they have, which type checkers cannot know.
# mypy: disable-error-code="overload-overlap"

from typing import Any, Literal, Protocol, TypeVar, overload

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

class _Binary(Protocol):
    __name__: str
    @overload
    def __call__(self, a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
    @overload
    def __call__(self, a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
    @overload
    def __call__(self, a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[_S]: ...
    @overload
    def __call__(self, a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
    @overload
    def __call__(self, a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _S: ...
    @overload
    def __call__(self, a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

class _Division(Protocol):
    __name__: str
    @overload
    def __call__(self, a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _OtherT: ...
    @overload
    def __call__(self, a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> NDArray[_S]: ...
    @overload
    def __call__(self, a: _S | float, b: NDArray[_S], out: NDArray[_S] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> NDArray[_S]: ...
    @overload
    def __call__(self, a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _S: ...
    @overload
    def __call__(self, a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> _S: ...
    @overload
    def __call__(self, a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1, floor: bool = True) -> Any: ...

class _Unary(Protocol):
    __name__: str
    @overload
    def __call__(self, x: _OtherT) -> _OtherT: ...
    @overload
    def __call__(self, x: NDArray[_S], out: NDArray[_S] | None = None) -> NDArray[_S]: ...
    @overload
    def __call__(self, x: _S) -> _S: ...
    @overload
    def __call__(self, x: object, out: np.ndarray | None = None) -> Any: ...

class _Comparison(Protocol):
    __name__: str
    @overload
    def __call__(self, a: _OtherT, b: _OtherT | _Plain, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _OtherT, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> _OtherT: ...
    @overload
    def __call__(self, a: NDArray[_S], b: NDArray[_S] | _S | float, out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, a: _S | float, b: NDArray[_S], out: NDArray[np.bool_] | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, a: _S, b: _S | float, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
    @overload
    def __call__(self, a: float, b: _S, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> np.bool_: ...
    @overload
    def __call__(self, a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: _Rule = "numpy", axis: int = -1) -> Any: ...

class _Mean(Protocol):
    __name__: str
    @overload
    def __call__(self, a: _OtherT, b: _OtherT | _Plain, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _OtherT, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _Plain, axis: None = None, dtype: None = None, *, dim: None = None, keepdims: Literal[False] = False, where: object = True) -> np.float64: ...
    @overload
    def __call__(self, a: object, b: object, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, where: object = True) -> Any: ...

class _Maximum(Protocol):
    __name__: str
    @overload
    def __call__(self, a: _OtherT, b: _OtherT | _Plain, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, initial: object = None, where: object = True) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _OtherT, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, initial: object = None, where: object = True) -> _OtherT: ...
    @overload
    def __call__(self, a: _Plain, b: _Plain, axis: None = None, dtype: None = None, *, dim: None = None, keepdims: Literal[False] = False, initial: object = None, where: object = True) -> Any: ...
    @overload
    def __call__(self, a: object, b: object, axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, initial: object = None, where: object = True) -> Any: ...

add: _Binary
"""Compute a + b by OpenVINO's Add-1; the result has the operands' type."""

subtract: _Binary
"""Compute a - b by OpenVINO's Subtract-1; the result has the operands' type."""

multiply: _Binary
"""Compute a * b by OpenVINO's Multiply-1; the result has the operands' type."""

divide: _Division
"""Compute a // b by OpenVINO's Divide-1; the result has the operands' type."""

maximum: _Binary
"""Compute max(a, b) by OpenVINO's Maximum-1; the result has the operands' type."""

minimum: _Binary
"""Compute min(a, b) by OpenVINO's Minimum-1; the result has the operands' type."""

negative: _Unary
"""Compute -x by OpenVINO's Negative-1; the result has the operands' type."""

absolute: _Unary
"""Compute abs(x) by OpenVINO's Abs-1; the result has the operands' type."""

squared_difference: _Binary
"""Compute (a - b) * (a - b) by OpenVINO's SquaredDifference-1; the result has the operands' type."""

equal: _Comparison
"""Compute a == b by OpenVINO's Equal-1; the result has booleans."""

not_equal: _Comparison
"""Compute a != b by OpenVINO's NotEqual-1; the result has booleans."""

less: _Comparison
"""Compute a < b by OpenVINO's Less-1; the result has booleans."""

less_equal: _Comparison
"""Compute a <= b by OpenVINO's LessEqual-1; the result has booleans."""

greater: _Comparison
"""Compute a > b by OpenVINO's Greater-1; the result has booleans."""

greater_equal: _Comparison
"""Compute a >= b by OpenVINO's GreaterEqual-1; the result has booleans."""

mean_squared_difference: _Mean
"""Compute the mean of (a - b) * (a - b): exactly, and rounded once."""

mean_absolute_difference: _Mean
"""Compute the mean of abs(a - b): exactly, and rounded once."""

max_absolute_difference: _Maximum
"""Compute the maximum of abs(a - b); NaN where an element is."""
