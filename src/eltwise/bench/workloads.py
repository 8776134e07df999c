"""What is measured: the workloads as data, with what each of them must reach. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, TYPES, ElementType

Sizes = tuple[int, ...]
Formula = Literal["subtract", "squared_difference", "nested"]
"""What is computed: a-b, (a-b)*(a-b) with both steps in the element type, or (a-b)-(c-d)."""

Call = Literal["out", "allocate", "model"]
"""How it is called: into a result that is there, with a result that the call makes, or as a model that is loaded."""

Layout = Literal["plain", "transposed", "sliced"]
"""How A lies in memory: without gaps, as a transposed matrix, or as the left part of a wider one."""

ANY_PEER = "best peer"
OWN_OUT = "eltwise with out"
"""The name of this project's own call with ``out``, beside a call that makes its result."""


@dataclass(frozen=True)
class Target:
    """How many times faster than ``than`` a workload must be; ``than`` is a peer's name or ``ANY_PEER``."""

    than: str
    ratio: float


@dataclass(frozen=True)
class Workload:
    """One row of the benchmark.

    Attributes:
        name: what it is called in the table.
        element_type: of all arrays.
        shapes: the shapes of the operands: of A and B, or of A, B, C and D.
        formula: what is computed.
        call: how.
        layout: how A lies in memory.
        targets: what must be reached against peers.
        least_share: the share of the memory limit that must be reached; None where there is no such demand.
    """

    name: str
    element_type: ElementType
    shapes: tuple[Sizes, ...]
    formula: Formula = "subtract"
    call: Call = "out"
    layout: Layout = "plain"
    targets: tuple[Target, ...] = ()
    least_share: float | None = None

    @property
    def result_shape(self) -> Sizes:
        """The shape of the result, by NumPy's rule."""
        return np.broadcast_shapes(*self.shapes)

    @property
    def read_bytes(self) -> tuple[int, ...]:
        """How many bytes each operand holds."""
        return tuple(prod(shape) * self.element_type.storage.itemsize for shape in self.shapes)

    @property
    def result_bytes(self) -> int:
        """How many bytes the result holds."""
        return prod(self.result_shape) * self.element_type.storage.itemsize

    @property
    def moved_bytes(self) -> int:
        """How many bytes must be moved: every operand read once, the result written once."""
        return sum(self.read_bytes) + self.result_bytes


TWELVE_TYPES = tuple(
    each for each in TYPES if each.is_numeric and each.bits >= 8 and not each.name.startswith("float8")
)
_MILLION = 1 << 20
_SMALL = 16
_GROWTH = (1_000, 10_000, 100_000, 1_000_000)
_LARGE_GROWTH = (10_000_000, 100_000_000, 1_000_000_000)
_PEER_FACTORS = {
    FLOAT16: (Target("onnxruntime", 4), Target("numpy", 25)),
    BFLOAT16: (Target("numpy", 8),),
}

_BROADCASTS: tuple[tuple[str, Sizes, Sizes, Layout], ...] = (
    ("row (8192,4096)-(4096)", (8192, 4096), (4096,), "plain"),
    ("column (8192,4096)-(8192,1)", (8192, 4096), (8192, 1), "plain"),
    ("outer (6000,1)-(1,5000)", (6000, 1), (1, 5000), "plain"),
    ("middle (64,128,4000)-(64,1,4000)", (64, 128, 4000), (64, 1, 4000), "plain"),
    ("short rows (64,1,96,1)-(56,1,80)", (64, 1, 96, 1), (56, 1, 80), "plain"),
    ("both (300,1,256)-(300,256)", (300, 1, 256), (300, 256), "plain"),
    ("channel (8,64,65536)-(64,1)", (8, 64, 65536), (64, 1), "plain"),
    ("A transposed (4096,4096)", (4096, 4096), (4096, 4096), "transposed"),
    ("A sliced (8192,4000)", (8192, 4000), (8192, 4000), "sliced"),
)
_QUICK_SQUARES = ("column", "outer")


def workloads(quick: bool) -> tuple[Workload, ...]:
    """Give the rows of the benchmark; ``quick`` takes fewer and smaller ones."""
    same = tuple(_same_shape(element_type, quick) for element_type in TWELVE_TYPES)
    return (*same, *_broadcasts(), *_squares(quick), *_calls(quick), *_growth(quick))


def _elements(element_type: ElementType, quick: bool) -> int:
    """16 to 64 million elements: a result that no cache holds, in arrays that fit into 1.5 GiB together."""
    size = element_type.storage.itemsize
    full = {1: 64, 2: 32, 4: 32, 8: 16}
    return (full[size] if not quick else {1: 48, 2: 24}.get(size, 16)) * _MILLION


def _same_shape(element_type: ElementType, quick: bool) -> Workload:
    shape = (_elements(element_type, quick),)
    targets = (Target(ANY_PEER, 1.15), *_PEER_FACTORS.get(element_type, ()))
    return Workload("a-b", element_type, (shape, shape), targets=targets, least_share=0.8)


def _broadcasts() -> tuple[Workload, ...]:
    targets = (Target(ANY_PEER, 1.2),)
    return tuple(
        Workload(name, FLOAT32, (a, b), layout=layout, targets=targets, least_share=0.75)
        for name, a, b, layout in _BROADCASTS
    )


def _squares(quick: bool) -> tuple[Workload, ...]:
    targets = (Target(ANY_PEER, 1.3),)
    shape = (_elements(FLOAT32, quick),)
    shapes = [("same shape", shape, shape, "plain"), *_BROADCASTS]
    return tuple(
        Workload(f"(a-b)^2 {name}", FLOAT32, (a, b), "squared_difference", "out", layout, targets, 0.8)
        for name, a, b, layout in shapes
        if not quick or name.startswith(("same", *_QUICK_SQUARES))
    )


def _calls(quick: bool) -> tuple[Workload, ...]:
    """The other kinds of call: with a result that is made by it, as a model, and on few elements."""
    large, small = (16 * _MILLION,), (_SMALL,)
    allocating = (Target("numpy", 1.8), Target(OWN_OUT, 1 / 1.1))
    nested = Workload(
        "model (a-b)-(c-d)",
        FLOAT32,
        ((8 * _MILLION if quick else large[0],),) * 4,
        "nested",
        "model",
        targets=(Target("onnxruntime", 2),),
    )
    return (
        Workload("a-b, result made by the call", FLOAT32, (large, large), call="allocate", targets=allocating),
        nested,
        Workload(
            "model.run on 16 elements",
            FLOAT32,
            (small, small),
            call="model",
            targets=(Target("onnxruntime", 1 / 0.6),),
        ),
        Workload(
            "subtract on 16 elements",
            FLOAT32,
            (small, small),
            call="allocate",
            targets=(Target("numpy", 1 / 2.5),),
        ),
    )


def _growth(quick: bool) -> tuple[Workload, ...]:
    small = [(FLOAT32, count) for count in _GROWTH]
    large = [] if quick else [(INT8, count) for count in _LARGE_GROWTH]
    return tuple(
        Workload(f"a-b of {count:,} elements", element_type, ((count,), (count,)))
        for element_type, count in (*small, *large)
    )
