"""In which wider type an expression gives the same bits, once the result is cast back.

Integers wrap modulo 2^n in their own type. In a type where no step overflows the cast back takes the same bits, as long
as no primitive sees what would have wrapped before: sums and products do not mind, a quotient or a comparison would.
A float result that is rounded twice is the one that is rounded once where the wider type has enough digits, and what
is never rounded is the same in every wider type. Subnormals are no exception: a sum or difference has no bits below
the least one of its type, and a product or quotient of two bfloat16 has bits below the least one of float32 only where
it is too far from a tie to be rounded to anything else.
"""

from __future__ import annotations

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32, ElementType
from eltwise.ops.expression import Expression
from eltwise.ops.primitives import Interval


def exact_wider(expression: Expression, element_type: ElementType) -> ElementType | None:
    """The type in which an expression may be computed and cast back without changing a bit.

    Args:
        expression: what is computed.
        element_type: the type of the operands.

    Returns:
        A wider type that runtimes have, None where there is none for certain.
    """
    if element_type.is_integer:
        return INT32 if element_type.bits < 32 and _fits(expression, element_type, INT32) else None
    is_exact = element_type in (FLOAT16, BFLOAT16) and _is_rounded_as_once(expression, element_type, FLOAT32)
    return FLOAT32 if is_exact else None


def _fits(expression: Expression, narrow: ElementType, wide: ElementType) -> bool:
    """Whether no step overflows in the wide type, and none reads what would have wrapped in the narrow one."""
    own, limits = Interval(*narrow.limits), Interval(*wide.limits)
    values = [own] * expression.operands
    for step in expression.steps:
        operands = [values[value] for value in step.operands]
        if not step.definition.is_modular and not all(operand.is_within(own) for operand in operands):
            return False
        values.append(step.definition.value_range(*operands))
    return all(value.is_within(limits) for value in values)


def _is_rounded_as_once(expression: Expression, narrow: ElementType, wide: ElementType) -> bool:
    """Whether rounding to the wide type, and at the end to the narrow one, changes nothing.

    Each of several steps is rounded to the narrow type, so that one cast at the end would not do.
    """
    if not any(step.definition.rounds for step in expression.steps):
        return True
    return len(expression.steps) == 1 and wide.digits >= 2 * narrow.digits + 2
