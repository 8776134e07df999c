"""The judgement of one answer: against the oracle's result, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from eltwise.conformance.answers import Answer
from eltwise.conformance.cases import Case
from eltwise.conformance.cells import Verdict
from eltwise.core.dtypes import of_numpy
from eltwise.oracle import OracleRefusal
from eltwise.oracle.numbers import is_nan


@dataclass(frozen=True, eq=False)
class Judged:
    """A case with what must come, what came and what that means.

    Attributes:
        case: the case.
        expected: the exact result; None where the case must be refused.
        answer: what came.
        verdict: what that is.
        problem: ``wrong type`` or ``wrong shape``, or that it is only wrong beside another node; else empty.
        places: the flat places at which a value differs.
        beside: the case in whose company it was asked, where that matters.
    """

    case: Case
    expected: np.ndarray | None
    answer: Answer
    verdict: Verdict
    problem: str = ""
    places: tuple[int, ...] = ()
    beside: Case | None = None

    @property
    def elements(self) -> int:
        """How many elements of the result are judged."""
        return 0 if self.expected is None else self.expected.size

    @property
    def wrong(self) -> int:
        """How many of them are wrong; all where the type or the shape is."""
        return self.elements if self.problem and not self.places else len(self.places)

    @property
    def compared(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The exact result and the given one, where their values can be compared."""
        if self.expected is None or self.answer.array is None or self.problem:
            return None
        return self.expected, self.answer.array


class Truth:
    """The oracle's results, computed once for all runtimes, rows and paths that are asked the same."""

    def __init__(self) -> None:
        self._known: dict[object, np.ndarray | None] = {}

    def of(self, case: Case) -> np.ndarray | None:
        """The exact result of a case; None where it must be refused."""
        try:
            placement = case.placement()
        except OracleRefusal:
            return None
        key = (case.formula, placement, *map(_content, (case.a, case.b)))
        if key not in self._known:
            self._known[key] = case.expected_or_none()
        return self._known[key]


def judge(case: Case, expected: np.ndarray | None, answer: Answer) -> Judged:
    """Judge what a runtime answered to a case whose exact result is given."""
    match answer.kind:
        case "crashed" | "hung":
            return Judged(case, expected, answer, answer.kind)
        case "refused":
            return Judged(case, expected, answer, "ok" if expected is None else "refused")
    if expected is None:
        return Judged(case, expected, answer, "accepted")
    got = answer.array
    if got is None or got.dtype != expected.dtype:
        return Judged(case, expected, answer, "differs", "wrong type")
    if got.shape != expected.shape:
        return Judged(case, expected, answer, "differs", "wrong shape")
    places = wrong_places(got, expected)
    return Judged(case, expected, answer, "differs" if places else "ok", places=places)


def wrong_places(got: np.ndarray, expected: np.ndarray) -> tuple[int, ...]:
    """Find the flat places at which two arrays of one type and shape differ; any NaN equals any NaN."""
    element_type = of_numpy(expected.dtype)
    mask = (1 << element_type.bits) - 1
    bits = [np.frombuffer(array.tobytes(), f"u{array.dtype.itemsize}") & mask for array in (got, expected)]
    differing = np.flatnonzero(bits[0] != bits[1])
    if element_type.is_integer:
        return tuple(differing.tolist())
    pairs = zip(bits[0][differing].tolist(), bits[1][differing].tolist(), differing.tolist(), strict=True)
    return tuple(
        place for one, other, place in pairs if not (is_nan(element_type, one) and is_nan(element_type, other))
    )


def _content(array: np.ndarray) -> tuple[object, ...]:
    return (array.dtype, array.shape, blake2b(array.tobytes(), digest_size=16).digest())
