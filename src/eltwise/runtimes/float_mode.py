"""The floating-point mode of the calling thread: whether a runtime changed it, seen by what arithmetic gives."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np

_DEFAULT_ENVIRONMENT = ctypes.c_void_p(-1)
"""``FE_DFL_ENV`` of the GNU C library: the mode that a program starts in."""


def changes() -> str:
    """Say how this thread's arithmetic differs from the default, in words; empty where it does not.

    Subnormal numbers are kept and results rounded to nearest by default.
    """
    found = []
    if _flushes(np.float32(2.0**-126)) or _flushes(np.float64(2.0**-1022)):
        found.append("subnormal numbers are flushed to zero")
    rounding = _rounding(np.float64(2.0**-53)) or _rounding(np.float32(2.0**-24))
    if rounding:
        found.append(f"results are rounded {rounding}")
    return " and ".join(found)


def restore() -> bool:
    """Go back to the default mode; whether that worked."""
    try:
        ctypes.CDLL(ctypes.util.find_library("m")).fesetenv(_DEFAULT_ENVIRONMENT)
    except (OSError, AttributeError):
        return False
    return not changes()


def _flushes(smallest_normal: np.floating) -> bool:
    """Whether a subnormal result, or a subnormal operand, counts as zero."""
    kind = type(smallest_normal)
    half = np.full(4, smallest_normal) * kind(0.5)
    subnormal = np.frombuffer(b"\x01".ljust(half.itemsize, b"\0") * 4, half.dtype)
    return not half.all() or not (subnormal * kind(2.0**24)).all()


def _rounding(half_step: np.floating) -> str:
    """How sums are rounded where not to nearest; ``half_step`` is half the distance from 1 to the next number."""
    kind = type(half_step)
    one, little = np.full(4, kind(1)), np.full(4, half_step * kind(0.5))
    much = np.full(4, half_step * kind(1.5))
    up, down = bool((one + little > one).any()), bool((-one - little < -one).any())
    if up or down:
        return "away from zero" if up and down else "up" if up else "down"
    return "toward zero" if bool((one + much == one).any()) else ""
