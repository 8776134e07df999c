"""Compiled kernels: the whole matrix at every size, cut for threads and not, on every processor level that is here."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import FLOAT32, TYPES, ElementType
from eltwise.engine.call import calls_of
from eltwise.kernels import compiled, dispatch, jit, numpy_kernel
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.nest import Nest
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.kernels.structure import Structure
from eltwise.ops.expression import expression_of
from eltwise.ops.schema import ElementwiseSchema
from support.cases import (
    LEVEL_TYPES,
    SCHEMAS,
    failures,
    functions_and_types,
    is_of_level,
    level_cases,
    shape_cases,
    shared_layouts,
    value_cases,
)
from support.kernel_calls import call_of, compute
from support.operands import read_of

DIFFERENCE = expression_of("subtract")
MATRIX = [
    pytest.param(schema, element_type, id=f"{schema}-{element_type}") for schema, element_type in functions_and_types()
]


@pytest.fixture(autouse=True)
def _no_call_outlives_a_test() -> Iterator[None]:
    calls_of.cache_clear()
    yield
    calls_of.cache_clear()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every call that a kernel can take is taken, however small; the list says which were."""
    calls: list[str] = []
    run = compiled.Call.__call__

    def counted(call: compiled.Call, *arrays: np.ndarray) -> np.ndarray:
        calls.append(call.typed.element_type.name)
        return run(call, *arrays)

    monkeypatch.setattr(dispatch, "mode", lambda: "compiled")
    monkeypatch.setattr(compiled.Call, "__call__", counted)
    return calls


def _wherever_possible(nest: Nest, is_aligned: bool) -> bool:
    return nest.fills_lines(is_aligned) or (nest.second is None and nest.walks[0] == "vector")


def run(op: str, *operands: np.ndarray, **attributes: Any) -> np.ndarray:
    return eltwise.operator(op, **attributes)(*operands)


ON_BOTH = {
    str(each) for each in {(each.broadcasting, len(each.operands)): each for each, _ in functions_and_types()}.values()
}
"""A version with each broadcast rule and number of operands."""


THREADS = 1, 5


def tried_on(schema: ElementwiseSchema, element_type: ElementType) -> tuple[int, ...]:
    """With how many threads a type of a version is tried: of some versions with both numbers, else with one."""
    turn = (schema.types.index(element_type) + SCHEMAS.index(schema)) % 2
    return THREADS if str(schema) in ON_BOTH or len(schema.types) == 1 else (THREADS[turn],)


def test_layouts_types_and_functions_are_each_tried_on_each_number_of_threads() -> None:
    tried = {threads: set[object]() for threads in THREADS}
    for schema, element_type in functions_and_types():
        layouts = {
            (schema.broadcasting, shapes) for _number, (_attributes, shapes) in shared_layouts(schema, element_type)
        }
        for threads in tried_on(schema, element_type):
            tried[threads] |= {*layouts, element_type, schema.function}
    assert tried[1] == tried[5]


@pytest.mark.parametrize(("schema", "element_type"), MATRIX)
def test_every_case_is_exact_on_any_number_of_threads(
    schema: ElementwiseSchema,
    element_type: ElementType,
    seed: int,
    taken: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What NumPy computes is tested by the test matrix, with the same cases; here, that no kernel takes any layout."""
    monkeypatch.setattr(compiled, "LEAST_BYTES_PER_PIECE", 8)
    cases = list(shape_cases(schema, element_type, seed, shared=True))
    is_variadic = schema.function in ("sum", "mean")  # Of one operand or two, others are computed.
    expression = read_of(cases[0].operation, cases[0].operands)[0].expression
    has_kernel = is_variadic or not dispatch.why_no_kernel(expression, element_type)
    values = list(value_cases(schema, element_type, seed)) if has_kernel else []
    for threads in tried_on(schema, element_type) if has_kernel else (1,):
        calls_of.cache_clear()
        taken.clear()
        monkeypatch.setattr(compiled, "num_threads", lambda threads=threads: threads)
        # With five threads past the cache, wherever that is possible, so that both kinds of stores meet every case.
        if threads == 5:
            monkeypatch.setattr(compiled, "streams", _wherever_possible)
        assert list(map(str, failures(run, [*cases, *values]))) == []
        assert is_variadic or bool(taken) == has_kernel


EVERY_LEVEL = """
import pickle, sys
from support.cases import failures, level_cases
from eltwise.kernels import compiled, jit
import eltwise
jit.target()  # Refuses a level that the machine does not have, which is no wrong result.
compiled.LEAST_BYTES_PER_PIECE = 8
run = lambda op, *operands, **attributes: eltwise.operator(op, **attributes)(*operands)
cases = list(level_cases(int(sys.argv[1])))
with open(sys.argv[2], "rb") as file:
    for case, expected in zip(cases, pickle.load(file), strict=True):
        vars(case)["expected"] = expected
assert not list(map(str, failures(run, cases)))
print("exact")
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", list(jit.LEVELS)[1:])
def test_every_processor_level_is_exact_or_named(level: str, tmp_path: Path) -> None:
    """The lowest level is that of `make test-levels`, on the whole matrix."""
    number = list(jit.LEVELS).index(level)
    expected = tmp_path / "expected"  # From this process, as the processes of a run share what the reference gives.
    expected.write_bytes(pickle.dumps([case.expected for case in level_cases(number)]))
    chosen = {"ELTWISE_CPU": level, "ELTWISE_KERNELS": "compiled"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", EVERY_LEVEL, str(number), expected],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | chosen | {"ELTWISE_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "exact\n" or "this machine has no" in done.stderr, done.stderr


def test_every_function_and_every_type_is_tried_on_every_level() -> None:
    """Each function with each type on one of three levels in a row."""
    by_function: dict[str, list[tuple[ElementwiseSchema, ElementType]]] = {}
    for schema, element_type in functions_and_types():
        if element_type.name in LEVEL_TYPES:
            by_function.setdefault(schema.function, []).append((schema, element_type))
    for level in range(3):
        tried = [each for some in by_function.values() for each in some if is_of_level(*each, level)]
        assert {schema.function for schema, _type in tried} == set(by_function)
        assert {element_type.name for _schema, element_type in tried} == set(LEVEL_TYPES)


def test_a_level_that_the_machine_has_not_is_named_and_no_wrong_result(tmp_path: Path) -> None:
    """As on a machine without AVX-512, whatever this one has."""
    lesser = """
import llvmlite.binding as llvm
found = llvm.get_host_cpu_features
llvm.get_host_cpu_features = lambda: llvm.FeatureMap({n: t and "avx512" not in n for n, t in found().items()})
"""
    chosen = {"ELTWISE_CPU": "x86-64-v4", "ELTWISE_CACHE": str(tmp_path), "ELTWISE_KERNELS": "compiled"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", lesser + EVERY_LEVEL],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | chosen | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == ""
    assert re.search("ELTWISE_CPU: this machine has no .*avx512", done.stderr)


@pytest.mark.parametrize(
    "element_type", [each for each in TYPES if each.is_numeric and jit.target().compiles(each)], ids=str
)
@pytest.mark.parametrize("elements", [1, 15, 16, 17, 63, 64, 65, 127, 1000, 4099])
def test_every_head_and_tail_is_exact(
    element_type: ElementType, elements: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(seed)
    raw = generator.integers(0, 256, (3, (elements + 70) * 8), dtype=np.uint8)
    plan = aligned_plan((elements,), ((elements,), (elements,)))
    for streams in (False, True):
        calls_of.cache_clear()
        monkeypatch.setattr(compiled, "streams", lambda _nest, _aligned, chosen=streams: chosen)
        for offset in (0, 1, 3):
            a, b, out = (part.view(element_type.storage)[offset : offset + elements] for part in raw)
            expected, around = out.copy(), raw[2].copy()
            numpy_kernel.planned(TypedCall(DIFFERENCE, element_type, plan))(a, b, expected)
            compute(DIFFERENCE, element_type, plan, (a, b), out)
            kind = out.astype(np.float64) if element_type.kind == "float" else out
            wanted = expected.astype(np.float64) if element_type.kind == "float" else expected
            assert np.array_equal(kind, wanted, equal_nan=element_type.kind == "float")
            out[...] = around.view(element_type.storage)[offset : offset + elements]
            assert raw[2].tobytes() == around.tobytes(), "something beside the result was written"


def test_a_wrong_kernel_is_found(taken: list[str], monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(compiled, "kernel_text", lambda structure: kernel_text(structure).replace("fsub", "fadd"))
    schema, element_type = next((schema, kind) for schema, kind in functions_and_types() if kind is FLOAT32)
    assert list(failures(run, value_cases(schema, element_type, seed)))
    assert taken


def test_what_kernels_leave_to_numpy() -> None:
    a = np.arange(1 << 10, dtype=np.float32)
    plan = aligned_plan(a.shape, (a.shape, a.shape))
    swapped, shifted = a.astype(">f4"), np.zeros(4 * a.size + 1, np.uint8)[1:].view(np.float32)
    for operand in (a, swapped, shifted):
        assert compute(DIFFERENCE, FLOAT32, plan, (operand, a), a.copy())
    assert compute(DIFFERENCE, FLOAT32, plan, (a, np.ones_like(a)), a)
    before = a.copy()
    longer = np.concatenate([a, a])
    for out in (longer[:1024], longer[2:1026], longer[1023:2047], longer[1023:0:-1], longer[::2]):
        same = longer[1 : 1 + out.size]
        overlapping = aligned_plan(out.shape, (out.shape, out.shape))
        assert not compute(DIFFERENCE, FLOAT32, overlapping, (same, same), out)
        assert compute(DIFFERENCE, FLOAT32, overlapping, (same, same), same)
    assert (a == before).all()
    int4 = next(each for each in TYPES if each.name == "int4")
    assert dispatch.why_no_kernel(DIFFERENCE, int4)
    assert not dispatch.why_no_kernel(DIFFERENCE, FLOAT32)


@pytest.mark.parametrize("step", [1, -1])
def test_what_only_touches_the_result_is_not_left_to_numpy(step: int) -> None:
    size = 16
    memory = np.zeros(3 * size, np.float32)
    out, plan = memory[size : 2 * size], aligned_plan((size,), ((size,), (size,)))
    for start in range(2 * size + 1):
        operand = memory[start : start + size][::step]
        is_computed = abs(start - size) >= size or (start, step) == (size, 1)
        assert compute(DIFFERENCE, FLOAT32, plan, (operand, operand), out) == is_computed, start


@pytest.mark.parametrize("name", ["x86-65", "native"])
def test_a_processor_that_is_none_is_one_sentence(name: str) -> None:
    code = "import eltwise, numpy; a = numpy.zeros(1 << 20, numpy.float32); eltwise.subtract(a, a)"
    environment = os.environ | {"ELTWISE_CPU": name}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert f"ELTWISE_CPU: unknown processor level, got '{name}'" in done.stderr.splitlines()[-1]


def test_results_at_any_address_have_one_kernel_where_they_do_not_stream() -> None:
    raw = np.zeros(2048, np.float32)
    begin = -raw.ctypes.data % 64 // 4
    kernels = []
    for first in (begin, begin + 1):
        out = raw[first : first + 1000]
        plan = aligned_plan(out.shape, (out.shape,) * 2)
        kernels.append(call_of(DIFFERENCE, FLOAT32, plan, (out, out), out).recipe((out, out), out).kernel)
    assert kernels[0] is kernels[1]


def test_text_is_the_same_for_the_same_structure() -> None:
    structure = Structure(
        expression=DIFFERENCE,
        element_type=FLOAT32,
        walks=("vector", "vector", "scalar"),
        outer_loops=2,
        swapped=(False,) * 3,
        streams=False,
        has_heads=False,
        target=jit.target(),
    )
    assert kernel_text(structure) == kernel_text(structure)
    assert "nontemporal !0" not in kernel_text(structure)
    streaming = kernel_text(structure._replace(streams=True, has_heads=True))
    assert streaming.index("nontemporal !0") < streaming.index("fence seq_cst")
    for fast in ("fast", "nsz", "nnan", "reassoc", "contract", "nsw", "nuw"):
        assert fast not in kernel_text(structure)
