"""A whole graph on arrays: what comes in is checked against what is declared, and what goes out is the caller's own."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT64, of_numpy
from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    GraphError,
    NameUnknownError,
    ShapeError,
    UnsupportedError,
    ValueRangeError,
    raise_all,
)
from eltwise.engine import program
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.infer_graph import infer_graph
from eltwise.kernels import dispatch
from eltwise.kernels.pool import POOL
from eltwise.ops.schema import Operation
from eltwise.oracle import same_bits
from support.infer_nodes import operation, typed

SUB, IDENTITY = operation("Sub", 14), operation("Identity", 14)
WEIGHT = Tensor(np.array([1, 2, 3], np.float32), FLOAT32)


def run(
    made: dict[str, tuple[Operation, str]],
    inputs: tuple[Port, ...],
    outputs: str,
    feeds: dict[str, Any],
    optional: tuple[Port, ...] = (),
) -> dict[str, np.ndarray]:
    """Run a graph that has the constants ``w`` (1, 2, 3) and ``flat`` (the shape -1)."""
    graph = Graph(
        name="graph",
        origin=Origin("ai.onnx", 8, 14),
        inputs=inputs,
        outputs=tuple(Port(name, typed("any ..."), name) for name in outputs.split()),
        nodes=tuple(Node("", bound, tuple(names.split()), (output,)) for output, (bound, names) in made.items()),
        constants=(("w", WEIGHT), ("flat", Tensor(np.array([-1]), INT64))),
        optional_inputs=optional,
    )
    inference = infer_graph(graph)
    raise_all(inference.problems)
    return Runner(graph, inference.outputs).run(feeds)


def port(name: str, text: str, aliases: tuple[str, ...] = ()) -> Port:
    return Port(name, typed(text), name, aliases=aliases)


X = port("x", "float32 N,3", ("tensor x",))
Y = port("y", "float32 N,1")


def test_results_share_memory_with_nothing() -> None:
    made = {
        "same": (IDENTITY, "x"),
        "again": (IDENTITY, "same"),
        "flattened": (operation("Reshape", 14), "x flat"),
        "d": (SUB, "x w"),
        "d_again": (IDENTITY, "d"),
        "cast": (operation("Cast", 13, to=FLOAT32), "x"),
        "constant": (operation("Constant", 13, value=WEIGHT), ""),
        "d_flat": (operation("Reshape", 14), "d flat"),
    }
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = run(made, (X,), f"x w {' '.join(made)}", {"x": x})
    arrays = [*results.values(), x, WEIGHT.array]
    for one, other in itertools.combinations(arrays, 2):
        assert not np.shares_memory(one, other)
    assert all(array.flags.writeable for array in results.values())
    assert results["d"].tolist() == results["d_again"].tolist() == [[-1, -1, -1], [2, 2, 2]]
    assert results["d_flat"].tolist() == [-1, -1, -1, 2, 2, 2]
    assert results["x"].tolist() == results["again"].tolist() == results["cast"].tolist() == x.tolist()
    assert results["constant"].tolist() == results["w"].tolist() == [1, 2, 3]


def test_two_runs_share_nothing() -> None:
    x = np.ones((2, 3), np.float32)
    first, second = (run({"z": (IDENTITY, "w")}, (X,), "z w", {"x": x}) for _ in range(2))
    first["z"][:] = first["w"][:] = 9
    assert second["z"].tolist() == second["w"].tolist() == WEIGHT.array.tolist() == [1, 2, 3]


@pytest.mark.parametrize("swap", [False, True])
def test_inputs_in_any_byte_order_and_layout_give_native_results(swap: bool) -> None:
    wide = np.array([[1 + 2**-8 + 2**-40, 1.0, 3.0], [1, 2, 2**30 + 0.5]], np.float64)
    x = wide.astype(wide.dtype.newbyteorder("S"))[:, ::-1] if swap else wide[:, ::-1]
    made = {
        "small": (operation("Cast", 13, to=BFLOAT16), "x"),
        "halves": (operation("Cast", 13, to=FLOAT16), "x"),
        "same": (IDENTITY, "x"),
        "flattened": (operation("Reshape", 14), "x flat"),
    }
    results = run(made, (port("x", "float64 2,3"),), " ".join(made), {"x": x})
    right = np.array([[3, 1, 1 + 2**-7], [2**30, 2, 1]]).astype(ml_dtypes.bfloat16)
    assert same_bits(results["small"], right)
    with np.errstate(over="ignore"):
        assert same_bits(results["halves"], wide[:, ::-1].astype(np.float16))
    assert same_bits(results["same"], np.ascontiguousarray(wide[:, ::-1]))
    assert same_bits(results["flattened"], wide[:, ::-1].reshape(-1))


def test_inputs_by_name_by_another_name_by_position_and_as_numbers() -> None:
    made = {"z": (SUB, "x y")}
    x, y = np.full((1, 3), 5, np.float32), np.full((1, 1), 2, np.float32)
    for names in (("x", "y"), ("tensor x", "y"), ("0", "1"), ("x", "1")):
        assert run(made, (X, Y), "z", dict(zip(names, (x, y), strict=True)))["z"].tolist() == [[3, 3, 3]]
    scalar = port("y", "float32 ")
    assert run(made, (X, scalar), "z", {"x": x, "y": 2})["z"].tolist() == [[3, 3, 3]]


def test_an_optional_input_replaces_the_constant() -> None:
    w = port("w", "float32 K")
    x = np.zeros((2, 3), np.float32)
    made = {"z": (SUB, "x w")}
    assert run(made, (X,), "z", {"x": x}, (w,))["z"][0].tolist() == [-1, -2, -3]
    assert run(made, (X,), "z", {"x": x, "w": np.full(1, 4, np.float32)}, (w,))["z"][1].tolist() == [-4, -4, -4]


def test_a_run_without_memory_names_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "prepare", lambda *_given: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(ShapeError, match=r"a run on these inputs does not fit into memory, got x \(1, 3\)$"):
        run({"z": (operation("Cast", 13, to=INT64), "x")}, (X,), "z", {"x": np.ones((1, 3), np.float32)})


F32 = np.float32


OTHER = "the input has another element type than the model declares"
ONES = np.ones((2, 3), F32)


@pytest.mark.parametrize(
    ("feeds", "kind", "sentence"),
    [
        ({}, GraphError, "missing inputs: x, y; allowed: x float32(N,3), y float32(N,1)"),
        ({"x": ONES}, GraphError, "missing inputs: y; allowed: x float32(N,3), y float32(N,1)"),
        ({"X": 1}, NameUnknownError, "there is no input 'X'; allowed: x, y; did you mean 'x'?"),
        ({"2": 1}, NameUnknownError, "there is no input '2'; allowed: x, y"),
        ({"x": ONES, "0": 1}, GraphError, "input '0': the input 'x' is given twice"),
        ({"x": np.ones((2, 3)), "y": 1}, ElementTypeError, f"input 'x': {OTHER}, got float64; allowed: float32"),
        ({"x": np.ones((2, 4), F32), "y": 1}, ShapeError, "input 'x': dimension 1 is 4, declared is 3, got (2,4); all"),
        ({"x": np.ones(3, F32), "y": 1}, ShapeError, "input 'x': rank 1 is not the declared rank 2, got (3); allowed"),
        ({"x": ONES, "y": np.ones((5, 1), F32)}, ShapeError, "input 'y': N is 5 here and 2 in input 'x', got (5,1);"),
        ({"x": [[1, 2, 3]], "y": 1}, ElementTypeError, "input 'x': not an array, got list; allowed: an object"),
        ({"x": 0.1, "y": 1}, ValueRangeError, "input 'x': float32 does not hold this number exactly, got 0.1; round"),
        ({"x": True, "y": 1}, ElementTypeError, "input 'x': a bool is no number, got True"),
    ],
)
def test_inputs_that_do_not_fit(feeds: dict[str, Any], kind: type[EltwiseError], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        run({"z": (SUB, "x y")}, (X, Y), "z", feeds)
    assert str(caught.value).startswith(sentence)


def test_what_only_a_run_can_find_names_the_node() -> None:
    x, y = port("x", "float32 N"), port("y", "float32 M")
    with pytest.raises(ShapeError) as caught:
        run({"z": (SUB, "x y")}, (x, y), "z", {"x": np.ones(2, F32), "y": np.ones(3, F32)})
    assert str(caught.value).startswith(
        "Sub-14 node 'z', operands A 'x' and B 'y': shapes (2) and (3) do not broadcast: dimension 0 is 2 in A"
    )
    with pytest.raises(ShapeError, match=r"Reshape-14 node 'z', operands data 'x' and shape 'y': shape \(2\) cannot"):
        run(
            {"z": (operation("Reshape", 14), "x y")},
            (x, port("y", "int64 K")),
            "z",
            {"x": np.ones(2, F32), "y": np.array([3])},
        )


def test_a_declared_output_that_a_run_contradicts() -> None:
    graph = Graph(
        "graph",
        Origin("ai.onnx", 8, 14),
        (port("x", "float32 N"),),
        (Port("z", typed("float32 3"), "z"),),
        (Node("", IDENTITY, ("x",), ("z",)),),
    )
    outputs = infer_graph(graph).outputs
    assert Runner(graph, outputs).run({"x": np.ones(3, F32)})["z"].shape == (3,)
    with pytest.raises(ShapeError, match=r"output 'z': dimension 0 is 2, declared is 3, got \(2\); allowed: \(3\)"):
        Runner(graph, outputs).run({"x": np.ones(2, F32)})


@pytest.mark.parametrize("declared", ["2", "3", "A", "B", "C", "?"])
@pytest.mark.parametrize(("a", "b"), [(1, 3), (3, 1), (3, 3), (1, 1)])
def test_the_sizes_of_a_result_are_those_that_its_output_declares(a: int, b: int, declared: str) -> None:
    inputs = port("x", "float32 A"), port("y", "float32 B")
    output = Port("z", typed(f"float32 {declared}"), "z")
    graph = Graph("graph", Origin("ai.onnx", 8, 14), inputs, (output,), (Node("", SUB, ("x", "y"), ("z",)),))
    size = {"A": a, "B": b, "C": max(a, b), "?": max(a, b)}.get(declared) or int(declared)
    runner = Runner(graph, infer_graph(graph).outputs)
    with nullcontext() if size == max(a, b) else pytest.raises(ShapeError, match="output 'z'"):
        assert runner.run({"x": np.ones(a, F32), "y": np.ones(b, F32)})["z"].shape == (size,)


def test_ports_that_convert_at_the_border() -> None:
    inside = Port("x", typed("float32 2"), "x", inner_type=FLOAT16)
    outside = Port("z", typed("float32 2"), "z", inner_type=FLOAT16)
    bound = operation("Subtract", 1, "openvino")
    graph = Graph("graph", Origin("openvino", 10), (inside,), (outside,), (Node("", bound, ("x", "x"), ("z",)),))
    result = Runner(graph, infer_graph(graph).outputs).run({"x": np.array([1e6, 1.5], F32)})["z"]
    assert result.dtype == F32
    assert np.isnan(result[0])  # 1e6 is an infinity inside.
    assert result[1] == 0
    assert of_numpy(result.dtype) is FLOAT32


def test_a_shape_that_is_known_before_the_run_is_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"r": (operation("Reshape", 14), "x flat"), "z": (SUB, "r r")}
    monkeypatch.setattr(program, "run_node", lambda *_given: pytest.fail("inferred again"))
    x = np.ones((2, 3), np.float32)
    assert run(made, (X,), "z r", {"x": x})["r"].shape == (6,)
    monkeypatch.undo()
    made["r"] = operation("Reshape", 14), "x target"
    feeds = {"x": x, "target": np.array([3, -1])}
    assert run(made, (X, port("target", "int64 2")), "r z", feeds)["r"].shape == (3, 2)


def test_a_value_is_let_go_after_its_last_reader() -> None:
    names = ["x", *(f"v{index}" for index in range(30)), "z"]
    made = {right: (SUB, left) for left, right in itertools.pairwise(names)}
    nodes = tuple(Node(name, kind, (left, "x"), (name,)) for name, (kind, left) in made.items())
    inputs, outputs = (Port(name, typed("float32 1000,1000"), name) for name in ("x", "z"))
    graph = Graph("chain", Origin("ai.onnx", 8, 14), (inputs,), (outputs,), nodes)
    POOL.clear()
    result = Runner(graph, (outputs,)).run({"x": np.ones((1000, 1000), np.float32)})["z"]
    assert (result == -30).all()
    assert POOL.idle_bytes <= 3 * (4 << 20)


@pytest.mark.parametrize("opset", [1, 6, 7, 10, 12, 13, 22])
def test_dropout_runs_where_it_drops_nothing(opset: int) -> None:
    """Training is asked for by an attribute and its default, from opset 12 on by an operand, of any origin."""
    x = np.float32([[1, 2, 3]])
    ways: list[tuple[dict[str, int], str, bool]] = [({}, "x", opset < 7)]
    if opset < 7:
        ways += [({"is_test": value}, "x", not value) for value in (0, 1)]
    if opset >= 12:
        ways += [({}, f"x half {operand}", "on" in operand) for operand in ("off", "on", "input_off", "input_on")]
    scalars = {"half": np.float32(0.5), "off": np.bool_(False), "on": np.bool_(True)}
    held = {name: Tensor(np.array(value), of_numpy(value.dtype)) for name, value in scalars.items()}
    constants = {name: (operation("Constant", 13, value=tensor), "") for name, tensor in held.items()}
    inputs = (X, port("input_off", "bool"), port("input_on", "bool"))
    feeds = {"x": x, "input_off": scalars["off"], "input_on": scalars["on"]}
    for attributes, names, is_in_training in ways:
        made = {**constants, "y": (operation("Dropout", opset, **attributes), names)}
        if is_in_training:
            with pytest.raises(UnsupportedError, match="training is unsupported"):
                run(made, inputs, "y", feeds)
        else:
            assert same_bits(run(made, inputs, "y", feeds)["y"], x)
