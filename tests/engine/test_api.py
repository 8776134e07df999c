"""The operators as functions: names, attributes, shapes in the text notation."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import AttributeValueError, ElementTypeError, NameUnknownError, ShapeError
from eltwise.core.shapes import parse
from eltwise.engine.api import Operator
from eltwise.ops.registry import ELEMENTWISE
from support.operands import choices

A = np.arange(6, dtype=np.float32).reshape(2, 3)
COLUMN = np.array([1, 2], np.float32)


def test_the_example_of_the_brief() -> None:
    op = eltwise.operator("Sub-6", broadcast=1, axis=1)
    assert str(op.infer_shape("2,3,4,5", "3,4")) == "2,3,4,5"
    assert op.name == "Sub-6"
    assert repr(op) == "eltwise.operator('Sub-6', axis=1, broadcast=1)"


@pytest.mark.parametrize(
    ("auto_broadcast", "axis", "right"),
    [("pdpd", 0, True), ("PDPD", np.int64(0), True), ("pdpd", -1, False), ("numpy", -1, False), ("none", -1, False)],
)
def test_the_attributes_choose_the_rule(auto_broadcast: str, axis: int, right: bool) -> None:
    if right:
        expected = A - COLUMN[:, None]
        assert (eltwise.subtract(A, COLUMN, auto_broadcast=auto_broadcast, axis=axis) == expected).all()  # type: ignore[call-overload]
        assert (eltwise.squared_difference(A, COLUMN, auto_broadcast=auto_broadcast, axis=axis) == expected**2).all()  # type: ignore[call-overload]
    else:
        with pytest.raises(ShapeError):
            eltwise.subtract(A, COLUMN, auto_broadcast=auto_broadcast, axis=axis)  # type: ignore[call-overload]


NOT_ALLOWED = "this value is not allowed, got"


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"auto_broadcast": "pd"}, f"auto_broadcast: {NOT_ALLOWED} 'pd'; allowed: none, numpy, pdpd"),
        ({"auto_broadcast": ["numpy"]}, f"auto_broadcast: {NOT_ALLOWED} ['numpy']; allowed: none, numpy"),
        ({"auto_broadcast": None}, f"auto_broadcast: {NOT_ALLOWED} None; allowed: none, numpy, pdpd"),
        *(
            ({"auto_broadcast": "pdpd", "axis": axis}, f"axis: {NOT_ALLOWED} {axis!r}; allowed: an integer of 64")
            for axis in (True, 1.0, 2**63, [1], np.arange(2))
        ),
        ({"axis": -1.0}, f"axis: {NOT_ALLOWED} -1.0; allowed: an integer of 64"),
        ({"axis": True}, f"axis: {NOT_ALLOWED} True; allowed: an integer of 64"),
        ({"axis": 1}, "axis: axis is not allowed with auto_broadcast='numpy', got 1; allowed: axis only with auto_"),
        ({"auto_broadcast": "none", "axis": 0}, "axis: axis is not allowed with auto_broadcast='none', got 0; allowed"),
    ],
)
def test_attribute_values_that_are_not_allowed(attributes: dict[str, Any], sentence: str) -> None:
    eltwise.subtract(A, A, auto_broadcast="pdpd", axis=0)
    eltwise.operator("Subtract-1", auto_broadcast="pdpd", axis=1)
    for call in (
        lambda: eltwise.subtract(A, A, **attributes),
        lambda: eltwise.operator("Subtract-1", **attributes),
    ):
        with pytest.raises(AttributeValueError) as caught:
            call()
        assert str(caught.value).startswith(f"Subtract-1, attribute {sentence}")


@pytest.mark.parametrize(
    ("name", "attributes", "sentence"),
    [
        (
            "Sub-8",
            {},
            "there is no operator version 'Sub-8'; allowed: Sub-1, Sub-6, Sub-7, Sub-13, Sub-14; the newest is Sub-14",
        ),
        ("openvino.Reshape-1", {}, "'openvino.Reshape-1' is run in models, and not alone; load a model"),
        (
            "Sub-6",
            {"brodcast": 1},
            "Sub-6: there is no attribute 'brodcast'; allowed: axis, broadcast; did you mean 'b",
        ),
        ("Sub-7", {"axis": 1}, "Sub-7: there is no attribute 'axis'; allowed: none"),
        ("Sub-6", {"consumed_inputs": [0]}, "Sub-6: there is no attribute 'consumed_inputs'; allowed: axis, broadcast"),
    ],
)
def test_names_that_are_not_known(name: str, attributes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NameUnknownError) as caught:
        eltwise.operator(name, **attributes)
    assert str(caught.value).startswith(sentence)


def test_a_hint_without_effect_is_taken() -> None:
    for hint in ([0, 0], (np.int32(1), 0), []):
        assert (eltwise.operator("Sub-1", consumed_inputs=hint)(A, A) == 0).all()
    for wrong in (1, [0.5], [True], "0", [None]):
        with pytest.raises(AttributeValueError, match="Sub-1, attribute consumed_inputs: this value is not allowed"):
            eltwise.operator("Sub-1", consumed_inputs=wrong)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("2,3", "2,3"), ((2, 3), "2,3"), ([2, 3], "2,3"), ((), ""), ((np.int64(2), 3), "2,3"), (parse("N,?"), "N,?")],
)
def test_shapes_in_every_form(shape: object, expected: str) -> None:
    found = eltwise.operator("Sub-14").infer_shape(shape, "")  # type: ignore[arg-type]
    assert str(found) == expected
    assert found.assumptions == ()


@pytest.mark.parametrize("shape", [(2.0,), (None,), ("N", 2), 5, [[2], [3]], object()])
def test_what_is_no_shape(shape: object) -> None:
    with pytest.raises(ShapeError, match=r"not a shape, got .*; allowed: a text like '2,3' or sizes like \(2, 3\)"):
        eltwise.operator("Sub-14").infer_shape(shape, "")  # type: ignore[arg-type]


def test_inferred_shapes_say_what_was_assumed() -> None:
    found = eltwise.operator("Subtract-1").infer_shape("?,4,1", "1..6,1,5")
    assert str(found) == "?,4,5"
    assert found.assumptions == ("in dimension 0, A's ? and B's 1..6 are equal or one of them is 1",)
    with pytest.raises(
        ShapeError, match=r"Sub-14: shapes \(2,3\) and \(4\) do not broadcast: dimension 1 is 3 in A and 4"
    ):
        eltwise.operator("Sub-14").infer_shape("2,3", "4")
    with pytest.raises(ShapeError, match="shape '2,-1': this is not a dimension, got '-1'"):
        eltwise.operator("Sub-14").infer_shape("2,3", "2,-1")


def test_wrong_kinds_of_arguments_are_eltwise_errors() -> None:
    model = eltwise.load(Path(__file__).parents[2] / "examples" / "models" / "sub6_axis1.onnx")
    wrong: list[Callable[[], object]] = [
        lambda: eltwise.operator(None),  # type: ignore[arg-type]
        lambda: eltwise.operator(6),  # type: ignore[arg-type]
        lambda: model.run([1, 2]),  # type: ignore[call-overload]
        lambda: model.run(None),  # type: ignore[call-overload]
        lambda: eltwise.save(model, None),  # type: ignore[arg-type]
        lambda: eltwise.save(None, "a.onnx"),  # type: ignore[arg-type]
        lambda: eltwise.load(None),  # type: ignore[arg-type]
    ]
    for call in wrong:
        with pytest.raises(eltwise.EltwiseError):
            call()
    assert model == eltwise.load(Path(__file__).parents[2] / "examples" / "models" / "sub6_axis1.onnx")


def test_xml_in_any_encoding_is_xml() -> None:
    text = (Path(__file__).parents[2] / "examples" / "models" / "subtract_none.xml").read_text()
    model = eltwise.load(text.encode())
    assert eltwise.load(text.replace('version="1.0"', 'version="1.0" encoding="UTF-16"').encode("utf-16")) == model
    assert eltwise.load(b"\xef\xbb\xbf" + text.encode()) == model


@pytest.mark.parametrize("name", ["Sub-6", "Max-13", "Neg-13", "Equal-13", "Div-14", "SquaredDifference-1"])
def test_an_operator_that_was_called_can_be_pickled(name: str) -> None:
    bound = eltwise.operator(name)
    operands = [np.array([1, 2], np.float32)] * len(bound.operation.schema.operands)
    result = bound(*operands)
    again = pickle.loads(pickle.dumps(bound))  # noqa: S301 - its own bytes
    np.testing.assert_array_equal(again(*operands), result)


def test_operators_are_equal_where_version_and_attributes_are() -> None:
    operations = [schema.bind(attributes) for schema in ELEMENTWISE for attributes in choices(schema)]
    operators = [Operator(operation) for operation in operations]
    copies = pickle.loads(pickle.dumps(operators))  # noqa: S301 - its own bytes
    assert copies == operators
    assert [*map(hash, copies)] == [*map(hash, operators)]
    assert len({*operators, *copies}) == len({*operations})
    assert not any(operator == operation for operator, operation in zip(operators, operations, strict=True))


def test_a_boolean_scalar_goes_with_booleans_only() -> None:
    assert eltwise.equal(np.bool_([1, 0]), True).tolist() == [True, False]
    with pytest.raises(ElementTypeError, match="a bool is no number, got True"):
        eltwise.equal(np.array([1], np.int32), True)


def test_a_type_that_does_not_run_is_refused_with_those_of_the_operator() -> None:
    with pytest.raises(ElementTypeError) as caught:
        eltwise.operator("Less-7")(np.array(["a"]), np.array(["a"]))
    assert (
        str(caught.value) == "Less-7, operand A: unsupported element type, got <U1; allowed: float16, float32, float64"
    )
