"""Regions of elements by where they lie, whatever their values: runtimes compute some of them in other ways.

A loop over vectors leaves a rest at the end of each row or of the whole; small, broadcast or high-ranked operands take
other kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from eltwise.conformance.number_arrays import Values


@dataclass(frozen=True)
class Region:
    """Some of the elements.

    Attributes:
        text: where they lie, as a clause for users.
        of: says of records of ``evidence.WHERE`` which of them lie there.
    """

    text: str
    of: Callable[[Values], Values]


def regions_of(where: Values) -> list[Region]:
    """Every region that some elements lie in and some do not, simplest first."""
    return [region for region in _regions(where) if region.of(where).any() and not region.of(where).all()]


def _regions(where: Values) -> Iterator[Region]:
    yield Region("where the result has one element", lambda where: where["size"] == 1)
    yield Region("where B has one element", lambda where: where["b_size"] == 1)
    yield Region("where A has one element", lambda where: where["a_size"] == 1)
    yield Region("where nothing is broadcast", _not_broadcast)
    for rank in np.unique(where["rank"])[1:].tolist():
        yield Region(f"where the rank is at least {rank}", partial(_at_least, name="rank", least=rank))
    for size in (4, 8, 16, 32, 64, 128, 256, 1024):
        yield Region(f"where the result has at least {size} elements", partial(_at_least, name="size", least=size))
    for width in (16, 32, 64, 8, 4):
        yield Region(f"in the rest of a row beyond multiples of {width}", partial(_in_rest_of_row, width=width))
        yield Region(f"in the rest of a result beyond multiples of {width}", partial(_in_rest, width=width))


def _in_rest_of_row(where: Values, width: int) -> Values:
    rest: Values = where["row_place"] >= where["row_length"] // width * width
    return rest


def _in_rest(where: Values, width: int) -> Values:
    rest: Values = where["place"] >= where["size"] // width * width
    return rest


def _not_broadcast(where: Values) -> Values:
    same: Values = (where["a_size"] == where["size"]) & (where["b_size"] == where["size"])
    return same


def _at_least(where: Values, name: str, least: int) -> Values:
    reached: Values = where[name] >= least
    return reached
