"""Shares as text."""

from __future__ import annotations

import math


def percent(share: float, decimals: int = 2) -> str:
    """A share, which is not said to be all or none by rounding.

    >>> percent(0.5), percent(0.0029), percent(0.99999), percent(0.00001)
    ('50 %', '0.29 %', '99.99 %', 'less than 0.01 %')
    >>> percent(0.99999, 4), percent(1 - 1e-9, 4)
    ('99.999 %', '99.9999 %')
    """
    step = 10**decimals
    steps = math.floor(round(share * 100 * step, 4))
    if share < 1:
        steps = min(steps, 100 * step - 1)
    return f"{steps / step:g} %" if steps or not share else f"less than {1 / step:g} %"
