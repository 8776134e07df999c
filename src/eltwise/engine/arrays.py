"""How a caller's objects become arrays: by the array protocols, never with a silent change of type."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT8E4M3FN, FLOAT8E5M2, ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, ShapeError, ValueRangeError


class Lazy(Protocol):
    """A Dask array, or an object of xarray."""

    def compute(self, **options: Any) -> Any:
        """Compute it."""


class TorchTensor(Protocol):
    """A tensor of PyTorch."""

    def detach(self) -> Any:
        """Leave out how it was computed."""


class JaxArray(Protocol):
    """An array of JAX."""

    def block_until_ready(self) -> Any:
        """Wait for its computation."""


OtherT = TypeVar("OtherT", bound=Lazy | TorchTensor | JaxArray)
"""An array that results are given back as."""

Plain: TypeAlias = np.ndarray | np.generic | float
"""What goes together with arrays of every library."""

Kind = Literal["", "dask", "xarray", "pandas", "torch", "jax", "cupy"]
"""A library whose arrays are given back as what they were; empty for all other objects."""


@dataclass(frozen=True)
class Library:
    """A library whose arrays are given back as what they were.

    Attributes:
        kind: what errors call it.
        modules: the packages whose classes are its arrays.
        is_lazy: whether its arrays are computed when somebody asks for them.
        has_labels: whether its arrays name their axes or what lies on them.
        to_host: the Python text that copies an array to the host.
    """

    kind: Kind
    modules: tuple[str, ...]
    is_lazy: bool = False
    has_labels: bool = False
    to_host: str = ""


LIBRARIES = {
    each.kind: each
    for each in (
        Library("dask", ("dask",), is_lazy=True),
        Library("xarray", ("xarray",), is_lazy=True, has_labels=True),
        Library("pandas", ("pandas",), has_labels=True),
        Library("torch", ("torch",), to_host="tensor.cpu()"),
        Library("jax", ("jax", "jaxlib"), to_host="jax.device_get(array)"),
        Library("cupy", ("cupy",), to_host="cupy.asnumpy(array)"),
    )
}
"""The libraries by what errors call them."""

_BY_MODULE = {module: each.kind for each in LIBRARIES.values() for module in each.modules}


Axis: TypeAlias = int | str | Sequence[int | str] | None
"""Some axes of a result, by number or name; None for all."""

Compute: TypeAlias = Callable[[Sequence[object], Axis], Any]
"""Computes a result of operands, and of the axes that it reduces."""

_LONGEST_NUMBER = 30

NOT_IN_DLPACK = (BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2)
"""The types that NumPy does not exchange by DLPack, so that PyTorch's tensors are exchanged as the bits of integers."""


def kind_of(value: object) -> Kind:
    """The library that an object belongs to."""
    type_: Any = type(value)
    return _kind_of_type(type_)


@lru_cache(maxsize=1024)
def _kind_of_type(type_: Any) -> Kind:
    libraries = (_BY_MODULE.get(base.__module__.partition(".")[0], "") for base in type_.__mro__)
    return next((library for library in libraries if library), "")


def is_scalar(value: object) -> bool:
    """Whether it is a plain Python number, which has no element type of its own."""
    return isinstance(value, (int, float)) and not isinstance(value, np.generic)


def as_array(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[np.ndarray, ElementType]:
    """Take an object in by the first of ``__array__``, DLPack and the buffer protocol that it has.

    The array keeps its strides and its byte order; nothing is copied where the protocol allows it.

    Raises:
        ElementTypeError: where it has none of them, or its element type is unsupported; ``types`` are those to name.
    """
    array = _by_protocol(value, operand)
    return array, of_numpy(array.dtype, types, operand=operand)


def _is_masked(value: object) -> bool:
    """Whether a value is a masked array; where nobody has imported their module, which takes long, there are none."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


def _by_protocol(value: object, operand: str) -> np.ndarray:
    if _is_masked(value):
        raise ElementTypeError("a masked array would lose its mask", operand=operand, hint="fill it first")
    if is_pandas(value):
        return values_of_pandas(value, operand)
    _check_known(value, operand)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    refusals: list[str] = []
    for protocol, take in _PROTOCOLS:
        if protocol and not hasattr(value, protocol):
            continue
        try:
            return take(value)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            if protocol or not isinstance(error, TypeError):  # The latter is raised for what is no buffer.
                refusals.append(f"{error}".strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    if refusals:
        raise ElementTypeError(
            f"this {type(value).__name__} does not give its data as an array: {'; '.join(refusals)}", operand=operand
        )
    raise ElementTypeError(
        "not an array",
        operand=operand,
        got=type(value).__name__,
        allowed="an object with __array__, DLPack or the buffer protocol, or a Python number",
        hint="numpy.asarray(value, dtype) makes one and says its type",
    )


def _check_known(value: object, operand: str) -> None:
    """Refuse what computes in a way of its own, as a quantity with a unit does, which its bare array would lose.

    Raises:
        ElementTypeError: for a type that overrides NumPy's or PyTorch's functions.
    """
    kind: Any = type(value)
    if kind is np.ndarray:
        return
    name, library = kind.__name__, kind_of(value)
    if library == "torch":
        tensor = sys.modules["torch"].Tensor
        if getattr(kind, "__torch_dispatch__", None) is not tensor.__torch_dispatch__:
            problem = f"this {name} has no data that can be read, or computes in a way of its own"
            raise ElementTypeError(problem, operand=operand, allowed="a torch.Tensor or Parameter")
        return
    for protocol in ("__array_ufunc__", "__array_function__"):
        override = getattr(kind, protocol, None)
        if library or override is None or override is getattr(np.ndarray, protocol):
            continue
        raise ElementTypeError(
            f"this {name} would lose what it has beside its numbers, such as its unit",
            operand=operand,
            hint="convert it to the unit that you mean, and give its plain array",
        )


def is_pandas(value: object) -> bool:
    """Whether it is a Series or a DataFrame; pandas is not imported to find out."""
    return kind_of(value) == "pandas" and hasattr(value, "axes") and hasattr(value, "to_numpy")


def values_of_pandas(value: Any, operand: str) -> np.ndarray:
    """The values of a Series or DataFrame whose columns have one type.

    Raises:
        ElementTypeError: naming columns of different types, or with missing values.
    """
    columns = list(value.items()) if value.ndim == 2 else [(value.name, value)]
    types = {str(column.dtype): (column.dtype, name) for name, column in reversed(columns)}
    if len(types) > 1:
        got = ", ".join(f"{name!r} is {text}" for text, (_dtype, name) in reversed(types.items()))
        hint = "choose columns of one type, or convert them with astype"
        raise ElementTypeError("the columns have different types", operand=operand, got=got[:120], hint=hint)
    dtype = columns[0][1].dtype if columns else None
    if dtype is None or isinstance(dtype, np.dtype):
        return np.asarray(value.to_numpy())
    for name, column in columns:
        if column.isna().any():
            raise ElementTypeError(f"column {name!r} has missing values", operand=operand, hint="fill them first")
    return np.asarray(value.to_numpy(dtype=getattr(dtype, "numpy_dtype", None)))


def _by_dlpack(value: Any) -> np.ndarray:
    is_torch = kind_of(value) == "torch"
    if is_torch and value.is_neg():
        raise RuntimeError("DLPack would lose the negative bit")
    for element_type in NOT_IN_DLPACK if is_torch else ():
        if str(value.dtype) == f"torch.{element_type.name}":
            bits: Any = getattr(sys.modules["torch"], f"int{element_type.bits}")
            return np.from_dlpack(value.view(bits)).view(element_type.storage)
    return np.from_dlpack(value)


_PROTOCOLS: tuple[tuple[str, Callable[[Any], np.ndarray]], ...] = (
    ("__array__", np.asarray),
    ("__dlpack__", _by_dlpack),
    ("", lambda value: np.asarray(memoryview(value))),
)


def exact_scalar(value: object, element_type: ElementType, operand: str) -> np.ndarray:
    """Take a Python number as an element type that holds it exactly.

    Raises:
        ValueRangeError: where the type does not hold it.
        ElementTypeError: for a bool where the type is of numbers.
    """
    is_foreign_boolean = isinstance(value, bool) and element_type is not BOOL
    if is_foreign_boolean or not isinstance(value, int | float):
        raise ElementTypeError("not a number", operand=operand, got=repr(value))
    array = _exact_array(value, element_type)
    if array is not None:
        return array
    try:
        text = repr(value)
    except ValueError:  # Python writes out no integer of more than some thousand digits.
        text = f"an integer of {int(value).bit_length()} bits"
    raise ValueRangeError(
        f"{element_type.name} does not hold this number exactly",
        operand=operand,
        got=text if len(text) < 60 else f"{text[:57]}...",
        hint=f"round it first, so that what is computed with is seen: {_rounded(element_type, text)}",
    )


def _rounded(element_type: ElementType, text: str) -> str:
    """The Python text that rounds a number to an element type."""
    library = "ml_dtypes" if element_type.storage.isbuiltin != 1 else "numpy"
    return f"{library}.{element_type.name}({text if len(text) < _LONGEST_NUMBER else 'x'})"


def _exact_array(value: float, element_type: ElementType) -> np.ndarray | None:
    if element_type.is_integer:
        low, high = element_type.limits
        is_whole = not isinstance(value, float) or (value.is_integer() and str(value) != "-0.0")
        return np.array(int(value)).astype(element_type.storage) if is_whole and low <= value <= high else None
    try:
        wide = float(value)
    except OverflowError:
        return None
    with np.errstate(all="ignore"):
        array = np.array(wide).astype(element_type.storage)
    return array if math.isnan(wide) or float(array.astype(np.float64)) == value else None


def check_out(out: object, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    """Make sure that results can be written into ``out``.

    Raises:
        ElementTypeError, ShapeError, ValueRangeError: where it is no writable array of that type and shape.
    """
    if not isinstance(out, np.ndarray) or _is_masked(out) or type(out).__array_ufunc__ != np.ndarray.__array_ufunc__:
        raise ElementTypeError("out must be a NumPy array", operand="out", got=type(out).__name__)
    if of_numpy(out.dtype, operand="out") is not element_type:
        raise ElementTypeError("out has another type", operand="out", got=str(out.dtype), allowed=element_type.name)
    if out.shape != shape:
        raise ShapeError("out has another shape", operand="out", got=str(out.shape), allowed=str(shape))
    if not out.flags.writeable:
        raise ValueRangeError("out is read-only", operand="out")
    if _overlaps_itself(out):
        raise ValueRangeError("elements of out share memory, so that it cannot hold the result", operand="out")
    return out


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether elements may share memory: in what slices and transposes give, a stride spans all smaller ones."""
    span = array.itemsize
    steps = [(abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1]
    for stride, size in sorted(steps):
        if stride < span:
            return array.size > 0
        span += stride * (size - 1)
    return False
