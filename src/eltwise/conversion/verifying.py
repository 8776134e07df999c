"""The comparison of a model before and after its conversion: both are run on hard values, and every bit is compared."""

from __future__ import annotations

import numpy as np

from eltwise import oracle
from eltwise.conformance.values import hard_values, random_bits
from eltwise.conversion.report import Comparison
from eltwise.dtypes import BOOL, ElementType
from eltwise.errors import EltwiseError
from eltwise.ir import Port
from eltwise.model import Model
from eltwise.shapes import Dimension, Shape

_ROUNDS = 4
"""How often every input is drawn for each choice of sizes that are not known."""

_SIZES = (3, 2, 1, 4, 0)
"""What is tried for sizes that are not known, all of them at once."""

_LARGEST = 1 << 20
"""The most elements that an input is given; a larger one is not run."""


class VerificationError(EltwiseError):
    """A converted model that does not give the bits of the one before: a fault of this package."""


def compare(before: Model, after: Model, seed: int = 0) -> Comparison:
    """Run both models on hard and random values and compare the bits of all outputs; any NaN equals any NaN.

    Args:
        before: the model that was converted.
        after: what became of it, with the same inputs and outputs in the same order.
        seed: of the drawn values.

    Returns:
        What was compared, or why nothing could be.

    Raises:
        VerificationError: where an output differs, or the model after refuses what the one before runs.
    """
    runs, elements, refusal = 0, 0, ""
    generator = np.random.default_rng(seed)
    for size in _SIZES:
        for _round in range(_ROUNDS):
            feeds = _drawn(before.inputs, size, generator)
            if feeds is None:
                refusal = refusal or "an input is too large to be drawn"
                break
            try:
                expected = before.run(feeds)
            except EltwiseError as error:
                refusal = refusal or str(error)
                break
            elements += _checked(after, feeds, expected, before)
            runs += 1
    return Comparison(runs, elements, "" if runs else refusal)


def _checked(after: Model, feeds: dict[str, np.ndarray], expected: dict[str, np.ndarray], before: Model) -> int:
    """Compare one run; gives how many elements were equal."""
    names = zip((port.name for port in after.inputs), (feeds[port.name] for port in before.inputs), strict=True)
    try:
        got = after.run(dict(names))
    except EltwiseError as error:
        raise VerificationError(f"the converted model refuses what the one before runs: {error}") from None
    for (name, right), (_name, given) in zip(expected.items(), got.items(), strict=True):
        if not oracle.same_bits(given, right):
            raise VerificationError("the converted model gives other bits", operand=f"output {name!r}")
    return sum(array.size for array in expected.values())


def _drawn(ports: tuple[Port, ...], size: int, generator: np.random.Generator) -> dict[str, np.ndarray] | None:
    """Values for every input, with one size for all that are not known; None where an input would be too large."""
    shapes = [_sizes(port.type.shape, size) for port in ports]
    if any(np.prod(shape, dtype=object) > _LARGEST for shape in shapes):
        return None
    feeds = {}
    for port, shape in zip(ports, shapes, strict=True):
        assert port.type.element_type is not None
        feeds[port.name] = np.asarray(_values(port.type.element_type, shape, generator))
    return feeds


def _sizes(shape: Shape, size: int) -> tuple[int, ...]:
    if shape.dimensions is None:
        return (size,) * 2
    return tuple(_nearest(dimension, size) for dimension in shape.dimensions)


def _nearest(dimension: Dimension, size: int) -> int:
    """The size, or the nearest that the dimension can have."""
    return max(dimension.low, size if dimension.high is None else min(size, dimension.high))


def _values(element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    if element_type is BOOL:
        return generator.integers(0, 2, shape).astype(np.bool_)
    drawn = random_bits(element_type, 256, int(generator.integers(1 << 30)))
    pool = np.concatenate([hard_values(element_type), drawn])
    count = int(np.prod(shape, dtype=object))
    return pool[np.resize(generator.permutation(pool.size), count)].reshape(shape)
