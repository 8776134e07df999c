"""How one value of a run differs from the same value of the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eltwise.core.dtypes import of_numpy

Tolerance = object


@dataclass(frozen=True)
class Difference:
    """One comparison; the fields are those of ``eltwise.compare``."""

    status: str
    error: float | None = 0.0
    max_ulp: int | None = 0
    cause: str | None = None
    explanation: str = ""

    @property
    def is_beyond(self) -> bool:
        """Whether it is beyond the tolerance."""
        return self.status == "differs"


EQUAL = Difference("equal")


def measure(name: str, got: np.ndarray, wanted: np.ndarray, tolerance: Tolerance) -> Difference:
    """Compare two arrays; the second one is the reference."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        words = f"{of_numpy(got.dtype)}{list(got.shape)} instead of {of_numpy(wanted.dtype)}{list(wanted.shape)}"
        return Difference("differs", None, None, "other_type", words)
    if got.tobytes() == wanted.tobytes():
        return EQUAL
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = float(np.max(np.where(same, 0, np.abs(a - b)), initial=0))
        if of_numpy(got.dtype).kind != "float":
            near = same
        else:
            near = same | (np.abs(a - b) <= 1e-5 * np.max(np.abs(b), initial=0) + 1e-3 * np.abs(b))
    return Difference("within_tolerance" if near.all() else "differs", error)
