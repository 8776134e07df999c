"""Graphs as values: what is no graph, how ports are found, and when two tensors are one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, of_numpy
from eltwise.core.errors import NameUnknownError
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.verify import structure_problems, topological_order
from support.infer_nodes import operation, typed

SUB = operation("Sub", 14)


def port(name: str, *aliases: str) -> Port:
    return Port(name, typed("float32 2"), name, aliases=aliases)


def graph(nodes: list[tuple[str, str, str]], outputs: str = "z", constants: str = "") -> Graph:
    """A graph with the input ``x`` and nodes by name, inputs and output."""
    tensor = Tensor(np.ones(2, np.float32), FLOAT32)
    return Graph(
        name="graph",
        origin=Origin("ai.onnx", 8, 14),
        inputs=(port("x"),),
        outputs=tuple(map(port, outputs.split())),
        nodes=tuple(Node(name, SUB, tuple(inputs.split()), (output,)) for name, inputs, output in nodes),
        constants=tuple((name, tensor) for name in constants.split()),
    )


@given(st.lists(st.sets(st.integers(0, 9), max_size=4), max_size=10))
def test_nodes_are_in_topological_order_but_for_those_on_and_behind_cycles(read: list[set[int]]) -> None:
    """Each time the first of those whose operands are there, which a search over all of them finds, too."""
    nodes = [(str(number), " ".join(map(str, sorted(each))), str(number)) for number, each in enumerate(read)]
    expected: list[int] = []
    needed = [{one for one in each if one < len(read)} for each in read]
    while ready := [n for n, each in enumerate(needed) if n not in expected and each <= {*expected}]:
        expected.append(ready[0])
    assert topological_order(graph(nodes).nodes) == expected


IN_ORDER = "allowed: nodes in topological order"


@pytest.mark.parametrize(
    ("made", "sentences"),
    [
        (graph([("p", "x x", "z")]), []),
        (graph([("p", "x c", "z")], constants="c"), []),
        (graph([("p", "x b", "z")]), ["Sub-14 node 'p', input 'b': nothing makes this input"]),
        (
            graph([("p", "a x", "z"), ("q", "x x", "a")]),
            [f"Sub-14 node 'p', input 'a': only the later node 'q' makes this input; {IN_ORDER}"],
        ),
        (graph([("p", "x z", "z")]), ["Sub-14 node 'p', input 'z': the nodes p -> p form a cycle"]),
        (
            graph([("p", "x b", "a"), ("q", "a x", "b"), ("r", "a b", "z")]),
            ["Sub-14 node 'p', input 'b': the nodes p -> q -> p form a cycle"],
        ),
        (
            graph([("one", "x b", "a"), ("one", "x c", "b"), ("one", "x a", "c"), ("r", "a b", "z")]),
            ["Sub-14 node 'one', input 'b': the nodes one -> one -> one -> one form a cycle"],
        ),
        (
            graph([("p", "x c", "a"), ("q", "b x", "c"), ("r", "x a", "b"), ("s", "x u", "t"), ("u", "t a", "u")], "u"),
            [
                "Sub-14 node 'p', input 'c': the nodes p -> r -> q -> p form a cycle",
                "Sub-14 node 's', input 'u': the nodes s -> u -> s form a cycle",
            ],
        ),
        (
            graph([("p", "x c", "a"), ("q", "b x", "c"), ("r", "x x", "b"), ("s", "x s", "s"), ("t", "s x", "z")]),
            [
                "Sub-14 node 's', input 's': the nodes s -> s form a cycle",
                f"Sub-14 node 'p', input 'c': only the later node 'q' makes this input; {IN_ORDER}",
                f"Sub-14 node 'q', input 'b': only the later node 'r' makes this input; {IN_ORDER}",
            ],
        ),
        (
            graph([("p", "x x", "z"), ("q", "x x", "z")]),
            ["node 'q': the value 'z' is made twice, by node 'p' and by node 'q'"],
        ),
        (
            graph([("p", "x x", "x"), ("q", "x x", "z")]),
            ["node 'p': the value 'x' is made twice, by an input and by node 'p'"],
        ),
        (
            graph([("p", "x x", "z")], constants="x x"),
            [
                "the value 'x' is made twice, by an input and by a constant",
                "the value 'x' is made twice, by an input and by a constant",
            ],
        ),
        (graph([("p", "x x", "z")], outputs="z w"), ["nothing makes the output 'w'"]),
        (graph([("p", "x x", "z")], outputs=""), ["the graph has no output"]),
        (graph([("", "x b", "z")]), ["Sub-14 node 'z', input 'b': nothing makes this input"]),
    ],
)
def test_what_is_no_graph(made: Graph, sentences: list[str]) -> None:
    assert list(map(str, structure_problems(made))) == sentences


def test_values_of_nodes_that_could_not_be_read_are_no_second_problem() -> None:
    made = graph([("p", "x b", "z")], outputs="z c")
    assert structure_problems(made, frozenset({"b", "c"})) == []


def test_long_chains_and_cycles_take_no_long_time() -> None:
    count = 10_000
    chain = [(f"n{place}", f"v{place} x", f"v{place + 1}") for place in range(count)]
    assert structure_problems(graph(chain, outputs=f"v{count}", constants="v0")) == []
    assert len(structure_problems(graph(chain[::-1], outputs=f"v{count}", constants="v0"))) == count - 1
    cycle = [(f"n{place}", f"v{place} x", f"v{(place + 1) % count}") for place in range(count)]
    for nodes in (cycle, cycle[::-1]):
        (problem,) = structure_problems(graph(nodes, outputs="v1"))
        assert str(problem).count("->") == 12
        assert str(problem).endswith("... (10000 nodes in all) form a cycle")
    behind = [(f"m{place}", f"w{place} x", f"w{place + 1}") for place in range(count)]
    (_cycle, *rest) = structure_problems(
        graph([*behind[::-1], ("loop", "x loop", "loop"), ("m", "loop x", "w0")], "w9")
    )
    assert len(rest) == count


PORTS = Graph(
    name="graph",
    origin=Origin("openvino", 11),
    inputs=(port("a", "first", "both"), port("b", "second", "both"), port("7"), port("0")),
    outputs=(port("z", "result"),),
    optional_inputs=(port("w", "weight"),),
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a", "a"),
        ("first", "a"),
        ("second", "b"),
        ("7", "7"),
        ("0", "0"),
        ("1", "b"),
        ("3", "0"),
        ("w", "w"),
        ("weight", "w"),
    ],
)
def test_inputs_by_name_by_another_name_and_by_position(name: str, found: str) -> None:
    assert PORTS.find_input(name).name == found


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("both", "input 'both' is not one but several; allowed: a, b"),
        ("4", "there is no input '4'; allowed: a, b, 7, 0, w"),
        ("-1", "there is no input '-1'; allowed: a, b, 7, 0, w"),
        ("٣", "there is no input '٣'; allowed: a, b, 7, 0, w"),
        ("", "there is no input ''; allowed: a, b, 7, 0, w"),
        ("z", "there is no input 'z'; allowed: a, b, 7, 0, w"),
    ],
)
def test_inputs_that_are_none(name: str, sentence: str) -> None:
    with pytest.raises(NameUnknownError) as caught:
        PORTS.find_input(name)
    assert str(caught.value) == sentence


def test_outputs_by_name_by_another_name_and_by_position() -> None:
    assert {PORTS.find_output(name).name for name in ("z", "result", "0")} == {"z"}
    with pytest.raises(NameUnknownError, match="there is no output 'a'; allowed: z"):
        PORTS.find_output("a")


def test_tensors_are_equal_by_type_shape_and_bits() -> None:
    arrays = [
        np.array([0.0]),
        np.array([-0.0]),
        np.array([[0.0]]),
        np.array(0.0),
        np.array([0.0], np.float32),
        np.array([0], np.int64),
        np.array([0], ml_dtypes.bfloat16),
        np.array([np.nan]),
    ]
    tensors = [Tensor(array, of_numpy(array.dtype)) for array in arrays]
    again = [Tensor(array.copy(), of_numpy(array.dtype)) for array in arrays]
    for place, tensor in enumerate(tensors):
        assert [tensor == other for other in again] == [place == other for other in range(len(again))]
        assert hash(tensor) == hash(again[place])
    assert tensors[0] != arrays[0].tolist()


def test_a_tensor_is_read_only_contiguous_and_of_its_type() -> None:
    source = np.arange(6.0).reshape(2, 3)
    tensor = Tensor(source[:, ::-1], FLOAT64)
    assert tensor.array.flags.c_contiguous
    assert not tensor.array.flags.writeable
    assert source.flags.writeable
    assert str(tensor.type) == "float64(2,3)"
    assert Tensor(np.zeros((1,) * 64, ml_dtypes.bfloat16), BFLOAT16).array.ndim == 64
    for array, element_type in ((source, FLOAT32), (source.astype(">f8"), FLOAT64)):
        with pytest.raises(TypeError, match="is no"):
            Tensor(array, element_type)
