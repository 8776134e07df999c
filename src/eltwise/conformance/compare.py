"""The comparison of one answer with the reference result, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.results import Outcome
from eltwise.core.dtypes import of_numpy
from eltwise.faults.families import OPERANDS_CHANGED, OTHER_SHAPE, OTHER_TYPE
from eltwise.faults.values import patterns_of
from eltwise.oracle import OracleRefusal
from eltwise.runtimes import Answer


@dataclass(frozen=True, eq=False)
class CaseResult:
    """A case, its reference result, what a runtime gave for it, and what that amounts to."""

    case: Case  # The case.
    expected: np.ndarray | None  # The reference result; None if the case must be refused, or is not defined.
    answer: Answer  # What came; its only array is the result.
    outcome: Outcome  # What that amounts to.
    problem: str = ""  # The fault if it is not one of values: another type or shape, only beside another node or once.
    wrong: tuple[int, ...] = ()  # The flat indices at which a value differs.
    co_resident: tuple[Case, ...] = ()  # The cases that have to be before it in one model, if any.

    @property
    def got(self) -> np.ndarray | None:
        """The result that came."""
        return self.answer.arrays[0] if self.answer.arrays else None

    @property
    def elements(self) -> int:
        """How many elements are compared, where there is a reference result."""
        assert self.expected is not None
        return self.expected.size

    @property
    def wrong_count(self) -> int:
        """How many of them are wrong; all if the type or the shape is, or if there is no result."""
        return self.elements if self.problem in (OTHER_TYPE, OTHER_SHAPE, OPERANDS_CHANGED) else len(self.wrong)

    @property
    def is_explainable(self) -> bool:
        """Whether there are values that can be compared, and are not wrong by another problem."""
        return self.expected is not None and self.got is not None and not self.problem

    @cached_property
    def patterns(self) -> np.ndarray:
        """The bit patterns that came, and the right ones where they count as right: of any NaN, and of some zeros."""
        assert self.expected is not None
        assert self.got is not None
        counted = self.expected.copy()
        counted.reshape(-1)[list(self.wrong)] = self.got.reshape(-1)[list(self.wrong)]
        return patterns_of(counted, of_numpy(counted.dtype))

    @cached_property
    def readings(self) -> tuple[np.ndarray, ...]:
        """The patterns that a fault may predict: ``patterns``, and those that came by another reading of the text."""
        if self.case.other_reading is None or self.got is None:
            return (self.patterns,)
        return self.patterns, patterns_of(self.got, of_numpy(self.got.dtype))

    @cached_property
    def digest(self) -> bytes:
        """What tells the case and the values that came for it from others."""
        state = blake2b(repr((self.case.function, self.case.attributes, self.case.placement())).encode())
        for array in (*self.case.operands, *self.readings):
            state.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        return state.digest()

    def is_same(self, other: CaseResult) -> bool:
        """Whether the same came for both."""
        if self.got is None or other.got is None:
            return self.got is other.got
        return self.wrong == other.wrong and self.got.tobytes() == other.got.tobytes()


class References:
    """The reference results, computed once for all runtimes, operator versions and sources with the same operands."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[tuple[np.ndarray, ...], np.ndarray]] = {}

    def of(self, case: Case) -> np.ndarray | None:
        """The reference result of a case; None if it must be refused, or is not defined."""
        if not case.is_defined:
            return None
        try:
            key = (
                *(case.function, repr(case.parameters), case.block_size),
                *case.placement(),
                *map(_identity, case.operands),
            )
            if key not in self._known:  # The operands are kept, so that no other array gets their identity.
                self._known[key] = case.operands, case.expected()
        except OracleRefusal:
            return None
        return self._known[key][1]


def _identity(array: np.ndarray) -> object:
    """What tells the contents of an array from others: those that nobody writes into are shared by many cases."""
    return (array.dtype, array.shape, blake2b(array.tobytes()).digest()) if array.flags.writeable else id(array)


def compare(case: Case, expected: np.ndarray | None, answer: Answer) -> CaseResult:
    """Compare what a runtime gave for a case with the reference result."""
    if answer.kind in ("crashed", "hung"):
        return CaseResult(case, expected, answer, "crashed" if answer.kind == "crashed" else "hung")
    if answer.writes_inputs:
        return CaseResult(case, expected, answer, "differs", OPERANDS_CHANGED)
    if not case.is_defined:
        return CaseResult(case, None, answer, "ok")
    if answer.kind == "refused":
        return CaseResult(case, expected, answer, "ok" if expected is None else "refused")
    if expected is None:
        return CaseResult(case, None, answer, "accepted")
    got = answer.arrays[0] if answer.arrays else None
    if got is None or got.dtype != expected.dtype:
        return CaseResult(case, expected, answer, "differs", OTHER_TYPE)
    if got.shape != expected.shape:
        return CaseResult(case, expected, answer, "differs", OTHER_SHAPE)
    wrong = wrong_indices(case, got, expected)
    return CaseResult(case, expected, answer, "differs" if wrong else "ok", wrong=wrong)


def wrong_indices(case: Case, got: np.ndarray, expected: np.ndarray) -> tuple[int, ...]:
    """The flat indices at which two arrays of one type and shape differ, by any reading; any NaN equals any NaN."""
    if got.tobytes() == expected.tobytes():
        return ()
    element_type = of_numpy(expected.dtype)
    differing = np.flatnonzero(patterns_of(got, element_type) != patterns_of(expected, element_type))
    if differing.size and case.expression.ignores_zero_sign and element_type.kind == "float":
        with np.errstate(invalid="ignore"):
            zeros = (got.reshape(-1)[differing] == 0) & (expected.reshape(-1)[differing] == 0)
            signs = [(operand == 0, np.signbit(operand)) for operand in case.operands_at(differing)]
        has_both = [
            np.any([is_zero & (sign == is_negative) for is_zero, sign in signs], axis=0)
            for is_negative in (True, False)
        ]
        differing = differing[~(zeros & has_both[0] & has_both[1])]
    if differing.size and case.other_reading is not None:
        other = patterns_of(case.other_reading, element_type)
        differing = differing[patterns_of(got, element_type)[differing] != other[differing]]
    return tuple(differing.tolist())
