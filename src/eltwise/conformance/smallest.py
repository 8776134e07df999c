"""The smallest case that still fails, found by running single combinations of operands again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import CaseResult

RunAlone = Callable[[Case], CaseResult]
"""Runs one case, in a model of its own."""

_REPEATED = 64
"""How often operands are repeated if they do not fail alone: some kernels are used for whole vectors only."""


class Shrinker:
    """Finds small failing cases; what it found for one operator version it reuses for the others of a runtime."""

    def __init__(self) -> None:
        self._known: dict[object, CaseResult] = {}

    def smallest(self, failing: Sequence[CaseResult], key: object, run_alone: RunAlone) -> CaseResult:
        """Find the smallest case with the outcome that all of the given have.

        Args:
            failing: results of one outcome, at least one.
            key: what tests have in common for which the same operands fail: the runtime, the source, the reasons.
            run_alone: runs a case again.

        Returns:
            A case whose operands have one element each, if that still differs; else the one with the fewest elements.
        """
        # What fails alone shows more than what fails beside others, and a wrong type or shape more than wrong values.
        alone = [item for item in failing if item.beside is None]
        by_size = min([item for item in alone if item.problem] or alone or failing, key=_size)
        differing = [item for item in failing if item.wrong and not item.problem]
        if by_size.outcome == "crashed":
            return _smallest_crash(by_size, run_alone)
        if by_size.outcome != "differs" or by_size.problem or not differing:
            return by_size
        for candidate in _candidates(differing):
            known = (key, candidate.function, *((operand.dtype, operand.tobytes()) for operand in candidate.operands))
            if known not in self._known:
                self._known[known] = run_alone(candidate)
            again = replace(self._known[known], case=candidate)
            if again.outcome == "differs" and again.wrong:
                return again
        return by_size


def _smallest_crash(item: CaseResult, run_alone: RunAlone) -> CaseResult:
    """The first elements of a large case alone, if these crash too."""
    firsts = tuple(operand.reshape(-1)[:1] for operand in item.case.operands)
    if not all(first.size for first in firsts) or item.case.size < _REPEATED:
        return item
    again = run_alone(_of_elements(item.case, firsts))
    return again if again.outcome == "crashed" else item


def _of_elements(case: Case, operands: Sequence[np.ndarray]) -> Case:
    attributes = tuple((name, value) for name, value in case.attributes if name != "axis")
    return replace(case, attributes=attributes, operands=tuple(operands))


def _size(item: CaseResult) -> tuple[bool, int]:
    """The elements of all operands; a case without elements shows nothing and comes last."""
    return any(not operand.size for operand in item.case.operands), item.case.size


def _candidates(differing: Sequence[CaseResult]) -> Iterator[Case]:
    """The simplest failing operands alone and repeated."""
    _rank, operands, case = min((simplest_operands(item) for item in differing), key=lambda found: found[0])
    for count in (1, _REPEATED):
        yield _of_elements(case, [np.repeat(operand, count) for operand in operands])


def simplest_operands(item: CaseResult) -> tuple[tuple[float, ...], tuple[np.ndarray, ...], Case]:
    """Find the simplest operands at the failing indices: finite before others, integers before fractions, small first.

    Returns:
        Their rank, the operands as arrays of one element, and the case.
    """
    operands = item.case.operands_at(np.array(item.wrong, np.int64))
    with np.errstate(all="ignore"):
        numbers = np.array([operand.astype(np.float64) for operand in operands])
        special = np.sum(~np.isfinite(numbers), axis=0)
        fractions = np.sum(numbers != np.rint(numbers), axis=0)
        large = np.sum(np.abs(np.nan_to_num(numbers)), axis=0)
    first = int(np.lexsort((large, fractions, special))[0])
    rank = float(special[first]), float(fractions[first]), float(large[first])
    return rank, tuple(operand[first : first + 1] for operand in operands), item.case
