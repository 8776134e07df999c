"""What is measured, as data: an expression, an element type, shapes, memory order, and how it is called."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod
from typing import Any, Literal

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, TYPES, ElementType
from eltwise.engine.functions import FUNCTIONS
from eltwise.ops.expression import COMPOSITES, Expression, Step, expression_of
from eltwise.ops.primitives import PRIMITIVES

Sizes = tuple[int, ...]

Call = Literal["out", "allocate", "scalar", "number", "model"]
"""Into an existing result, with a result that the call allocates, also of a NumPy scalar or a Python number, or as a
loaded model."""

Group = Literal["large", "middle", "small", "model", "chain", "division", "reduction"]
"""Workloads with one goal: see ``GOALS``."""

MemoryOrder = Literal["contiguous", "transposed", "sliced"]
"""How the first operand lies in memory."""

_DIFFERENCES = (Step("subtract", (0, 1)), Step("subtract", (2, 3)), Step("subtract", (4, 5)))
_CHAIN = ("subtract", "multiply", "add", "maximum", "subtract", "minimum", "multiply", "add", "subtract", "maximum")
_STEPS = tuple(Step(name, (2 + number if number else 0, (number + 1) % 3)) for number, name in enumerate(_CHAIN))
_REDUCED = {
    "mean_squared_difference": COMPOSITES["squared_difference"],
    "mean_absolute_difference": COMPOSITES["absolute_difference"],
    "max_absolute_difference": COMPOSITES["absolute_difference"],
}
"""What the public functions that reduce reduce."""

_MODELS = {"nested": Expression(4, _DIFFERENCES), "chain": Expression(3, _STEPS)}


@dataclass(frozen=True)
class Workload:
    """One measurement.

    Attributes:
        name: how it is called in the table.
        element_type: of all operands.
        shapes: of the operands, in order.
        function: a public function of eltwise, or a key of ``_MODELS``.
        call: how it is called.
        order: how the first operand lies in memory.
        group: which goal it has.
        axes: those that a reduction reduces; None for all.
    """

    name: str
    element_type: ElementType
    shapes: tuple[Sizes, ...]
    function: str = "subtract"
    call: Call = "out"
    order: MemoryOrder = "contiguous"
    group: Group = "large"
    axes: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Its name, with what tells it from others of its group."""
        if self.group != "middle":
            return self.name
        return f"{self.elements:,}, {self.name}" + ", allocated" * (self.call == "allocate")

    @property
    def elements(self) -> int:
        """How many elements the result has, to one digit: the sides of squares are rounded."""
        return int(float(f"{prod(self.result_shape):.0e}"))

    @property
    def expression(self) -> Expression:
        """What is computed."""
        if self.function == "divide" and self.element_type.kind == "signed":
            return expression_of("floor_divide")
        known = _MODELS.get(self.function) or _REDUCED.get(self.function)
        return known or expression_of(self.function, len(self.shapes))

    @property
    def written(self) -> str:
        """What is computed, as on paper."""
        return f"{self.function.partition('_')[0]} of {self.expression}" if self.is_reduction else str(self.expression)

    @property
    def is_reduction(self) -> bool:
        """Whether the elements are reduced."""
        return self.function in _REDUCED

    def steps(self, library: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The steps by the names of an array library.

        Raises:
            LookupError: if the library has no function for one of them.
        """
        names = "numpy" if library == "numexpr" else library
        return tuple(
            (step.definition.library_name(names, self.element_type), step.operands) for step in self.expression.steps
        )

    @property
    def result_type(self) -> ElementType:
        """The element type of the elements."""
        return self.expression.result_type(self.element_type)

    @property
    def has_limit(self) -> bool:
        """Whether the loop of the memory limit fits: it moves as many bytes of each large operand as of the result."""
        is_alike = self.result_type.storage.itemsize == self.element_type.storage.itemsize
        return is_alike and not self.is_reduction

    @property
    def result_shape(self) -> Sizes:
        """The shape of the result; of a reduction that of the elements."""
        return np.broadcast_shapes(*self.shapes)

    @property
    def bytes_moved(self) -> int:
        """Every operand read once and the result written once, in bytes."""
        read = sum(map(prod, self.shapes)) * self.element_type.storage.itemsize
        return read + prod(self.result_shape) * self.result_type.storage.itemsize


GOALS: dict[Group, tuple[str, float]] = {
    "large": ("never slower than the best other library", 1.0),
    "middle": ("never slower than the best other library", 1.0),
    "small": ("at most half the time of the best other library", 2.0),
    "model": ("up to 1,000 elements a quarter of the time of onnxruntime's run, above never slower", 4.0),
    "chain": ("a third of the time of the best other library", 3.0),
    "division": ("of integers: never slower than the best other library", 1.0),
    "reduction": ("never slower than the best other library, whose sums are not exact", 1.0),
}
"""What each group is to reach, in words and as the least ratio of a row."""

_MEBI = 1 << 20
_BROADCASTS: tuple[tuple[str, Sizes, Sizes, MemoryOrder], ...] = (
    ("row (8192,4096) (4096)", (8192, 4096), (4096,), "contiguous"),
    ("column (8192,4096) (8192,1)", (8192, 4096), (8192, 1), "contiguous"),
    ("outer (6000,1) (1,5000)", (6000, 1), (1, 5000), "contiguous"),
    ("middle (64,128,4000) (64,1,4000)", (64, 128, 4000), (64, 1, 4000), "contiguous"),
    ("short rows (64,1,96,1) (56,1,80)", (64, 1, 96, 1), (56, 1, 80), "contiguous"),
    ("both (300,1,256) (300,256)", (300, 1, 256), (300, 256), "contiguous"),
    ("channel (8,64,65536) (64,1)", (8, 64, 65536), (64, 1), "contiguous"),
    ("transposed A (4096,4096)", (4096, 4096), (4096, 4096), "transposed"),
    ("sliced A (8192,4000)", (8192, 4000), (8192, 4000), "sliced"),
)
_MIDDLE_SIZES = (10_000, 100_000, 300_000, 1_000_000, 3_000_000)
_MIDDLE_TYPES = (FLOAT32, FLOAT16, BFLOAT16, INT8, INT64, FLOAT64)


def _of_size(count: int) -> Workload:
    group: Group = "small" if count <= 1000 else "middle" if count <= _MIDDLE_SIZES[-1] else "large"
    name = "same shape" if group == "middle" else f"{count:,} elements"
    return Workload(name, FLOAT32, ((count,),) * 2, call="allocate", group=group)


SIZES = tuple(map(_of_size, (16, 100, 1_000, *_MIDDLE_SIZES, 10_000_000, 30_000_000)))
"""The workloads of the picture of time over size."""

_ELEMENT_TYPES = tuple(each for each in TYPES if each.is_numeric and each.bits >= 8 and "float8" not in each.name)


def workloads(quick: bool) -> tuple[Workload, ...]:
    """Every workload; with ``quick`` fewer and smaller ones."""
    square = "squared_difference"
    same = (_large(FLOAT32, quick),) * 2
    found = [Workload("same shape", each, (_large(each, quick),) * 2) for each in _ELEMENT_TYPES]
    found += [Workload(name, FLOAT32, (a, b), order=order) for name, a, b, order in _BROADCASTS]
    found.append(Workload("same shape", FLOAT32, same, square))
    found += [
        Workload(name, FLOAT32, (a, b), square, order=order)
        for name, a, b, order in _BROADCASTS
        if not quick or name.startswith("outer")
    ]
    found += [Workload("same shape", FLOAT32, same, function) for function in ("divide", "maximum", "less")]
    found.append(Workload("same shape", FLOAT32, same[:1], "negative"))
    found.append(Workload("allocated result", FLOAT32, same, call="allocate"))
    found.append(Workload("model", FLOAT32, same * 2, "nested", "model"))
    counts = (100_000,) if quick else (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    found += [
        Workload(f"chain of ten, {count:,}", FLOAT32, ((count,),) * 3, "chain", "model", group="chain")
        for count in counts
    ]
    found += [
        Workload(f"model of {count:,}", FLOAT32, ((count,),) * 2, call="model", group="model")
        for count in (16, *counts)
    ]
    found += SIZES
    found.append(Workload("16 elements", INT32, ((16,),) * 2, call="allocate", group="small"))
    return tuple(found if quick else dict.fromkeys((*found, *_small(), *_middle(), *_divisions(), *_reductions())))


def _small() -> list[Workload]:
    """Calls of few elements: every type, and every function of the ones that are called on arrays."""
    kinds: dict[str, Any] = {"call": "allocate", "group": "small"}
    found = [Workload("small, 1,000 elements", each, ((1_000,),) * 2, **kinds) for each in _ELEMENT_TYPES]
    for name in sorted(FUNCTIONS.keys() & PRIMITIVES.keys()):
        shapes = ((16,),) * PRIMITIVES[name].arity
        found.append(Workload("small, 16 elements", FLOAT32, shapes, name, **kinds))
    found.append(Workload("small, 16 elements", FLOAT32, ((16,),) * 2, "squared_difference", **kinds))
    calls: tuple[tuple[str, Call], ...] = (("array of rank 0", "allocate"), ("scalar", "scalar"), ("number", "number"))
    for name, call in calls:
        found.append(Workload(f"small, 16 elements, {name}", FLOAT32, ((16,), ()), call=call, group="small"))
    return found


def _divisions() -> list[Workload]:
    """Quotients of integers, by as many divisors."""
    return [
        Workload(f"quotients of {count:,}", each, ((count,),) * 2, "divide", "allocate", group="division")
        for count in (16, 1_000, *_MIDDLE_SIZES)
        for each in (INT8, INT32, INT64)
    ]


def _reductions() -> list[Workload]:
    """Reductions of all elements, along axes, and of rows of several lengths."""
    cases: list[tuple[Sizes, tuple[int, ...] | None]] = [
        *(((count,), None) for count in (16, 1_000, *_MIDDLE_SIZES)),
        *((shape, (axis,)) for shape in ((40, 25), (100, 100), (1_000, 1_000)) for axis in (0, 1)),
        *(((250_000, 4), (1,)), ((16_384, 64), (1,)), ((64, 128, 128), (0, 2))),
    ]
    return [
        Workload(
            f"{'x'.join(map(str, shape))} {'all' if axes is None else ','.join(map(str, axes))}",
            each,
            (shape, shape),
            function,
            "allocate",
            group="reduction",
            axes=axes,
        )
        for function in ("mean_squared_difference", "max_absolute_difference")
        for each in (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, INT32)
        for shape, axes in cases
    ]


def _middle() -> list[Workload]:
    """Calls that are shared by threads, or nearly: each broadcast of operands that fit into a cache."""
    found = []
    for count in _MIDDLE_SIZES:
        side, height = isqrt(count), isqrt(count // 4)
        patterns: dict[str, tuple[Sizes, Sizes]] = {
            "same shape": ((count,), (count,)),
            "row": ((side, side), (side,)),
            "column": ((side, side), (side, 1)),
            "outer": ((side, 1), (1, side)),
            "middle": ((4, height, height), (4, 1, height)),
            "scalar": ((count,), ()),
        }
        calls: tuple[Call, ...] = ("out", "allocate")
        for call in calls:
            for pattern, shapes in patterns.items():
                types = _MIDDLE_TYPES if pattern in ("same shape", "column") else (FLOAT32,)
                found += [Workload(pattern, each, shapes, call=call, group="middle") for each in types]
    return found


def _large(element_type: ElementType, quick: bool) -> Sizes:
    """So many elements that no cache holds them."""
    size = {1: 64, 2: 32, 4: 32, 8: 16}[element_type.storage.itemsize] * _MEBI
    return (size // 2 if quick else size,)
