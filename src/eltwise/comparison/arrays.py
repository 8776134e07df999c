"""Two tensors compared: the figures, the places, the cause, as one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eltwise.comparison.causes import UNEXPLAINED, find_cause
from eltwise.comparison.heat_map import heat_map
from eltwise.comparison.hypotheses import Cause, ComparisonSettings
from eltwise.comparison.numbers import bits_of, is_float
from eltwise.comparison.pairs import Pair, common_type
from eltwise.comparison.places import Claim, where
from eltwise.comparison.scan import Figures, scan
from eltwise.comparison.tensor_report import Element, Status, TensorReport
from eltwise.comparison.tolerance import Tolerance, ToleranceLike, parse_tolerances, tolerance_of
from eltwise.core.errors import EltwiseError
from eltwise.faults.record import Operation
from eltwise.ir.tensors import Tensor, of_array, storage_of

_OF_EQUAL: dict[str, Any] = {
    "status": "equal",
    **dict.fromkeys(("differing", "beyond_tolerance", "max_ulp"), 0),
    **dict.fromkeys(("mean_abs", "max_rel", "mean_rel"), 0.0),
    **dict.fromkeys(("nan_mismatches", "infinity_mismatches", "zero_sign_mismatches"), 0),
}
"""The figures of two equal tensors."""


def compare_arrays(
    a: np.ndarray,
    b: np.ndarray,
    tolerance: ToleranceLike = None,
    *,
    causes: bool = True,
    operation: Operation | None = None,
    operands: Sequence[np.ndarray] = (),
) -> TensorReport:
    """Compare two NumPy arrays.

    Args:
        a: the reference.
        b: what is compared with it.
        tolerance: what is forgiven.
        causes: whether the cause of differences is looked for.
        operation: what ``a`` is the exact result of, where that is known; its fault models are then tried first.
        operands: the operands of that operation, expanded to the shape of ``a``.

    Returns:
        The record; a tensor that differs has the cause, ``unexplained`` where no hypothesis predicts it.
    """
    chosen = tolerance_of(parse_tolerances(tolerance), "")
    settings = ComparisonSettings(chosen, causes, operation=operation, operands=tuple(operands))
    return compare_tensors(of_array("", a), of_array("", b), settings)


def compare_tensors(a: Tensor, b: Tensor, settings: ComparisonSettings) -> TensorReport:
    """Compare two tensors, which may be larger than memory."""
    with np.errstate(all="ignore"):
        return _compared(a, b, settings)


def _compared(a: Tensor, b: Tensor, settings: ComparisonSettings) -> TensorReport:
    element_type = common_type(a.element_type, b.element_type)
    report = TensorReport(
        name=a.name,
        other_name=b.name,
        status="differs",
        dtype=a.element_type.name,
        other_dtype=b.element_type.name,
        shape=a.shape,
        other_shape=b.shape,
        total=a.size,
        tolerance=str(settings.tolerance or ""),
    )
    shapes = f"the shape is {list(b.shape)} instead of {list(a.shape)}" if a.shape != b.shape else ""
    if element_type is None:
        message = (
            f"{a.element_type} and {b.element_type} have no common type that holds both, so values are not compared"
        )
        message += f"; {shapes}" if shapes else ""
        return with_cause(report, Cause("other_type", 1.0, message))
    pair = Pair(a, b, element_type)
    if shapes:
        cause = find_cause(pair, Figures(), settings) if settings.causes else Cause("other_shape", 1.0, shapes)
        return with_cause(report, cause)
    return _measured(report, pair, settings)


def with_cause(report: TensorReport, cause: Cause) -> TensorReport:
    """The report with a cause."""
    return replace(
        report,
        cause=cause.cause,
        cause_share=cause.share,
        explanation=cause.text,
        explanation_details=dict(cause.details),
    )


def _measured(report: TensorReport, pair: Pair, settings: ComparisonSettings) -> TensorReport:
    tolerance = settings.tolerance
    figures = scan(pair, tolerance or Tolerance(), settings.meter)
    counts = figures.counts
    beyond = counts["beyond"] if tolerance else figures.differing
    is_exact = not is_float(pair.element_type)
    has_other_type = pair.a.element_type is not pair.b.element_type
    if not figures.differing and not has_other_type:  # Checkpoints can have very many of these.
        return replace(report, **_OF_EQUAL, max_abs=0 if is_exact else 0.0)
    status: Status = "differs" if beyond else "within_tolerance" if figures.differing else "equal"
    if has_other_type and status != "differs":
        status = "within_tolerance" if tolerance else "differs"
    text, claims = where(pair, figures)
    # A zero would only say that no two elements that differ are numbers.
    has_numbers = not counts["nan"] or figures.differing > counts["nan"] + counts["both_nan"]
    is_finite = figures.differing > counts["nan"] + counts["both_nan"] + counts["infinity"]
    measured = replace(
        report,
        status=status,
        differing=figures.differing,
        beyond_tolerance=beyond,
        max_abs=figures.max_ulp if is_exact else figures.max_abs if has_numbers else None,
        mean_abs=figures.mean_abs,
        max_rel=figures.max_rel if has_numbers else None,
        mean_rel=figures.mean_rel,
        max_ulp=figures.max_ulp if has_numbers else None,
        norms=tuple(figures.norms.tolist()) if is_finite else None,
        ulp_histogram=_without_end(figures),
        nan_mismatches=counts["nan"],
        infinity_mismatches=counts["infinity"],
        zero_sign_mismatches=counts["zero_sign"],
        first=_element(pair, figures.first),
        worst=_element(pair, figures.worst),
        where=text,
        where_details=tuple(claim.to_dict() for claim in claims),
        heat_map=heat_map(pair, figures),
    )
    if not figures.differing:
        message = f"the same values, as {pair.b.element_type} instead of {pair.a.element_type}"
        return with_cause(measured, Cause("other_type", 1.0, message)) if has_other_type else measured
    return with_cause(measured, _cause(pair, figures, settings, claims)) if settings.causes else measured


def _cause(pair: Pair, figures: Figures, settings: ComparisonSettings, claims: Sequence[Claim]) -> Cause:
    """The cause; where a file turns bad while it is looked for, the figures are kept."""
    try:
        return find_cause(pair, figures, settings, claims)
    except EltwiseError as error:
        return Cause(UNEXPLAINED, 0.0, f"the cause could not be looked for: {error}")


def _without_end(figures: Figures) -> tuple[int, ...]:
    used = np.flatnonzero(figures.histogram)
    return tuple(figures.histogram[: used[-1] + 1].tolist()) if used.size else ()


def _element(pair: Pair, index: int) -> Element | None:
    """The values and the bits of one place, each in the tensor's own type."""
    if index < 0:
        return None
    values, bits = [], []
    for tensor in (pair.a, pair.b):
        one = np.ascontiguousarray(tensor.at(np.array([index])))
        digits = -(-tensor.element_type.bits // 4)
        bits.append(f"0x{int(bits_of(one)[0]) & ((1 << tensor.element_type.bits) - 1):0{digits}x}")
        values.append(one.astype(np.float64).item() if is_float(tensor.element_type) else _whole(one, tensor))
    coordinates = tuple(map(int, np.unravel_index(index, pair.shape))) if pair.shape else ()
    return Element(coordinates, values[0], values[1], bits[0], bits[1])


def _whole(one: np.ndarray, tensor: Tensor) -> int | bool:
    value = one.item() if storage_of(tensor.element_type).kind in "biu" else int(one.astype(np.int8).item())
    return value if isinstance(value, bool) else int(value)
