"""The floating-point mode of the calling thread: some libraries change it and leave it so, and every result with it.

A thread starts with rounding to nearest and with subnormals kept. Compiled kernels set that themselves; NumPy's loops
take what they find.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, ParamSpec, TypeVar

import numpy as np

from eltwise.core.errors import UnsupportedError
from eltwise.core.machine import float_environment

P = ParamSpec("P")
R = TypeVar("R")

LEAST = float(np.uint64(1).view(np.float64))
"""Made of its bits: a thread that flushes subnormals parses the literal as 0, and even writes that to the ``.pyc``."""

ONE = 1.0
"""A variable, so that the products and sums with it are computed when they are met and not before."""

_ENVIRONMENT_BYTES = 256
_DEFAULT_ENVIRONMENT = ctypes.c_void_p(-1)
"""FE_DFL_ENV of glibc and musl."""


def is_default() -> bool:
    """Whether this thread rounds to nearest and keeps subnormals."""
    return LEAST * ONE != 0.0 and ONE + LEAST == ONE - LEAST


def require_default() -> None:
    """Make sure that this thread has the default mode.

    Raises:
        UnsupportedError: where it has another one.
    """
    if not is_default():
        raise UnsupportedError(
            "this thread's floating-point mode was changed, and cannot be set back here",
            got="another rounding, or subnormals flushed to zero",
            hint="call from a thread in which no library has changed it",
        )


@contextmanager
def default_mode() -> Iterator[None]:
    """Set the default mode for a while, where this system has a known way to do that."""
    library = None if is_default() else float_environment()
    if library is None:
        yield
        return
    before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    library.fegetenv(before)
    library.fesetenv(_DEFAULT_ENVIRONMENT)
    try:
        yield
    finally:
        library.fesetenv(before)


@contextmanager
def only_default_mode() -> Iterator[None]:
    """Set the default mode for a while.

    Raises:
        UnsupportedError: where the thread has another one, and this system has no known way to do that.
    """
    with default_mode():
        require_default()
        yield


def set_default_mode() -> None:
    """Set the default mode for good, as in a new thread, which has that of the one that started it."""
    library = None if is_default() else float_environment()
    if library is not None:
        library.fesetenv(_DEFAULT_ENVIRONMENT)


def quiet_call() -> Callable[..., Any]:
    """Make what calls a function in a context of its own, in which NumPy neither warns nor raises."""
    context = Context()
    context.run(np.seterr, all="ignore")
    return context.run


IDLE = [quiet_call()]
"""Contexts in which NumPy neither warns nor raises for what floats do, as functions that call others. Each serves one
call at a time: a call takes one out of the list, whatever thread or finalizer it is in, and puts it back."""


def quietly(function: Callable[P, R], *arguments: P.args, **keywords: P.kwargs) -> R:
    """Call a function while NumPy neither warns nor raises for what floats do; cheaper than ``numpy.errstate``."""
    try:
        run = IDLE.pop()
    except IndexError:
        run = quiet_call()
    try:
        result: R = run(function, *arguments, **keywords)
        return result
    finally:
        IDLE.append(run)
