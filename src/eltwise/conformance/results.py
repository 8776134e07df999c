"""What a runtime does in a test: an operator version with an element type, a broadcast rule, an operand source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np

from eltwise.conformance.cases import LETTERS, SOURCE_NAMES, Case
from eltwise.core.dtypes import TYPES, of_numpy
from eltwise.core.errors import FileFormatError
from eltwise.core.fields import Check, Form, Natural, one_of, plain
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import array_of, bits_of
from eltwise.runtimes.registry import RULES

Outcome = Literal["ok", "refused", "accepted", "differs", "hung", "crashed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""The outcomes from the best to the worst; a test has the worst of its cases."""

Extent = Literal["quick", "usual", "thorough"]
EXTENTS: tuple[Extent, ...] = get_args(Extent)
"""How much is tested, from little to everything."""

_RUN = {each.name: each for each in TYPES if each.runs}
TypeName = Annotated[str, one_of(_RUN)]
"""The name of an element type that is run."""


@dataclass(frozen=True)
class _StoredArray:
    """An array in a file, by the bit patterns of its elements in C order."""

    dtype: TypeName
    shape: tuple[Natural, ...]
    bits: tuple[str, ...]

    @staticmethod
    def of(array: np.ndarray) -> _StoredArray:
        return _StoredArray(of_numpy(array.dtype).name, array.shape, tuple(_hexadecimal(array)))

    def array(self) -> np.ndarray:
        element_type, count = _RUN[self.dtype], prod(self.shape)
        if len(self.bits) != count:
            allowed = f"{count} patterns for the shape {list(self.shape)}"
            raise FileFormatError("the number of bit patterns is wrong", got=str(len(self.bits)), allowed=allowed)
        try:
            patterns = [int(text, 16) for text in self.bits if text.startswith("0x")]
        except ValueError:
            patterns = []
        if len(patterns) < count or any(pattern >> element_type.bits for pattern in patterns):
            allowed = f"patterns of at most {element_type.bits} bits such as 0x1f"
            raise FileFormatError("these are no bit patterns", allowed=allowed)
        return array_of(element_type, patterns, self.shape)


Array = Annotated[np.ndarray, Form(_StoredArray, _StoredArray.array, _StoredArray.of)]


@dataclass(frozen=True)
class _StoredCase:
    """A case in a file; how its operands reach the op is in the test's source."""

    op: Annotated[ElementwiseSchema, Form(str, registry.find, str)]
    attributes: Mapping[str, int | float | str | tuple[int, ...]]
    operands: Annotated[tuple[Array, ...], Check(len, "at least one operand")]

    @staticmethod
    def of(case: Case) -> _StoredCase:
        return _StoredCase(case.schema, dict(case.attributes), case.operands)  # type: ignore[arg-type]

    def case(self) -> Case:
        return Case(self.op, tuple(self.attributes.items()), self.operands)


StoredCase = Annotated[Case, Form(_StoredCase, _StoredCase.case, _StoredCase.of)]


class Shown(NamedTuple):
    """One element as a reader sees it: in decimal, and its bit pattern in hexadecimal."""

    value: str
    bits: str

    def __str__(self) -> str:
        return f"{self.value} ({self.bits})"


_NAMES = (*LETTERS, "expected", "got")
Example = Annotated[
    Mapping[Annotated[str, one_of(_NAMES)], Shown | None],
    Check({"expected", "got"}.issubset, "an object with the fields expected and got"),
]
"""One index of the smallest failing case: the operands' elements by letter, ``expected``, None if the case must be
refused, and ``got``, None if nothing came."""


@dataclass(frozen=True, eq=False)
class Failing:
    """The smallest failing case, what came for it, and the cases that have to be before it in one model, if any."""

    case: StoredCase
    got: Array | None = None
    co_resident: tuple[StoredCase, ...] = ()


def _operator(name: str) -> str:
    registry.find(name)
    return name


@dataclass(frozen=True, eq=False)
class TestResult:
    """What a runtime does in one test."""

    __test__ = False  # It is not a test of pytest's.

    runtime: str  # The runtime's name.
    version: str  # Its version, empty if it has none.
    op: Annotated[str, Form(str, _operator, str)]  # The versioned name of the operator.
    dtype: TypeName  # The element type by its NumPy name.
    broadcast: Annotated[str, one_of(RULES)]  # The broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
    source: Annotated[str, one_of(SOURCE_NAMES)]  # The operand source, for example ``static`` or ``a-constant``.
    outcome: Outcome  # The worst outcome of its cases.
    # What explains differences: for each reason the names of the fault models that act together.
    reasons: tuple[tuple[str, ...], ...] = ()
    wrong: Natural = 0  # How many elements differ; for the other outcomes, how many cases have it.
    total: Natural = 0  # How many elements or cases were compared.
    example: Example | None = None  # One element of the smallest failing case.
    message: str = ""  # ``description``, and how many cases had which outcome.
    failing: Failing | None = None  # The smallest failing case; None if nothing failed, or if it is too large.
    description: str = ""  # The runtime's message, or what the fault models do.

    @property
    def key(self) -> str:
        """What names the test, for example ``onnxruntime/Sub-14/uint8/numpy/static``."""
        return "/".join((self.runtime, self.op, self.dtype, self.broadcast, self.source))

    @property
    def faults(self) -> tuple[str, ...]:
        """The names of the fault models of all reasons, each once."""
        return tuple(dict.fromkeys(name for names in self.reasons for name in names))

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, TestResult) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        fields: dict[str, object] = plain(self)
        return fields

    @property
    def explanation(self) -> str:
        """The reasons as text."""
        return "; ".join(" + ".join(names) for names in self.reasons)


def shown(array: np.ndarray, index: int) -> Shown:
    """Show the element at a flat index.

    >>> str(shown(np.uint8([0, 255]), 1))
    '255 (0xff)'
    """
    element = array.reshape(-1)[index : index + 1]
    return Shown(str(element[0]), _hexadecimal(element)[0])


def _hexadecimal(array: np.ndarray) -> list[str]:
    digits = (of_numpy(array.dtype).bits + 3) // 4
    return [f"0x{pattern:0{digits}x}" for pattern in bits_of(array)]
