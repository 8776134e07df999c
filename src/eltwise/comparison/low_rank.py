"""Whether one matrix became another by adding a matrix of low rank, as merging a LoRA adapter does.

The rank is that of some rows and columns drawn at random. The span of these rows is then verified on every row: what
lies outside of it is no more than the rounding of elements, but for a few elements, which are named.
"""

from __future__ import annotations

import math

import numpy as np

from eltwise.comparison.hypotheses import Cause, Problem
from eltwise.comparison.numbers import is_float, values_of
from eltwise.comparison.pairs import Pair
from eltwise.core.errors import counted, named

LARGEST_DECOMPOSED, LARGEST_RANK = 96, 80
"""Of how many rows and columns singular values are computed, whatever the matrix has, and which ranks that tells."""

_MOST_COLUMNS = 1 << 16
_SHARE_OF_SIZE = 4
"""A rank is low where the matrix has so many times more rows and columns."""

_ROUNDING, _LARGEST_ROUNDING = 0.5, 8.0
"""The root mean square and the largest value of what rounding changes, in epsilons of the elements."""

_ARITHMETIC = 2.0**-46
"""How exact this arithmetic in float64 is, in parts of the change."""

_SIGNAL = 4.0
_TILE = 1 << 20
_ISOLATED = 0.9
"""The share of a row in a direction of its own: what it differs by is not of the matrix that other rows share."""

_MOST_BESIDES, _MOST_BESIDES_OF_ROW = 16, 4
"""So many elements, and one less in each row, may differ by something else."""


def low_rank(problem: Problem) -> Cause | None:
    """Whether B - A has a low rank, but for the rounding of elements."""
    pair, figures = problem.pair, problem.figures
    rows = pair.shape[0] if len(pair.shape) > 1 else 0
    columns = pair.size // max(rows, 1)
    most = min(LARGEST_RANK, min(rows, columns) // _SHARE_OF_SIZE, figures.differing // (2 * (rows + columns)))
    if (
        not (is_float(pair.a.element_type) and is_float(pair.b.element_type))
        or not most
        or columns > _MOST_COLUMNS
        or figures.counts["nan"]
    ):
        return None
    epsilon = 2.0 ** (1 - min(one.element_type.digits for one in (pair.a, pair.b)))
    least, size = sorted(figures.norms[:2] / math.sqrt(pair.size))
    change = float(figures.norms[2]) / math.sqrt(pair.size)
    rounding = _ROUNDING * epsilon * size + _ARITHMETIC * change
    if not _SIGNAL * rounding <= min(change, least) or change == math.inf:
        return None  # Of a smaller A nothing is left in B, which is of low rank itself.
    generator = np.random.default_rng(0)
    chosen, few = (np.sort(generator.permutation(count)[:LARGEST_DECOMPOSED]) for count in (rows, columns))
    sampled = _change(pair, *pair.at((chosen[:, None] * columns + few).reshape(-1))).reshape(chosen.size, few.size)
    if not np.isfinite(sampled).all():
        return None  # LAPACK may not come back from an infinity.
    if not 0 < _span(sampled, rounding).shape[1] <= most:
        return None
    whole = np.stack([_change(pair, *pair.read(row * columns, (row + 1) * columns)) for row in chosen.tolist()])
    if not np.isfinite(whole).all():
        return None
    sketch = whole @ (generator.standard_normal((columns, LARGEST_DECOMPOSED)) / math.sqrt(columns))
    isolated = np.square(_span(sketch, rounding)).sum(axis=1) > _ISOLATED
    whole, sketch = whole[~isolated], sketch[~isolated]
    if not len(whole) or np.std(whole) <= _SIGNAL * rounding:
        return None  # A constant has rank 1, too.
    span = _span(sketch, rounding)
    rank = span.shape[1]
    if not 0 < rank <= most:
        return None
    basis = np.linalg.qr((span.T @ whole).T)[0]
    largest = _LARGEST_ROUNDING * (epsilon * figures.largest + _ARITHMETIC * change)
    besides = _besides(pair, basis, rounding, largest)
    if besides is None:
        return None
    text, details = f"B is A plus a matrix of rank {rank}, as after an adapter (LoRA) is merged", {"rank": rank}
    if not besides:
        return Cause("low_rank", 1.0, text, details)
    indices = [list(map(int, np.unravel_index(index, pair.shape))) for index in besides]
    text += f", but for {counted(len(besides), 'element')} at {named(list(map(str, indices)))}"
    return Cause("low_rank", 1 - len(besides) / figures.differing, text, {**details, "besides": indices})


def _span(rows: np.ndarray, rounding: float) -> np.ndarray:
    """Orthonormal columns that span those of a matrix, but for rounding: as many as its rank."""
    left, values, _right = np.linalg.svd(rows, full_matrices=False)
    is_signal = values > 2 * rounding * sum(map(math.sqrt, rows.shape))
    return np.asarray(left[:, : int(is_signal.sum())])


def _change(pair: Pair, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = (values_of(one, pair.element_type).astype(np.float64) for one in (a, b))
    return np.asarray(y - x)


def _besides(pair: Pair, basis: np.ndarray, rounding: float, largest: float) -> list[int] | None:
    """The few elements of B - A without which every row lies in the span of columns, but for rounding; None of many."""
    columns, total, besides = len(basis), 0.0, list[int]()
    step = max(_TILE // columns, 1) * columns
    for start in range(0, pair.size, step):
        rows = _change(pair, *pair.read(start, min(start + step, pair.size))).reshape(-1, columns)
        rest = rows - (rows @ basis) @ basis.T
        for row in np.flatnonzero(~(np.abs(rest).max(axis=1) <= largest))[: _MOST_BESIDES + 1].tolist():  # Also NaN.
            outside, rest[row] = _outside(rows[row], basis, largest)
            besides += [start + row * columns + column for column in outside]
            if not outside or len(besides) > _MOST_BESIDES:
                return None
        total += float(np.square(rest).sum())
    return besides if math.sqrt(total / pair.size) <= rounding else None


def _outside(row: np.ndarray, basis: np.ndarray, largest: float) -> tuple[list[int], np.ndarray]:
    """The elements of a row that are not in the span of columns, and what is left of the others; none if many."""
    outside, mask = list[int](), np.ones(row.size, bool)
    for _count in range(_MOST_BESIDES_OF_ROW if np.isfinite(row).all() else 0):
        rest = np.where(mask, row - basis @ np.linalg.lstsq(basis[mask], row[mask])[0], 0)
        if np.abs(rest).max() <= largest:
            return outside, rest
        outside.append(int(np.abs(rest).argmax()))
        mask[outside] = False
    return [], row
