"""Why results differ: the fault models that predict every value, tried one after the other.

A case is explained by a fault model, or one of the listed combinations, that predicts each of its elements bit for bit,
the wrong and the right ones; if none does, by one under a wrong alignment of the operands. A runtime may take another
kernel for another shape, so that several fault models explain the cases of one test.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.fault_models.alignments import SPECIFIED, WRONG_ALIGNMENTS, Alignment
from eltwise.conformance.fault_models.catalog import UNEXPLAINED, combinations_of, fault_models, same_fault
from eltwise.conformance.fault_models.model import AS_SPECIFIED, FaultModel, Operation
from eltwise.conformance.fault_models.values import Values, patterns_of, values_of

_MOST_REASONS = 4
_SAMPLED = 48
_MOST_SHAPES_NAMED = 3


@dataclass(frozen=True, eq=False)
class Compared:
    """A case, its reference result, and what a runtime gave of the same type and shape.

    Attributes:
        case: the case.
        expected: the reference result.
        got: what came.
        wrong: the flat indices at which they differ.
    """

    case: Case
    expected: np.ndarray
    got: np.ndarray
    wrong: tuple[int, ...]

    @property
    def operation(self) -> Operation:
        """What is computed."""
        return Operation(self.case.expression, self.case.element_type)

    def values(self, alignment: Alignment, indices: Values | None = None) -> list[Values] | None:
        """The operands' values element by element, as an alignment pairs them; None if it cannot."""
        aligned = alignment.align(self.case, self.expected.shape)
        if aligned is None:
            return None
        element_type = self.operation.element_type
        flat = [operand.reshape(-1) for operand in aligned]
        return [values_of(operand if indices is None else operand[indices], element_type) for operand in flat]


@dataclass(frozen=True)
class Reason:
    """One explanation of some cases.

    Attributes:
        names: the fault models that act together; ``unexplained`` if none is known.
        text: what happens, in words for users.
    """

    names: tuple[str, ...]
    text: str


Explained = tuple[tuple[Reason, ...], tuple[int, ...]]
"""The reasons, and the indices of the cases that none explains."""


class Explainer:
    """Explains the results of tests; the same results only once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Explained] = {}

    def explain(self, compared: Sequence[Compared]) -> tuple[Reason, ...]:
        """Explain the wrong values of some cases of one operation; nothing if there are none.

        Args:
            compared: the cases, wrong and right ones, which help to tell fault models apart.

        Returns:
            The reasons, the one of the largest case first and ``unexplained`` last.
        """
        return self._explained(compared)[0]

    def unexplained(self, compared: Sequence[Compared]) -> list[Compared]:
        """The cases with wrong values that no fault model explains."""
        return [compared[index] for index in self._explained(compared)[1]]

    def _explained(self, compared: Sequence[Compared]) -> Explained:
        key = _digest(compared)
        if key not in self._known:
            self._known[key] = _explained(compared)
        return self._known[key]


def _explained(compared: Sequence[Compared]) -> Explained:
    left = sorted((item for item in compared if item.wrong), key=lambda item: -item.expected.size)
    right = [item for item in compared if not item.wrong]
    found: list[tuple[Reason, list[Compared]]] = []
    preferred: list[FaultModel] = []
    unexplained: list[Compared] = []
    while left and len(found) < _MOST_REASONS:
        reason, explained, fault = _reason(left, right, preferred)
        if reason is None:
            unexplained.append(left.pop(0))
            continue
        found.append((reason, explained))
        preferred.append(fault)
        left = [item for item in left if not any(item is one for one in explained)]
    unexplained += left
    if unexplained:
        found.append((Reason((UNEXPLAINED,), "unexplained"), unexplained))
    indices = tuple(index for index, item in enumerate(compared) if any(item is one for one in unexplained))
    if len(found) == 1:
        return (found[0][0],), indices
    return tuple(Reason(reason.names, f"{reason.text} (where {_shapes(items)})") for reason, items in found), indices


def _reason(
    left: Sequence[Compared], right: Sequence[Compared], preferred: Sequence[FaultModel]
) -> tuple[Reason | None, list[Compared], FaultModel]:
    """What explains the first case, and as many of the others as can be; and which."""
    best: tuple[tuple[int, int], Reason, list[Compared], FaultModel] | None = None
    for alignment, fault in _holding(left[0], preferred):
        explained = [left[0], *(item for item in left[1:] if holds(alignment, fault, item))]
        score = len(explained), sum(holds(alignment, fault, item) for item in right)
        if best is None or score > best[0]:
            best = score, _named(alignment, fault), explained, fault
        if score == (len(left), len(right)):
            break
    return (None, [], AS_SPECIFIED) if best is None else best[1:]


def _holding(item: Compared, preferred: Sequence[FaultModel]) -> Iterator[tuple[Alignment, FaultModel]]:
    """The fault models that predict a case, simplest first; those under a wrong alignment only if no other does.

    Under a wrong alignment, those come first that explain other cases under the right one.
    """
    operation = item.operation
    singles, combined = fault_models(operation), combinations_of(operation)
    has_one = False
    for fault in _predicting(item, SPECIFIED, (*singles, *combined)):
        has_one = True
        yield SPECIFIED, fault
    if has_one or not fault_models(operation):
        return
    for alignment in WRONG_ALIGNMENTS:
        for fault in _predicting(item, alignment, (AS_SPECIFIED, *preferred, *singles, *combined)):
            yield alignment, fault


def _predicting(item: Compared, alignment: Alignment, faults: Sequence[FaultModel]) -> Iterator[FaultModel]:
    """The fault models that predict a case: first a sample of it, then all of it."""
    wrong = np.array(item.wrong, np.int64)
    others = np.setdiff1d(np.arange(item.expected.size), wrong)
    indices = np.concatenate([_spread(wrong), _spread(others)])
    sample = item.values(alignment, indices)
    if sample is None:
        return
    operation = item.operation
    got = patterns_of(item.got, operation.result_type)[indices]
    for fault in filter(None, (same_fault(fault, operation) for fault in faults)):
        if np.array_equal(operation.predict(fault, sample), got) and holds(alignment, fault, item):
            yield fault


def holds(alignment: Alignment, fault: FaultModel, item: Compared) -> bool:
    """Whether a fault model predicts every element of a case."""
    values, operation = item.values(alignment), item.operation
    own = same_fault(fault, operation)
    if values is None or own is None:
        return False
    return np.array_equal(operation.predict(own, values), patterns_of(item.got, operation.result_type))


def _spread(indices: Values) -> Values:
    """A few indices, spread evenly; the ends, which are often special, stay out of many."""
    if indices.size <= _SAMPLED:
        return indices
    return indices[(np.arange(_SAMPLED) * 2 + 1) * indices.size // (2 * _SAMPLED)]


def _named(alignment: Alignment, fault: FaultModel) -> Reason:
    parts = [part for part in (alignment, fault) if part.name != AS_SPECIFIED.name]
    names = tuple(name for part in parts for name in part.name.split(" + "))
    return Reason(names, "; ".join(part.text for part in parts))


def _shapes(items: Sequence[Compared]) -> str:
    """The operands' shapes of some cases in words."""
    shapes = dict.fromkeys("-".join(str(list(operand.shape)) for operand in item.case.operands) for item in items)
    more = len(shapes) - _MOST_SHAPES_NAMED
    named = ", ".join(list(shapes)[:_MOST_SHAPES_NAMED]) + (f" and {more} others" if more > 0 else "")
    return f"the shapes are {named}"


def _digest(compared: Sequence[Compared]) -> bytes:
    made = hashlib.sha256()
    for item in compared:
        case = item.case
        made.update(repr((case.function, case.attributes, case.starts(), item.got.shape)).encode())
        for array in (*case.operands, item.got):
            made.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return made.digest()
