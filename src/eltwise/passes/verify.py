"""Verification of a pass: the model before and the one after are run on hard values, and every bit is compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import BOOL, ElementType
from eltwise.core.errors import EltwiseError, ValueRangeError
from eltwise.core.shapes import Dimension, Shape, of_sizes
from eltwise.engine.program import with_inputs
from eltwise.ir.graph import Port
from eltwise.ir.infer_graph import infer_graph
from eltwise.model import Model
from eltwise.oracle.hard_values import hard_values, of_all_digits, random_bits
from eltwise.passes.report import Comparison

_ROUNDS = (4, 100)
"""How many times every input is drawn, at least and at most, for each choice of unknown sizes."""

_DRAWN = 1024
"""How many numbers of a kind are drawn once, for inputs to be filled from."""

_MOST_DRAWN = 4000
"""How many inputs are filled for each choice of sizes, at most, beyond the least number of rounds."""

_ENOUGH = 2000
"""The number of elements of the largest input after which the least number of rounds is enough."""

_SIZES = (3, 2, 1, 4, 6, 17, 0)
"""The sizes tried for unknown dimensions, one for all of them at a time."""

_ORDINARY = 4
"""Every so many times inputs are ordinary numbers."""

_ORDINARY_INTEGERS = 8

_LARGEST = 1 << 20
"""The most elements of an input; a model with a larger one is not run."""

_LARGEST_RESULT = 1 << 22
"""The most elements that a value may have, for a comparison bit by bit."""


class VerificationError(EltwiseError):
    """A converted model that does not give the bits of the original: a defect of this package."""


@dataclass(frozen=True)
class Run:
    """The inputs of one run of a model by name, and its outputs; both in the model's order.

    ``is_ordinary`` says that the inputs are numbers of ordinary size and not 0.
    """

    feeds: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    is_ordinary: bool = False


def runs_of(model: Model, seed: int = 0, most: int = _ROUNDS[1]) -> Iterator[Run | str]:
    """Run a model on hard and random values, every fourth time on ordinary ones; where that does not work, why not.

    Args:
        model: the model.
        seed: of the drawn values.
        most: how many times every input is drawn, at most, for each choice of unknown sizes.
    """
    generator = np.random.default_rng(seed)
    for size in _SIZES:
        if _largest_result(model, size) > _LARGEST_RESULT:
            yield "a result is too large to be compared"
            continue
        for number in range(min(most, _rounds(model.inputs, size))):
            is_ordinary = number % _ORDINARY == 0
            feeds = _drawn(model.inputs, size, generator, is_ordinary)
            if feeds is None:
                yield "an input is too large to be drawn"
                break
            try:
                yield replace(_run(model, feeds), is_ordinary=is_ordinary)
            except EltwiseError as error:
                yield str(error)
                break


def _run(model: Model, feeds: dict[str, np.ndarray]) -> Run:
    """Run a model; where a value is out of range, as an integer divisor of 0, once more without zeros."""
    try:
        return Run(feeds, model.run(feeds))
    except ValueRangeError:
        feeds = {name: np.where(array == 0, array.dtype.type(1), array) for name, array in feeds.items()}
        return Run(feeds, model.run(feeds))


def compare(before: Model, after: Model, seed: int = 0) -> Comparison:
    """Run both models on hard and random values and compare the bits of all outputs; any NaN equals any NaN.

    Args:
        before: the model that was converted.
        after: the new model, with the same inputs and outputs in the same order.
        seed: of the drawn values.

    Returns:
        What was compared, or why nothing could be.

    Raises:
        VerificationError: where an output differs, or the new model refuses what the original runs.
    """
    runs, elements, refusal = 0, 0, ""
    for found in runs_of(before, seed):
        if isinstance(found, str):
            refusal = refusal or found
            continue
        elements += _checked(after, found)
        runs += 1
    return Comparison(runs, elements, "" if runs else refusal)


def _checked(after: Model, run: Run) -> int:
    """Compare one run; gives the number of equal elements."""
    names = zip((port.name for port in after.inputs), run.feeds.values(), strict=True)
    try:
        got = after.run(dict(names))
    except EltwiseError as error:
        raise VerificationError(f"the converted model refuses what the original runs: {error}") from None
    return equal_elements(run, list(got.values()), "the converted model")


def equal_elements(run: Run, got: Sequence[np.ndarray], giver: str) -> int:
    """The number of elements of a run, all of which must be equal.

    Raises:
        VerificationError: naming the first output that is not, and the first element of it.
    """
    for (name, exact), given in zip(run.expected.items(), got, strict=True):
        if oracle.same_bits(given, exact):
            continue
        raise VerificationError(
            f"{giver} gives different bits", operand=f"output {name!r}", got=difference(given, exact)
        )
    return sum(array.size for array in run.expected.values())


def difference(given: np.ndarray, exact: np.ndarray) -> str:
    """The first element that differs, or the type and shape, in words."""
    if given.shape != exact.shape or given.dtype != exact.dtype:
        return f"{given.dtype}{list(given.shape)} for {exact.dtype}{list(exact.shape)}"
    pairs = zip(given.reshape(-1), exact.reshape(-1), strict=True)
    index, pair = next(
        (index, pair) for index, pair in enumerate(pairs) if not oracle.same_bits(*map(np.asarray, pair))
    )
    return f"{pair[0]} for {pair[1]} at the flat index {index}"


def _rounds(ports: tuple[Port, ...], size: int) -> int:
    """How many times inputs are drawn: small ones more often, since few values meet in them."""
    least, most = _ROUNDS
    largest = max((int(np.prod(_sizes(port.type.shape, size), dtype=object)) for port in ports), default=0)
    return max(least, min(most, _ENOUGH // largest, _MOST_DRAWN // len(ports))) if largest else least


def _drawn(
    ports: tuple[Port, ...], size: int, generator: np.random.Generator, is_ordinary: bool
) -> dict[str, np.ndarray] | None:
    """Values for every input, with one size for all that are not known; None where an input would be too large."""
    shapes = [_sizes(port.type.shape, size) for port in ports]
    if any(np.prod(shape, dtype=object) > _LARGEST for shape in shapes):
        return None
    feeds = {}
    for port, shape in zip(ports, shapes, strict=True):
        assert port.type.element_type is not None
        feeds[port.name] = np.asarray(_values(port.type.element_type, shape, generator, is_ordinary))
    return feeds


def _largest_result(model: Model, size: int) -> int:
    """How many elements the largest value has, of those whose shape can be inferred."""
    types = {port.value: replace(port.type, shape=of_sizes(_sizes(port.type.shape, size))) for port in model.inputs}
    found = infer_graph(with_inputs(model.graph, types)).types.values()
    return max((prod(known.shape.sizes()) for known in found if known.shape.is_known), default=0)


def _sizes(shape: Shape, size: int) -> tuple[int, ...]:
    if shape.dimensions is None:
        return (size,) * 2
    return tuple(_nearest(dimension, size) for dimension in shape.dimensions)


def _nearest(dimension: Dimension, size: int) -> int:
    """The size, or the nearest that the dimension can have."""
    return max(dimension.low, size if dimension.high is None else min(size, dimension.high))


def _values(
    element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator, is_ordinary: bool
) -> np.ndarray:
    """Zeros and ones, hard values, random bits and numbers of all digits, as many of each; or ordinary numbers."""
    if element_type is BOOL:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if is_ordinary and element_type.is_integer:
        return generator.integers(1, _ORDINARY_INTEGERS, shape).astype(element_type.storage)
    pools = _pools(element_type)[-1:] if is_ordinary else _pools(element_type)
    made = np.empty(shape, element_type.storage)
    chosen = generator.integers(0, len(pools), shape)
    for number, pool in enumerate(pools):
        selected = chosen == number
        made[selected] = generator.choice(pool, int(selected.sum()))
    return made


@cache
def _pools(element_type: ElementType) -> tuple[np.ndarray, ...]:
    plain = np.array([0.0, -0.0, 1.0, 1.0]).astype(element_type.storage)
    drawn = [draw(element_type, _DRAWN, 0) for draw in (random_bits, of_all_digits)]
    return (plain, hard_values(element_type), *drawn)
