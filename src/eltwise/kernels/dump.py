"""What was built for a call, as text: the plan, the kernel in LLVM's language, or the processor's instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from eltwise.kernels import dispatch
from eltwise.kernels.plan import Divisors, TypedCall
from eltwise.kernels.threads import num_threads
from eltwise.ops.expression import operand_name

Kind = Literal["plan", "llvm", "asm"]
COMMENTS: dict[Kind, str] = {"plan": "", "llvm": "; ", "asm": "# "}
"""How a line begins that is a comment, for each kind of text."""


def describe(kind: Kind, typed: TypedCall, arrays: Sequence[np.ndarray], divisors: Divisors | None = None) -> str:
    """Describe how a call is computed.

    Args:
        kind: what to show.
        typed: what is computed.
        arrays: the operands of the call, then its result.
        divisors: the operands that must not hold a 0, for integers.

    Returns:
        Lines of text; comments where there is no kernel, or where the call was too small for it.
    """
    *operands, out = arrays
    why_not = dispatch.why_no_kernel(typed.expression, typed.element_type)
    if not (why_not or out.size):
        why_not = "there are no elements"
    if why_not:
        return f"{COMMENTS[kind]}no kernel: {why_not}\n"
    from eltwise.kernels import compiled, emit, jit

    swapped = tuple(not array.dtype.isnative for array in (out, *operands))
    recipe = compiled.Call(typed, swapped, divisors).recipe(operands, out)
    structure, nest = recipe.structure, recipe.nest
    remark = _remark(typed)
    heading = f"{COMMENTS[kind]}{remark}\n" if remark else ""
    if kind != "plan":
        text = emit.kernel_text(structure)
        return heading + (text if kind == "llvm" else jit.assembly(text))
    names = ["result", *map(operand_name, range(len(operands)))]
    lines = [f"loop of {loop.size:,}: {_moves(names, loop.steps)}" for loop in reversed(nest.outer)]
    if nest.second is not None:
        lines.append(f"tiles down {nest.second.size:,} rows: {_moves(names, nest.second.steps)}")
    lines.append(f"innermost loop of {nest.inner.size:,}: {_moves(names, nest.inner.steps)}")
    lines.append("walks: " + ", ".join(f"{name} {walk}" for name, walk in zip(names, nest.walks, strict=True)))
    threads = min(num_threads(), len(recipe.parts(num_threads())))
    stores = "past the cache" if structure.streams else "through the cache"
    width = structure.target.vector_bytes
    lines.append(f"vectors of {width} bytes, stores {stores}, {threads} thread{'s' * (threads > 1)}")
    return heading + "".join(f"{line}\n" for line in lines)


def _remark(typed: TypedCall) -> str:
    expression, element_type, plan = typed
    least, needed = dispatch.least_bytes(expression, element_type), plan.bytes_of(element_type)
    if needed >= least:
        return ""
    if dispatch.mode() == "numpy":
        return "NumPy's loops were asked for; the kernel below was not used"
    return (
        f"this result of {needed:,} bytes came from NumPy's loops; the kernel below is for {least:,} and more, and for "
        "calls that are made often"
    )


def _moves(names: Sequence[str], steps: Sequence[int]) -> str:
    return ", ".join(f"{name} {step:+d}" for name, step in zip(names, steps, strict=True))
