"""Legacy broadcasts in new opsets and NumPy's in old ones: every legal axis, however B is given, on other runtimes too.

What an older version cannot say is refused; up and down again is the identity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import eltwise
from eltwise import oracle
from eltwise.conformance.shape_pairs import one_directional
from eltwise.core.dtypes import BOOL, FLOAT32, INT32, TYPES, ElementType
from eltwise.core.errors import AttributeValueError, ElementTypeError, EltwiseError, ManyProblemsError, ShapeError
from eltwise.core.exit_codes import ExitCode
from eltwise.formats.onnx.schemas import LEGACY_OPERATORS
from eltwise.passes import opset as opset_pass
from eltwise.passes.align_broadcast import Alignment
from eltwise.passes.opset import MIRRORED
from support.conversions import ALL_RUNS, Run, arrays, ask, expected, feeds, wrong_outputs
from support.onnx_models import NEWEST, model, node, value
from support.versions import FORMS, LEGAL, Form, cases_of, convert_onnx_bytes, in_opset, old_model


@cache
def differences(cases: tuple[Run, ...], seed: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], dict[str, np.ndarray]]:
    """Operands of hard and random values, and what the oracle makes of them."""
    operands = arrays(cases, FLOAT32, seed)
    return operands, expected("subtract", "legacy", cases, operands)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("before", "after"), [(1, 14), (6, 7), (6, 21)])
def test_sub_gives_the_same_bits(before: int, after: int, form: Form, seed: int) -> None:
    cases = cases_of(form)
    operands, right = differences(tuple(cases), seed)
    converted, report = in_opset(old_model(cases, "Sub", before, form, operands), after)
    assert report.before == f"ONNX opset {before}"
    inputs = {port.name for port in converted.graph.input}
    given = {name: array for name, array in feeds(operands).items() if name in inputs}
    kept = {f"same{index}": b for index, (_a, b) in enumerate(operands)} if form == "shared" else {}
    assert wrong_outputs(eltwise.load(converted).run(given), right | kept) == []
    # In files of IR version 3 onnxruntime lets no caller set an initializer.
    assert wrong_outputs(ask("onnxruntime", converted, given), right | kept) == []


NUMPY: dict[str, tuple[Callable[..., np.ndarray], ElementType]] = {
    "Add": (np.add, FLOAT32),
    "Sub": (np.subtract, INT32),
    "Mul": (np.multiply, FLOAT32),
    "Div": (np.divide, FLOAT32),
    "Pow": (np.power, FLOAT32),
    "And": (np.logical_and, BOOL),
    "Or": (np.logical_or, BOOL),
    "Xor": (np.logical_xor, BOOL),
    "Equal": (np.equal, INT32),
    "Greater": (np.greater, FLOAT32),
    "Less": (np.less, FLOAT32),
}


def small_arrays(cases: list[Run], element_type: ElementType, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Operands of small whole numbers, whose results every runtime gives exactly."""
    generator = np.random.default_rng(seed)
    low, high = (0, 2) if element_type is BOOL else (1, 5)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(generator.integers(low, high, shape)).astype(element_type.storage)

    return [(draw(case.a), draw(case.b)) for case in cases]


@pytest.mark.parametrize("operator", LEGACY_OPERATORS)
def test_all_eleven_operators(operator: str, seed: int) -> None:
    compute, element_type = NUMPY[operator]
    cases = ALL_RUNS[::3]
    operands = small_arrays(cases, element_type, seed)
    right = {}
    for index, (case, (a, b)) in enumerate(zip(cases, operands, strict=True)):
        _shape, (_a_start, start) = oracle.place("legacy", [case.a, case.b], -1 if case.axis is None else case.axis)
        right[f"z{index}"] = np.asarray(compute(a, b.reshape((*b.shape, *(1,) * (a.ndim - start - b.ndim)))))
    before = 6 if operator == "Sub" else 1
    converted, _report = in_opset(old_model(cases, operator, before, element_type=element_type), 14)
    theirs = ask("onnxruntime", converted, feeds(operands))
    assert {name: array.dtype for name, array in theirs.items()} == {name: array.dtype for name, array in right.items()}
    assert [name for name in right if not np.array_equal(theirs[name], right[name])] == []


def test_what_the_oracle_refuses_is_refused_and_nothing_else() -> None:
    cases = [Run(*case) for case in one_directional()]
    made = old_model(cases, "Sub", 6)
    refused = set()
    for index, case in enumerate(cases):
        try:
            oracle.place("legacy", [case.a, case.b], -1 if case.axis is None else case.axis)
        except oracle.OracleRefusal:
            refused.add(f"n{index}")
    with pytest.raises(ManyProblemsError) as caught:
        in_opset(made, 14)
    assert {problem.node for problem in caught.value.problems} == refused
    assert 0 < len(refused) < len(cases)


def test_an_adapter_that_ignores_the_axis_is_caught(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    cases = [case for case in ALL_RUNS if case.a == (3, 3, 3) and len(case.b) < 3]
    operands = arrays(cases, FLOAT32, seed)
    right = expected("subtract", "legacy", cases, operands)
    made = old_model(cases, "Sub", 6)
    assert wrong_outputs(eltwise.load(in_opset(made, 14)[0]).run(feeds(operands)), right) == []
    monkeypatch.setattr(opset_pass, "align", lambda *_arguments: Alignment())
    wrong = wrong_outputs(eltwise.load(in_opset(made, 14)[0]).run(feeds(operands)), right)
    inner = {f"z{index}" for index, case in enumerate(cases) if case.b == (3,) and case.axis in (0, 1)}
    assert inner <= set(wrong)


def sub(a: object, b: object, opset: int = 6, **attributes: Any) -> onnx.ModelProto:
    return model(
        [node("Sub", ["x", "y"], ["z"], "s", **attributes)],
        [value("x", a), value("y", b)],  # type: ignore[arg-type]
        [value("z", a)],  # type: ignore[arg-type]
        opset,
    )


def test_what_must_hold_at_run_time_is_reported() -> None:
    _model, report = in_opset(sub(["N", 3], ["M", 3]), 14)
    assert report.assumptions == ("Sub-6 node 's': in dimension 0, A's N is B's M",)
    assert (report.is_good, report.exit_code) == (True, ExitCode.GOOD)
    _model, report = in_opset(sub(["N", 3], ["N", 3]), 14)
    assert report.assumptions == ()
    unknown = sub(None, [3], broadcast=1)
    unknown.graph.output[0].CopyFrom(value("z", ["N"]))
    report = convert_onnx_bytes(unknown.SerializeToString(), 14)[1]
    assert report.assumptions == ("Sub-6 node 's': B broadcasts onto A",)


@pytest.mark.parametrize(
    ("made", "kind", "sentence"),
    [
        (
            sub(None, [3], axis=0, broadcast=1),
            ShapeError,
            "Sub-6 node 's', operand A: the rank of operand A is not known, and axis=0 counts from A's first "
            "dimension; declare its shape; symbols will do",
        ),
        (
            sub([2, 3], [3]),
            ShapeError,
            "Sub-6 node 's': shapes (2,3) and (3) do not broadcast: the ranks differ; "
            "broadcast is 0 or absent, so the shapes must be equal; set broadcast=1 to broadcast B onto A",
        ),
        (
            sub([2, 3], [2], axis=3, broadcast=1),
            AttributeValueError,
            "Sub-6 node 's', attribute axis: axis is out of range for B of rank 1 in A of rank 2, got 3; "
            "allowed: -1 (align the ends), 0 to 1",
        ),
        (sub([2], [2], axis=0.5), AttributeValueError, "attribute axis: the attribute has the wrong type, got FLOAT"),
        (sub([2], [2], broadcast=2), AttributeValueError, "there is no such value, got 2; allowed: 0 or 1"),
        (sub([2], [2], brodcast=1), EltwiseError, "did you mean 'broadcast'?"),
        (sub([2], [2], opset=7, axis=1), EltwiseError, "Sub-7 node 's': there is no attribute 'axis'"),
    ],
)
def test_what_is_refused_says_why(made: onnx.ModelProto, kind: type[EltwiseError], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        in_opset(made, 14)
    assert sentence in str(caught.value)


def test_an_initializer_that_one_node_reads_is_aligned_itself_unless_a_caller_may_set_it() -> None:
    for form, sizes in (("initializer", [3, 1]), ("both", [3])):
        made = old_model([Run((2, 3, 4), (3,), 1)], "Sub", 6, form, [(np.ones(0), np.ones(3, np.float32))])  # type: ignore[arg-type]
        converted, report = in_opset(made, 14)
        assert list(converted.graph.initializer[0].dims) == sizes
        assert converted.graph.initializer[0].raw_data == made.graph.initializer[0].raw_data
        assert report.changes[0].after[-1] == "Sub-14"
        assert (len(report.changes[0].after) == 1) == (form == "initializer")


def test_ranks_go_through_chains_and_operators_that_opset_1_infers_nothing_of() -> None:
    nodes = [
        node("Cast", ["i"], ["f"], to="FLOAT"),
        node("Relu", ["f"], ["r"]),
        node("Sub", ["r", "c"], ["s"], axis=0, broadcast=1),
        node("Reshape", ["s"], ["t"], shape=[4, 3, 2]),
        node("Concat", ["t", "t"], ["p"]),
        node("Sub", ["p", "b"], ["u"], axis=0, broadcast=1),
        node("Sub", ["u", "e"], ["z"], axis=1, broadcast=1),
    ]
    inputs = [value("i", (2, 3, 4), onnx.TensorProto.INT32), value("c", (2,)), value("b", (4,)), value("e", (6,))]
    converted, _report = in_opset(model(nodes, inputs, [value("z", (4, 6, 2))], 1), 14)
    assert [found.op_type for found in converted.graph.node].count("Unsqueeze") == 3
    given = {"i": np.arange(24, dtype=np.int32).reshape(2, 3, 4), "c": np.array([1, 9], np.float32)}
    given |= {"b": np.array([1, 2, 3, 4], np.float32), "e": np.array([1, 2, 3, 4, 5, 6], np.float32)}
    inner = np.maximum(given["i"].astype(np.float32), 0) - given["c"].reshape(2, 1, 1)
    right = np.concatenate([inner.reshape(4, 3, 2)] * 2, 1) - given["b"].reshape(4, 1, 1) - given["e"].reshape(6, 1)
    assert np.array_equal(ReferenceEvaluator(converted).run(None, given)[0], right)  # type: ignore[index]


@pytest.mark.parametrize("ir_version", [3, 4, 8])
@pytest.mark.parametrize("opset", [2, 4, 5, 8, 9, 13, 14])
def test_a_shape_of_opset_1_becomes_a_constant_where_the_opset_allows_it(opset: int, ir_version: int) -> None:
    branches = {
        f"{name}_branch": onnx.helper.make_graph(
            [node("Reshape", [read], [f"{name}_value"], shape=[3, 2])], name, [], [value(f"{name}_value", (3, 2))]
        )
        for name, read in (("then", "x"), ("else", "less"))
    }
    nodes = [
        node("Reshape", ["x"], ["y"], "first", shape=[3, 2]),
        node("Reshape", ["y"], ["z"], "second", shape=[2, 3]),
        node("Neg", ["x"], ["less"]),
        node("If", ["c"], ["w"], **branches),
    ]
    inputs = [value("x", (2, 3)), value("c", (), onnx.TensorProto.BOOL)]
    made = model(nodes, inputs, [value("z", (2, 3)), value("w", (3, 2))], 1, ir_version)
    if 5 <= opset < 9:
        with pytest.raises(
            ManyProblemsError,
            match=r"does not allow this element type, got int64.*opset 9 and newer do",
        ):
            in_opset(made, opset)
        return
    converted, _report = in_opset(made, opset)
    onnx.checker.check_model(converted, full_check=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for chosen, right in ((True, x.reshape(3, 2)), (False, -x.reshape(3, 2))):
        if opset >= 5:
            given = {"x": x, "c": np.array(chosen)}
            z, w = ReferenceEvaluator(converted).run(None, given)
            assert np.array_equal(z, x)
            assert np.array_equal(w, right)


def test_names_that_are_taken_stay_their_owners() -> None:
    taken = model(
        [node("Sub", ["x", "y"], ["y_aligned"], axis=0, broadcast=1), node("Neg", ["y_aligned"], ["y_aligned_axes"])],
        [value("x", (2, 3)), value("y", (2,))],
        [value("y_aligned_axes", (2, 3))],
        6,
    )
    converted, _report = in_opset(taken, 13)
    made = [name for found in converted.graph.node for name in found.output]
    assert len(set(made)) == len(made) == 4
    assert converted.graph.output == taken.graph.output


def test_opset_1_files_get_a_version_that_can_say_the_opset() -> None:
    made = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], 1, ir_version=2)
    converted, _report = in_opset(made, 14)
    assert (converted.ir_version, converted.opset_import[0].version) == (3, 14)


def test_a_tensor_in_constants_is_aligned_by_a_node() -> None:
    constant = node("Constant", [], ["b"], value=numpy_helper.from_array(np.ones(2, np.float32)))
    made = model([constant, node("Sub", ["x", "b"], ["z"], axis=0, broadcast=1)], [value("x")], [value("z")], 6)
    converted, _report = in_opset(made, 14)
    result = eltwise.load(converted).run({"x": np.ones((2, 3), np.float32)})["z"]
    assert np.array_equal(result, np.zeros((2, 3), np.float32))


# Down to opsets up to 6.

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
    cases = cases_of(form)[::2]
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


def test_the_same_symbols_or_operands_are_enough() -> None:
    made = model([node("Sub", ["x", "x"], ["z"])], [value("x", ["N", None])], [value("z", ["N", None])], 14)
    assert in_opset(made, 6)[0].graph == made.graph
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
    given = {"x": np.ones((2, 3), np.float32), "y": np.array([1, 2], np.float32)}
    assert np.array_equal(onnx_run(in_opset(converted, 14)[0], given)[0], given["x"] - given["y"].reshape(2, 1))


def onnx_run(made: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(made).run(None, given))


def test_legal_cases_hold_every_kind() -> None:
    assert {len(case.a) for case in LEGAL} == set(range(6))
    assert sum(map(tells, LEGAL)) > 30
