"""Whether one matrix became another by adding a matrix of low rank, as merging a LoRA adapter does.

The rank is that of some rows and columns drawn at random. The span of these rows is then verified on every row: what
lies outside of it is no more than the rounding of elements.
"""

from __future__ import annotations

import math

import numpy as np

from eltwise.comparison.hypotheses import Cause, Problem
from eltwise.comparison.numbers import is_float, values_of
from eltwise.comparison.pairs import Pair

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


def low_rank(problem: Problem) -> Cause | None:
    """Whether B - A has a low rank, but for the rounding of elements."""
    pair, figures = problem.pair, problem.figures
    rows = pair.shape[0] if len(pair.shape) > 1 else 0
    columns = pair.size // max(rows, 1)
    most = min(LARGEST_RANK, min(rows, columns) // _SHARE_OF_SIZE, figures.differing // (2 * (rows + columns)))
    if not is_float(pair.element_type) or not most or columns > _MOST_COLUMNS or figures.counts["nan"]:
        return None
    epsilon = 2.0 ** (1 - min(one.element_type.digits for one in (pair.a, pair.b) if is_float(one.element_type)))
    size, change = (math.sqrt(one / pair.size) for one in (max(figures.squares[:2]), figures.squares[2]))
    rounding = _ROUNDING * epsilon * size + _ARITHMETIC * change
    if not _SIGNAL * rounding <= change < math.inf:
        return None
    generator = np.random.default_rng(0)
    chosen, few = (np.sort(generator.permutation(count)[:LARGEST_DECOMPOSED]) for count in (rows, columns))
    sampled = _change(pair, *pair.at((chosen[:, None] * columns + few).reshape(-1))).reshape(chosen.size, few.size)
    if not np.isfinite(sampled).all() or np.std(sampled) <= _SIGNAL * rounding:
        return None  # LAPACK may not come back from an infinity; and a constant has rank 1, too.
    left, values, _right = np.linalg.svd(sampled, full_matrices=False)
    rank = int((values > 2 * rounding * (math.sqrt(chosen.size) + math.sqrt(few.size))).sum())
    if not 0 < rank <= most:
        return None
    whole = np.stack([_change(pair, *pair.read(row * columns, (row + 1) * columns)) for row in chosen.tolist()])
    if not np.isfinite(whole).all():
        return None
    basis = np.linalg.qr((left[:, :rank].T @ whole).T)[0]
    if not _is_spanned(pair, basis, rounding, _LARGEST_ROUNDING * (epsilon * figures.largest + _ARITHMETIC * change)):
        return None
    text = f"B is A plus a matrix of rank {rank}, as after an adapter (LoRA) is merged"
    return Cause("low_rank", 1.0, text, {"rank": rank})


def _change(pair: Pair, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = (values_of(one, pair.element_type).astype(np.float64) for one in (a, b))
    return np.asarray(y - x)


def _is_spanned(pair: Pair, basis: np.ndarray, rounding: float, largest: float) -> bool:
    """Whether every row of B - A lies in the span of orthonormal columns, but for rounding."""
    columns, total = len(basis), 0.0
    step = max(_TILE // columns, 1) * columns
    for start in range(0, pair.size, step):
        rows = _change(pair, *pair.read(start, min(start + step, pair.size))).reshape(-1, columns)
        rest = rows - (rows @ basis) @ basis.T
        total += float(np.square(rest).sum())
        if not np.abs(rest).max() <= largest:  # Also for NaN.
            return False
    return math.sqrt(total / pair.size) <= rounding
