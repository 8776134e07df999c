"""ONNX models in older opsets: whatever the version can say, and nothing else; up and down again is the identity."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eltwise
from conversions import ALL_RUNS, Run, arrays, feeds, wrong_outputs
from eltwise import oracle
from eltwise.core.dtypes import FLOAT32, TYPES
from eltwise.core.errors import ElementTypeError, EltwiseError, ManyProblemsError
from eltwise.ops import registry
from eltwise.passes.opset import LEGACY_OPERATORS, MIRRORED
from onnx_models import NEWEST, model, node, value
from versions import FORMS, LEGAL, Form, cases_of, convert_onnx_bytes, in_opset, old_model

Sizes = tuple[int, ...]
SHAPES = [shape for rank in range(4) for shape in itertools.product((1, 2, 3), repeat=rank)]
PAIRS = [
    (a, b)
    for a, b in itertools.product(SHAPES, repeat=2)
    if all(1 in sizes or sizes[0] == sizes[1] for sizes in zip(a[::-1], b[::-1], strict=False))
]
"""Every pair of shapes that broadcasts as NumPy, up to rank 3."""


def new_model(operator: str, opset: int = 14) -> onnx.ModelProto:
    nodes, inputs, outputs = [], [], []
    for index, (a, b) in enumerate(PAIRS):
        nodes.append(node(operator, [f"a{index}", f"b{index}"], [f"z{index}"], f"n{index}"))
        inputs += [value(f"a{index}", a), value(f"b{index}", b)]
        outputs.append(value(f"z{index}", np.broadcast_shapes(a, b)))
    return model(nodes, inputs, outputs, opset)


def is_run(a: Sizes, b: Sizes) -> bool:
    """Whether B, aligned at the end, is one run of A's dimensions once 1s at its own ends are gone."""
    offset = len(a) - len(b)
    ends = itertools.combinations_with_replacement(range(len(b) + 1), 2)
    return offset >= 0 and any(
        b[start:end] == a[offset + start : offset + end] and set(b[:start] + b[end:]) <= {1} for start, end in ends
    )


@pytest.mark.parametrize("operator", ["Sub", "Add"])
@pytest.mark.parametrize("opset", [1, 6])
def test_every_pair_that_the_version_can_say_and_no_other(operator: str, opset: int, seed: int) -> None:
    made = new_model(operator)
    said = [is_run(a, b) or (operator in MIRRORED and is_run(b, a)) for a, b in PAIRS]
    with pytest.raises(ManyProblemsError) as caught:
        in_opset(made, opset)
    assert {problem.node for problem in caught.value.problems} == {f"n{i}" for i, fits in enumerate(said) if not fits}
    kept = [found for found, fits in zip(made.graph.node, said, strict=True) if fits]
    outputs = [found for found, fits in zip(made.graph.output, said, strict=True) if fits]
    del made.graph.node[:], made.graph.output[:]
    made.graph.node.extend(kept)
    made.graph.output.extend(outputs)
    converted, _report = in_opset(made, opset)
    operands = arrays([Run(a, b, None) for a, b in PAIRS], FLOAT32, seed)
    right = {
        f"z{index}": oracle.evaluate("subtract" if operator == "Sub" else "add", a, b, rule="numpy")
        for index, (a, b) in enumerate(operands)
        if said[index]
    }
    assert wrong_outputs(eltwise.load(converted).run(feeds(operands)), right) == []


def test_the_run_that_is_written_is_one_in_the_strictest_reading() -> None:
    """No 1 is expanded: B is one element, or exactly a run of A's shape."""
    made = new_model("Sub")
    refused = {index for index, (a, b) in enumerate(PAIRS) if not is_run(a, b)}
    for index in sorted(refused, reverse=True):
        del made.graph.node[index], made.graph.output[index]
    typed = onnx.shape_inference.infer_shapes(in_opset(made, 6)[0])
    shapes = {
        found.name: tuple(dimension.dim_value for dimension in found.type.tensor_type.shape.dim)
        for found in (*typed.graph.input, *typed.graph.value_info)
    }
    subtractions = [found for found in typed.graph.node if found.op_type == "Sub"]
    assert len(subtractions) == len(PAIRS) - len(refused)
    for found in subtractions:
        a, b = (shapes[name] for name in found.input)
        attributes = {attribute.name: attribute.i for attribute in found.attribute}
        axis = attributes.get("axis", len(a) - len(b))
        assert a == b if not attributes.get("broadcast") else set(b) <= {1} or a[axis : axis + len(b)] == b


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("opset", "throughs"), [(1, (13,)), (6, (7, NEWEST))])
def test_up_and_down_again(opset: int, throughs: tuple[int, ...], form: Form, seed: int) -> None:
    """The same node where its axis says something and B is exactly a run; the same bits for every case; or refused."""
    cases = cases_of(form)
    operands = arrays(cases, FLOAT32, seed)
    made = old_model(cases, "Sub", opset, form, operands)
    right = eltwise.load(made).run(given_to(made, operands))
    for through in throughs:
        up, _report = in_opset(made, through)
        if form in ("symbolic", "unknown"):
            with pytest.raises(EltwiseError, match="not known to broadcast"):
                in_opset(up, opset)
            continue
        down, _report = in_opset(up, opset)
        assert wrong_outputs(eltwise.load(down).run(given_to(down, operands)), right) == []
        for index in (index for index, case in enumerate(cases) if tells(case)):
            assert named(down, f"n{index}") == named(made, f"n{index}")


def given_to(made: onnx.ModelProto, operands: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    names = {port.name for port in made.graph.input}
    return {name: array for name, array in feeds(operands).items() if name in names}


def tells(case: Run) -> bool:
    """Whether the axis of a case is not what its absence means, and B is exactly a run."""
    return (
        case.axis is not None
        and case.axis >= 0
        and set(case.b) != {1}
        and bool(case.b)
        and case.axis + len(case.b) < len(case.a)
        and case.a[case.axis : case.axis + len(case.b)] == case.b
    )


def named(made: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(found for found in made.graph.node if found.name == name)


def test_up_and_down_again_gives_the_same_file() -> None:
    cases = [case for case in ALL_RUNS if tells(case)]
    for form in ("static", "initializer", "shared"):
        given = [(np.ones(0), np.ones(case.b, np.float32)) for case in cases]
        data = old_model(cases, "Sub", 6, form, given).SerializeToString()
        up, _report = convert_onnx_bytes(data, 21)
        down, _report = convert_onnx_bytes(up, 6)
        assert down == data


def types_of(operator: str, opset: int) -> set[str]:
    """The types that both operands may have."""
    schema = onnx.defs.get_schema(operator, opset, "")
    both = set(schema.inputs[0].types) & set(schema.inputs[1].types)
    return {text.removeprefix("tensor(").removesuffix(")") for text in both}


@pytest.mark.parametrize("operator", LEGACY_OPERATORS)
def test_every_type_goes_where_the_version_has_it(operator: str) -> None:
    schemas = [each for each in TYPES if each.onnx and each.onnx.lower() in types_of(operator, NEWEST)]
    for schema in schemas:
        result = TensorProto.BOOL if operator in ("Equal", "Greater", "Less") else schema.onnx_number
        made = model(
            [node(operator, ["x", "y"], ["z"])],
            [value("x", (2,), schema.onnx_number), value("y", (2,), schema.onnx_number)],
            [value("z", (2,), result)],
            NEWEST,
        )
        for opset in (1, 6, 7, 9, 13, 14):
            if schema.onnx.lower() in types_of(operator, opset):
                assert in_opset(made, opset)[0].graph == made.graph
                continue
            with pytest.raises(ElementTypeError, match="the type is not allowed in this version"):
                in_opset(made, opset)


def test_sub_goes_where_the_catalog_has_its_type() -> None:
    for schema in (schema for schema in registry.ELEMENTWISE if schema.name == "Sub"):
        expected = {kind.onnx.lower() for kind in schema.types}
        assert types_of("Sub", schema.version) == expected


def test_all_reasons_are_listed() -> None:
    nodes = [
        node("Sub", ["x", "y"], ["p"], "outer"),
        node("Sub", ["i", "i"], ["q"], "small"),
        node("Sub", ["u", "y"], ["z"], "unknown"),
    ]
    inputs = [value("x", (2, 1)), value("y", (1, 3)), value("i", (2,), TensorProto.INT8), value("u", None)]
    outputs = [value("p", (2, 3)), value("q", (2,), TensorProto.INT8), value("z", ["N", 3])]
    with pytest.raises(ManyProblemsError) as caught:
        convert_onnx_bytes(model(nodes, inputs, outputs, 14).SerializeToString(), 6)
    assert str(caught.value).startswith("3 problems:\n  1. Sub-14 node 'outer': ")
    assert [str(problem) for problem in caught.value.problems] == [
        "Sub-14 node 'outer': the shapes (2,1) and (1,3) are not known to broadcast as this version does; "
        "allowed: shapes that are equal for certain, or a B that is one run of A's dimensions; use opset 7 or later",
        "Sub-6 node 'small', operand 'i': the type is not allowed in this version, got tensor(int8); "
        "allowed: tensor(double), tensor(float), tensor(float16), tensor(int32), tensor(int64), tensor(uint32), "
        "tensor(uint64)",
        "Sub-14 node 'unknown', operand A: the rank of operand A is not known, and this version needs to know where B "
        "lies in A; declare its shape; symbols will do",
    ]


def test_a_value_minus_itself_needs_no_shape() -> None:
    made = model([node("Sub", ["x", "x"], ["z"])], [value("x", ["N", None])], [value("z", ["N", None])], 14)
    assert in_opset(made, 6)[0].graph == made.graph


def test_symbols_that_are_the_same_are_enough() -> None:
    made = model([node("Sub", ["x", "y"], ["z"])], [value("x", ["N", "M"]), value("y", ["M"])], [value("z")], 14)
    converted, _report = in_opset(made, 6)
    assert [(found.name, found.i) for found in converted.graph.node[0].attribute] == [("broadcast", 1)]


@pytest.mark.parametrize(("operator", "turned"), [("Greater", "Less"), ("Less", "Greater"), ("Equal", "Equal")])
def test_operands_change_places_where_a_lies_in_b(operator: str, turned: str) -> None:
    kind = TensorProto.INT32 if operator == "Equal" else TensorProto.FLOAT
    result = value("z", (2, 3), TensorProto.BOOL)
    made = model([node(operator, ["x", "y"], ["z"])], [value("x", (3,), kind), value("y", (2, 3), kind)], [result], 14)
    down, report = in_opset(made, 6)
    assert [(found.op_type, list(found.input)) for found in down.graph.node] == [(turned, ["y", "x"])]
    assert "A and B change places" in str(report)
    x, y = np.array([1, 2, 3]), np.array([[0, 2, 4], [3, 2, 1]])
    given = {name: array.astype(helper.tensor_dtype_to_np_dtype(kind)) for name, array in (("x", x), ("y", y))}
    right = {"Greater": x > y, "Less": x < y, "Equal": x == y}[operator]
    assert np.array_equal(onnx_run(in_opset(down, 14)[0], given)[0], right)


def test_a_shared_unsqueeze_stays_for_its_other_reader() -> None:
    axes = numpy_helper.from_array(np.array([1], np.int64), "axes")
    nodes = [
        node("Unsqueeze", ["y", "axes"], ["u"]),
        node("Sub", ["x", "u"], ["z"]),
        node("Neg", ["u"], ["v"]),
    ]
    made = model(nodes, [value("x"), value("y", (2,))], [value("z"), value("v", (2, 1))], 14, initializers=[axes])
    converted, _report = in_opset(made, 6)
    assert [found.op_type for found in converted.graph.node] == ["Unsqueeze", "Squeeze", "Sub", "Neg"]
    assert len(converted.graph.initializer) == 0
    given = {"x": np.ones((2, 3), np.float32), "y": np.float32([1, 2])}
    assert np.array_equal(onnx_run(in_opset(converted, 14)[0], given)[0], given["x"] - given["y"].reshape(2, 1))


def onnx_run(made: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(made).run(None, given))


def test_legal_cases_hold_every_kind() -> None:
    assert {len(case.a) for case in LEGAL} == set(range(6))
    assert sum(map(tells, LEGAL)) > 30
