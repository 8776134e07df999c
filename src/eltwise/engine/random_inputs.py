"""Random arrays that a model takes: of the declared types, with a size for each dimension that is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType, not_run
from eltwise.core.errors import AttributeValueError, UnsupportedError, shown, unknown_name
from eltwise.core.shapes import Dimension
from eltwise.ir.graph import Port

_SIZES = (1, 16, 16)
"""The size of a first dimension that is not known, that of a last one, and that of others."""

_LARGEST = 8
"""Integers of more than 8 bits are drawn below this number, since they often count or select something."""


def random_inputs(ports: Sequence[Port], seed: int, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Draw an array for each input.

    Args:
        ports: the inputs.
        seed: of the generator.
        sizes: of symbols in their shapes; the others are chosen.

    Raises:
        EltwiseError: for a symbol that is in no shape, a size that it cannot have, and inputs that are no tensors.
    """
    dimensions = [one for port in ports for one in port.type.shape.dimensions or () if one.symbol]
    for name, size in sizes.items():
        if name not in {one.symbol for one in dimensions}:
            raise unknown_name("dimension", name, dict.fromkeys(one.symbol for one in dimensions))
        _check_size(name, size, [one for one in dimensions if one.symbol == name])
    generator, symbols = np.random.default_rng(seed), dict(sizes)
    return {port.name: drawn(port, port.type.element_type, generator, symbols) for port in ports}


def _check_size(name: str, size: object, dimensions: Sequence[Dimension]) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or not all(one.may_be(size) for one in dimensions):
        raise AttributeValueError("not a size of this dimension", operand=name, got=shown(size))


def drawn(
    port: Port,
    element_type: ElementType | None,
    generator: np.random.Generator,
    symbols: dict[str, int],
    open_sizes: tuple[int, int, int] = _SIZES,
) -> np.ndarray:
    """Draw an input as an element type; a symbol has one size in all inputs, which is added to ``symbols``.

    A dimension that is not known has a size of ``open_sizes``: that of a first one, of a last one, or of others.

    Raises:
        EltwiseError: where the type or the rank is not declared, or it is no tensor of numbers.
    """
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
    return _values(element_type, tuple(sizes), generator)


def _values(element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    if element_type is BOOL:
        return np.asarray(generator.integers(0, 2, shape)).astype(np.bool_)
    if not element_type.is_integer:
        return np.asarray(generator.standard_normal(shape, np.float32)).astype(element_type.storage)
    low, high = element_type.limits if element_type.bits <= 8 else (0, _LARGEST - 1)
    values = np.asarray(generator.integers(low, high + 1, shape))
    return np.where(values == 0, 1, values).astype(element_type.storage)  # An integer may divide another one.
