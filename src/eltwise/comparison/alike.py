"""The rounding that explains most tensors of a set, tried on those whose elements alone do not tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from eltwise.comparison.arrays import with_cause
from eltwise.comparison.causes import UNEXPLAINED, explained_by
from eltwise.comparison.pairs import Pair, common_type
from eltwise.comparison.tensor_report import TensorReport
from eltwise.core.errors import EltwiseError
from eltwise.ir.tensors import Tensor

_ROUNDED = ("_rounding", "_truncation")
_LESS_TELLING = ("constant", "other_type", "zeroed", "small_values_zeroed", "last_bit", "noise", "scaled", UNEXPLAINED)
"""What is also true, by chance, of tensors of few elements or of nearly equal ones that were rounded."""


def explain_alike(pairs: Sequence[tuple[Tensor, Tensor]], reports: list[TensorReport]) -> None:
    """Name the most common rounding of a set also where another cause is less telling, if it predicts every element.

    A norm's weights of 1.00003 are 1 in bfloat16: of themselves they tell nothing but that they are constant.
    """
    roundings = Counter(map(_rounding_of, reports))
    del roundings["", False]
    if not roundings:
        return
    (cause, is_reversed), _count = roundings.most_common(1)[0]
    for number, ((a, b), report) in enumerate(zip(pairs, reports, strict=True)):
        is_other = _rounding_of(report) not in (("", False), (cause, is_reversed))
        if not report.cause or not (is_other or report.cause in _LESS_TELLING):
            continue
        element_type = common_type(a.element_type, b.element_type)
        if element_type is None:
            continue
        try:
            with np.errstate(all="ignore"):
                explained = explained_by(cause, Pair(a, b, element_type), is_reversed)
        except EltwiseError:  # A file that turns bad; the figures stay as they are.
            continue
        if explained is not None:
            reports[number] = with_cause(report, explained)


def _rounding_of(report: TensorReport) -> tuple[str, bool]:
    """The rounding that explains a tensor, and whether A is what B became; nothing where none does."""
    if not report.cause.endswith(_ROUNDED) or report.cause_share != 1.0:
        return "", False
    return report.cause, bool(report.explanation_details.get("reversed"))
