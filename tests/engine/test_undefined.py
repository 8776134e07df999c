"""What no specification states is followed to the outputs, element by element."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.parser import parse_model

import eltwise
from eltwise.core.dtypes import FLOAT32, TYPES, by_name
from eltwise.engine.undefined import marked_run
from eltwise.ops.primitives import PRIMITIVES
from eltwise.oracle.domain import is_defined
from eltwise.oracle.hard_values import hard_values
from support.traced_models import parsed

INTEGERS = [each.name for each in TYPES if each.is_integer and each.bits >= 8]
SHAPES = ((12,), (3, 4), (2, 1, 6), (4, 3, 1))


def marks_of(text: str, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The marks of a model's outputs."""
    model = eltwise.load(parsed(text))
    return marked_run(model.graph, model.outputs, feeds)[1]


def is_stated(value: np.float32, target: str) -> bool:
    """Whether a float without its fraction is an integer of a type."""
    low, high = by_name(target).limits
    return bool(np.isfinite(value)) and low <= int(value) <= high


@given(
    target=st.sampled_from(INTEGERS),
    shape=st.sampled_from(SHAPES),
    values=st.lists(st.sampled_from(hard_values(FLOAT32).tolist()), min_size=12, max_size=12),
    chosen=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_marks_follow_casts_through_steps_broadcasts_moves_and_choices(
    target: str, shape: tuple[int, ...], values: list[float], chosen: list[bool]
) -> None:
    """Beside a loop over elements: sums hand marks on, a choice drops those that it does not take."""
    x, k = np.array(values, np.float32).reshape(shape), np.array(chosen)
    kind = "int64"
    text = f"""g (float{list(shape)} x, {kind}[5, 1] y, bool[12] k) => ({kind}[5, 12] z, {kind}[5, 12] s, float[12] r)
    <int64[1] flat = {{-1}}, {kind}[1] seven = {{7}}> {{
        c = Cast<to = {onnx.TensorProto.DataType.Value(target.upper())}>(x)
        m = Reshape(c, flat)
        w = Cast<to = 7>(m)
        s = Add(w, y)
        z = Where(k, s, seven)
        r = Reshape(x, flat)
    }}"""
    marks = marks_of(text, {"x": x, "y": np.zeros((5, 1), np.int64), "k": k})
    unstated = np.array([not is_stated(value, target) for value in x.reshape(-1)])
    none = np.zeros((5, 12), np.bool_)
    np.testing.assert_array_equal(marks.get("s", none), np.broadcast_to(unstated, (5, 12)))
    np.testing.assert_array_equal(marks.get("z", none), np.broadcast_to(unstated & k, (5, 12)))
    assert "r" not in marks


def test_a_sum_whose_shape_only_the_run_knows_is_stated_unless_it_reads_what_is_not() -> None:
    """Its node is run alone; of a cast there nothing is established."""
    x, n = np.array([1, np.nan, 2], np.float32), np.array([3], np.int64)
    for body, is_marked in (("s = Add(r, r)", False), ("c = Cast<to = 6>(r)  s = Add(c, c)", True)):
        kind = "int32" if is_marked else "float"
        nodes = f"r = Reshape(x, n)  {body}  z = Cast<to = 6>(x)"
        text = f"g (float[3] x, int64[1] n) => ({kind}[k] s, int32[3] z) {{ {nodes} }}"
        marks = marks_of(text, {"x": x, "n": n})
        assert marks["z"].tolist() == [False, True, False]
        assert ("s" in marks) == is_marked


@given(
    scale=st.floats(2.0**-10, 2.0**10, width=32),
    levels=st.lists(st.integers(-300, 300), min_size=4, max_size=4),
    opset=st.sampled_from([13, 21, 25]),
)
def test_quotients_have_no_level_where_their_rounding_decides_on_it(
    scale: float, levels: list[int], opset: int
) -> None:
    """Divided exactly and as float32, unless a precision is stated: the texts of old opsets do not tell which."""
    x = (np.array(levels) + 0.5).astype(np.float32) * np.float32(scale)
    real = [round(Fraction(float(each)) / Fraction(scale)) for each in x]
    differs = np.clip(real, -128, 127) != np.clip(np.rint(x / np.float32(scale)), -128, 127)
    for stated in ("", "<precision = 1>")[: 2 if opset > 21 else 1]:
        text = f"""<ir_version: 9, opset_import: ["" : {opset}]>
        g (float[4] x) => (int8[4] y) <float s = {{{scale!r}}}, int8 z = {{0}}> {{
            y = QuantizeLinear {stated} (x, s, z)
        }}"""
        model = eltwise.load(parse_model(text))
        marks = marked_run(model.graph, model.outputs, {"x": x})[1]
        expected = differs & (not stated)
        np.testing.assert_array_equal(marks.get("y", np.zeros(4, np.bool_)), expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_quotients_that_are_nan_have_no_level(axis: int) -> None:
    """NaN, and 0 / 0 by a scale along an axis; an infinity saturates, which is stated."""
    x = np.array([[1, np.nan, np.inf], [0, 0, -np.inf]], np.float32)
    scale = np.array([[0, 1, 1], [1, 0, 2]][axis][: x.shape[axis]], np.float32)
    text = f"""g (float[2, 3] x, float[{scale.size}] scale) => (uint8[2, 3] y)
    <uint8[{scale.size}] zero = {{{", ".join(["0"] * scale.size)}}}> {{
        y = QuantizeLinear<axis = {axis}>(x, scale, zero)
    }}"""
    with np.errstate(all="ignore"):
        expected = np.isnan(x / (scale[:, None] if axis == 0 else scale))
    np.testing.assert_array_equal(marks_of(text, {"x": x, "scale": scale})["y"], expected)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_by_all_bits_are_stated_nowhere(direction: str) -> None:
    text = f"""g (uint8[4] x, uint8[4] n) => (uint8[4] y) {{ y = BitShift<direction = "{direction}">(x, n) }}"""
    marks = marks_of(text, {"x": np.full(4, 255, np.uint8), "n": np.array([0, 7, 8, 255], np.uint8)})
    assert marks["y"].tolist() == [False, False, True, True]


def test_the_oracle_leaves_the_same_values_undefined() -> None:
    """Its domains, which conformance tests by, beside what primitives say of casts and shifts."""
    cast, floats = PRIMITIVES["cast"].undefined, [each for each in TYPES if each.kind == "float" and each.runs]
    assert cast is not None
    for source in floats:
        values = hard_values(source)
        for target in TYPES:
            if target.is_integer and target.runs:
                parameters = {"to": target, "saturate": True}
                expected = ~is_defined("cast", 0, values, parameters)
                with np.errstate(invalid="ignore"):
                    actual = cast(values, **parameters)
                np.testing.assert_array_equal(actual, expected, err_msg=f"{source} to {target}")
    for name in ("shift_left", "shift_right"):
        shift = PRIMITIVES[name].undefined
        assert shift is not None
        for element_type in (each for each in TYPES if each.is_integer and each.bits >= 8 and each.runs):
            amounts = hard_values(element_type)
            expected = ~is_defined(name, 1, amounts, {})
            np.testing.assert_array_equal(shift(amounts, amounts), expected, err_msg=f"{name} of {element_type}")


def test_integers_have_the_powers_and_quotients_that_python_has_as_integers() -> None:
    for element_type in (each for each in TYPES if each.is_integer and each.runs):
        numbers = hard_values(element_type)
        exponents = [isinstance(pow(1, number), int) for number in numbers.tolist()]
        assert is_defined("power", 1, numbers, {}).tolist() == exponents, element_type
        for name in (each.name for each in PRIMITIVES.values() if each.divides and element_type.kind in each.kinds):
            assert is_defined(name, 1, numbers, {}).tolist() == [number != 0 for number in numbers.tolist()], name


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@given(
    values=st.lists(st.sampled_from([0, 1, -1, 2, -7, 127, -128]), min_size=12, max_size=12),
    divisors=st.lists(st.sampled_from([0, 0, 1, -1, 3, -128]), min_size=4, max_size=4),
    chosen=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_integers_divided_by_0_are_stated_nowhere(
    operator: str, values: list[int], divisors: list[int], chosen: list[bool]
) -> None:
    """What reads such a quotient is marked, and all other results are those of other divisors."""
    x, d, k = np.array(values, np.int8).reshape(3, 4), np.array(divisors, np.int8), np.array(chosen)
    text = f"""g (int8[3, 4] x, int8[4] d, bool[4] k) => (int8[3, 4] q, int8[3, 4] z, int8[3, 4] r) {{
        q = {operator}(x, d)  s = {operator}(d, x)  r = {operator}(s, d)  c = Add(q, d)  z = Where(k, c, x) }}"""
    model = eltwise.load(parsed(text))
    results, marks = marked_run(model.graph, model.outputs, {"x": x, "d": d, "k": k})
    none = np.zeros((3, 4), np.bool_)
    is_zero = np.broadcast_to(d == 0, (3, 4))
    np.testing.assert_array_equal(marks.get("q", none), is_zero)
    np.testing.assert_array_equal(marks.get("z", none), is_zero & k)
    np.testing.assert_array_equal(marks.get("r", none), is_zero | (x == 0))
    safe = {"x": np.where(x == 0, 1, x).astype(np.int8), "d": np.where(d == 0, 1, d).astype(np.int8), "k": k}
    for name, expected in model.run(safe).items():
        stated = ~marks.get(name, none) & (x != 0)
        np.testing.assert_array_equal(results[name][stated], expected[stated])
