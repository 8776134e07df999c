"""The two sides of an assertion as tensors by name: nested containers, files and models have several."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from eltwise.comparison import intake
from eltwise.comparison.intake import parts_of
from eltwise.core.containers import dotted, leaves, text_of
from eltwise.core.errors import AttributeValueError, ElementTypeError, EltwiseError, shown
from eltwise.core.escaping import shortened
from eltwise.engine.arrays import exact_scalar
from eltwise.engine.intake import is_scalar, kind_of
from eltwise.formats.tensor_sets import ENDINGS, HUB, OPENERS
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Tensor, of_array
from eltwise.ir.values import Values

Leaf: TypeAlias = Tensor | Values | bool | int | float
Leaves: TypeAlias = dict[str, Leaf]
"""What a side has, by name; a Python number takes the type of the other side."""


def leaves_of(value: object, side: str) -> Leaves:
    """Take in one side: every tensor of it by its name, which is empty for a single one.

    Raises:
        EltwiseError: for what holds no tensors, and for a file that cannot be read.
    """
    value = opened(value, side)
    if isinstance(value, TensorSet):
        for error in value.unreadable.values():
            raise error
        return {"": value.arrays[0]} if value.is_one and len(value.arrays) == 1 else {**value.tensors, **value.others}
    by_name: Leaves = {}
    for keys, leaf in leaves(value, side):
        name = dotted(keys)
        if name in by_name:
            raise AttributeValueError("two values have one name", operand=f"{side} {name!r}")
        for part, content in parts_of(name, leaf).items():
            by_name[part] = _leaf(content, f"{side} {name!r}" if name else side)
    return by_name


def opened(value: object, side: str) -> object:
    """A path, a model or a set of tensors as a set; anything else as it is.

    Raises:
        EltwiseError: for a file that cannot be read.
    """
    if not _is_set(value):
        return value
    from eltwise.comparison.compare import tensors_of

    return tensors_of(value, side)


def _is_set(value: object) -> bool:
    """Whether it is a path, a model or a set of tensors, as ``compare`` takes them; a text that is no path is none."""
    if isinstance(value, str) and Path(value).suffix.lower() not in (*ENDINGS, *OPENERS) and not value.startswith(HUB):
        return os.path.exists(value)  # noqa: PTH110 - that of a Path raises for what no path can be
    is_module = hasattr(value, "state_dict")  # It is refused with what to compare instead.
    is_model = hasattr(value, "graph") and not kind_of(value)
    return isinstance(value, str | os.PathLike | TensorSet) or is_module or is_model


def _leaf(value: object, operand: str) -> Leaf:
    if is_scalar(value):
        return value  # type: ignore[return-value]
    if isinstance(value, Path):
        raise AttributeValueError("a path is a whole side", operand=operand, hint="compare the two files by themselves")
    return intake.in_memory("", value, operand, operand)


def as_tensors(actual: Leaf, expected: Leaf) -> tuple[Tensor, Tensor] | None:
    """Two leaves as tensors, a Python number in the type of the other side if that holds it; None for other leaves."""
    types = [leaf.element_type for leaf in (expected, actual) if isinstance(leaf, Tensor)]
    tensors = []
    for leaf in (actual, expected):
        if isinstance(leaf, Tensor):
            tensors.append(leaf)
        elif is_scalar(leaf):
            tensors.append(of_array("", _array_of_number(leaf, types)))
        else:
            return None
    return tensors[0], tensors[1]


def arrays_of(value: object, name: str) -> dict[str, np.ndarray]:
    """The arrays of a golden's side by their names; a single one has that of the golden.

    Raises:
        ElementTypeError: for what is no array and no number.
    """
    arrays = {}
    for key, leaf in leaves_of(value, "actual").items():
        tensors = as_tensors(leaf, leaf)
        if tensors is None:
            raise ElementTypeError("a golden holds arrays and numbers", operand=key or name, got=described(leaf))
        arrays[key or name] = tensors[0].array
    return arrays


def _array_of_number(number: object, types: list[Any]) -> np.ndarray:
    if types:
        try:
            return exact_scalar(number, types[0], "")
        except EltwiseError:
            pass  # It differs in its type, which the comparison says.
    array = np.asarray(number)
    if array.dtype.kind not in "biuf":
        raise ElementTypeError("no element type holds this number", got=shown(number))
    return array


def described(leaf: Leaf) -> str:
    """What a leaf is, in a message: the type of an array, and a single value itself."""
    if isinstance(leaf, Values):
        return f"an array of {leaf.type}" if leaf.shape else shortened(str(leaf.read(0, 1)[0]))
    return f"an array of {leaf.element_type}" if isinstance(leaf, Tensor) else shortened(text_of(leaf))
