"""What a runtime does in one cell of the matrix: operator version x element type x broadcast rule x path. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from eltwise.conformance.cases import Attributes, Case
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import array_of, bits_of

Verdict = Literal["ok", "refused", "accepted", "differs", "hung", "crashed"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""The verdicts from the best to the worst; a cell has the worst of its cases."""


@dataclass(frozen=True)
class Shown:
    """One element as a reader sees it.

    Attributes:
        value: in decimal, for example ``255``, ``-0.0`` or ``nan``.
        bits: the bit pattern in hexadecimal, for example ``0xff``.
    """

    value: str
    bits: str


@dataclass(frozen=True)
class Example:
    """The operands' elements at one place of the smallest failing case, the exact result and what came.

    ``expected`` is None where the case must be refused, ``got`` where nothing came.
    """

    a: Shown
    b: Shown
    expected: Shown | None
    got: Shown | None


@dataclass(frozen=True)
class StoredOperand:
    """An operand that can be rebuilt exactly: its type, its shape and its bit patterns in C order."""

    element_type: ElementType
    shape: tuple[int, ...]
    bits: tuple[int, ...]

    def array(self) -> np.ndarray:
        """Make the array."""
        return array_of(self.element_type, self.bits, self.shape)


@dataclass(frozen=True)
class StoredCase:
    """A case as plain values: what is needed to ask any runtime the same again, and what came.

    ``got`` is None where no array came. ``beside`` is the case that has to stand before it in one model.
    """

    attributes: Attributes
    a: StoredOperand
    b: StoredOperand
    got: StoredOperand | None = None
    beside: StoredCase | None = None

    def case(self, schema: ElementwiseSchema) -> Case:
        """Make the case again, of the operator version that it was asked of."""
        return Case(schema, self.attributes, self.a.array(), self.b.array())


@dataclass(frozen=True)
class Cell:
    """One record of the results.

    Attributes:
        runtime: the runtime's name.
        version: its version, empty where it has none.
        op: the versioned name.
        dtype: the element type by its NumPy name.
        broadcast: the broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
        path: how the operands reach the operator, for example ``static`` or ``a-constant``.
        verdict: the worst verdict of the cell's cases.
        explanation: what explains a difference; empty where there is nothing to explain.
        wrong: how many elements differ; for the other verdicts, how many cases have it.
        total: how many elements or cases were judged.
        example: one place of the smallest failing case.
        message: the runtime's own words, and what else is to be said.
        case: the smallest failing case whole, for ``reproduce``; None where nothing failed, or where it is too large.
    """

    runtime: str
    version: str
    op: str
    dtype: str
    broadcast: str
    path: str
    verdict: Verdict
    explanation: str = ""
    wrong: int = 0
    total: int = 0
    example: Example | None = None
    message: str = ""
    case: StoredCase | None = None

    @property
    def key(self) -> str:
        """What names the cell, for example ``onnxruntime/Sub-14/uint8/numpy/static``."""
        return "/".join((self.runtime, self.op, self.dtype, self.broadcast, self.path))


def shown(array: np.ndarray, place: int) -> Shown:
    """Show the element at a flat C-order place.

    >>> shown(np.uint8([0, 255]), 1)
    Shown(value='255', bits='0xff')
    """
    element = array.reshape(-1)[place : place + 1]
    digits = (of_numpy(array.dtype).bits + 3) // 4
    return Shown(str(element[0]), f"0x{bits_of(element)[0]:0{digits}x}")


def stored(case: Case, got: np.ndarray | None = None, beside: Case | None = None) -> StoredCase:
    """Turn a case, what a runtime gave for it, and the case in whose company, into plain values."""
    result = None if got is None else _stored_operand(got)
    company = None if beside is None else stored(beside)
    return StoredCase(case.attributes, _stored_operand(case.a), _stored_operand(case.b), result, company)


def _stored_operand(array: np.ndarray) -> StoredOperand:
    return StoredOperand(of_numpy(array.dtype), array.shape, tuple(bits_of(array)))
