"""The signatures of the public functions; a test compares them with the functions that the table makes."""

from typing import Literal

import numpy as np

AutoBroadcast = Literal["numpy", "none", "pdpd"]

__all__ = [
    "absolute",
    "add",
    "divide",
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "squared_difference",
    "subtract",
]

def add(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Compute a + b."""

def subtract(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Compute a - b."""

def multiply(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Compute a * b."""

def divide(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
    *,
    floor: bool = True,
) -> np.ndarray:
    """Compute a / b; integers are rounded down, or towards zero with floor=False."""

def maximum(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Give the larger of a and b, NaN if either is one."""

def minimum(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Give the smaller of a and b, NaN if either is one."""

def negative(x: object, out: np.ndarray | None = None) -> np.ndarray:
    """Compute -x."""

def absolute(x: object, out: np.ndarray | None = None) -> np.ndarray:
    """Give the magnitude of x."""

def squared_difference(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Compute (a - b) * (a - b), each step in the element type."""

def equal(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Say where a == b."""

def not_equal(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Say where a != b."""

def less(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Say where a < b."""

def less_equal(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Say where a <= b."""

def greater(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Say where a > b."""

def greater_equal(
    a: object,
    b: object,
    auto_broadcast: AutoBroadcast = "numpy",
    axis: int = -1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Say where a >= b."""
