"""Why results differ: the faults of the catalog that predict every value, tried one after the other.

A case is explained by a fault that predicts each of its elements bit for bit, the wrong and the right ones; if none
does, by one under a wrong alignment of the operands. A runtime may take another kernel for another shape, so that
several faults explain the cases of one test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from eltwise.conformance.compare import CaseResult
from eltwise.core.blocks import spread
from eltwise.core.errors import named
from eltwise.faults.catalog import fault_of, faults_of, misaligned_faults_of
from eltwise.faults.families import UNEXPLAINED
from eltwise.faults.joint import joint_faults, together
from eltwise.faults.record import Align, Fault
from eltwise.faults.values import Values

_MOST_REASONS = 4
_SAMPLED = 48
_MOST_SHAPES_NAMED = 3
_MOST_SEARCHED = 4
"""In so many cases that no single fault explains, faults that act jointly are looked for, the largest first."""

_FEWEST = 4
"""Fewer wrong elements may be predicted by chance: they are no evidence where other cases remain unexplained."""

_LEAST_SHARE = 0.1
"""The same of all wrong elements for faults that act jointly, of which there are many."""


@dataclass(frozen=True)
class Reason:
    """One explanation of some cases.

    Attributes:
        slugs: the faults that act jointly.
        families: their families.
        text: what happens, as a clause for users; of one of several, how many of the wrong elements it gives.
    """

    slugs: tuple[str, ...]
    families: tuple[str, ...]
    text: str


class Explainer:
    """Explains the results of tests; the same results, and the same values of a case, only once."""

    def __init__(self) -> None:
        self._explained: dict[tuple[bytes, ...], tuple[tuple[Reason, ...], tuple[int, ...]]] = {}
        self._matching: dict[tuple[str, bytes], tuple[Fault, ...]] = {}

    def explain(self, results: Sequence[CaseResult]) -> tuple[tuple[Reason, ...], list[CaseResult]]:
        """Explain the wrong values of some cases of one operation; the right ones help to tell faults apart.

        Where a hypothesis raises, nothing is explained, and the text of ``unexplained`` names it.

        Returns:
            The reasons, that of the largest case first and ``unexplained`` last, and the cases that none explains.
        """
        compared = [item for item in results if item.is_explainable]
        if not any(item.wrong for item in compared):
            return (), []
        key = tuple(item.digest for item in compared)
        if key not in self._explained:
            try:
                self._explained[key] = self._explain(compared)
            except Exception as error:  # noqa: BLE001 - results are worth more than the reasons for them
                text = f"{UNEXPLAINED}; {internal_error(error, 'an explanation')}"
                wrong = tuple(index for index, item in enumerate(compared) if item.wrong)
                self._explained[key] = (Reason((UNEXPLAINED,), (UNEXPLAINED,), text),), wrong
        reasons, unexplained = self._explained[key]
        return reasons, [compared[index] for index in unexplained]

    def _explain(self, compared: Sequence[CaseResult]) -> tuple[tuple[Reason, ...], tuple[int, ...]]:
        """The reasons, and the indices of the cases that none explains, last of those that one predicts by chance."""
        cases = [_Compared(item) for item in compared]
        left = sorted((case for case in cases if case.item.wrong), key=lambda case: -case.item.elements)
        right = [case for case in cases if not case.item.wrong]
        joint, groups, unexplained = self._joint(left), list[_Group](), list[_Compared]()
        while left and len(groups) < _MOST_REASONS:
            group = self._group(left, right, joint)
            if group is None:
                unexplained.append(left.pop(0))
                continue
            groups.append(group)
            left = [case for case in left if case not in group.cases]
        groups, unexplained = _merged(groups), unexplained + left
        if unexplained:
            least = {group: _wrong(cases) * _LEAST_SHARE if group.fault.parts else _FEWEST for group in groups}
            by_chance = [group for group in groups if _wrong(group.cases) < least[group]]
            groups = [group for group in groups if not any(group is each for each in by_chance)]
            unexplained += [case for group in by_chance for case in group.cases]
        parts = [(Reason(each.fault.slugs, each.fault.families, each.fault.text), each.cases) for each in groups]
        parts += [(Reason((UNEXPLAINED,), (UNEXPLAINED,), UNEXPLAINED), unexplained)] if unexplained else []
        indices = tuple(map(cases.index, unexplained))
        if len(parts) == 1:
            return (parts[0][0],), indices
        shares = [f"{_wrong(some):,} of {_wrong(cases):,} wrong elements, where {_shapes(some)}" for _, some in parts]
        reasons = (replace(each, text=f"{each.text} ({share})") for (each, _), share in zip(parts, shares, strict=True))
        return tuple(reasons), indices

    def _group(self, left: Sequence[_Compared], right: Sequence[_Compared], joint: Sequence[Fault]) -> _Group | None:
        """What explains the first case, and as many of the others as can be."""
        alone = self._single(left[0]) or self._misaligned(left[0])
        matching = [*alone, *(fault for fault in joint if _is_predicted(left[0], fault))]
        best: tuple[tuple[int, int], _Group | None] = (0, 0), None
        for fault in matching:
            with _named_in_errors(fault):
                explained = [left[0], *(case for case in left[1:] if case.is_predicted(fault))]
                score = len(explained), sum(case.is_predicted(fault) for case in right)
            if score > best[0]:
                best = score, _Group(fault, explained)
            if score == (len(left), len(right)):
                break
        return best[1]

    def _joint(self, left: Sequence[_Compared]) -> list[Fault]:
        """The faults that jointly explain the largest cases that none explains alone."""
        faults, searched = list[Fault](), 0
        for case in left:
            if searched == _MOST_SEARCHED:
                break
            is_explained = bool(self._single(case) or self._misaligned(case))
            if not is_explained and not any(_is_predicted(case, one) for one in faults):
                searched += 1
                faults += self._known(case, "joint", _joint_of)
        return faults

    def _single(self, case: _Compared) -> tuple[Fault, ...]:
        """The faults of the catalog that predict a case."""
        return self._known(case, "single", lambda one: _predicting(one, faults_of(one.operation).values()))

    def _misaligned(self, case: _Compared) -> tuple[Fault, ...]:
        """The faults under a wrong alignment that predict a case."""
        return self._known(case, "misaligned", _misaligned_of)

    def _known(self, case: _Compared, kind: str, find: Callable[[_Compared], tuple[Fault, ...]]) -> tuple[Fault, ...]:
        key = kind, case.item.digest
        if key not in self._matching:
            self._matching[key] = find(case)
        return self._matching[key]


@dataclass(frozen=True, eq=False)
class _Group:
    """Cases that a fault explains."""

    fault: Fault
    cases: list[_Compared]


def _merged(groups: Sequence[_Group]) -> list[_Group]:
    """The groups, of which two are one where their faults explain both jointly."""
    for one, other in combinations(groups, 2):
        cases = [*one.cases, *other.cases]
        fault = together((one.fault, other.fault), one.cases[0].operation)
        if fault is not None and all(case.is_predicted(fault) for case in cases):
            return _merged([_Group(fault, cases), *(group for group in groups if group not in (one, other))])
    return list(groups)


def _joint_of(case: _Compared) -> tuple[Fault, ...]:
    few, wrong = case.few, len(case.item.wrong)
    predict = case.operation.predictor(few.operands)
    for candidates in joint_faults(case.operation, lambda fault: few.count(predict(fault)), few.size, wrong):
        if matching := _predicting(case, candidates):
            return matching
    return ()


def _misaligned_of(case: _Compared) -> tuple[Fault, ...]:
    return _predicting(case, misaligned_faults_of(case.operation).values())


def _predicting(case: _Compared, faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(fault for fault in faults if _is_predicted(case, fault))


def _is_predicted(case: _Compared, fault: Fault) -> bool:
    """Whether a fault predicts a case; an alignment that pairs what is specified is none."""
    with _named_in_errors(fault):
        return (fault.align is None or case.few.differ_by(fault.align)) and case.is_predicted(fault)


@contextmanager
def _named_in_errors(fault: Fault) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"in the hypothesis {fault.slug}")
        raise


class _Compared:
    """A case, and a few of its elements, which tell at little cost that most faults do not predict it."""

    def __init__(self, item: CaseResult) -> None:
        self.item = item
        self.operation = item.case.computed

    @cached_property
    def whole(self) -> _Elements:
        """All of its elements."""
        return _Elements(self.item, slice(None))

    @cached_property
    def few(self) -> _Elements:
        """A few wrong ones and a few right ones."""
        if self.item.elements <= 2 * _SAMPLED:
            return self.whole
        is_wrong = np.zeros(self.item.elements, bool)
        is_wrong[list(self.item.wrong)] = True
        both = np.flatnonzero(is_wrong), np.flatnonzero(~is_wrong)
        return _Elements(self.item, np.concatenate([some[spread(some.size, _SAMPLED)] for some in both]))

    def is_predicted(self, fault: Fault) -> bool:
        """Whether a fault predicts every element."""
        return self.few.are_predicted(fault) and (self.few is self.whole or self.whole.are_predicted(fault))


class _Elements:
    """Some elements of a case, whose values are read once for each alignment."""

    def __init__(self, item: CaseResult, indices: Values | slice) -> None:
        self._readings = [patterns[indices] for patterns in item.readings]
        self._case, self._indices = item.case, indices
        self._values: dict[Align | None, list[Values] | None] = {}
        self._differs: dict[Align, bool] = {}

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self._readings[0])

    @property
    def operands(self) -> list[Values]:
        """The exact values of the operands, aligned as specified."""
        return self._aligned(None) or []

    def are_predicted(self, fault: Fault) -> bool:
        """Whether a fault predicts them."""
        # With another number of operands it is another record.
        same = fault_of(self._case.computed, fault.slugs)
        return same is not None and self.count_predicted(same) == self.size

    def count_predicted(self, fault: Fault) -> int:
        """How many of them a fault of their operation predicts; -1 where its alignment is none of theirs."""
        values = self._aligned(fault.align)
        if values is None:
            return -1
        return self.count(self._case.computed.predict(fault, values))

    def count(self, predicted: Values) -> int:
        """How many of them are as predicted, by the reading by which most are."""
        return max(int(np.count_nonzero(predicted == patterns)) for patterns in self._readings)

    def differ_by(self, align: Align) -> bool:
        """Whether an alignment gives other values of an operand, or none."""
        if align not in self._differs:
            values, specified = self._aligned(align) or (), self._aligned(None) or ()
            self._differs[align] = not (values and all(map(_are_same, values, specified)))
        return self._differs[align]

    def _aligned(self, align: Align | None) -> list[Values] | None:
        """The exact values of the operands at the elements; None where they cannot be aligned so."""
        if align not in self._values:
            case = self._case
            aligned = align(case.read, case.shape()) if align else case.aligned()
            chosen = aligned and [operand.reshape(-1)[self._indices] for operand in aligned]
            self._values[align] = chosen and case.computed.values(chosen)
        return self._values[align]


def _are_same(a: Values, b: Values) -> bool:
    return bool(np.array_equal(a, b)) if a.dtype == np.object_ else a.tobytes() == b.tobytes()


def internal_error(error: Exception, where: str) -> str:
    """An error of eltwise itself as a sentence; its notes come last."""
    parts = f"internal error in {where}", type(error).__name__, str(error), *getattr(error, "__notes__", ())
    return " ".join(": ".join(filter(None, parts)).split())


def _wrong(some: Iterable[_Compared]) -> int:
    """How many elements of some cases are wrong."""
    return sum(len(each.item.wrong) for each in some)


def _shapes(some: Sequence[_Compared]) -> str:
    """The operands' shapes of some cases as text."""
    operands = (compared.item.case.operands for compared in some)
    shapes = dict.fromkeys("-".join(str(list(operand.shape)) for operand in each) for each in operands)
    return f"the shapes are {named(list(shapes), _MOST_SHAPES_NAMED)}"
