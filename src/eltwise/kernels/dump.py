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
    kind: Kind,
    expression: Expression,
    element_type: ElementType,
    plan: Plan,
    operands: Sequence[np.ndarray],
    out: np.ndarray,
) -> str:
    """Describe how a call is computed.

    Args:
        kind: what to show.
        expression: what is computed.
        element_type: of all arrays.
        plan: where the operands lie in the result.
        operands: the arrays of the call.
        out: its result.

    Returns:
        Lines of text; comments where there is no kernel, or where the call was too small for it.
    """
    comment = {"plan": "", "llvm": "; ", "asm": "# "}[kind]
    why_not = _why_no_kernel(element_type, out)
    if why_not:
        return f"{comment}{why_not}\n"
    recipe = compiled.recipe_of(expression, element_type, plan, operands, out)
    remark = _remark(element_type, out)
    heading = f"{comment}{remark}\n" if remark else ""
    if kind == "plan":
        return heading + "".join(f"{line}\n" for line in _plan_lines(recipe, out))
    text = kernel_text(recipe.structure)
    return heading + (text if kind == "llvm" else jit.assembly(text))


def _why_no_kernel(element_type: ElementType, out: np.ndarray) -> str:
    if not dispatch.has_compiler():
        return "no kernel: llvmlite does not work here; NumPy's and ml_dtypes' loops compute it"
    if not compiles(element_type):
        return f"no kernel: {element_type.name} is computed by ml_dtypes' loops"
    return "no kernel: there are no elements" if out.size == 0 else ""


def _remark(element_type: ElementType, out: np.ndarray) -> str:
    least = dispatch.least_bytes(element_type)
    if out.nbytes >= least:
        return ""
    if dispatch.mode() == "numpy":
        return "NumPy's loops were asked for; the kernel below was not used"
    return f"this result of {out.nbytes:,} bytes came from NumPy's loops; the kernel below is for {least:,} and more"


def _plan_lines(recipe: Recipe, out: np.ndarray) -> list[str]:
    structure, walks = recipe.structure, recipe.walks
    names = ["result", *map(operand_name, range(structure.arrays - 1))]
    lines = []
    for loop in reversed(walks.outer):
        lines.append(f"loop of {loop.size:,}: {_moves(names, loop.steps)}")
    if walks.second is not None:
        lines.append(f"tiles down {walks.second.size:,} rows: {_moves(names, walks.second.steps)}")
    lines.append(f"innermost loop of {walks.inner.size:,}: {_moves(names, walks.inner.steps)}")
    lines.append("walks: " + ", ".join(f"{name} {walk}" for name, walk in zip(names, structure.walks, strict=True)))
    threads = compiled.threads_for(out.nbytes)
    stores = "past the cache" if structure.streams else "through the cache"
    lines.append(f"vectors of {structure.vector_bytes} bytes, stores {stores}, {threads} thread{'s' * (threads > 1)}")
    return lines


def _moves(names: Sequence[str], steps: Sequence[int]) -> str:
    return ", ".join(f"{name} {step:+d}" for name, step in zip(names, steps, strict=True))
