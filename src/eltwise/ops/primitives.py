"""The table of primitives: everything that the package knows of what an operator computes for each element.

Kernels, NumPy's loops, the notation, the proof that an upcast is exact, the conformance run and the runtime adapters
read it. A record states a form for each kind of element type that the primitive takes; asking for what is not stated
raises, so that nothing is ever guessed. Only the oracle has definitions of its own, on purpose.
"""

from __future__ import annotations

from eltwise.ops.arithmetic import ARITHMETIC, COMPARISONS
from eltwise.ops.choices import CHOICES
from eltwise.ops.conversions import CONVERSIONS
from eltwise.ops.floats import FLOATS, REAL
from eltwise.ops.integers import INTEGERS
from eltwise.ops.primitive import Primitive
from eltwise.ops.sums import SUMS

PRIMITIVES: dict[str, Primitive] = {
    primitive.name: primitive
    for primitive in (*(*ARITHMETIC, *COMPARISONS, *FLOATS, *CHOICES, *INTEGERS, *REAL, *CONVERSIONS, *SUMS),)
}
"""Every primitive by its name."""

ARITHMETIC_NAMES = frozenset(primitive.name for primitive in (*ARITHMETIC, *COMPARISONS))
"""Those of which conformance has faults and targets have rules."""


def find(name: str) -> Primitive:
    """Find a primitive by its name.

    Raises:
        LookupError: where the table has none of this name.
    """
    if name not in PRIMITIVES:
        raise LookupError(f"there is no primitive {name!r}; there are {', '.join(PRIMITIVES)}")
    return PRIMITIVES[name]
