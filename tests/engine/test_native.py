"""The native entries of the public functions: the same bits and errors as the Python functions behind them."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT16,
    ElementType,
    of_numpy,
)
from eltwise.engine import array_libraries
from eltwise.engine.array_libraries import function_of
from eltwise.engine.arrays import exact_scalar
from eltwise.engine.call import calls_of
from eltwise.engine.functions import FUNCTIONS
from eltwise.kernels import dispatch, jit, native
from eltwise.ops import registry
from eltwise.ops.expression import Expression
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.oracle import hard_values
from support.layouts import layouts, view
from support.operands import operand_types, required

pytestmark = pytest.mark.skipif(not native.is_possible(), reason="this Python or NumPy has no native entries")
OFTEN = native.OFTEN + 2


def repeated(function: Callable[..., np.ndarray], *operands: Any, **keywords: Any) -> np.ndarray:
    """Call often enough that the entry computes the last result."""
    for _ in range(OFTEN):
        result = function(*operands, **keywords)
    return result


def is_native(function: Callable[..., np.ndarray], *operands: Any) -> bool:
    """Whether the entry has a record of calls with operands like these."""
    return records_of(function).has(operands)


def records_of(function: Callable[..., np.ndarray]) -> native.Records:
    records: native.Records = function.__self__.records  # type: ignore[attr-defined]
    return records


def new_function() -> Callable[..., np.ndarray]:
    """The function of an operator that has made no calls."""
    calls_of.cache_clear()
    return function_of(eltwise.operator("Sub-14").operation)


@pytest.fixture
def subtract() -> Iterator[Callable[..., np.ndarray]]:
    records_of(eltwise.subtract).clear()
    yield eltwise.subtract
    records_of(eltwise.subtract).clear()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, UINT16, INT64], ids=str)
def test_the_entry_computes_what_the_oracle_does(name: str, element_type: ElementType) -> None:
    function = getattr(eltwise, name)
    values = hard_values.random_bits(element_type, 2 * 7 * 33, 5).reshape(2, 7, 33)
    if name == "divide" and element_type.is_integer:
        values = values | 1
    unary = name in ("negative", "absolute")
    if unary and element_type is UINT16 and name == "negative":
        pytest.skip("unsigned integers have no negative")
    for a, b in [
        (values[0], values[1]),
        (values[0], values[1, :1]),
        (values[0], values[1, :, :1]),
        (values[0].T, values[1].T),
    ]:
        operands = (a,) if unary else (a, b)
        result = repeated(function, *operands)
        assert is_native(function, *operands) == jit.target().compiles(element_type)
        expected = oracle.evaluate(FUNCTION_NAMES[name], *operands, rule="numpy")
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert not oracle.differences(result, expected)


FUNCTION_NAMES = {name: eltwise.operator(FUNCTIONS[name]).operation.schema.function for name in FUNCTIONS}  # type: ignore[attr-defined]
NUMBERS = [0, -0.0, 1, -1, 0.5, 0.1, 5e-324, 2.0**-149, 448, 2049, 65505, 1e39, float("inf"), float("nan"), True]
NUMBERS += [
    sign * power + step
    for sign in (1, -1)
    for power in (2**7, 2**24, 2**31, 2**53, 2**63, 2**64)
    for step in (-1, 0, 1)
]
NUMBERS += [float(2**63), -float(2**63), 127.0, 1.5]


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, UINT16, INT64], ids=str)
def test_a_number_is_the_array_of_rank_0_that_it_equals(
    element_type: ElementType, is_first: bool, subtract: Callable[..., np.ndarray]
) -> None:
    """The entry takes exactly the numbers that the Python function takes, and computes the same of them."""
    array, zero = np.array([1, 2, 3]).astype(element_type.storage), np.zeros((), element_type.storage)
    repeated(subtract, *((zero, array) if is_first else (array, zero)))
    for number in NUMBERS:
        try:
            expected = exact_scalar(number, element_type, "operand")
        except eltwise.EltwiseError as error:
            with pytest.raises(type(error)):
                subtract(*((number, array) if is_first else (array, number)))
            continue
        for value in (expected, expected[()], number):
            operands, arrays = ((value, array), (expected, array)) if is_first else ((array, value), (array, expected))
            assert not oracle.differences(subtract(*operands), oracle.evaluate("subtract", *arrays, rule="numpy"))


OF_SEVERAL = [
    each for each in registry.ELEMENTWISE if each.expression().operands > 1 and registry.last_opset(each) is None
]


@pytest.mark.parametrize("schema", OF_SEVERAL, ids=str)
def test_scalars_of_any_operand_need_no_python(schema: ElementwiseSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of one type and of several: each as an array, and the others as arrays of rank 0 and as scalars."""
    operation = schema.bind(required(schema))
    element_type = next((each for each in (FLOAT32, INT32, INT8, BOOL) if each in operation.types), None)
    if element_type is None:
        return
    types = operand_types(schema, element_type, len(schema.operands))
    values = [hard_values.ordinary(each, 7, 1) if each is not BOOL else np.arange(7) % 2 == 0 for each in types]
    values = [np.where(each == 0, each.dtype.type(1), each) if each.dtype.kind in "iu" else each for each in values]
    calls_of.cache_clear()
    function, of_python = function_of(operation), array_libraries.apply_operation
    for whole in range(1 if schema.keeps_shape else len(types)):
        arrays = [each if index == whole else np.asarray(each[3]) for index, each in enumerate(values)]
        scalars = [each if index == whole else each[3] for index, each in enumerate(values)]
        expected = repeated(function, *arrays)
        records = calls_of(operation.computation(len(arrays))).records
        assert records.has(arrays) == (not dispatch.why_no_kernel(*typed(operation, arrays)))
        monkeypatch.setattr(array_libraries, "apply_operation", lambda *_arguments: pytest.fail("Python ran"))
        if records.has(arrays):
            assert oracle.same_bits(function(*arrays), expected)
            assert oracle.same_bits(function(*scalars), expected)
        monkeypatch.setattr(array_libraries, "apply_operation", of_python)


OF_OPTIONAL = [each for each in OF_SEVERAL if each.required_operands < len(each.operands)]


@pytest.mark.parametrize("schema", OF_OPTIONAL, ids=str)
def test_calls_without_optional_operands_need_no_python(
    schema: ElementwiseSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation, most = schema.bind(required(schema)), len(schema.operands)
    if operation.type_only is not None:
        return
    element_type = next(each for each in (FLOAT32, INT32, INT8) if each in operation.types)
    first, *others = operand_types(schema, element_type, most)
    values = [hard_values.ordinary(first, 49, 1).reshape(7, 7)]
    values += [np.asarray(hard_values.ordinary(each, 7, 1)[3]) for each in others]
    patterns = {(True,) * count for count in range(schema.required_operands, most)} | {*dict(schema.absent)}
    for present in sorted(patterns):
        calls_of.cache_clear()
        function, of_python = function_of(operation), array_libraries.apply
        inputs = [value if is_present else None for value, is_present in zip(values, present, strict=False)]
        expected = repeated(function, *inputs)
        computation, arrays = operation.computation_of(inputs)
        if not calls_of(computation).records.has(arrays):
            assert dispatch.why_no_kernel(computation.expression, element_type)
            continue
        monkeypatch.setattr(array_libraries, "apply", lambda *_arguments: pytest.fail("Python ran"))
        assert oracle.same_bits(function(*inputs), expected)
        monkeypatch.setattr(array_libraries, "apply", of_python)


@pytest.mark.parametrize("name", ["CastLike-25", "ConvertLike-1"])
def test_an_operand_that_only_states_a_type_needs_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls_of.cache_clear()
    function, of_python = function_of(eltwise.operator(name).operation), array_libraries.apply
    a = hard_values.ordinary(FLOAT32, 49, 1).reshape(7, 7)
    for like in (
        np.zeros(1, np.float64),
        np.zeros((), np.float16),
        np.zeros(3, ">f2"),
        np.zeros((2, 0), BFLOAT16.storage),
    ):
        expected = oracle.evaluate("cast", a, rule="none", parameters={"to": of_numpy(like.dtype)})
        assert oracle.same_bits(repeated(function, a, like), expected)
        monkeypatch.setattr(array_libraries, "apply", lambda *_arguments: pytest.fail("Python ran"))
        assert oracle.same_bits(function(a, like), expected)
        monkeypatch.setattr(array_libraries, "apply", of_python)
        out = np.empty((7, 7), of_numpy(like.dtype).storage)
        assert function(a, like, out=out) is out
        assert oracle.same_bits(out, expected)
    with pytest.raises(eltwise.EltwiseError):
        function(a, np.array("text"))


def typed(operation: Operation, arrays: list[np.ndarray]) -> tuple[Expression, ElementType]:
    _arrays, (expression, element_type, _plan) = calls_of(operation.computation(len(arrays))).check(arrays)
    return expression, element_type


def test_the_record_of_a_scalar_is_that_of_an_array(subtract: Callable[..., np.ndarray]) -> None:
    a, seen = np.array([1, 2], np.float32), []
    for scalar in (np.float32(1), 1, 1.0):
        assert repeated(subtract, a, scalar).tolist() == [0, 1]
        seen.append(is_native(subtract, a, np.zeros((), np.float32)))
        assert subtract(scalar, a, out=np.empty_like(a)).tolist() == [0, -1]
    assert all(seen)
    for wrong in (np.float64(1), np.int32(1), True, "1", None, [1.0], 0.1):
        with pytest.raises(eltwise.EltwiseError):
            subtract(a, wrong)
    with pytest.raises(eltwise.EltwiseError):
        subtract(1, 1.0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_layout_and_any_result_array(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), max_size=4)))
    memory = np.random.default_rng(3).integers(0, 100, 4096).astype(np.uint8)
    first, second = (view(memory.copy(), FLOAT32, shape, data.draw(layouts(shape, 4))) for _ in range(2))
    out = data.draw(st.sampled_from(["none", "new", "first", "shifted"]))
    with np.errstate(all="ignore"):
        expected = np.asarray(np.subtract(first, second), np.float32)
    if out == "none":
        result = repeated(eltwise.subtract, first, second)
    elif out == "new":
        result = repeated(eltwise.subtract, first, second, out=np.empty(shape, np.float32))
    else:
        whole = np.zeros(first.size + 1, np.float32)
        start = whole[: first.size].reshape(shape)
        target = start if out == "first" else whole[1:].reshape(shape)
        for _ in range(OFTEN):
            start[...] = first
            result = eltwise.subtract(start, second, out=target)
            assert result is target
    assert not oracle.differences(np.array(result, order="C"), expected)


def test_what_the_entry_does_not_know_goes_to_the_python_function(subtract: Callable[..., np.ndarray]) -> None:
    class Sub(np.ndarray):
        pass

    a, b = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    repeated(subtract, a, b)
    assert is_native(subtract, a, b)
    assert type(subtract(a.view(Sub), b)) is np.ndarray
    assert subtract(a=a, b=b).tolist() == [-2, -3]
    assert subtract(a, b, auto_broadcast="pdpd", axis=0).tolist() == [-2, -3]
    assert subtract(a, b, out=None).tolist() == [-2, -3]
    read_only = np.empty(2, np.float32)
    read_only.flags.writeable = False
    for operands, keywords in [
        ((a, np.array([1, 2, 3], np.float32)), {}),
        ((a, np.array([1, 2], np.float64)), {}),
        ((a, b), {"out": read_only}),
        ((a, b), {"out": np.empty(3, np.float32)}),
        ((a, b), {"out": np.empty(2, np.float64)}),
        ((a, b), {"out": [0.0, 0.0]}),
        ((1, 2), {}),
    ]:
        with pytest.raises(eltwise.EltwiseError):
            subtract(*operands, **keywords)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        subtract(a)
    with pytest.raises(TypeError):
        subtract(a, b, nothing=1)


def test_no_reference_is_lost_or_kept(subtract: Callable[..., np.ndarray]) -> None:
    a, b, out = np.array([1, 2], np.float32), np.array([3, 5], np.float32), np.empty(2, np.float32)
    repeated(subtract, a, b)
    watched = (a, b, out, a.dtype, np.ndarray, a.shape)
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(1000):
        subtract(a, b)
        subtract(a, b, out=out)
        with pytest.raises(eltwise.EltwiseError):
            subtract(a, b, out=np.empty(3, np.float32))
    gc.collect()
    after = [sys.getrefcount(each) for each in watched]
    assert max(abs(x - y) for x, y in zip(before, after, strict=True)) < 10


def test_more_calls_than_records(subtract: Callable[..., np.ndarray]) -> None:
    for size in range(1, native.MOST_RECORDS + 20):
        a = np.arange(size, dtype=np.float32)
        for _ in range(2 if size % 50 else OFTEN):
            assert subtract(a, a[:1]).tolist() == a.tolist()


def test_records_of_one_slot_do_not_hide_each_other(subtract: Callable[..., np.ndarray]) -> None:
    table = subtract.__self__  # type: ignore[attr-defined]
    mask, table.mask = table.mask, 0
    try:
        arrays = [np.arange(size, dtype=kind) for size in range(1, 6) for kind in (np.float32, np.int32, np.float64)]
        for array in arrays:
            repeated(subtract, array, array)
        for array in arrays:
            assert is_native(subtract, array, array)
            assert subtract(array, array[::-1].copy()).tolist() == (array - array[::-1]).tolist()
    finally:
        table.mask = mask


def test_threads_that_call_while_records_come_and_go(subtract: Callable[..., np.ndarray]) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        generator = np.random.default_rng(seed)
        for _ in range(300):
            a = generator.integers(0, 99, int(generator.integers(1, 9))).astype(np.float32)
            for _ in range(10):
                if subtract(a, a[:1]).tolist() != (a - a[:1]).tolist():
                    wrong.append(seed)
            records_of(subtract).clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_builtin_is_a_function_as_any_other() -> None:
    assert pickle.loads(pickle.dumps(eltwise.subtract)) is eltwise.subtract  # noqa: S301
    assert copy.deepcopy(eltwise.subtract) is eltwise.subtract
    assert eltwise.subtract.__name__ == "subtract"
    assert eltwise.subtract.__module__ == "eltwise"
    assert list(inspect.signature(eltwise.subtract).parameters) == ["a", "b", "out", "auto_broadcast", "axis"]
    assert "Subtract-1" in (eltwise.subtract.__doc__ or "")
    assert np.array_equal(next(map(eltwise.negative, [np.array([1], np.float32)])), np.array([-1], np.float32))


def test_a_layout_of_objects_that_is_not_known_takes_the_python_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "is_possible", lambda: False)
    function = new_function()
    assert inspect.isfunction(function)
    a = np.array([1, 2], ml_dtypes.bfloat16)
    assert repeated(function, a, a).tolist() == [0, 0]


@pytest.mark.parametrize("size", ["N", 3])
def test_a_model_that_one_kernel_computes_is_run_by_the_entry(size: str | int) -> None:
    """Also with a constant, a repeated operand, other names, other shapes and inputs that do not fit."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in "ab"]
    nodes = [
        helper.make_node("Sub", ["b", "c"], ["d"]),
        helper.make_node("Mul", ["d", "a"], ["e"]),
        helper.make_node("Add", ["e", "b"], ["f"]),
    ]
    graph = helper.make_graph(
        nodes,
        "model",
        ports,
        [helper.make_tensor_value_info("f", TensorProto.FLOAT, [size])],
        [helper.make_tensor("c", TensorProto.FLOAT, [1], [2.5])],
    )
    model = eltwise.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    for count in (3, 5) if size == "N" else (3,):
        a, b = np.arange(count, dtype=np.float32), np.linspace(1, 7, count, dtype=np.float32)
        for _ in range(OFTEN):
            result = model.run({"b": b, "a": a})["f"]
        kernel = model._runner._kernel
        assert kernel is not None
        assert kernel.records.has(
            [{"a": a, "b": b, "c": np.array([2.5], np.float32)}[each] for each in kernel.operands]
        )
        assert result.tolist() == ((b - np.float32(2.5)) * a + b).tolist()
    for feeds in (
        {"a": a},
        {"a": a, "b": b[:2]},
        {"a": a, "b": b.astype(np.float64)},
        {"a": a, "x": b},
        {"a": a, "b": None},
    ):
        with pytest.raises(eltwise.EltwiseError):
            model.run(feeds)
    assert model.run({"a": a, "b": b})["f"].tolist() == result.tolist()


def test_calls_at_the_end_of_the_process() -> None:
    """Finalizers and threads that nobody joins call when modules are already gone."""
    code = """
import threading, numpy as np, eltwise
a = np.ones(20000, np.float32)
class Late:
    def __init__(self):
        self.subtract = eltwise.subtract
    def __del__(self):
        print(float(self.subtract(a, a).sum()))
def work(subtract=eltwise.subtract, a=a):
    while True:
        subtract(a, a)
for _ in range(200):
    eltwise.subtract(a, a)
late = Late()
late.itself = late
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "dtype", [np.dtype(">f4"), np.dtype(np.float32, metadata={"x": 1})], ids=["swapped", "metadata"]
)
def test_the_dtype_of_a_given_result_is_not_that_of_new_ones(
    subtract: Callable[..., np.ndarray], dtype: np.dtype[np.float32]
) -> None:
    a, b = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    out = np.empty(2, dtype)
    assert repeated(subtract, a, b, out=out).tolist() == [-2, -3]
    assert subtract(a, b).dtype is np.dtype(np.float32)
    assert repeated(subtract, a, b).dtype is np.dtype(np.float32)
    assert subtract(a, b, out=out).tolist() == [-2, -3]


def test_without_native_entries_no_kernel_is_compiled_for_small_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "is_possible", lambda: False)
    monkeypatch.setattr(native, "is_possible", lambda: False)
    monkeypatch.setattr(dispatch, "has_compiler", lambda: pytest.fail("a compiler was looked for"))
    function, a = new_function(), np.array([1, 2, 3], np.float32)
    assert repeated(function, a, a[:1]).tolist() == [0, 1, 2]
    assert not calls_of("Sub-14").records.has((a, a[:1]))


def test_a_mapping_that_makes_values_is_read_as_any_other() -> None:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Sub", ["x", "y"], ["z"])], "model", ports[:2], ports[2:])
    model = eltwise.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    a = np.array([1, 2], np.float32)
    for _ in range(OFTEN):
        model.run({"x": a, "y": a})
    given = defaultdict(lambda: a, {"x": a, "typo": a})
    with pytest.raises(eltwise.EltwiseError, match="typo"):
        model.run(given)
    assert [*given] == ["x", "typo"]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | environment,
    )


def test_a_handler_that_calls_while_a_kernel_compiles() -> None:
    done = python(
        """
import signal, llvmlite.binding, numpy as np, eltwise, eltwise.kernels.compiled, eltwise.kernels.entry
from eltwise.engine import functions  # Imports are not what is interrupted here.
a = np.ones(3, np.float32)
def handle(*_):
    eltwise.multiply(a, a)
    signal.setitimer(signal.ITIMER_REAL, 0.0003)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0003)
for kind in "f4 f8 i4 i8 u1 u2".split():
    b = np.ones(5, kind)
    for _ in range(150):
        assert (eltwise.subtract(b, b) == 0).all()
signal.setitimer(signal.ITIMER_REAL, 0)
print("done")
""",
        ELTWISE_CACHE="off",
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_where_machine_code_may_not_run_numpy_computes() -> None:
    done = python(
        """
import ctypes, warnings, numpy as np, eltwise
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE
    print("done")
    raise SystemExit
a = np.ones(1 << 20, np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for size in (3, 1 << 20):
        for _ in range(150):
            assert (eltwise.add(a[:size], a[:size]) == 2).all()
assert len(caught) == 1, caught
print("done")
"""
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("name", ["ELTWISE_CPU", "ELTWISE_NUM_THREADS"])
def test_what_hinders_a_record_does_not_fail_a_call_that_needs_none(name: str) -> None:
    code = "import numpy as np, eltwise\\nfor _ in range(250): eltwise.add(np.ones(3), np.ones(3))\\nprint('done')"
    assert python(code.replace("\\n", "\n"), **{name: "bogus"}).stdout == "done\n"
