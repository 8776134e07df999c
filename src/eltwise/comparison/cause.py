"""What a cause is, and what is known of two tensors beside their elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from eltwise.conformance.fault_model import Operation
from eltwise.formats.lazy_tensors import LazyTensor


@dataclass(frozen=True)
class Cause:
    """Why two tensors differ.

    Attributes:
        cause: its name in the JSON.
        share: the share of the elements that differ, or should, which it predicts.
        text: what happened, in a sentence.
        details: axes, factors and the like.
    """

    cause: str
    share: float
    text: str
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """What else is known of two tensors.

    Attributes:
        others: the other tensors of A by name.
        operation: what A is the exact result of; None where that is not known.
        operands: its operands, in the shape of A.
    """

    others: Mapping[str, LazyTensor] = field(default_factory=dict)
    operation: Operation | None = None
    operands: tuple[np.ndarray, ...] = ()
