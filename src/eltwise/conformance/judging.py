"""The judgement of a runtime: what it gives for each case, against the oracle, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eltwise import oracle
from eltwise.conformance.cases import Case
from eltwise.core.errors import EltwiseError

Run = Callable[..., np.ndarray]
"""``run(op, a, b, **attributes)`` gives the result, or raises where it refuses; ``op`` is the versioned name."""

Kind = Literal["differs", "refused", "accepted", "wrong type or shape"]


@dataclass(frozen=True)
class Failure:
    """A case that a runtime got wrong.

    Attributes:
        case: the case.
        kind: ``differs`` in value, ``refused`` what must work, ``accepted`` what must be refused, or a result of
            another type or shape.
        detail: one example or the runtime's own words.
    """

    case: Case
    kind: Kind
    detail: str

    def __str__(self) -> str:
        return f"{self.case}: {self.kind}: {self.detail}"


def failures(run: Run, cases: Iterable[Case]) -> Iterator[Failure]:
    """Judge a runtime on cases; nothing comes where all are right."""
    for case in cases:
        failure = judge(run, case)
        if failure is not None:
            yield failure


def judge(run: Run, case: Case) -> Failure | None:
    """Judge a runtime on one case; a refusal is a ``ValueError``, ``TypeError`` or ``EltwiseError``."""
    try:
        expected = case.expected()
    except oracle.OracleRefusal as refusal:
        expected, reason = None, str(refusal)
    try:
        got = run(case.schema.versioned_name, case.a, case.b, **dict(case.attributes))
    except (EltwiseError, ValueError, TypeError) as error:
        return None if expected is None else Failure(case, "refused", str(error))
    if expected is None:
        return Failure(case, "accepted", f"the specification refuses it: {reason}")
    if got.dtype != expected.dtype or got.shape != expected.shape:
        wanted = f"{expected.dtype}{list(expected.shape)}"
        return Failure(case, "wrong type or shape", f"got {got.dtype}{list(got.shape)}, expected {wanted}")
    wrong = oracle.differences(got, expected)
    if not wrong:
        return None
    place, given, right = wrong[0], got.reshape(-1), expected.reshape(-1)
    return Failure(
        case,
        "differs",
        f"{len(wrong)} of {expected.size}, first at {place}: got {given[place]}, expected {right[place]}",
    )
