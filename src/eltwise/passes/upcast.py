"""Upcast: compute nodes in a wider type and cast back, with the same bits.

Integers wrap modulo 2^n in their own type; in a type where no step overflows, the cast back takes the same bits. A
float result that is rounded to p2 digits and then to p is the one that is rounded once if p2 >= 2 p + 2 (Figueroa,
"When is double rounding innocuous?", 1995), which float32 is for float16 and bfloat16. Subnormal bfloat16 are no
exception: a sum or difference has no bits below the least one of its type; a product has bits below the least one of
float32 only where it is too small to be rounded to anything but zero; a quotient that is not exactly between two
bfloat16 is further from there than float32 rounds.
"""

from __future__ import annotations

from dataclasses import replace

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32, ElementType
from eltwise.core.errors import ElementTypeError
from eltwise.ir.graph import Graph, Node
from eltwise.ops.expression import Expression
from eltwise.ops.primitive import Interval
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.builder import GraphBuilder
from eltwise.passes.report import PassReport
from eltwise.passes.rewriting import Chosen, rewrite


def exact_upcast(expression: Expression, element_type: ElementType) -> ElementType | None:
    """The wider type of runtimes in which an expression may be computed without changing a bit, None where none is."""
    if element_type.is_integer and element_type.bits < INT32.bits:
        return INT32 if _is_exact_in(expression, element_type, INT32) else None
    if element_type not in (FLOAT16, BFLOAT16):
        return None
    *before, last = expression.steps
    # Each step rounds to the narrow type, so that one cast at the end would not do.
    if any(step.definition.rounds for step in before):
        return None
    if not last.definition.rounds:
        return FLOAT32
    return FLOAT32 if last.definition.widens and FLOAT32.digits >= 2 * element_type.digits + 2 else None


def _is_exact_in(expression: Expression, narrow: ElementType, wide: ElementType) -> bool:
    """Whether no step overflows the wide type, and none depends on a step before it having wrapped."""
    limits, widest = Interval(*narrow.limits), Interval(*wide.limits)
    values = [limits] * expression.operands
    for step in expression.steps:
        operands = [values[operand] for operand in step.operands]
        if not step.definition.is_modular and not all(operand.is_within(limits) for operand in operands):
            return False
        values.append(step.definition.value_range(*operands))
        if not values[-1].is_within(widest):
            return False
    return True


def upcast(graph: Graph, chosen: Chosen) -> tuple[Graph, PassReport]:
    """Compute the chosen element-wise nodes whose type is known in the type that ``exact_upcast`` gives for them.

    Raises:
        ElementTypeError: naming each chosen node that no wider type is exact for.
    """
    return rewrite(graph, lambda builder, node: _rewritten(builder, node, chosen))


def _rewritten(builder: GraphBuilder, node: Node, chosen: Chosen) -> bool:
    if not isinstance(node.schema, ElementwiseSchema):
        return False
    computation, operands = node.computation(lambda value: builder.type_of(value).element_type)
    narrow = computation.check_types(tuple(builder.type_of(value).element_type for value in operands))
    if narrow is None or not chosen(node):
        return False
    expression = computation.expression
    wide = exact_upcast(expression, narrow)
    if wide is None:
        raise ElementTypeError("no wider type gives the same bits", got=narrow.name)
    first = len(builder.nodes)
    upcasts: dict[str, str] = {}
    for value, other in zip(operands, computation.other_types or (None,) * len(operands), strict=True):
        if other is None and value not in upcasts:
            upcasts[value] = builder.names.fresh(f"{value}/{wide}")
            builder.cast(value, upcasts[value], [narrow, wide], wide)
    output = node.outputs[0]
    is_cast_back = expression.result_type(narrow) is narrow
    result = builder.names.fresh(f"{output}/{wide}") if is_cast_back else output
    # A layer of IR has the name of its output, and callers must find the output under the name that it had.
    name = node.name if builder.target.domain == "ai.onnx" else result
    inputs = tuple(upcasts.get(value, value) for value in node.inputs)
    builder.nodes.append(replace(node, name=name, inputs=inputs, outputs=(result,)))
    if is_cast_back:
        builder.cast(result, output, [wide, narrow], narrow)
    builder.changed(node, first, f"{narrow} is computed in {wide}, which gives the same bits")
    return True
