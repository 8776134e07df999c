"""Inference over a graph: every problem of every node at once, what was assumed, and what the file declares."""

from __future__ import annotations

import numpy as np
import pytest

from eltwise.core.dtypes import FLOAT16, FLOAT32, INT64, of_numpy
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.infer_graph import Inference, infer_graph
from eltwise.ir.types import TensorType
from eltwise.ops.schema import Operation
from support.infer_nodes import operation, typed

SUB_6, SUB_14 = operation("Sub", 6, broadcast=1), operation("Sub", 14)


def port(name: str, text: str) -> Port:
    return Port(name, typed(text), name)


def nodes(**made: tuple[Operation, str]) -> tuple[Node, ...]:
    """Nodes by what they make: the operation and the inputs, with spaces between."""
    return tuple(
        Node(f"make {output}", bound, tuple(inputs.split()), (output,)) for output, (bound, inputs) in made.items()
    )


def graph(
    inputs: dict[str, str],
    made: tuple[Node, ...],
    outputs: dict[str, str],
    constants: dict[str, np.ndarray] | None = None,
    optional: dict[str, str] | None = None,
    declared: dict[str, str] | None = None,
    file_version: int = 8,
) -> Graph:
    tensors = {name: Tensor(array, of_numpy(array.dtype)) for name, array in (constants or {}).items()}
    return Graph(
        name="graph",
        origin=Origin("ai.onnx", file_version, 14),
        inputs=tuple(port(name, text) for name, text in inputs.items()),
        outputs=tuple(port(name, text) for name, text in outputs.items()),
        nodes=made,
        constants=tuple(tensors.items()),
        optional_inputs=tuple(port(name, text) for name, text in (optional or {}).items()),
        declared=tuple((name, typed(text)) for name, text in (declared or {}).items()),
    )


def output_types(inference: Inference) -> dict[str, TensorType]:
    return {output.name: output.type for output in inference.outputs}


def test_all_problems_of_all_nodes_are_found_at_once_and_those_behind_them_are_not() -> None:
    made = nodes(
        p=(SUB_14, "a b"),
        q=(SUB_14, "a c"),
        r=(SUB_6, "b a"),
        behind=(SUB_14, "p b"),
        further=(operation("Identity", 14), "behind"),
        s=(operation("Squeeze", 13), "a three"),
        fine=(SUB_14, "a a"),
    )
    found = infer_graph(
        graph(
            {"a": "float32 2,3", "b": "float32 4", "c": "int32 2,3"},
            made,
            {"further": "any ...", "fine": "any ..."},
            constants={"three": np.array([3])},
        )
    )
    assert [str(problem).partition(";")[0] for problem in found.problems] == [
        "Sub-14 node 'make p', operands A 'a' and B 'b': shapes (2,3) and (4) do not broadcast: "
        "dimension 1 is 3 in A and 4 in B",
        "Sub-14 node 'make q', operands A 'a' and B 'c': operand A is float32 and operand B is int32",
        "Sub-6 node 'make r', operands A 'b' and B 'a': shapes (4) and (2,3) do not broadcast: "
        "B has the larger rank and is broadcast onto A only",
        "Squeeze-13 node 'make s', operands data 'a' and axes 'three': an axis is out of range, got 3",
    ]
    assert set(found.types) == {"a", "b", "c", "three", "fine"}
    assert output_types(found) == {"further": typed("any ..."), "fine": typed("float32 2,3")}


def test_assumptions_name_the_node() -> None:
    made = nodes(p=(SUB_14, "a b"), q=(SUB_14, "p c"))
    found = infer_graph(graph({"a": "float32 N,3", "b": "float32 4,1", "c": "float32 ?"}, made, {"q": "any ..."}))
    assert found.problems == []
    assert found.assumptions == [
        "Sub-14 node 'make p': in dimension 0, A's N is 1 or 4",
        "Sub-14 node 'make q': in dimension 1, B's ? is 1 or 3",
    ]
    assert output_types(found) == {"q": typed("float32 4,3")}


def test_a_node_without_a_name_is_called_by_what_it_makes() -> None:
    found = infer_graph(
        graph({"a": "float32 2", "b": "float32 3"}, (Node("", SUB_14, ("a", "b"), ("z",)),), {"z": "any ..."})
    )
    assert str(found.problems[0]).startswith("Sub-14 node 'z', operands A 'a' and B 'b': ")


@pytest.mark.parametrize("through", ["constant", "node", "identity"])
def test_known_values_serve_as_shapes(through: str) -> None:
    value = Tensor(np.array([0, -1]), INT64)
    made = {
        "constant": nodes(),
        "node": nodes(shape=(operation("Constant", 14, value=value), "")),
        "identity": nodes(
            made=(operation("Constant", 14, value_ints=(0, -1)), ""), shape=(operation("Identity", 14), "made")
        ),
    }[through]
    made += nodes(z=(operation("Reshape", 14), "x shape"))
    constants = {"shape": value.array} if through == "constant" else {}
    found = infer_graph(graph({"x": "float32 N,2,3"}, made, {"z": "any ..."}, constants))
    assert found.problems == []
    assert output_types(found) == {"z": typed("float32 N,6")}


def test_of_values_that_are_not_known_only_their_number_is_used() -> None:
    made = nodes(z=(operation("Reshape", 14), "x shape"))
    found = infer_graph(graph({"x": "float32 2,3", "shape": "int64 3"}, made, {"z": "any ..."}))
    assert output_types(found) == {"z": typed("float32 ?,?,?")}


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ("int32 2,3", "'p': the declared value is int32, but its type is float32"),
        ("float32 2,4", "'p': the declared value has shape (2,4), but its shape is (2,3)"),
        ("float32 3", "'p': the declared value has shape (3), but its shape is (2,3)"),
        ("float32 4..,3", "'p': the declared value has shape (4..,3), but its shape is (2,3)"),
    ],
)
def test_declared_types_that_are_contradicted(declared: str, sentence: str) -> None:
    made = nodes(p=(SUB_14, "a a"), z=(SUB_14, "p a"))
    found = infer_graph(graph({"a": "float32 2,3"}, made, {"z": "any ..."}, declared={"p": declared}))
    assert list(map(str, found.problems)) == [sentence]
    assert output_types(found) == {"z": typed("float32 2,3")}


def test_a_declared_output_that_is_contradicted() -> None:
    found = infer_graph(graph({"a": "float32 2,3"}, nodes(z=(SUB_14, "a a")), {"z": "float16 2,3"}))
    assert list(map(str, found.problems)) == ["'z': the declared output is float16, but its type is float32"]


def test_what_is_declared_adds_to_what_is_inferred() -> None:
    made = nodes(p=(SUB_14, "a b"), z=(SUB_14, "p p"))
    found = infer_graph(graph({"a": "any N", "b": "any M"}, made, {"z": "any K"}, declared={"p": "float32 ..5"}))
    assert found.problems == []
    assert output_types(found) == {"z": typed("float32 ..5")}


def test_a_constant_that_contradicts_its_declared_input() -> None:
    found = infer_graph(
        graph(
            {"a": "float32 2"},
            nodes(z=(SUB_14, "a c")),
            {"z": "any ..."},
            constants={"c": np.ones(3, np.float32)},
            optional={"c": "float32 2"},
        )
    )
    assert list(map(str, found.problems)) == ["'c': the declared input has shape (2), but its shape is (3)"]


@pytest.mark.parametrize("file_version", [3, 8])
def test_a_constant_that_a_caller_may_replace_has_the_declared_shape(file_version: int) -> None:
    ready = graph(
        {"a": "float32 2,1"},
        nodes(z=(SUB_14, "a c")),
        {"z": "any ..."},
        constants={"c": np.ones(3, np.float32)},
        optional={"c": "float32 N"},
        file_version=file_version,
    )
    inference = infer_graph(ready)
    assert output_types(inference) == {"z": typed("float32 2,N")}
    a = np.zeros((2, 1), np.float32)
    assert Runner(ready, inference.outputs).run({"a": a})["z"].shape == (2, 3)
    assert Runner(ready, inference.outputs).run({"a": a, "c": np.ones(5, np.float32)})["z"].shape == (2, 5)


@pytest.mark.parametrize(("file_version", "result"), [(3, "float32 6"), (8, "float32 ?")])
def test_a_replaceable_shape_is_only_known_where_every_constant_must_be_an_input(
    file_version: int, result: str
) -> None:
    found = infer_graph(
        graph(
            {"x": "float32 2,3"},
            nodes(z=(operation("Reshape", 14), "x shape")),
            {"z": "any ..."},
            constants={"shape": np.array([6])},
            optional={"shape": "int64 1"},
            file_version=file_version,
        )
    )
    assert output_types(found) == {"z": typed(result)}


def test_the_inner_type_of_a_port_is_the_one_inside() -> None:
    outer = Port("a", typed("float32 2"), "a", inner_type=FLOAT16)
    inside = graph({}, nodes(z=(SUB_14, "a a")), {})
    given = Port("z", typed("float32 ..."), "z", inner_type=FLOAT16)
    found = infer_graph(Graph("graph", inside.origin, (outer,), (given,), inside.nodes))
    assert found.types["z"] == typed("float16 2")
    assert output_types(found) == {"z": TensorType(FLOAT32, typed("float32 2").shape)}
