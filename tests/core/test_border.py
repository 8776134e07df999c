"""The ranges of arguments that many functions have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eltwise.core.border import check_limit, check_seed
from eltwise.core.errors import AttributeValueError


@pytest.mark.parametrize(
    ("check", "least", "most", "step"),
    [(check_seed, 0, 2**63, 1), (check_limit, 0.01, 1e6, 0.001)],
    ids=["seed", "limit"],
)
def test_a_range_ends_where_its_error_says(
    check: Callable[[float], None], least: float, most: float, step: float
) -> None:
    for value in (least, most, (least + most) / 2):
        check(value)
    for value in (least - step, most + step, float("nan")):
        with pytest.raises(AttributeValueError, match="out of range"):
            check(value)
