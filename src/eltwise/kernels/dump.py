"""What was built for a call, as text: the plan, the kernel in LLVM's language, or the processor's instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import compiled, dispatch, jit
from eltwise.kernels.compiled import Recipe
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.plan import Plan
from eltwise.kernels.scalar import compiles
from eltwise.ops.expression import Expression, operand_name

Kind = Literal["plan", "llvm", "asm"]
KINDS: tuple[Kind, ...] = ("plan", "llvm", "asm")


def describe(
    kind: Kind, expression: Expression, element_type: ElementType, plan: Plan, arrays: Sequence[np.ndarray]
) -> str:
    """Describe how a call is computed.

    Args:
        kind: what to show.
        expression: what is computed.
        element_type: of the operands.
        plan: where the operands lie in the result.
        arrays: the operands of the call, then its result.

    Returns:
        Lines of text; comments where there is no kernel, or where the call was too small for it.
    """
    *operands, out = arrays
    comment = {"plan": "", "llvm": "; ", "asm": "# "}[kind]
    why_not = _why_no_kernel(expression, element_type, out)
    if why_not:
        return f"{comment}{why_not}\n"
    swapped = tuple(not array.dtype.isnative for array in (out, *operands))
    call = compiled.Call(expression, element_type, plan, tuple(operand.shape for operand in operands), swapped)
    recipe = call.recipe(operands, out)
    remark = _remark(expression, element_type, plan)
    heading = f"{comment}{remark}\n" if remark else ""
    if kind == "plan":
        return heading + "".join(f"{line}\n" for line in _plan_lines(recipe))
    text = kernel_text(recipe.structure)
    return heading + (text if kind == "llvm" else jit.assembly(text))


def _why_no_kernel(expression: Expression, element_type: ElementType, out: np.ndarray) -> str:
    if not dispatch.has_compiler():
        return "no kernel: llvmlite does not work here; NumPy's and ml_dtypes' loops compute it"
    if not compiles(element_type):
        return f"no kernel: {element_type.name} is computed by NumPy's and ml_dtypes' loops"
    if expression.operands > dispatch.MOST_OPERANDS:
        return f"no kernel: {expression.operands} operands are computed by NumPy's loops"
    return "no kernel: there are no elements" if out.size == 0 else ""


def _remark(expression: Expression, element_type: ElementType, plan: Plan) -> str:
    least, needed = dispatch.least_bytes(expression, element_type), plan.bytes_of(element_type)
    if needed >= least:
        return ""
    if dispatch.mode() == "numpy":
        return "NumPy's loops were asked for; the kernel below was not used"
    return f"this result of {needed:,} bytes came from NumPy's loops; the kernel below is for {least:,} and more"


def _plan_lines(recipe: Recipe) -> list[str]:
    structure, walks = recipe.structure, recipe.walks
    names = ["result", *map(operand_name, range(structure.arrays - 1))]
    lines = []
    for loop in reversed(walks.outer):
        lines.append(f"loop of {loop.size:,}: {_moves(names, loop.steps)}")
    if walks.second is not None:
        lines.append(f"tiles down {walks.second.size:,} rows: {_moves(names, walks.second.steps)}")
    lines.append(f"innermost loop of {walks.inner.size:,}: {_moves(names, walks.inner.steps)}")
    lines.append("walks: " + ", ".join(f"{name} {walk}" for name, walk in zip(names, structure.walks, strict=True)))
    threads = compiled.threads_for(recipe.result_bytes)
    stores = "past the cache" if structure.streams else "through the cache"
    lines.append(f"vectors of {structure.vector_bytes} bytes, stores {stores}, {threads} thread{'s' * (threads > 1)}")
    return lines


def _moves(names: Sequence[str], steps: Sequence[int]) -> str:
    return ", ".join(f"{name} {step:+d}" for name, step in zip(names, steps, strict=True))
