"""Which kernel computes a call: a compiled one where it is faster, else NumPy's own loops. Both give the same bits."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, ElementType
from eltwise.core.errors import AttributeValueError
from eltwise.core.shapes import Sizes
from eltwise.kernels import numpy_kernel
from eltwise.kernels.native import OFTEN, RecipeOf, Records, is_possible
from eltwise.kernels.numpy_kernel import Run
from eltwise.kernels.plan import Divisors, TypedCall
from eltwise.ops.expression import Expression
from eltwise.ops.primitive import IntoContiguous

LEAST_BYTES = 1 << 20
"""Below this size of the result NumPy's own loops are as fast as a kernel, and nearer."""

LEAST_BYTES_OF_SLOW_LOOPS = 1 << 13
"""The same for float16 and bfloat16, quotients of integers, and what NumPy has no loop of, which is many times slower
than memory."""

LEAST_REDUCED = 1 << 15
"""Reductions of fewer elements, in one call or several like it, are left to NumPy's loops, later ones to kernels."""

MOST_NATIVE_BYTES = 1 << 23
"""Up to this size of the result a call that is made often gets a record; memory for larger ones comes from the pool."""

MOST_OPERANDS = 16
"""A kernel of more is no faster than NumPy's loops, and takes long to compile."""

Mode = Literal["auto", "numpy", "compiled"]


def prepare(
    typed: TypedCall, swapped: tuple[bool, ...], divisors: Divisors | None = None, records: Records | None = None
) -> Run:
    """Make the function that computes a call.

    Args:
        typed: what is computed.
        swapped: for each array, the result first, whether its bytes are in the other order.
        divisors: the operands that must not hold a 0, for integers; before that is found out, no array that is given is
            written.
        records: those of calls that are made often, where there are some; see ``recorded``.

    Returns:
        A function of the operands, and of an array for the result where there is one, that gives the result. The
        operands may have any strides and alignment, and may overlap that array.
    """
    run = _prepared(typed, swapped, divisors)

    def recipe_of(operands: Sequence[np.ndarray], result: np.ndarray) -> Any:
        if why_no_kernel(typed.expression, typed.element_type):
            return None
        from eltwise.kernels import compiled

        return compiled.Call(typed, swapped, divisors).recorded_recipe(operands, result)

    return run if records is None else recorded(run, typed, records, recipe_of)


def _prepared(typed: TypedCall, swapped: tuple[bool, ...], divisors: Divisors | None) -> Run:
    expression, element_type, plan = typed
    size, least = plan.bytes_of(element_type), least_bytes(expression, element_type)
    if size >= least and 0 not in plan.shape and not why_no_kernel(expression, element_type):
        from eltwise.kernels import compiled  # Small calls must not pay for it.

        return compiled.Call(typed, swapped, divisors)
    if size <= max(least, numpy_kernel.BLOCK_BYTES) and not any(swapped) and plan.aligns_ends:
        run = numpy_kernel.direct(expression, element_type)
    else:
        run = numpy_kernel.planned(typed)
    return run if divisors is None else _checked(run, divisors.check)


def _checked(run: Run, check: Callable[[Sequence[np.ndarray]], None]) -> Run:
    def checked(*arrays: np.ndarray) -> np.ndarray:
        check(arrays)
        return run(*arrays)

    return checked


def of_any_size(typed: TypedCall, *, keeps_shape: bool) -> Callable[[Sequence[np.ndarray]], np.ndarray | None]:
    """Make the function that computes operands of the types of a call, and of any sizes, with NumPy's own loops.

    Returns:
        A function of operands in native byte order, some of which have a rank, that gives None where they do not
        broadcast as NumPy does, with ``keeps_shape`` to the shape of the first, or a kernel is faster.
    """
    expression, element_type, _plan = typed
    run, most = numpy_kernel.direct(expression, element_type), least_bytes(expression, element_type)

    def compute(operands: Sequence[np.ndarray]) -> np.ndarray | None:
        try:
            layout = np.broadcast(*operands)
        except (ValueError, RuntimeError):  # It knows ranks up to 32 only.
            return None
        if keeps_shape and layout.shape != operands[0].shape:
            return None
        return run(*operands) if layout.size * element_type.storage.itemsize < most else None

    return compute


def recorded(run: Run, typed: TypedCall, records: Records, recipe_of: RecipeOf, often: int = OFTEN) -> Run:
    """The same function; its calls get a record once they were made often, where that is possible.

    Args:
        run: computes calls of arrays of certain types and shapes, and gives the result.
        typed: what is computed, or what a reduction computes before it reduces that.
        records: those of what is computed.
        recipe_of: how such calls are computed; see ``Records.counted``.
        often: how many calls that is.
    """
    plan, element_type = typed.plan, typed.element_type
    is_small = 0 not in plan.shape and plan.bytes_of(element_type) <= MOST_NATIVE_BYTES
    if not is_small or records.operands != len(plan.operands) or not is_possible() or mode() == "numpy":
        return run
    return records.counted(run, 1 if mode() == "compiled" else often, recipe_of)


def least_bytes(expression: Expression, element_type: ElementType) -> int:
    """From how many bytes of operands of the result's shape on a kernel is taken."""
    if mode() != "auto":
        return 0 if mode() == "compiled" else 1 << 63
    types = expression.types(element_type)
    if any(step.definition.has_module and not step.type_of(types).is_integer for step in expression.steps):
        return 0
    return LEAST_BYTES if _has_fast_loops(expression, element_type) else LEAST_BYTES_OF_SLOW_LOOPS


@lru_cache(maxsize=1024)
def _has_fast_loops(expression: Expression, element_type: ElementType) -> bool:
    """Whether NumPy computes each step in a loop of its own that is not slow."""
    types = expression.types(element_type)
    if any(each in (FLOAT16, BFLOAT16) for each in types) or (element_type.is_integer and expression.divides):
        return False
    forms = (step.definition.numpy_function(step.type_of(types)) for step in expression.steps)
    return all(isinstance(form, (np.ufunc, IntoContiguous)) for form in forms)


def is_large_reduction(shape: Sizes) -> bool:
    """Whether a reduction of elements of a shape is worth a kernel that is used once, and threads."""
    size = prod(shape)
    return size > 0 and mode() != "numpy" and (mode() != "auto" or size >= LEAST_REDUCED)


def often_reduced(size: int) -> int:
    """After how many reductions of so many elements a kernel is worth being made."""
    if mode() == "compiled":
        return 1
    return OFTEN if size >= LEAST_REDUCED else min(OFTEN, -(-LEAST_REDUCED // size))


@cache
def mode() -> Mode:
    """What ``ELTWISE_KERNELS`` asks for: ``numpy`` or ``compiled`` for every size; by default what is faster.

    Raises:
        AttributeValueError: for any other value.
    """
    asked = os.environ.get("ELTWISE_KERNELS", "") or "auto"
    if asked not in ("auto", "numpy", "compiled"):
        raise AttributeValueError(
            "unknown kind of kernels", operand="ELTWISE_KERNELS", got=repr(asked), allowed="auto, numpy, compiled"
        )
    return asked  # type: ignore[return-value]


def why_no_kernel(expression: Expression, element_type: ElementType) -> str:
    """Why no kernel here can compute an expression, in words; empty where one can."""
    if not has_compiler():
        return "llvmlite does not work here; NumPy's and ml_dtypes' loops compute it"
    from eltwise.kernels import jit

    types = expression.types(element_type)
    for each in types:
        if not jit.target().compiles(each):
            return f"{each.name} is computed by NumPy's and ml_dtypes' loops"
    for step in expression.steps:
        step_type, definition = step.type_of(types), step.definition
        if definition.has_module or definition.result == "to":
            from eltwise.kernels import conversions, real_steps  # Arithmetic must not pay for them.

            why = real_steps.why_no_kernel if definition.has_module else conversions.why_no_kernel
            if reason := why(step, types):
                return reason
        elif step_type.kind not in definition.llvm:
            return f"{step.primitive} of {step_type} is computed by NumPy's loops"
    if expression.operands > MOST_OPERANDS:
        return f"{expression.operands} operands are computed by NumPy's loops"
    return ""


@cache
def has_compiler() -> bool:
    """Whether kernels can be compiled and run here; where they cannot, one notice says so."""
    try:
        from eltwise.kernels import image, jit

        jit.target()
        if image.can_be_mapped():
            image.map_image(bytes(1))  # Some systems do not run machine code that a program makes.
    except (ImportError, OSError, RuntimeError) as error:
        warnings.warn(
            f"eltwise computes without compiled kernels, which is slower: {error}", RuntimeWarning, stacklevel=2
        )
        return False
    return True
