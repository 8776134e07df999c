"""The border of the public API: arguments are checked by their annotations, and errors come without inner frames."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar

from eltwise.core.errors import ArgumentTypeError, AttributeValueError, EltwiseError, FileFormatError, shown

__tracebackhide__ = True  # In pytest the line of the test is shown, not those of this module.

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])
_ErrorT = TypeVar("_ErrorT", bound=EltwiseError)

_TRACER = "torch._dynamo"
_UNTRACED = "_eltwise_untraced"

_CHOICES = ("Chosen", "Extent", "Format", "Kind", "Severity", "TargetName")
"""The annotations of one of several texts."""

_KINDS: dict[str, tuple[Any, ...]] = {
    "str": (str,),
    "os.PathLike[str]": (os.PathLike,),
    "bytes": (bytes,),
    "bool": (bool,),
    "int": (Integral,),
    "float": (Real,),
    "None": (type(None),),
    "Sequence[str]": (Sequence, Set),
    "Progress": (Callable,),
    "Source": (object,),  # What reads models states what it takes.
    "Model": (object,),
    **dict.fromkeys(_CHOICES, (str,)),
}
"""The annotations that are checked, alone and in unions; an argument with another one is checked by its function."""

_OF_PATHS = {"os.PathLike[str]", "Source"}
"""The annotations of arguments of which a text is a path."""

_NAMES = {
    "os.PathLike[str]": "path",
    "Sequence[str]": "several of these",
    "Progress": "function",
    **dict.fromkeys(_CHOICES, "str"),
}


def stripped(error: _ErrorT) -> _ErrorT:
    """The same error without the frames that it has come through, for who raises it to its caller, or keeps it.

    The frames hold what was opened, as do those of an error that it replaced.
    """
    if error.__suppress_context__:
        error.__context__ = None
    return error.with_traceback(None)


def untraced(function: _FunctionT) -> _FunctionT:
    """The same function, which ``torch.compile`` runs between its graphs: traced, NumPy would become PyTorch.

    Its errors have one frame of the package.
    """

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return (_untraced(function) if _TRACER in sys.modules else function)(*arguments, **keywords)
        except EltwiseError as error:
            raise stripped(error)  # noqa: B904 - it is the same error

    return call  # type: ignore[return-value]


def _untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    attributes = vars(function)  # It lives as long as the function; and PyTorch warns of functools.cache.
    if _UNTRACED not in attributes:
        attributes[_UNTRACED] = sys.modules["torch"].compiler.disable(function)
    untraced_function: Callable[..., Any] = attributes[_UNTRACED]
    return untraced_function


def public(function: _FunctionT) -> _FunctionT:
    """A function of the public API: it refuses arguments of wrong types, and its errors have one frame of the package.

    The undecorated function is its ``__wrapped__``, for whoever looks for the origin of an error.
    """
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotations: dict[str, str] = function.__annotations__
    checked = {name: text for name in names if (text := annotations.get(name, "")) and _is_checked(text)}
    # So many arguments by position need no check: calls on arrays are short.
    unchecked = next((number for number, name in enumerate(positional) if name in checked), sys.maxsize)

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            if len(arguments) > unchecked or (keywords and not checked.keys().isdisjoint(keywords)):
                _check_arguments(
                    checked, {**dict(zip(positional, arguments, strict=False)), **keywords}, function.__qualname__
                )
            return (_untraced(function) if _TRACER in sys.modules else function)(*arguments, **keywords)
        except EltwiseError as error:
            raise stripped(error)  # noqa: B904 - it is the same error

    return call  # type: ignore[return-value]


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Refuse an argument that is a number outside a range.

    Raises:
        AttributeValueError: with the range.
    """
    number = value if isinstance(value, int) else float(value)  # NumPy's small floats would warn.
    if not low <= number <= high:
        raise AttributeValueError("out of range", operand=name, got=shown(value, 60), allowed=f"{low} to {high}")


def check_path(name: str, value: object) -> None:
    """Refuse an empty text, which would be the path of the current folder.

    Raises:
        FileFormatError: for one.
    """
    if isinstance(value, str) and not value:
        raise FileFormatError("an empty text names no file", operand=name, got=repr(value), allowed="a path")


def check_seed(seed: int) -> None:
    """Refuse what is no seed of random numbers, as ``check_range`` does."""
    check_range("seed", seed, 0, 2**63)


def check_limit(limit: float) -> None:
    """Refuse so many seconds for an answer of a runtime, as ``check_range`` does."""
    check_range("limit", limit, 0.01, 1e6)


def _is_checked(annotation: str) -> bool:
    return all(part in _KINDS for part in annotation.split(" | "))


def _check_arguments(checked: Mapping[str, str], arguments: Mapping[str, object], function: str) -> None:
    for name in filter(arguments.__contains__, checked):
        _check(arguments[name], checked[name], f"eltwise.{function}", name)
        if not _OF_PATHS.isdisjoint(checked[name].split(" | ")):
            check_path(name, arguments[name])


def _holds_texts(value: object, parts: Sequence[str]) -> bool:
    if "Sequence[str]" not in parts or not isinstance(value, Collection):
        return True
    return all(isinstance(each, str) for each in value)


def _check(value: object, annotation: str, function: str, name: str) -> None:
    parts = annotation.split(" | ")
    kinds = tuple(kind for part in parts for kind in _KINDS[part])
    if isinstance(value, kinds) and ("bool" in parts or not isinstance(value, bool)) and _holds_texts(value, parts):
        return
    allowed = ", ".join(dict.fromkeys(_NAMES.get(part, part) for part in parts))
    got = f"{type(value).__name__} {shown(value, 60)}"
    raise ArgumentTypeError("the argument has a wrong type", where=function, operand=name, got=got, allowed=allowed)
