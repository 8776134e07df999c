"""The assertions: what is the same, what is close, in both orders; and messages of at most 25 lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from onnx import TensorProto, helper
from onnx.parser import parse_model
from safetensors.numpy import save_file

import eltwise
from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.core.errors import EltwiseError, FileMissingError, UnsupportedError
from eltwise.oracle import same_bits
from eltwise.oracle.hard_values import hard_values
from eltwise.testing import assert_close, assert_same, assert_same_model
from support.traced_models import parsed

W = np.random.default_rng(3).standard_normal((8, 12)).astype(np.float32)
FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, 1.0000001, 1e-45, 3.4e38])


def message_of(check: Callable[..., None], actual: object, expected: object, **options: object) -> str:
    """The message of a failure, which comes in both orders; empty where there is none."""
    messages = []
    for one, other in ((actual, expected), (expected, actual)):
        try:
            check(one, other, **options)
            messages.append("")
        except AssertionError as error:
            messages.append(str(error))
    assert all(len(text.splitlines()) <= 25 for text in messages)
    assert bool(messages[0]) == bool(messages[1])
    return messages[0]


MISSING = np.dtypes.StringDType(na_object=None)
BYTES: dict[str, tuple[Any, Any]] = {
    "bool": (np.uint8([0, 1, 1]).view(np.bool_), np.uint8([0, 2, 255]).view(np.bool_)),
    "int4": (np.uint8([0, 0x0F, 7]).view(ml_dtypes.int4), np.uint8([0, 0xFF, 7]).view(ml_dtypes.int4)),
    "uint4": (np.uint8([0, 0x0F, 7]).view(ml_dtypes.uint4), np.uint8([0, 0x3F, 0x17]).view(ml_dtypes.uint4)),
}


@pytest.mark.parametrize("name", BYTES)
@pytest.mark.parametrize("field", ["", "f"])
def test_a_value_that_several_bytes_stand_for_is_one_value(name: str, field: str) -> None:
    """NumPy takes every byte but 0 as True, and ml_dtypes leaves the upper half of a byte open; also in records."""
    a, b = (one.view([(field, one.dtype)]) if field else one for one in BYTES[name])
    for one, other in ((a, b), (a[::2], b[::2]), (a.reshape(3, 1), b.reshape(3, 1))):
        assert not message_of(assert_same, one, other)
        assert eltwise.compare(one, other).is_good
    assert message_of(assert_same, a, b[::-1])


@pytest.mark.parametrize("text", ["None", "", "-", "no text"])
def test_a_missing_text_is_no_text(text: str) -> None:
    missing, texts = np.array(["a", None], MISSING), np.array(["a", text], np.dtypes.StringDType())
    assert "no text" in message_of(assert_same, missing, texts)
    assert not eltwise.compare(missing, texts).is_good
    assert not message_of(assert_same, missing, missing.copy())


@pytest.mark.parametrize("element_type", [one for one in TYPES if one.runs], ids=str)
def test_one_element_with_other_bits_is_a_difference_in_every_type(element_type: ElementType) -> None:
    values = np.array([True, False]) if element_type is BOOL else hard_values(element_type)
    assert message_of(assert_same, values, values.copy()) == ""
    assert message_of(assert_same, values[::2], values.copy()[::2]) == ""
    for index in range(0, values.size, -(-values.size // 6)):
        other = values.copy()
        other[index] = values[index - 1]
        is_same = bool(same_bits(other, values))
        assert (message_of(assert_same, other, values) == "") == is_same
        assert is_same or message_of(assert_same, [other], [values]).startswith("1 of 1 value differs")


@given(
    npst.arrays(np.float32, 9, elements=FLOATS),
    npst.arrays(np.float32, 9, elements=FLOATS),
    st.sampled_from([0.0, 1e-7, 0.5, 2.0]),
    st.sampled_from([0.0, 1e-30, 1.0]),
    st.booleans(),
)
def test_close_means_the_formula_in_both_orders(
    a: np.ndarray, b: np.ndarray, rtol: float, atol: float, equal_nan: bool
) -> None:
    message = message_of(assert_close, a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        within = gap <= np.float32(atol) + np.float32(rtol) * np.maximum(np.abs(a), np.abs(b))
    is_close = (a == b) | (within & np.isfinite(gap)) | (np.isnan(a) & np.isnan(b) & equal_nan)
    assert (message == "") == bool(is_close.all())


@given(npst.arrays(np.float32, 5, elements=st.floats(-8, 8, width=32)), st.integers(0, 3))
def test_neighbours_are_close_by_default_and_integers_are_exact(values: np.ndarray, steps: int) -> None:
    other = values
    for _step in range(steps):
        other = np.nextafter(other, np.float32(np.inf))
    assert (message_of(assert_close, values, other) == "") == (steps <= 1)
    assert message_of(assert_close, values, other, ulp=steps) == ""
    assert (message_of(assert_close, np.arange(5), np.arange(5) + steps) == "") == (steps == 0)


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.bits < 8], ids=str)
def test_what_a_byte_holds_beside_a_value_is_no_difference(element_type: ElementType) -> None:
    """ml_dtypes leaves the sign there after arithmetic."""
    bits = np.arange(256, dtype=np.uint8)
    clean, other = (bits & 15).view(element_type.storage), bits.view(element_type.storage)
    for first, second in ((clean, other), (other, clean)):
        assert_same(first, second)
        assert_same({"a": first.reshape(16, 16).T}, {"a": second.reshape(16, 16).T})
        assert eltwise.compare(first, second).exit_code == 0
        with pytest.raises(AssertionError, match="1 of 256 differs"):
            assert_same(first, (bits ^ (bits == 77)).view(element_type.storage))


@pytest.mark.parametrize(
    ("actual", "expected", "options", "part"),
    [
        ({"a": W}, {"a": W, "b": W}, {}, "missing in actual: b"),
        ({"a": W, "b": W}, {"a": W}, {}, "not in expected: b"),
        ([W, [W, W + 1]], [W, (W, W)], {}, "1.1: float32(8,12)"),
        ({"a": None}, {"a": W}, {}, "None instead of an array of float32"),
        (["x"], ["y"], {}, "'x' instead of 'y'"),
        ([1, True], [1, 1], {}, "1: bool() instead of int64(), other_type"),
        (W, W[:2], {}, "float32(8,12) instead of float32(2,12)"),
        (W.astype(np.float64), W, {}, "float64(8,12) instead of float32(8,12)"),
        (W.T.copy(), W, {}, "float32(12,8) instead of float32(8,12), transposed"),
        (W * 2, W, {}, "B is A times 2^1"),
        (W * 2, W, {"err_msg": "step 3"}, "step 3\n1 of 1 value differs"),
        (np.float32([np.nan]), np.float32([np.nan]), {"equal_nan": False}, "equal_nan is False"),
        (np.float32(0.5), 0.1, {}, "float32() instead of float64()"),
    ],
)
def test_a_failure_says_what_and_why(
    actual: object, expected: object, options: Mapping[str, object], part: str
) -> None:
    message_of(assert_same, actual, expected, **options)
    with pytest.raises(AssertionError) as raised:
        assert_same(actual, expected, **options)
    assert part in str(raised.value)


@pytest.mark.parametrize("element_type", [one for one in TYPES if one.runs and one.kind == "float"], ids=str)
def test_no_nan_is_a_warning(element_type: ElementType) -> None:
    """Signalling ones neither; warnings are errors here."""
    bits = np.dtype(f"u{element_type.storage.itemsize}")
    above = np.arange(1 << min(16, element_type.bits), dtype=np.uint64) << max(0, element_type.bits - 16)
    values = (above | 1).astype(bits).view(element_type.storage)
    with pytest.raises(AssertionError, match="1 of 1 value differs"):
        assert_close(values, values, equal_nan=False)
    for other in (np.ones(values.shape, np.float32), np.ones(values.shape)):
        with pytest.raises(AssertionError):
            assert_close(values, other, check_dtype=False)


def test_values_of_two_types_are_the_same_where_types_are_not_checked() -> None:
    assert message_of(assert_same, W.astype(np.float64), W, check_dtype=False) == ""
    assert message_of(assert_same, W.astype(np.float64) * 2, W, check_dtype=False)
    assert message_of(assert_same, np.float32(0.5), 0.5) == ""


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        ({1: 2}, {"1": 2}, "a mapping and a mapping with the keys 1"),
        ({"a.b": 1}, {"a": {"b": 1}}, "a mapping and a mapping with the keys 'a.b'"),
        ({"x": [1]}, {"x": {"0": 1}}, "a mapping and a mapping; 'x' is a list"),
        ({"x": 1, "y": {}}, {"x": 1}, "not in expected: y"),
        ({"x": {}}, {"x": []}, "x: {} instead of []"),
    ],
)
def test_containers_of_the_same_names_differ_by_their_keys(actual: object, expected: object, text: str) -> None:
    assert_same(actual, actual)
    with pytest.raises(AssertionError, match=re.escape(text)):
        assert_same(actual, expected)
    with pytest.raises(AssertionError):
        assert_same(expected, actual)


NESTED = st.recursive(
    st.just(1.5),
    lambda each: st.lists(each, min_size=1, max_size=2) | st.dictionaries(st.sampled_from("01"), each, min_size=1),
    max_leaves=4,
)


def names_of(value: object) -> set[str]:
    if not isinstance(value, list | dict):
        return {""}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {f"{key}.{rest}" for key, each in items for rest in names_of(each)}


@given(NESTED, NESTED)
def test_containers_are_spoken_of_only_where_all_names_are_the_same(actual: object, expected: object) -> None:
    message = message_of(assert_same, actual, expected)
    assert ("containers: " in message) is (names_of(actual) == names_of(expected) and actual != expected)
    assert bool(message) is (actual != expected)


def test_only_values_are_counted_as_values(tmp_path: Path) -> None:
    node, result = (
        helper.make_node("Add", ["x", "x"], ["y"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1]),
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    for number, kind in enumerate(("Add", "Mul")):
        node.op_type = kind
        onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [result])), tmp_path / f"{number}.onnx")
    nodes = message_of(assert_same, tmp_path / "0.onnx", tmp_path / "1.onnx")
    assert nodes.startswith("the nodes: ")
    assert message_of(assert_same, {1: W, 2: W}, {"1": W, "2": W}).startswith(
        "2 values are equal; what differs:\ncontainers: "
    )
    assert message_of(assert_same, {1: W, 2: W}, {"1": W, "2": W + 1}).startswith("1 of 2 values differs")


def test_a_message_is_short_whatever_differs() -> None:
    many = {f"layers.{number}.{'weight' * 9}": W * number for number in range(300)}
    other = {name: array + 1 for name, array in many.items()}
    message = message_of(assert_close, other | {"more": W}, many | {"less": W}, rtol=1e-3, err_msg="text\n" * 99)
    assert "300 of 300 values differ" in message
    assert "also different: " in message
    assert message.endswith("A is the expected side, B the actual one")


def test_files_arrays_and_models_are_sides(tmp_path: Path) -> None:
    save_file({"w": W, "layers.0": W}, tmp_path / "a.safetensors")
    np.save(tmp_path / "w.npy", W)
    assert_same(tmp_path / "a.safetensors", {"w": W, "layers": [W]})
    assert_same(str(tmp_path / "w.npy"), W)
    assert "w: float32(8,12)" in message_of(assert_same, tmp_path / "a.safetensors", {"w": W + 1, "layers": [W]})
    model = _model(tmp_path / "m.onnx", 3.0)
    assert_same(model, {"c": np.float32([3])})
    assert_same(onnx.load(model), model)


@pytest.mark.parametrize(
    ("actual", "options"),
    [
        (W.astype(np.longdouble), {}),
        ([np.array(["x"], object)], {}),
        ("no.npy", {}),
        ({"a": {"b": 1}, "a.b": 2}, {}),
        (2**70 + 1, {}),
        (W, {"tolerance": 1e-3}),
        (W, {"tolerance": "v: ulp<=1"}),
        (W, {"rtol": -1.0}),
        (W, {"err_msg": 3}),
    ],
)
def test_bad_input_is_no_failed_assertion(actual: object, options: Mapping[str, object]) -> None:
    for one, other in ((actual, W), (W, actual), (actual, actual)):
        with pytest.raises(EltwiseError):
            assert_close(one, other, **options)


@pytest.mark.parametrize("number", sorted({limit for each in TYPES if each.is_integer for limit in each.limits}))
def test_every_number_that_an_integer_type_holds_is_compared(number: int) -> None:
    for form in (lambda each: each, lambda each: [each, 1], lambda each: {"x": each}):
        assert_same(form(number), form(number))
        with pytest.raises(AssertionError):
            assert_same(form(number), form(number ^ 1))
    assert_same([number, 2**63, 1], [number, 2**63, 1])
    with pytest.raises(AssertionError):
        assert_same([number, 2**63, 1], [number, 2**63, 2])


def test_a_text_that_is_no_path_is_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("relu", "", "a sentence. With dots", "x" * 5000, "x\0"):
        assert_same(text, text)
        with pytest.raises(AssertionError, match="instead of 'other'"):
            assert_same(text, "other")
    with pytest.raises(FileMissingError, match=r"a\.npy: there is no such file"):
        assert_same("a.npy", "b.npy")


def test_labels_of_data_frames_are_compared() -> None:
    pandas = pytest.importorskip("pandas")
    assert message_of(assert_same, pandas.Series([1.0, 2.0]), pandas.Series([1.0, 2.0])) == ""
    assert "labels differ" in message_of(assert_same, pandas.Series([1.0]), pandas.Series([1.0], index=["x"]))


def test_tensors_of_torch_are_sides() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(W, requires_grad=True)
    assert message_of(assert_same, {"w": tensor}, {"w": W}) == ""
    assert "scaled" in message_of(assert_same, {"w": tensor * 2}, {"w": W})


def _model(path: Path, constant: float, op_type: str = "Mul", name: str = "x") -> Path:
    node = helper.make_node(op_type, [name, "c"] if op_type == "Mul" else [name], ["y"])
    shape = [helper.make_tensor_value_info(each, TensorProto.FLOAT, ["N"]) for each in (name, "y")]
    weights = [helper.make_tensor("c", TensorProto.FLOAT, [1], [constant])]
    graph = helper.make_graph([node], "g", shape[:1], shape[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_models_are_the_same_where_their_outputs_are(tmp_path: Path) -> None:
    three, four = _model(tmp_path / "3.onnx", 3.0), _model(tmp_path / "4.onnx", 4.0)
    assert message_of(assert_same_model, three, str(three)) == ""
    assert "y: float32(" in message_of(assert_same_model, three, four)
    assert message_of(assert_same_model, three, four, rtol=0.25, inputs={"x": np.float32([1, 2])}) == ""
    assert message_of(assert_same_model, three, four, inputs={"x": np.float32([1, 2])})
    with pytest.raises(EltwiseError):
        assert_same_model(three, _model(tmp_path / "z.onnx", 3.0, name="z"))


def _binary(op: str, ir_version: int = 9) -> onnx.ModelProto:
    """A model of two inputs, of which the second one has a value."""
    node = helper.make_node(op, ["x", "w"], ["y"])
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "w", "y")]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 1, 1])]
    graph = helper.make_graph([node], "g", ports[:2], ports[2:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("runtime", ["", "onnxruntime"])
def test_models_that_differ_in_an_optional_input_only_are_not_the_same(runtime: str) -> None:
    """Times 1 is divided by 1, and no other number."""
    assert message_of(assert_same_model, _binary("Mul"), _binary("Mul"), runtime=runtime) == ""
    assert message_of(assert_same_model, _binary("Mul"), _binary("Div"), runtime=runtime)
    given = {"x": np.float32([1, 2, 3])}
    assert message_of(assert_same_model, _binary("Mul"), _binary("Div"), runtime=runtime, inputs=given) == ""
    assert message_of(assert_same_model, _binary("Mul", 3), _binary("Div", 3), runtime=runtime) == ""


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize(("runtime", "inputs"), [("", None), ("", {}), ("onnxruntime", None)])
def test_a_model_of_fixed_sizes_is_compared_with_one_of_any(runtime: str, inputs: Mapping[str, object] | None) -> None:
    fixed, other, any_size = _binary("Mul"), _binary("Add"), _binary("Mul")
    for port in (*any_size.graph.input, *any_size.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "N"
    assert message_of(assert_same_model, fixed, any_size, runtime=runtime, inputs=inputs) == ""
    assert "y: float32(3)" in message_of(assert_same_model, other, any_size, runtime=runtime, inputs=inputs)


def test_a_random_model_is_refused_and_no_difference(tmp_path: Path) -> None:
    random = _model(tmp_path / "random.onnx", 1.0, "RandomNormalLike")
    with pytest.raises(EltwiseError, match="a second run on the same inputs gives other results"):
        assert_same_model(random, random)


def test_a_runtime_runs_the_models_that_eltwise_does_not(tmp_path: Path) -> None:
    sines, cosines = (_model(tmp_path / f"{name}.onnx", 1.0, name) for name in ("Sin", "Cos"))
    assert message_of(assert_same_model, sines, sines, inputs={"x": W[0]}) == ""
    assert message_of(assert_same_model, sines, cosines)


OF_NAN = (
    np.array([np.nan, 1j], np.complex64),
    np.array([complex(0, np.nan), 1], np.complex128),
    np.array(["NaT", "2026-01-01"], "M8[D]"),
    np.array([(1.0, np.nan), (np.nan, 2.0)], [("a", "f4"), ("b", "f8")]),
)


@pytest.mark.parametrize("array", OF_NAN, ids=lambda array: str(array.dtype))
def test_what_is_not_a_number_in_other_values_counts_as_in_tensors(array: np.ndarray) -> None:
    other = array.copy()
    assert_same(array, other)
    with pytest.raises(AssertionError, match="on both sides"):
        assert_same(array, other, equal_nan=False)
    whole = slice(1, 2) if array.dtype.names is None else slice(0)
    assert_same(array[whole], other[whole], equal_nan=False)
    if array.dtype.kind == "c":
        other.view(f"u{array.itemsize // 2}")[np.isnan(array.view(array.real.dtype))] ^= 1  # Another NaN.
        assert_same(array, other)
        with pytest.raises(AssertionError, match="on both sides"):
            assert_same(array, other, equal_nan=False)


IF = """g (float[2] x, bool k) => (float[2] z) {{
    n = Shape(x) two = Constant <value = int64[1] {{2}}> () e = Equal(n, two) c = Squeeze(e)
    z = If ({0}) <then_branch = t () => (float[2] p) {{ p = Softmax(x) }},
                  else_branch = e () => (float[2] q) {{ q = {1}(x) }}> }}"""


@pytest.mark.usefixtures("local_hosts")
def test_models_with_branches_are_the_same_where_all_of_them_are() -> None:
    """Both branches are run where inputs decide; where none that are drawn reach one, nothing is established."""
    decides, fixed, never = "k", "c", "b"
    one, other = (parsed(IF.format(decides, op_type)) for op_type in ("Relu", "Abs"))
    assert_same_model(one, one)
    with pytest.raises(AssertionError):
        assert_same_model(one, other)
    assert_same_model(*(parsed(IF.format(fixed, op_type)) for op_type in ("Relu", "Abs")))
    text = IF.replace(
        "c = Squeeze(e)", "s = ReduceMax <keepdims = 0> (x) h = Constant <value = float {{1e30}}> () b = Less(s, h)"
    )
    unreached = parsed(text.format(never, "Relu"))
    with pytest.raises(UnsupportedError, match="only one branch of an If was taken on 8 sets of inputs"):
        assert_same_model(unreached, unreached)
    assert_same_model(unreached, unreached, inputs={"x": np.float32([1, 2]), "k": np.array(True)})


IMPORTS = '<ir_version: 9, opset_import: ["" : 17, "local" : 1]>'
NESTED_IFS = {
    "a function": """g (float[2] x) => (float[2] z) {{ z = local.F(x) }}
<domain: "local", opset_import: ["" : 17]> F (x) => (z) {{
    m = ReduceMax <keepdims = 0> (x) h = Constant <value = float {{1e30}}> () b = Less(m, h)
    z = If (b) <then_branch = t () => (float[2] p) {{ p = Softmax(x) }},
                else_branch = e () => (float[2] q) {{ q = {0}(x) }}> }}""",
    "a branch": """g (float[2] x) => (float[2] z) {{
    m = ReduceMax <keepdims = 0> (x) o = Constant <value = float {{0}}> () a = Less(m, o)
    z = If (a) <then_branch = t () => (float[2] p) {{ p = Neg(x) }}, else_branch = e () => (float[2] q) {{
        h = Constant <value = float {{1e30}}> () b = Less(m, h)
        q = If (b) <then_branch = t1 () => (float[2] r) {{ r = Softmax(x) }},
                    else_branch = e1 () => (float[2] s) {{ s = {0}(x) }}> }}> }}""",
    "a loop": """g (float[2] x) => (float[2] z) <int64 n = {{{1}}}> {{
    z = Loop (n, , x) <body = body (int64 i, bool goes_on, float[2] a) => (bool same, float[2] w) {{
        same = Identity(goes_on) m = ReduceMax <keepdims = 0> (a)
        h = Constant <value = float {{1e30}}> () b = Less(m, h)
        w = If (b) <then_branch = t () => (float[2] p) {{ p = Softmax(a) }},
                    else_branch = e () => (float[2] q) {{ q = {0}(a) }}> }}> }}""",
}


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize(("body", "rounds"), [("a function", 0), ("a branch", 0), ("a loop", 2), ("a loop", 40)])
def test_no_branch_of_an_if_in_a_body_is_the_same_untaken(body: str, rounds: int) -> None:
    """Nothing is established of a branch that was not taken, and of one in a loop of too many rounds to be followed."""
    models = [parse_model(f"{IMPORTS}\n{NESTED_IFS[body].format(op_type, rounds)}") for op_type in ("Relu", "Abs")]
    problem = "an If in this Loop cannot be followed" if rounds > 16 else "only one branch of an If was taken"
    with pytest.raises(UnsupportedError, match=problem):
        assert_same_model(*models)
