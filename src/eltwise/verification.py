"""Verification of a pass: the model before and the one after are run on hard values, and every bit is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import BOOL, ElementType
from eltwise.core.errors import EltwiseError, ValueRangeError, VerificationError
from eltwise.core.shapes import Shape, count_beside_zeros, of_sizes
from eltwise.engine.program import with_inputs
from eltwise.ir.infer_graph import infer_graph
from eltwise.model import Model
from eltwise.oracle.hard_values import hard_values, of_all_digits, random_bits
from eltwise.passes.report import Comparison

_SIZES = (3, 2, 1, 4, 6, 17, 0)
"""The sizes tried for unknown dimensions, one for all of them at a time."""

_ROUNDS = (4, 100)
"""How many times every input is drawn, at least and at most, for each choice of unknown sizes."""

_MOST_DRAWN = 4000
"""How many inputs are filled for each choice of sizes, at most, beyond the least number of rounds."""

_ENOUGH = 2000
"""The number of elements of the largest input after which the least number of rounds is enough."""

_ORDINARY = 4
"""Every so many times inputs are ordinary numbers."""

_LARGEST = 1 << 20
"""The most elements of an input; a model with a larger one is not run."""

_LARGEST_RESULT = 1 << 22
"""The most elements that a value may have, for a comparison bit by bit."""


@dataclass(frozen=True)
class Run:
    """The inputs of one run of a model by name, and its outputs; both in the model's order.

    ``is_ordinary`` says that the inputs are numbers of ordinary size and not 0; ``name`` is that of a given set.
    """

    feeds: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    is_ordinary: bool = False
    name: str = ""


def runs_of(model: Model, seed: int = 0, most: int = _ROUNDS[1]) -> Iterator[Run | str]:
    """Run a model on hard and random values, every fourth time on ordinary ones; where that does not work, why not."""
    generator = np.random.default_rng(seed)
    for size in _SIZES:
        shapes = {port.name: _sizes(port.type.shape, size) for port in model.inputs}
        largest = max((prod(shape) for shape in shapes.values()), default=0)
        is_too_large = max(map(count_beside_zeros, shapes.values()), default=0) > _LARGEST
        if is_too_large or _largest_result(model, shapes) > _LARGEST_RESULT:
            yield "an input is too large to be drawn" if is_too_large else "a result is too large to be compared"
            continue
        rounds = _ROUNDS[0]
        if largest:  # Few values meet in small inputs.
            rounds = max(rounds, min(_ROUNDS[1], _ENOUGH // largest, _MOST_DRAWN // len(shapes)))
        for number in range(min(most, rounds)):
            is_ordinary = number % _ORDINARY == 0
            feeds = {
                port.name: _values(port.type.element_type, shapes[port.name], generator, is_ordinary)
                for port in model.inputs
                if port.type.element_type
            }
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


Outputs = Sequence[np.ndarray]
"""The outputs of a run, in the model's order."""


def compare_runs(
    runs: Iterable[Run | str], compute: Callable[[Outputs], Outputs], check: Callable[[Run, Outputs], None]
) -> Comparison:
    """Compare runs of a model with what should give the same.

    Args:
        runs: what is right.
        compute: gives the outputs for some inputs, both in the model's order.
        check: what to do with these, and the run that they belong to.

    Returns:
        How much was compared, and why nothing was where no run of the model works.
    """
    count, elements, refusal = 0, 0, ""
    for run in runs:
        if isinstance(run, str):
            refusal = refusal or run
            continue
        check(run, compute(list(run.feeds.values())))
        elements += sum(array.size for array in run.expected.values())
        count += 1
    return Comparison(count, elements, "" if count else refusal)


def compare(before: Model, after: Model, seed: int = 0) -> Comparison:
    """Run both models on hard and random values and compare the bits of all outputs; any NaN equals any NaN.

    Raises:
        VerificationError: where an output differs, or the new model refuses what the original runs.
    """

    def compute(inputs: Outputs) -> Outputs:
        try:
            feeds = dict(zip((port.name for port in after.inputs), inputs, strict=True))
            return list(after.run(feeds).values())
        except EltwiseError as error:
            raise VerificationError(f"the converted model refuses what the original runs: {error}") from None

    return compare_runs(runs_of(before, seed), compute, _check_equal)


def _check_equal(run: Run, results: Outputs) -> None:
    for (name, exact), result in zip(run.expected.items(), results, strict=True):
        if not oracle.same_bits(result, exact):
            problem = "the converted model gives different bits"
            raise VerificationError(problem, operand=f"output {name!r}", got=difference(result, exact))


def difference(actual: np.ndarray, exact: np.ndarray) -> str:
    """How an array differs from the right one: in its type, its shape, or the first of the elements that do most."""
    if actual.shape != exact.shape or actual.dtype != exact.dtype:
        return f"{actual.dtype}{list(actual.shape)} for {exact.dtype}{list(exact.shape)}"
    got, expected = actual.reshape(-1), exact.reshape(-1)
    with np.errstate(all="ignore"):
        errors = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        errors[np.isnan(errors)] = np.inf
    errors[(got == expected) | (np.not_equal(got, got) & np.not_equal(expected, expected))] = 0.0
    index = int(np.argmax(errors))
    if not errors[index]:  # Only signs of zeros differ, or integers beyond float64's digits.
        pairs = enumerate(zip(got, expected, strict=True))
        index = next(index for index, pair in pairs if not oracle.same_bits(*map(np.asarray, pair)))
    return f"{got[index]} for {expected[index]} at the flat index {index}"


def _largest_result(model: Model, shapes: dict[str, tuple[int, ...]]) -> int:
    """How many elements the largest value has, sizes of 0 left out, of those whose shape can be inferred."""
    types = {port.value: port.type._replace(shape=of_sizes(shapes[port.name])) for port in model.inputs}
    types_of = infer_graph(with_inputs(model.graph, types)).types.values()
    return max((count_beside_zeros(known.shape.sizes()) for known in types_of if known.shape.is_known), default=0)


def _sizes(shape: Shape, size: int) -> tuple[int, ...]:
    """Sizes that a shape can have, as near to the one that is tried as possible."""
    if shape.dimensions is None:
        return (size,) * 2
    return tuple(max(one.low, size if one.high is None else min(size, one.high)) for one in shape.dimensions)


def _values(
    element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator, is_ordinary: bool
) -> np.ndarray:
    """Zeros and ones, hard values, random bits and numbers of all digits, as many of each; or ordinary numbers."""
    if element_type is BOOL:
        return np.asarray(generator.integers(0, 2, shape)).astype(np.bool_)
    if is_ordinary and element_type.is_integer:
        return np.asarray(generator.integers(1, 8, shape)).astype(element_type.storage)
    pools = _pools(element_type)[-1:] if is_ordinary else _pools(element_type)
    values = np.empty(shape, element_type.storage)
    chosen = generator.integers(0, len(pools), shape)
    for number, pool in enumerate(pools):
        selected = chosen == number
        values[selected] = generator.choice(pool, int(selected.sum()))
    return values


@cache
def _pools(element_type: ElementType) -> tuple[np.ndarray, ...]:
    plain = np.array([0.0, -0.0, 1.0, 1.0]).astype(element_type.storage)
    return (plain, hard_values(element_type), *(draw(element_type, 1024, 0) for draw in (random_bits, of_all_digits)))
