"""What the numbers of a constant are to a runtime: zeros of either sign, neutral ones, ones that other types can hold.

A runtime may hold the constants of a model in another type than they are in, or prepare them for one: float32 without
subnormal numbers, the range of bfloat16, int32. Numbers that fit there are plain; most constants have no others.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, ElementType

Held = Literal["run-time", "constant", "number", "zero", "-zero", "zeros", "-zeros", "almost-neutral"]
"""What an operand may be: given in a run; several numbers or one; one zero or several, of either sign; one float64 that
is 0 or 1 only when rounded to float32."""

NEUTRAL: tuple[Held, ...] = ("zero", "-zero", "zeros", "-zeros", "almost-neutral")
"""Constants that a runtime may take for ones that change nothing."""

LEAST = 2.0**-126
"""The least normal number of float32 and bfloat16."""

LARGEST = (2.0 - 2.0**-7) * 2.0**127
"""The largest finite number of bfloat16."""

_AT_A_TIME = 1 << 16
"""So many numbers are looked at together, so that large constants take no memory beside their own."""


def held_as(array: np.ndarray) -> tuple[Held, ...]:
    """What a constant is, of which several may hold.

    >>> held_as(np.float32([0, -0.0])), held_as(np.float32(0)), held_as(np.float32([0, 1]))
    (('constant', 'zeros', '-zeros'), ('number', 'zero'), ('constant',))
    >>> held_as(np.float64(1e-60)), held_as(np.float64(0.1))
    (('number', 'almost-neutral'), ('number',))
    """
    flat = array.reshape(-1)
    kind: Held = "number" if flat.size == 1 else "constant"
    signs: set[bool] = set()
    for start in range(0, flat.size, _AT_A_TIME):
        with np.errstate(all="ignore"):  # NaN may come as one that signals.
            part = flat[start : start + _AT_A_TIME].astype(np.float64)
            if part.any():
                return (kind, "almost-neutral") if flat.size == 1 and _is_almost_neutral(part[0]) else (kind,)
        signs.update(np.signbit(part).tolist())
    return (kind, *(zeros_of(flat.size, sign) for sign in sorted(signs)))


def zeros_of(count: int, is_negative: bool) -> Held:
    """The name of so many zeros."""
    if is_negative:
        return "-zero" if count == 1 else "-zeros"
    return "zero" if count == 1 else "zeros"


def unknown_numbers(count: int) -> tuple[Held, ...]:
    """What a constant of so many elements may be whose numbers were not read."""
    kinds: tuple[Held, ...] = ("number", "almost-neutral") if count == 1 else ("constant",)
    return (*kinds, zeros_of(count, False), zeros_of(count, True))


def has_neutral(element_type: ElementType, kind: Held) -> bool:
    """Whether a type has such constants, with which a node is yet no other one."""
    return element_type is FLOAT64 if kind == "almost-neutral" else not element_type.is_integer


def has_others_than_plain(element_type: ElementType) -> bool:
    """Whether a type has numbers that are not plain."""
    return element_type in (BFLOAT16, FLOAT32, FLOAT64, INT64, UINT32, UINT64)


def is_plain(array: np.ndarray, element_type: ElementType) -> bool:
    """Whether all numbers of a constant are plain, of a type that has others."""
    if not has_others_than_plain(element_type):
        return False
    flat = array.reshape(-1)
    parts = (flat[start : start + _AT_A_TIME] for start in range(0, flat.size, _AT_A_TIME))
    return all(plain_numbers(part, element_type).all() for part in parts)


def plain_numbers(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Which numbers of an array are plain, as booleans.

    >>> plain_numbers(np.float32([0, 1, 1e-40, 3.4e38, np.inf]), FLOAT32).tolist()
    [True, True, False, False, True]
    """
    if not has_others_than_plain(element_type):
        return np.ones(array.shape, bool)
    if element_type.is_integer:
        return _within_int32(array)
    with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
        magnitudes = np.abs(array.astype(np.float64))
        fits = (magnitudes >= LEAST) & (magnitudes <= LARGEST)
    return np.asarray(fits | (magnitudes == 0) | ~np.isfinite(magnitudes))


def fits_int32(array: np.ndarray) -> bool:
    """Whether all integers of a constant fit int32."""
    return bool(_within_int32(array).all())


def _within_int32(array: np.ndarray) -> np.ndarray:
    low, high = INT32.limits
    # A bound that the type does not have bounds nothing.
    return np.asarray((array <= min(high, np.iinfo(array.dtype).max)) & (array >= max(low, np.iinfo(array.dtype).min)))


def _is_almost_neutral(number: np.float64) -> bool:
    rounded = np.float32(number)
    return bool(rounded in (0, 1) and rounded != number)
