"""What is known of a pair of tensors: figures, places, the cause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from eltwise.comparison.heat_map import HeatMap
from eltwise.core.escaping import on_one_line

Status = Literal["equal", "within_tolerance", "differs"]

STATUS_WORDS: dict[Status, str] = {"differs": "different", "within_tolerance": "within tolerance", "equal": "equal"}

_DIGITS = 4
_ROUNDING = 2.0**-46
"""So much of the larger of two norms may be rounding."""


@dataclass(frozen=True)
class Element:
    """One place of two tensors, with the values and the bits of both.

    Attributes:
        index: its index.
        a: the value in A.
        b: the value in B.
        a_bits: its bits in A, in hexadecimal digits.
        b_bits: its bits in B.
    """

    index: tuple[int, ...]
    a: float | int | bool = field(compare=False)  # Its bits are compared: no NaN is equal to itself.
    b: float | int | bool = field(compare=False)
    a_bits: str
    b_bits: str

    def __str__(self) -> str:
        (a, a_bits), (b, b_bits) = self.sides
        return f"{list(self.index)}: {a} ({a_bits}) and {b} ({b_bits})"

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The value and the bits of both, as texts."""
        a, b = (f"{one:.9g}" if isinstance(one, float) else str(one) for one in (self.a, self.b))
        return (a, self.a_bits), (b, self.b_bits)


@dataclass(frozen=True)
class TensorReport:
    """What is known of a pair of tensors. ``None`` stands for what cannot be measured, as of other shapes.

    Attributes:
        name: the name in A.
        other_name: the name in B.
        status: ``equal``, ``within_tolerance`` or ``differs``.
        dtype: the element type in A.
        other_dtype: the element type in B.
        shape: the shape in A.
        other_shape: the shape in B.
        total: the number of elements.
        differing: how many of them differ in their bits.
        beyond_tolerance: how many are beyond the tolerance; without one, all that differ.
        tolerance: the tolerance as text; empty for none.
        max_abs: the largest absolute difference.
        mean_abs: the mean of the finite ones; None if no element that differs has one, and for an infinite sum.
        max_rel: the largest difference relative to A; infinite where A is 0.
        mean_rel: the same of those relative to A.
        max_ulp: the largest distance in units of the last place; of integers, the largest difference.
        norms: the Euclidean norms of A, of B and of B - A over finite values; None for equal tensors, too.
        ulp_histogram: how many of those that differ have a distance of 0, 1, 2 to 3, 4 to 7, and so on.
        nan_mismatches: how many are NaN on one side only.
        infinity_mismatches: how many have an infinity on one side, or infinities of both signs.
        zero_sign_mismatches: how many are zeros of both signs.
        first: the first place that differs.
        worst: the first NaN that is not matched; else the place with the largest absolute difference.
        where: where the differences lie, in words.
        where_details: the same as plain values.
        cause: why they differ; empty for equal tensors.
        cause_share: the share of the differing elements that the cause predicts.
        explanation: the cause in a sentence.
        explanation_details: axes, factors and the like.
        heat_map: a picture of where.
    """

    name: str
    other_name: str
    status: Status
    dtype: str
    other_dtype: str
    shape: tuple[int, ...]
    other_shape: tuple[int, ...]
    total: int = 0
    differing: int | None = None
    beyond_tolerance: int | None = None
    tolerance: str = ""
    max_abs: float | int | None = None
    mean_abs: float | None = None
    max_rel: float | None = None
    mean_rel: float | None = None
    max_ulp: int | None = None
    norms: tuple[float, float, float] | None = None
    ulp_histogram: tuple[int, ...] = ()
    nan_mismatches: int | None = None
    infinity_mismatches: int | None = None
    zero_sign_mismatches: int | None = None
    first: Element | None = None
    worst: Element | None = None
    where: str = ""
    where_details: tuple[dict[str, object], ...] = ()
    cause: str = ""
    cause_share: float | None = None
    explanation: str = ""
    explanation_details: dict[str, object] = field(default_factory=dict)
    heat_map: HeatMap | None = field(default=None, compare=False, repr=False)

    @property
    def forgiven(self) -> int:
        """How many elements differ and are within the tolerance."""
        return (self.differing or 0) - (self.beyond_tolerance or 0)

    @property
    def relative_norm(self) -> float | None:
        """The norm of B - A over that of A."""
        return None if self.norms is None else relative_norm(self.norms)

    @property
    def badness(self) -> tuple[float, ...]:
        """What tensors are sorted by: larger is worse."""
        rank = {"differs": 2, "within_tolerance": 1, "equal": 0}[self.status]
        share = (self.beyond_tolerance if self.beyond_tolerance is not None else self.total) / max(self.total, 1)
        is_odd = bool(self.nan_mismatches) or (self.differing is None and self.cause in ("other_shape", "other_type"))
        a, b, step = self.norms or (0.0, 0.0, 0.0)
        relative = step / max(a, b) if max(a, b) else 0.0
        return (rank, is_odd, relative, share, float(self.max_abs or 0))

    @property
    def label(self) -> str:
        """The name, or both where they differ, on one line."""
        return on_one_line(self.name if self.name == self.other_name else f"{self.name} / {self.other_name}")

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        fields: dict[str, object] = {
            name: asdict(value) if isinstance(value, Element) else value for name, value in vars(self).items()
        }
        del fields["heat_map"]
        return fields | {"forgiven": self.forgiven, "tolerance": self.tolerance or None, "cause": self.cause or None}

    def sentences(self) -> list[str]:
        """What there is to say of it, a sentence a line."""
        if self.status == "equal":
            return [self.explanation] if self.explanation else []
        lines = [self.explanation] if self.explanation else []
        if self.differing is not None and self.differing:
            lines.append(self.figures)
            if self.where and self.differing < self.total:
                lines.append(f"where: {self.where}")
            if self.worst:
                lines.append(f"worst {self.worst}")
            if self.first and self.first != self.worst:
                lines.append(f"first {self.first}")
        return lines

    @property
    def figures(self) -> str:
        """How many elements differ, and how much."""
        share = f"{self.differing or 0:,} of {self.total:,} {'differs' if self.differing == 1 else 'differ'}"
        if self.tolerance:
            share += f", {self.forgiven:,} within {self.tolerance}, {self.beyond_tolerance:,} beyond"
        norm = "" if self.relative_norm is None else f"relative norm {number(self.relative_norm)}, "
        if self.max_abs is None:  # No two elements that differ are numbers.
            return f"{share}{self._odd()}"
        steps = f"max abs {number(self.max_abs)}, max rel {number(self.max_rel)}, max ULP {number(self.max_ulp)}"
        return f"{share}; {norm}{steps}{self._odd()}"

    def _odd(self) -> str:
        kinds = (
            (self.nan_mismatches, "NaN mismatch", "NaN mismatches"),
            (self.infinity_mismatches, "infinity mismatch", "infinity mismatches"),
            (self.zero_sign_mismatches, "zero of the other sign", "zeros of the other sign"),
        )
        return "".join(f", {count:,} {one if count == 1 else many}" for count, one, many in kinds if count)


def number(value: float | int | None) -> str:
    """A number for people.

    >>> number(0.000123456), number(1234567), number(None)
    ('0.0001235', '1,234,567', '-')
    """
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{_DIGITS}g}"


def relative_norm(norms: Sequence[float]) -> float | None:
    """The norm of B - A over that of A, from the norms of A, B and B - A.

    It is infinite where A is 0, and None where the norm of A is infinite.
    """
    a, _b, step = norms
    if a == math.inf:
        return None
    return step / a if a else math.inf if step else 0.0


def cosine(norms: Sequence[float]) -> float | None:
    """The cosine of the angle between A and B, from the norms of A, B and B - A; None where one is 0 or infinite."""
    gap = cosine_gap(norms)
    return None if gap is None else 1 - gap


def cosine_gap(norms: Sequence[float]) -> float | None:
    """By how much that cosine is less than 1; 0 where the rounding of the norms may be all that says so."""
    a, b, step = norms
    if not (0 < a < math.inf and 0 < b < math.inf and step < math.inf):
        return None
    gap = abs(a - b)
    rest = step - gap
    return min(rest / a * (step / b + gap / b) / 2, 2.0) if rest > _ROUNDING * max(a, b) else 0.0
