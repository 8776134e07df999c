"""Why results differ: the fault models that predict every value, tried one after the other.

A case is explained by a fault model that predicts each of its elements bit for bit, the wrong and the right ones; if
none does, by one under a wrong alignment of the operands. A runtime may take another kernel for another shape, so that
several fault models explain the cases of one test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.conformance.arithmetic import Values, values_of
from eltwise.conformance.cases import Case, placed
from eltwise.conformance.compare import CaseResult
from eltwise.conformance.fault_model import AS_SPECIFIED, OTHER_TEXTS, UNEXPLAINED, FaultModel, Operation
from eltwise.conformance.faults import fault_models

Operands = tuple[np.ndarray, ...]

_MOST_REASONS = 4
_SAMPLED = 48
_MOST_SHAPES_NAMED = 3


@dataclass(frozen=True)
class Alignment:
    """A way to pair the elements of operands."""

    name: str  # Its name.
    text: str  # What happens, as a clause for users.
    # The dimension of a result of some rank on which each operand begins; None if it does not apply.
    starts: Callable[[Case, int], Sequence[int] | None]
    change: Callable[[Operands], Operands] = tuple  # What operands are changed to first.

    def align(self, case: Case, shape: tuple[int, ...]) -> list[np.ndarray] | None:
        """Expand the operands to the shape of the result, flat; None if they cannot be paired so."""
        starts = self.starts(case, len(shape))
        if starts is None:
            return None
        operands = zip(self.change(case.operands), starts, strict=True)
        try:
            return [placed(operand, shape, start).reshape(-1) for operand, start in operands]
        except ValueError:
            return None


def _at_the_ends(case: Case, rank: int) -> Sequence[int]:
    return [rank - operand.ndim for operand in case.operands]


def _first_of_b(operands: Operands) -> Operands:
    return (operands[0], *(operand.reshape(-1)[:1].reshape((1,) * operand.ndim) for operand in operands[1:]))


SPECIFIED = Alignment("as specified", "operands are paired as specified", lambda case, _rank: case.placement()[1])
WRONG_ALIGNMENTS: tuple[Alignment, ...] = (
    Alignment("axis ignored", "axis is ignored: the ends of the shapes are aligned", _at_the_ends),
    Alignment(
        "axis taken as 0",
        "axis is taken as 0: the starts of the shapes are aligned",
        lambda case, _rank: [0] * len(case.operands),
    ),
    Alignment("first element of B", "B's first element is used everywhere", _at_the_ends, _first_of_b),
)
"""Simplest first."""


def is_alignment(name: str) -> bool:
    """Whether a fault pairs the wrong elements, so that the shapes show it and single elements do not."""
    return any(alignment.name == name for alignment in WRONG_ALIGNMENTS)


def text_of(name: str, operation: Operation) -> str:
    """What a fault does, as a clause; empty for what is not a known fault."""
    known = OTHER_TEXTS | {alignment.name: alignment.text for alignment in WRONG_ALIGNMENTS}
    fault = fault_models(operation).get(name)
    return fault.text if fault else known.get(name, "")


@dataclass(frozen=True)
class Reason:
    """One explanation of some cases: the fault models that act together, and what happens, in words for users."""

    names: tuple[str, ...]
    text: str


class Explainer:
    """Explains the results of tests; the same results, and the same values of a case, only once."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], tuple[tuple[Reason, ...], tuple[int, ...]]] = {}
        self._held: dict[bytes, list[tuple[Alignment, FaultModel]]] = {}

    def explain(self, results: Sequence[CaseResult]) -> tuple[tuple[Reason, ...], list[CaseResult]]:
        """Explain the wrong values of some cases of one operation; the right ones help to tell fault models apart.

        Returns:
            The reasons, that of the largest case first and ``unexplained`` last, and the cases that none explains.
        """
        compared = [item for item in results if item.is_explainable]
        if not any(item.wrong for item in compared):
            return (), []
        key = tuple(item.digest for item in compared)
        if key not in self._known:
            self._known[key] = self._explained(compared)
        reasons, unexplained = self._known[key]
        return reasons, [compared[index] for index in unexplained]

    def _explained(self, compared: Sequence[CaseResult]) -> tuple[tuple[Reason, ...], tuple[int, ...]]:
        """The reasons, and the indices of the cases that none explains."""
        left = sorted((item for item in compared if item.wrong), key=lambda item: -item.elements)
        right = [item for item in compared if not item.wrong]
        found: list[tuple[Reason, list[CaseResult]]] = []
        unexplained: list[CaseResult] = []
        while left and len(found) < _MOST_REASONS:
            reason, explained = self._reason(left, right)
            if reason is None:
                unexplained.append(left.pop(0))
                continue
            found.append((reason, explained))
            left = [item for item in left if not any(item is one for one in explained)]
        unexplained += left
        if unexplained:
            found.append((Reason((UNEXPLAINED,), "unexplained"), unexplained))
        indices = tuple(index for index, item in enumerate(compared) if any(item is one for one in unexplained))
        if len(found) == 1:
            return (found[0][0],), indices
        return tuple(
            Reason(reason.names, f"{reason.text} (where {_shapes(items)})") for reason, items in found
        ), indices

    def _reason(
        self, left: Sequence[CaseResult], right: Sequence[CaseResult]
    ) -> tuple[Reason | None, list[CaseResult]]:
        """What explains the first case, and as many of the others as can be."""
        key = left[0].digest
        if key not in self._held:
            self._held[key] = list(_holding(left[0]))
        best: tuple[tuple[int, int], Reason | None, list[CaseResult]] = (0, 0), None, []
        for alignment, fault in self._held[key]:
            explained = [left[0], *(item for item in left[1:] if _holds(item, alignment, fault.name))]
            score = len(explained), sum(_holds(item, alignment, fault.name) for item in right)
            if score > best[0]:
                parts = [part for part in (alignment, fault) if part.name != AS_SPECIFIED.name]
                names = tuple(name for part in parts for name in part.name.split(" + "))
                best = score, Reason(names, "; ".join(part.text for part in parts)), explained
            if score == (len(left), len(right)):
                break
        return best[1:]


def _operation_of(case: Case) -> Operation:
    return Operation(case.expression, case.element_type)


def _values(item: CaseResult, alignment: Alignment, indices: Values | slice = slice(None)) -> list[Values] | None:
    """The operands' values at some indices, as an alignment pairs them; None if it cannot."""
    aligned = alignment.align(item.case, item.case.shape())
    return None if aligned is None else [values_of(operand[indices], item.case.element_type) for operand in aligned]


def _holds(item: CaseResult, alignment: Alignment, fault: str) -> bool:
    """Whether a fault model predicts every element."""
    operation, values = _operation_of(item.case), _values(item, alignment)
    model = AS_SPECIFIED if fault == AS_SPECIFIED.name else fault_models(operation).get(fault)
    return model is not None and values is not None and np.array_equal(operation.predict(model, values), item.patterns)


def _holding(item: CaseResult) -> Iterator[tuple[Alignment, FaultModel]]:
    """The fault models that predict a case; those under a wrong alignment only if no other does.

    A sample of the case is predicted first, and then all of it.
    """
    is_wrong = np.zeros(item.elements, bool)
    is_wrong[list(item.wrong)] = True
    sample = np.concatenate([_spread(np.flatnonzero(is_wrong)), _spread(np.flatnonzero(~is_wrong))])
    operation = _operation_of(item.case)
    models = tuple(fault_models(operation).values())
    for alignments, tried in (((SPECIFIED,), models), (WRONG_ALIGNMENTS, (AS_SPECIFIED, *models) if models else ())):
        has_one = False
        for alignment in alignments:
            values = _values(item, alignment, sample)
            for fault in tried if values is not None else ():
                predicted = operation.predict(fault, values or ())
                if np.array_equal(predicted, item.patterns[sample]) and _holds(item, alignment, fault.name):
                    has_one = True
                    yield alignment, fault
        if has_one:
            return


def _spread(indices: Values) -> Values:
    """A few indices, spread evenly; the ends, which are often special, stay out of many."""
    if indices.size <= _SAMPLED:
        return indices
    return indices[(np.arange(_SAMPLED) * 2 + 1) * indices.size // (2 * _SAMPLED)]


def _shapes(items: Sequence[CaseResult]) -> str:
    """The operands' shapes of some cases in words."""
    shapes = dict.fromkeys("-".join(str(list(operand.shape)) for operand in item.case.operands) for item in items)
    more = len(shapes) - _MOST_SHAPES_NAMED
    named = ", ".join(list(shapes)[:_MOST_SHAPES_NAMED]) + (f" and {more} others" if more > 0 else "")
    return f"the shapes are {named}"
