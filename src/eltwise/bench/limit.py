"""The memory limit: a plain loop with streaming stores that moves the bytes of a workload and computes nothing of use.

It reads as many bytes as the operands hold and writes as many as the result, on the same threads. Operands that are
smaller than the result are read beside its first part; what is left of the result is written without
reading, with bits that differ from place to place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from eltwise.bench.contestants import Ready
from eltwise.bench.results import LIMIT
from eltwise.bench.tensors import Tensors
from eltwise.bench.workloads import Workload
from eltwise.kernels import jit
from eltwise.kernels.threads import run_together

_UNROLLED = 4
_SPREAD = 2654435761
_WIDEST_STEP = 64 * _UNROLLED


def limit_contestant(workload: Workload, tensors: Tensors, threads: int) -> Ready:
    """The loop for a workload. It overwrites the result with bits of no meaning.

    Raises:
        ImportError: where llvmlite is missing, so that nothing can be compiled.
    """
    reads = sorted(
        zip(workload.read_bytes, (operand.ctypes.data for operand in tensors.operands), strict=True), reverse=True
    )
    vector_bytes = jit.target().vector_bytes
    work: list[list[Callable[[], None]]] = [[] for _thread in range(threads)]
    for first, last, count in phases([size for size, _address in reads], workload.result_bytes):
        kernel = jit.compiled(limit_text(count, vector_bytes))
        addresses = [tensors.out.ctypes.data, *(address for _size, address in reads[:count])]
        arguments = (ctypes.c_int64 * len(addresses))(*addresses)
        for part, (begin, end) in enumerate(_parts(first, last, threads)):
            work[part].append(partial(kernel, arguments, begin, end))
    pieces = [partial(_one_after_the_other, pieces) for pieces in work]
    return Ready(LIMIT, partial(run_together, pieces), lambda _nothing: np.asarray(tensors.out))


def _one_after_the_other(pieces: list[Callable[[], None]]) -> None:
    for piece in pieces:
        piece()


def phases(reads: list[int], written: int) -> list[tuple[int, int, int]]:
    """Cut the result into ranges of bytes beside which the same number of operands is read.

    Args:
        reads: the bytes of each operand, the largest first; none is larger than the result.
        written: the bytes of the result.

    Returns:
        For each range its begin, its end, and how many operands are read, in order.

    >>> phases([1024, 512], 4096)
    [(0, 512, 2), (512, 1024, 1), (1024, 4096, 0)]
    """
    ends = [*sorted(reads), written]
    begins = [0, *ends[:-1]]
    counts = range(len(reads), -1, -1)
    whole = [
        (begin // _WIDEST_STEP * _WIDEST_STEP, end // _WIDEST_STEP * _WIDEST_STEP, count)
        for begin, end, count in zip(begins, ends, counts, strict=True)
    ]
    return [(begin, end, count) for begin, end, count in whole if begin < end]


def _parts(first: int, last: int, threads: int) -> list[tuple[int, int]]:
    steps = (last - first) // _WIDEST_STEP
    ends = [first + steps * part // threads * _WIDEST_STEP for part in range(threads + 1)]
    return [(ends[part], ends[part + 1]) for part in range(threads)]


@cache
def limit_text(reads: int, vector_bytes: int) -> str:
    """Write the LLVM module of the loop; its function ``kernel`` is called as every kernel is.

    The arguments are the addresses of what is written and of what is read; the first and the last run are the first
    byte and the one after the last.
    """
    vector = f"<{vector_bytes // 4} x i32>"
    lines = [
        "define void @kernel(ptr readonly %arguments, i64 %first, i64 %last) nounwind {",
        "entry:",
        "  %out = load ptr, ptr %arguments, align 8",
    ]
    for read in range(reads):
        lines.append(f"  %place.{read} = getelementptr i64, ptr %arguments, i64 {read + 1}")
        lines.append(f"  %from.{read} = load ptr, ptr %place.{read}, align 8")
    lines += [
        "  %any = icmp ult i64 %first, %last",
        "  br i1 %any, label %loop, label %finish",
        "loop:",
        "  %i = phi i64 [%first, %entry], [%next, %loop]",
    ]
    for step in range(_UNROLLED):
        lines += _one_vector(reads, vector, vector_bytes, step)
    lines += [
        f"  %next = add i64 %i, {vector_bytes * _UNROLLED}",
        "  %more = icmp ult i64 %next, %last",
        "  br i1 %more, label %loop, label %finish",
        "finish:",
        "  ret void",
        "}",
        "!0 = !{i32 1}",
    ]
    return "\n".join(lines) + "\n"


def _one_vector(reads: int, vector: str, vector_bytes: int, step: int) -> list[str]:
    """Write the position, mixed with what is read: memory of zeros is faster than any result would be."""
    lanes = vector_bytes // 4
    different = ", ".join(f"i32 {_SPREAD * (lane + 1) % 2**31}" for lane in range(lanes))
    lines = [
        f"  %at.{step} = add i64 %i, {step * vector_bytes}",
        f"  %position.{step} = trunc i64 %at.{step} to i32",
        f"  %lane.{step} = insertelement {vector} poison, i32 %position.{step}, i64 0",
        f"  %all.{step} = shufflevector {vector} %lane.{step}, {vector} poison, <{lanes} x i32> zeroinitializer",
        f"  %varied.{step} = xor {vector} %all.{step}, <{different}>",
    ]
    value = f"%varied.{step}"
    for read in range(reads):
        name = f"{step}.{read}"
        lines += [
            f"  %address.{name} = getelementptr i8, ptr %from.{read}, i64 %at.{step}",
            f"  %read.{name} = load {vector}, ptr %address.{name}, align 1",
            f"  %mixed.{name} = xor {vector} %read.{name}, {value}",
        ]
        value = f"%mixed.{name}"
    return [
        *lines,
        f"  %to.{step} = getelementptr i8, ptr %out, i64 %at.{step}",
        f"  store {vector} {value}, ptr %to.{step}, align {vector_bytes}, !nontemporal !0",
    ]
