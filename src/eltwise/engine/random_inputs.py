"""Random arrays that a model takes: of the declared types, with a size for each dimension that is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType, not_run
from eltwise.core.errors import AttributeValueError, UnsupportedError, shown, unknown_name
from eltwise.core.shapes import Dimension, count_beside_zeros, of_sizes
from eltwise.ir.graph import Port

_SIZES = (1, 16, 16)
"""The size of a first dimension that is not known, that of a last one, and that of others."""

_LARGEST = 8
"""Integers of more than 16 bits are drawn below this number, since they often count or select something."""

LARGEST_DRAWN = 1 << 26
"""The inputs of a model with more elements in all are not drawn: their sizes may come from a file."""


def random_inputs(ports: Sequence[Port], seed: int, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Draw an array for each input.

    Args:
        ports: the inputs.
        seed: of the generator.
        sizes: of symbols in their shapes; the others are chosen.

    Raises:
        EltwiseError: for a symbol that is in no shape, a size that it cannot have, inputs that are no tensors, and
            inputs that are too large.
    """
    dimensions = [one for port in ports for one in port.type.shape.dimensions or () if one.symbol]
    for name, size in sizes.items():
        if name not in {one.symbol for one in dimensions}:
            raise unknown_name("dimension", name, dict.fromkeys(one.symbol for one in dimensions))
        _check_size(name, size, [one for one in dimensions if one.symbol == name])
    return drawn([(port, port.type.element_type) for port in ports], seed, dict(sizes))


def _check_size(name: str, size: object, dimensions: Sequence[Dimension]) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or not all(one.may_be(size) for one in dimensions):
        raise AttributeValueError("not a size of this dimension", operand=name, got=shown(size))


def drawn(
    ports: Sequence[tuple[Port, ElementType | None]],
    seed: int,
    symbols: dict[str, int],
    open_sizes: tuple[int, int, int] = _SIZES,
) -> dict[str, np.ndarray]:
    """Draw inputs by name, each as an element type; a symbol has one size in all of them, which ``symbols`` may give.

    A dimension that is not known has a size of ``open_sizes``: that of a first one, of a last one, or of others.

    Raises:
        UnsupportedError: where a type or a rank is not declared, an input is no tensor of numbers, or they have more
            than ``LARGEST_DRAWN`` elements; nothing is allocated then.
    """
    inputs = [(port.name, *_array_type(port, element_type, symbols, open_sizes)) for port, element_type in ports]
    counts = [count_beside_zeros(shape) for _name, _type, shape in inputs]
    if sum(counts) > LARGEST_DRAWN:
        name, _type, shape = inputs[counts.index(max(counts))]
        raise UnsupportedError(
            "the inputs are too large to be drawn at random",
            operand=f"input {name!r}",
            got=f"({of_sizes(shape)})",
            allowed=f"at most {LARGEST_DRAWN:,} elements in all inputs, sizes of 0 left out",
            hint="give arrays for the inputs",
        )
    generator = np.random.default_rng(seed)
    return {name: _values(element_type, shape, generator) for name, element_type, shape in inputs}


def _array_type(
    port: Port, element_type: ElementType | None, symbols: dict[str, int], open_sizes: tuple[int, int, int]
) -> tuple[ElementType, tuple[int, ...]]:
    """The element type and the shape to draw; the sizes of symbols are added to ``symbols``."""
    operand = f"input {port.name!r}"
    if port.type.other:
        message = "the input is not a tensor of numbers, and cannot be given to a runtime here"
        raise UnsupportedError(message, operand=operand, got=port.type.other)
    if element_type is None or port.type.shape.dimensions is None:
        message = "no values can be drawn for this input, as its type or its rank is not declared"
        raise UnsupportedError(message, operand=operand, hint="give an array for it")
    if not element_type.runs:
        raise not_run(element_type, operand=operand)
    dimensions = port.type.shape.dimensions
    chosen = [open_sizes[0 if not axis else 1 if axis == len(dimensions) - 1 else 2] for axis in range(len(dimensions))]
    sizes = [
        max(one.low, size if one.high is None else min(one.high, size))
        for one, size in zip(dimensions, chosen, strict=True)
    ]
    for axis, one in enumerate(dimensions):
        if one.symbol:
            sizes[axis] = symbols.setdefault(one.symbol, sizes[axis])
    return element_type, tuple(sizes)


def _values(element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    if element_type is BOOL:
        return np.asarray(generator.integers(0, 2, shape)).astype(np.bool_)
    if not element_type.is_integer:
        return np.asarray(generator.standard_normal(shape, np.float32)).astype(element_type.storage)
    low, high = element_type.limits if element_type.bits <= 16 else (0, _LARGEST - 1)
    values = np.asarray(generator.integers(low, high + 1, shape))
    return np.where(values == 0, 1, values).astype(element_type.storage)  # An integer may divide another one.
