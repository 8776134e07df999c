"""The memory limit: a compiled loop with streaming stores that moves the bytes of a workload and computes nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from llvmlite import binding as llvm

from benchmarks.tensors import Tensors

_VECTOR = "<16 x i32>"
_VECTOR_BYTES = 64


def memory_limit(tensors: Tensors, threads: int) -> Callable[[], object]:
    """Read every operand that is as large as the result and write the result; smaller operands fit into the cache."""
    size = tensors.out.nbytes // _VECTOR_BYTES * _VECTOR_BYTES
    reads = [operand.ctypes.data for operand in tensors.operands if operand.nbytes >= size]
    loop, _engine = _compiled(len(reads))
    part = size // threads // _VECTOR_BYTES * _VECTOR_BYTES
    ranges = [(part * index, size if index == threads - 1 else part * (index + 1)) for index in range(threads)]
    pool = ThreadPoolExecutor(threads)

    def run() -> None:
        futures = [pool.submit(loop, begin, end, tensors.out.ctypes.data, *reads) for begin, end in ranges]
        for future in futures:
            future.result()

    return run


@cache
def _compiled(reads: int) -> tuple[Any, object]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_loop(reads)), machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (3 + reads))
    return kind(engine.get_function_address("limit")), engine


def _loop(reads: int) -> str:
    """The bits that are written depend on the position, since memory of zeros is faster than any other."""
    parameters = "".join(f", ptr %from{read}" for read in range(reads))
    lines = [
        f"define void @limit(i64 %begin, i64 %end, ptr %out{parameters}) nounwind {{",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [%begin, %entry], [%next, %loop]",
        "  %position = trunc i64 %i to i32",
        f"  %lane = insertelement {_VECTOR} poison, i32 %position, i64 0",
        f"  %value = shufflevector {_VECTOR} %lane, {_VECTOR} poison, {_VECTOR} zeroinitializer",
    ]
    value = "%value"
    for read in range(reads):
        lines.append(f"  %address{read} = getelementptr i8, ptr %from{read}, i64 %i")
        lines.append(f"  %read{read} = load {_VECTOR}, ptr %address{read}, align 1")
        lines.append(f"  %mixed{read} = xor {_VECTOR} %read{read}, {value}")
        value = f"%mixed{read}"
    lines += [
        "  %to = getelementptr i8, ptr %out, i64 %i",
        f"  store {_VECTOR} {value}, ptr %to, align {_VECTOR_BYTES}, !nontemporal !0",
        f"  %next = add i64 %i, {_VECTOR_BYTES}",
        "  %more = icmp slt i64 %next, %end",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
        "!0 = !{i32 1}",
    ]
    return "\n".join(lines)
