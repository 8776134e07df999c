"""In which wider type a formula gives the same bits, once the result is cast back.

Integers wrap modulo 2^n in their own type; in a type where no step overflows, the cast back takes the same bits. A
float result that is rounded to p2 digits and then to p is the one that is rounded once if p2 >= 2 p + 2 (Figueroa,
"When is double rounding innocuous?", 1995), which float32 is for float16 and bfloat16. Subnormals are no exception: a
sum or difference has no bits below the least one of its type, and a product of two bfloat16 has bits below the least
one of float32 only where it is too small by far to be rounded to anything but zero.
"""

from __future__ import annotations

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32, ElementType
from eltwise.ops.schema import Formula


def exact_wider(formula: Formula, element_type: ElementType) -> ElementType | None:
    """The type in which a formula may be computed and cast back without changing a bit.

    Args:
        formula: what is computed.
        element_type: the type of the operands and the result.

    Returns:
        A wider type that runtimes have, None where there is none for certain.
    """
    if element_type.is_integer:
        return INT32 if element_type.bits < 32 and _largest(formula, element_type) < 2**31 else None
    # Each of several steps is rounded to the narrow type, so that one cast at the end would not do.
    return FLOAT32 if element_type in (FLOAT16, BFLOAT16) and len(formula.steps) == 1 else None


def _largest(formula: Formula, element_type: ElementType) -> int:
    """The largest magnitude of any step."""
    low, high = element_type.limits
    results: list[int] = []
    for step in formula.steps:
        left, right = (
            results[operand] if isinstance(operand, int) else max(abs(low), abs(high))
            for operand in (step.left, step.right)
        )
        results.append(left * right if step.operation == "multiply" else left + right)
    return max(results)
