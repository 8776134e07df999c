"""Planted runtimes: each is right but for one thing, which the referee must find. Also read as a user's own file."""

from __future__ import annotations

import atexit
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import eltwise

__version__ = "1.2"

_broken: list[bool] = []
_calls: list[str] = []
_results: dict[tuple[int, ...], np.ndarray] = {}
_children: list[subprocess.Popen[bytes]] = []


def exact(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    return eltwise.operator(op, **attributes)(*operands)


def quantizing(change: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Right but for float32 to 8 bits by a scale: there x, the scale and the zero point give other levels."""

    def run(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
        right = exact(op, *operands, **attributes)
        x, scale, *zero = operands
        if x.dtype != np.float32 or scale.dtype != np.float32 or right.dtype not in (np.int8, np.uint8):
            return right
        sizes = [-1 if index == attributes.get("axis", 1) % x.ndim else 1 for index in range(x.ndim)]
        others = (each.reshape(sizes if each.size > 1 else ()) for each in (scale, *zero))
        limits = np.iinfo(right.dtype)
        with np.errstate(all="ignore"):
            levels = change(x, *others, limits=limits) if zero else change(x, *others, np.int8(0), limits=limits)
            return levels.clip(limits.min, limits.max).astype(right.dtype)

    return run


quantizing_by_reciprocal = quantizing(lambda x, scale, zero, limits: np.rint(x * (np.float32(1) / scale)) + zero)
quantizing_in_float32 = quantizing(lambda x, scale, zero, limits: np.rint(x / scale) + zero)
quantizing_halves_up = quantizing(lambda x, scale, zero, limits: np.floor(x.astype(float) / scale + 0.5) + zero)
quantizing_away = quantizing(
    lambda x, scale, zero, limits: np.copysign(np.floor(np.abs(x.astype(float) / scale) + 0.5), x) + zero
)
adding_the_zero_point_first = quantizing(lambda x, scale, zero, limits: np.rint(x.astype(float) / scale + zero))
saturating_before_the_zero_point = quantizing(
    lambda x, scale, zero, limits: np.rint(x.astype(float) / scale).clip(limits.min, limits.max) + zero
)
exchanging_the_sign_of_the_type = quantizing(
    lambda x, scale, zero, limits: (
        ((np.rint(x.astype(float) / scale) + zero).clip(limits.min, limits.max) - limits.min + 128) % 256 + limits.min
    )
)


def subtracting_products(op: str, x: np.ndarray, scale: np.ndarray, *zero: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, x, scale, *zero, **attributes)
    if not zero or right.dtype != np.float32 or x.dtype == np.int32:
        return right
    sizes = [-1 if index == attributes.get("axis", 1) % x.ndim else 1 for index in range(x.ndim)]
    scale, point = (each.reshape(sizes if each.size > 1 else ()) for each in (scale, zero[0]))
    return np.asarray(x.astype(np.float32) * scale - point.astype(np.float32) * scale)


def saturating(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    if right.dtype not in (np.int8, np.uint8, np.int32):
        return right
    limits = np.iinfo(right.dtype)
    wide = exact("Subtract-1", a.astype(np.int64), b.astype(np.int64), **attributes)
    wide = wide * wide if op == "SquaredDifference-1" else wide
    return wide.clip(limits.min, limits.max).astype(right.dtype)


def ignoring_axis(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    return exact(op, a, b, **{name: value for name, value in attributes.items() if name != "axis"})


def flushing_subnormals(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    if right.dtype not in (np.float32, ml_dtypes.bfloat16, np.float16):
        return right
    with np.errstate(all="ignore"):
        tiny = np.abs(right.astype(np.float64)) < float(ml_dtypes.finfo(right.dtype).tiny)
    return np.where(tiny, np.zeros_like(right), right)


def swapping_operands(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    return exact(op, b, a, **attributes)


def broadcasting_without_leave(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    return exact("Subtract-1", a, b) if op == "Sub-6" else exact(op, a, b, **attributes)


def rounding_once(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if op != "SquaredDifference-1" or a.dtype != np.float16:
        return exact(op, a, b, **attributes)
    with np.errstate(all="ignore"):
        return exact(op, a.astype(np.float32), b.astype(np.float32), **attributes).astype(np.float16)


def subtracting(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    return exact("Subtract-1" if op == "openvino.Add-1" else op.replace("Add", "Sub"), a, b, **attributes)


def losing_the_sign_of_zero(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    return np.where(right == 0, np.zeros_like(right), right)


def off_by_one_at_one_pair(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = np.asarray(exact(op, a, b, **attributes))
    if right.dtype == np.uint8 and a.shape == b.shape == right.shape:
        right[(a == 200) & (b == 13)] += np.uint8(1)
    return right


def widening(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    return right.astype(np.float32) if right.dtype == np.float16 else right


def refusing_scalars(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if a.ndim == 0:
        raise ValueError("no scalars here")
    return exact(op, a, b, **attributes)


def computing_in_float32(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if a.dtype != np.float64 or b.dtype != np.float64:
        return exact(op, a, b, **attributes)
    with np.errstate(all="ignore"):
        return exact(op, a.astype(np.float32), b.astype(np.float32), **attributes).astype(np.float64)


def losing_a_dimension(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    return right.reshape(-1) if right.ndim > 1 else right


def giving_lists(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> object:
    return exact(op, a, b, **attributes).tolist()


def raising(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    raise RuntimeError("there is no kernel\nfor this")


def taking_any_shape(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    try:
        return exact(op, a, b, **attributes)
    except eltwise.EltwiseError:
        return a


def raising_foreign_words(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    raise ValueError("caf\udce9") if a.ndim else Unspeakable


class Unspeakable(Exception):  # noqa: N818 - what it says of itself is the point
    def __str__(self) -> str:
        raise RuntimeError


def computing_beside_a_child(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    """Leaves a process behind that does not end, and says which."""
    if not _children:
        _children.append(subprocess.Popen(["/bin/sleep", "600"]))
        Path(os.environ["PLANTED_CHILD"]).write_text(str(_children[0].pid))
    return exact(op, a, b, **attributes)


def adding_no_zeros(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    a, b = np.broadcast_arrays(a, b)
    return np.where(b == 0, a, right) if a.dtype == np.float32 and a.shape == right.shape else right


def leaving(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if a.ndim == 2:
        sys.stderr.write("out of order\n")
        os._exit(3)
    return exact(op, a, b, **attributes)


def reading_nothing(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    ctypes.string_at(0)
    raise AssertionError


def breaking_its_memory(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    """Is right, and ends the process when it next does anything: with the next question, or when it is to end."""
    if _broken:
        os.abort()
    right = exact(op, a, b, **attributes)
    if a.shape == (2, 0, 3) and b.shape == (1, 1, 3):
        _broken.append(True)
        atexit.register(os.abort)
    return right


def hanging(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if a.shape == (3, 3) and not attributes:
        time.sleep(3600)
    return exact(op, a, b, **attributes)


def late_once(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    """Hang in the first process that comes here, as a process may on a busy machine."""
    with suppress(FileExistsError):
        Path(os.environ["PLANTED_LOG"]).touch(exist_ok=False)
        time.sleep(3600)
    return exact(op, a, b, **attributes)


def slowly(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if a.shape == (3, 3) and b.shape == (3,):  # Once a test.
        with Path(os.environ["PLANTED_LOG"]).open("a", encoding="utf-8") as log:
            log.write("x")
        time.sleep(1)
    return exact(op, a, b, **attributes)


def rounding_up_afterwards(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    set_rounding = ctypes.CDLL("libm.so.6").fesetround
    set_rounding({"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine])
    return right


def printing(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    sys.stdout.write("what a runtime prints is no answer\n")
    os.write(1, b"nor is this")
    return exact(op, a, b, **attributes)


def writing_into_operands(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, b, **attributes)
    a[...] = 0
    b[...] = 0
    return right


def flooring(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    if a.dtype.kind != "i":
        return exact(op, a, b, **attributes)
    exact(op, a, b, **attributes)
    with np.errstate(all="ignore"):
        return np.asarray(np.floor_divide(a, b))


def truncating(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    return exact(op, a, b, **attributes | {"m_pythondiv": False})


def losing_nan(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, *operands, **attributes)
    return np.where(np.isnan(right), np.zeros_like(right), right) if right.dtype.kind not in "iub" else right


def ordering_no_zeros(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, *operands, **attributes)
    first = operands[0] if operands[0].ndim <= right.ndim else right
    try:
        with np.errstate(all="ignore"):
            return np.where((right == 0) & (first == 0), first, right)
    except ValueError:
        return right


def comparing_unsigned(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    kind = operands[0].dtype
    result = exact(op, *(np.asarray(operand).view(f"u{kind.itemsize}") for operand in operands), **attributes)
    return result if result.dtype == bool else result.view(kind)


def saturating_signs(op: str, a: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, a, **attributes)
    least = ml_dtypes.iinfo(a.dtype).min if a.dtype == ml_dtypes.int4 else np.iinfo(a.dtype).min
    return np.where(a == np.asarray(least).astype(a.dtype), ~np.asarray(least).astype(np.int64), right).astype(a.dtype)


def equal_by_bits(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    exact(op, a, b, **attributes)
    bits = f"u{a.itemsize}"
    return exact(op, *(np.asarray(operand).view(bits) for operand in (a, b)), **attributes)


def first_operand(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    right = exact(op, *operands, **attributes)
    if operands[0].shape != right.shape:
        raise ValueError("not the first")
    return operands[0]


def rounding_quotients_twice(op: str, a: np.ndarray, b: np.ndarray, **attributes: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        other = ml_dtypes.bfloat16 if a.dtype == np.float16 else np.float16
        return exact(op, a, b, **attributes).astype(np.float32).astype(other).astype(a.dtype)


def rounding_away(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    """Next to the right number, on the side of positive infinity: no fault of the catalog."""
    right = exact(op, *operands, **attributes)
    return np.nextafter(right, right.dtype.type(np.inf)) if right.dtype == np.float32 else right


def wrong_now_and_then(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    right = np.array(exact(op, *operands, **attributes))
    _calls.append(op)
    if len(_calls) % 3 == 0:
        right.reshape(-1)[:1] += np.uint8(1)
    return right


def giving_the_last_result(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    """Of a shape the result of the call before, as of a buffer that is filled too late."""
    right = exact(op, *operands, **attributes)
    last, _results[right.shape] = _results.get(right.shape, right), right
    return last


no_function = 5
