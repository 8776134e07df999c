"""What an operand is: one record for each array library, and one function that takes an operand or refuses it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isnan
from typing import Any, Literal, NamedTuple

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2
from eltwise.core.errors import ElementTypeError, EltwiseError, ShapeError, UnsupportedError
from eltwise.core.escaping import shortened
from eltwise.core.foreign import reason_of

Kind = Literal["", "dask", "xarray", "pandas", "torch", "jax", "cupy"]
"""A library whose arrays are given back as what they were; empty for all other objects."""

NOT_IN_NUMPY = (BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2)
"""The types that PyTorch and NumPy exchange as the bits of integers."""

_HOST_DEVICES = (1, 3)
"""kDLCPU, and kDLCUDAHost for memory of the host that a GPU reads."""


def _by_array(value: Any) -> np.ndarray:
    """The array that ``__array__`` gives, which may be one that would lose something."""
    array = np.asanyarray(value)
    if type(array) is not np.ndarray:
        _check_plain(array)
    return np.asarray(array)


_PROTOCOLS: tuple[tuple[str, Callable[[Any], np.ndarray]], ...] = (
    ("__array__", _by_array),
    ("__dlpack__", np.from_dlpack),
    ("", lambda value: np.asarray(memoryview(value))),
)


def _by_protocol(value: Any, protocols: Sequence[tuple[str, Callable[[Any], np.ndarray]]] = _PROTOCOLS) -> np.ndarray:
    """The array of an object, by the first of ``__array__``, DLPack and the buffer protocol that it has."""
    refusals: dict[str, None] = {}
    for protocol, take in protocols:
        if protocol and not hasattr(value, protocol):
            continue
        try:
            return take(value)
        except EltwiseError:
            raise
        except Exception as error:  # noqa: BLE001 - what gives its data is foreign code
            if protocol or not isinstance(error, TypeError):  # The latter is raised for what is no buffer.
                refusals[reason_of(error)] = None
    if refusals:
        raise ElementTypeError(f"this {type(value).__name__} does not give its data as an array: {'; '.join(refusals)}")
    raise ElementTypeError(
        "not an array",
        got=type(value).__name__,
        allowed="an object with __array__, DLPack or the buffer protocol",
        hint="numpy.asarray(value, dtype) makes one and says its type",
    )


def _check_plain(value: Any) -> None:
    """Refuse what computes in a way of its own, as a quantity with a unit does, which its bare array would lose."""
    if is_masked(value):
        raise ElementTypeError("a masked array would lose its mask", hint="fill it first")
    kind: Any = type(value)
    for protocol in ("__array_ufunc__", "__array_function__"):
        plain = getattr(np.ndarray, protocol)
        if getattr(kind, protocol, plain) is not plain:
            raise ElementTypeError(
                f"this {kind.__name__} would lose what it has beside its numbers, such as its unit",
                hint="convert it to the unit that you mean, and give its plain array",
            )


def is_masked(value: object) -> bool:
    """Whether a value is a masked array; where nobody has imported their module, which takes long, there are none."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


def common_attributes(operands: Sequence[Any]) -> dict[Any, Any]:
    """The attributes of objects that no other one contradicts: of metres and kilometres a result is neither."""
    values: dict[Any, list[Any]] = {}
    for operand in operands:
        for name, value in operand.attrs.items():
            values.setdefault(name, []).append(value)
    return {name: first for name, (first, *others) in values.items() if all(_is_alike(first, each) for each in others)}


def _is_alike(a: Any, b: Any) -> bool:
    """Whether two attributes, which may be any objects, are equal; NaN is equal to NaN."""
    try:
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            return a.keys() == b.keys() and all(_is_alike(a[name], b[name]) for name in a)
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            return len(a) == len(b) and all(map(_is_alike, a, b))
        return a is b or np.array_equal(a, b) or bool(a != a and b != b)  # noqa: PLR0124 - so is NaN
    except Exception:  # noqa: BLE001 - somebody else's objects raise what they like
        return False


def _check_dask(value: Any) -> None:
    import dask.array as da

    if not isinstance(value, da.Array):
        raise ElementTypeError("not an array", got=f"a dask {type(value).__name__}", allowed="a dask.array")
    chunk = value._meta
    if type(chunk) is not np.ndarray:
        where = f"{type(chunk).__module__.partition('.')[0]}.{type(chunk).__name__}"
        raise UnsupportedError("the chunks are no NumPy arrays", got=where, hint="convert them first")
    if any(isnan(size) for size in value.shape):
        raise ShapeError("sizes are unknown", hint="call its compute_chunk_sizes() first")


def _check_xarray(value: Any) -> None:
    import xarray

    if not isinstance(value, xarray.DataArray | xarray.Dataset):
        got, allowed = f"an xarray {type(value).__name__}", "an xarray DataArray or Dataset"
        raise ElementTypeError("not an array", got=got, allowed=allowed)
    if isinstance(value, xarray.DataArray):
        check_operand(value.data)


def is_pandas(value: object) -> bool:
    """Whether it is a Series or a DataFrame; pandas is not imported to find out."""
    return kind_of(value) == "pandas" and hasattr(value, "axes") and hasattr(value, "to_numpy")


def _of_pandas(value: Any) -> np.ndarray:
    """The values of a DataFrame whose columns have one type, or of what has one dimension, where none misses."""
    rank = getattr(value, "ndim", 0)
    if not hasattr(value, "to_numpy") or not rank:
        return _by_protocol(value)
    columns = list(value.items()) if rank == 2 else [(getattr(value, "name", None), value)]
    types = {str(column.dtype): (column.dtype, name) for name, column in reversed(columns)}
    if len(types) > 1:
        got = ", ".join(f"{name!r} is {text}" for text, (_dtype, name) in reversed(types.items()))
        hint = "choose columns of one type, or convert them with astype"
        raise ElementTypeError("the columns have different types", got=shortened(got, 120), hint=hint)
    dtype = columns[0][1].dtype if columns else None
    if dtype is None or isinstance(dtype, np.dtype):
        return np.asarray(value.to_numpy())
    if hasattr(dtype, "categories"):
        raise ElementTypeError("categories are no numbers", hint="give what they stand for, by astype, or cat.codes")
    for name, column in columns:
        if column.isna().any():
            problem = f"{type(value).__name__ if name is None else f'column {name!r}'} has missing values"
            raise ElementTypeError(problem, hint="fill them first")
    return np.asarray(value.to_numpy(dtype=getattr(dtype, "numpy_dtype", None)))


def _check_device(value: Any) -> None:
    """Refuse a tensor that is not in the host's memory."""
    ask: Callable[[], tuple[int, int]] | None = getattr(value, "__dlpack_device__", None)
    try:
        is_here = ask is None or int(ask()[0]) in _HOST_DEVICES
    except Exception:  # noqa: BLE001 - the one that reads it says why
        is_here = True
    kind = kind_of(value)
    if kind == "cupy" or not is_here:
        problem = f"this {kind} {type(value).__name__} is not in the host's memory"
        raise ElementTypeError(problem, hint=f"copy it: {LIBRARIES[kind].to_host}")


def _check_torch(value: Any) -> None:
    kind, tensor = type(value), getattr(sys.modules.get("torch"), "Tensor", None)
    name: str = kind.__name__
    if tensor is None or not isinstance(value, tensor):
        _check_device(value)
        return
    if kind.__torch_dispatch__ is not tensor.__torch_dispatch__:
        problem = f"this {name} has no data that can be read, or computes in a way of its own"
        raise ElementTypeError(problem, allowed="a torch.Tensor or Parameter")
    override = getattr(kind.__torch_function__, "__func__", None)  # None where it is disabled, as Parameter's.
    if override not in (None, tensor.__torch_function__.__func__):
        problem = f"this {name} would lose what it has beside its numbers"
        raise ElementTypeError(problem, hint="give value.as_subclass(torch.Tensor)")
    if value.is_meta:
        raise ElementTypeError(f"this {name} is on the device meta and has no data", allowed="a tensor with data")
    _check_device(value)
    if value.requires_grad:
        problem = f"this {name} requires grad, and eltwise computes no gradients"
        raise ElementTypeError(problem, hint="give tensor.detach()")
    if _is_transformed(value):
        raise ElementTypeError(
            f"PyTorch transforms or records what is computed of this {name}, and would not see what eltwise computes",
            hint="call eltwise in a function that torch.library.custom_op makes an operator",
        )


def _is_transformed(value: Any) -> bool:
    """Whether ``vmap``, ``functionalize``, ``make_fx``, ``jit.trace`` or a gradient in forward mode is under way.

    Some of their tensors have memory that nothing was written to yet, as all have that are read in a FakeTensorMode.
    """
    torch = sys.modules["torch"]
    recorder = sys.modules.get("torch.fx.experimental.proxy_tensor")
    return bool(
        torch._C._functorch.is_functorch_wrapped_tensor(value)
        or torch.jit.is_tracing()
        or torch.autograd.forward_ad.unpack_dual(value).tangent is not None
        or (recorder is not None and recorder.get_proxy_mode() is not None)
        or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    )


def _of_torch(value: Any) -> np.ndarray:
    """The array of a tensor, which shares its memory; DLPack would lose the bits that negate and conjugate."""
    for element_type in NOT_IN_NUMPY:
        if str(getattr(value, "dtype", "")) == f"torch.{element_type.name}":
            if value.is_neg():  # PyTorch views no such tensor, and has no array of one of the other types.
                raise ElementTypeError("this Tensor has its negative bit set", hint="give tensor.resolve_neg()")
            bits: Any = getattr(sys.modules["torch"], f"int{element_type.bits}")
            return _by_protocol(value.view(bits), _PROTOCOLS[:1]).view(element_type.storage)
    return _by_protocol(value, _PROTOCOLS[:1])


def _is_jax_tracer(value: Any) -> bool:
    tracer = getattr(getattr(sys.modules.get("jax"), "core", None), "Tracer", None)
    return tracer is not None and isinstance(value, tracer)


def _check_jax(value: Any) -> None:
    if _is_jax_tracer(value):
        raise ElementTypeError(
            f"this {type(value).__name__} of JAX has no values while jit, grad or vmap traces",
            hint="call it as jax.pure_callback(eltwise.subtract, jax.ShapeDtypeStruct(a.shape, a.dtype), a, b, "
            'vmap_method="sequential")',
        )
    _check_device(value)


def _readable_torch(value: Any) -> Any:
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None or not isinstance(value, tensor) or value.is_meta:
        return value
    return value.detach().cpu().resolve_conj().resolve_neg()


def _readable_jax(value: Any) -> Any:
    copied = getattr(sys.modules.get("jax"), "device_get", None)
    return value if copied is None or _is_jax_tracer(value) else copied(value)


def _readable_cupy(value: Any) -> Any:
    copied = getattr(sys.modules.get("cupy"), "asnumpy", None)
    return value if copied is None else copied(value)


class Library(NamedTuple):
    """A library whose arrays are given back as what they were.

    Attributes:
        kind: what errors call it.
        modules: the packages whose classes are its arrays.
        check: refuses an object of it that is no operand.
        array: the NumPy array of an object that was checked.
        is_lazy: whether its arrays are computed when somebody asks for them.
        has_labels: whether its arrays name their axes or what lies on them.
        takes_results: whether results can be written into its arrays.
        to_host: the Python text that copies an array to the host.
        readable: an array on the host with the same elements, whose gradient is lost; what has no data is left alone.
    """

    kind: Kind
    modules: tuple[str, ...]
    check: Callable[[Any], None] = lambda value: None
    array: Callable[[Any], np.ndarray] = _by_protocol
    is_lazy: bool = False
    has_labels: bool = False
    takes_results: bool = False
    to_host: str = ""
    readable: Callable[[Any], Any] = lambda value: value


LIBRARIES: dict[Kind, Library] = {
    each.kind: each
    for each in (
        Library("", (), _check_plain, takes_results=True),
        Library("dask", ("dask",), _check_dask, is_lazy=True),
        Library("xarray", ("xarray",), _check_xarray, is_lazy=True, has_labels=True),
        Library("pandas", ("pandas",), array=_of_pandas, has_labels=True),
        Library(
            "torch",
            ("torch",),
            _check_torch,
            _of_torch,
            takes_results=True,
            to_host="tensor.cpu()",
            readable=_readable_torch,
        ),
        Library("jax", ("jax", "jaxlib"), _check_jax, to_host="jax.device_get(array)", readable=_readable_jax),
        Library(
            "cupy",
            ("cupy",),
            _check_device,
            to_host="cupy.asnumpy(array)",
            readable=_readable_cupy,
        ),
    )
}
"""The libraries by what errors call them; without a name everything else, such as NumPy's arrays."""

_BY_MODULE = {module: each.kind for each in LIBRARIES.values() for module in each.modules}


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


def check_operand(value: object, operand: str = "") -> Library:
    """Decide what an operand is: for calls, reductions, models and comparisons.

    Returns:
        The record of its library.

    Raises:
        EltwiseError: for what is no operand, or would lose something.
    """
    library = LIBRARIES[kind_of(value)]
    if type(value) is np.ndarray:
        return library
    try:
        library.check(value)
    except EltwiseError as error:
        raise error.located(operand=operand) from None
    return library


def array_of(value: object, operand: str = "") -> np.ndarray:
    """The NumPy array of an operand, in its strides and byte order; nothing is copied where its library allows it.

    Raises:
        EltwiseError: for what is no operand, or does not give its data.
    """
    if type(value) is np.ndarray:
        return value
    library = check_operand(value, operand)
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    try:
        return library.array(value)
    except EltwiseError as error:
        raise error.located(operand=operand) from None


def host_array(value: object, operand: str) -> object:
    """The NumPy array of an array of another library; any other value itself."""
    return array_of(value, operand) if kind_of(value) else value


def readable_array(value: object, operand: str = "") -> np.ndarray:
    """The NumPy array of what is only compared: also of a tensor that requires grad, and of a copy from a device.

    Raises:
        EltwiseError: for what is no array, or does not give its data.
    """
    readable = LIBRARIES[kind_of(value)].readable
    try:
        return array_of(readable(value), operand)
    except EltwiseError:
        raise
    except Exception as error:  # noqa: BLE001 - what gives its data is foreign code
        problem = f"this {type(value).__name__} does not give its data: {reason_of(error)}"
        raise ElementTypeError(problem, operand=operand) from None
