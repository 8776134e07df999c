"""Trees of nodes as one kernel: which are, which are not, and that no bit of a result changes."""

from __future__ import annotations

import numpy as np
import pytest

from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, UINT64, ElementType
from eltwise.core.shapes import parse
from eltwise.engine.fusion import MOST_OPERANDS, MOST_STEPS, Group, grouped
from eltwise.engine.program import make_program
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Graph, Node, Origin, Port
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import TensorType
from eltwise.kernels import compiled, dispatch
from eltwise.oracle.hard_values import hard_values
from support.infer_nodes import operation, typed

OPERATIONS = {
    "-": operation("Sub", 14),
    "^": operation("SquaredDifference", 1, "openvino"),
    "*": operation("Mul", 14),
    "/": operation("Div", 14),
    "max": operation("Max", 13),
    "neg": operation("Neg", 13),
    "<": operation("Less", 13),
    "==": operation("Equal", 13),
}


def graph_of(text: str, inputs: str, outputs: str, kind: str = "float32") -> Graph:
    """Make a graph of ``z = x - y`` lines, semicolons between them; ``x ^ y`` is a squared difference.

    What is not written between two operands is written before them: ``z = max x y w``, ``z = neg x``.
    """
    ports = tuple(
        Port(name, typed(" ".join(shape.split("/")) if "/" in shape else f"{kind} {shape}"), name)
        for name, shape in (one.split(":") for one in inputs.split())
    )
    nodes = []
    for line in text.split(";"):
        result, words = line.split(" = ")
        first, *others = words.split()
        sign, operands = (first, others) if first in OPERATIONS else (others[0], [first, *others[1:]])
        nodes.append(Node("", OPERATIONS[sign], tuple(operands), (result.strip(),)))
    ends = tuple(Port(name, TensorType(None, parse("...")), name) for name in outputs.split())
    return Graph("graph", Origin("ai.onnx", 8, 14), ports, ends, tuple(nodes))


def groups(graph: Graph) -> list[str]:
    """The groups of a graph; their operands are lettered in the order in which they are read."""
    found = grouped(graph, infer_graph(graph).types)
    return [f"{step.result} = {step.expression}" for step in found if isinstance(step, Group)]


@pytest.mark.parametrize(
    ("text", "inputs", "outputs", "expected"),
    [
        ("x = a - b; y = c - d; z = x - y", "a:9 b:9 c:9 d:9", "z", ["z = (a - b) - (c - d)"]),
        ("x = a - b; y = x - a; z = b - y", "a:9 b:9", "z", ["z = a - ((b - a) - b)"]),
        ("x = a - b; z = x - x", "a:9 b:9", "z", ["z = (a - b) - (a - b)"]),
        ("z = a - a", "a:9", "z", ["z = a - a"]),
        ("x = a ^ b; z = x - c", "a:9 b:9 c:9", "z", ["z = ((a - b) * (a - b)) - c"]),
        ("x = a - b; z = x ^ c", "a:9 b:9 c:9", "z", ["z = ((a - b) - c) * ((a - b) - c)"]),
        ("x = a - b; z = x - c", "a:4,1 b:4,1 c:4,5", "z", ["x = a - b", "z = a - b"]),
        ("x = a - b; z = c - x", "a:4,1 b:1,5 c:5", "z", ["z = a - (b - c)"]),
        ("x = a - b; y = x - c; z = x - d", "a:9 b:9 c:9 d:9", "y z", ["x = a - b", "y = a - b", "z = a - b"]),
        ("x = a - b; z = x - c", "a:9 b:9 c:9", "x z", ["x = a - b", "z = a - b"]),
        ("x = neg a; y = max x b c; z = y / d", "a:9 b:9 c:9 d:9", "z", ["z = max(-a, b, c) / d"]),
        ("x = a - b; z = x < c", "a:9 b:9 c:9", "z", ["z = (a - b) < c"]),
        ("x = a < b; z = x == c", "a:9 b:9 c:bool/9", "z", ["z = (a < b) == c"]),
        ("x = a - b; z = c / x", "a:9 b:9 c:9", "z", ["z = a / (b - c)"]),
        ("x = a - b; z = c / x", "a:int8/9 b:int8/9 c:int8/9", "z", ["x = a - b", "z = a / b"]),
        ("x = a / b; z = x - c", "a:int8/9 b:int8/9 c:int8/9", "z", ["z = (a / b) - c"]),
    ],
)
def test_which_nodes_become_one(text: str, inputs: str, outputs: str, expected: list[str]) -> None:
    assert groups(graph_of(text, inputs, outputs)) == expected


def test_a_tree_of_too_many_operands_or_steps_is_cut() -> None:
    names = [f"v{index}" for index in range(2 * MOST_OPERANDS)]
    lines = [f"s1 = {names[0]} - {names[1]}"]
    lines += [f"s{index} = s{index - 1} - {names[index]}" for index in range(2, len(names))]
    wide = graph_of(";".join(lines), " ".join(f"{name}:9" for name in names), f"s{len(names) - 1}")
    found = [step for step in grouped(wide, infer_graph(wide).types) if isinstance(step, Group)]
    assert sum(len(step.nodes) for step in found) == len(names) - 1
    assert all(len(step.operands) <= MOST_OPERANDS for step in found)
    lines = ["s1 = a - b", *(f"s{index} = s{index - 1} - a" for index in range(2, 3 * MOST_STEPS))]
    deep = graph_of(";".join(lines), "a:9 b:9", f"s{3 * MOST_STEPS - 1}")
    found = [step for step in grouped(deep, infer_graph(deep).types) if isinstance(step, Group)]
    assert [len(step.expression.steps) for step in found] == [MOST_STEPS, MOST_STEPS, MOST_STEPS - 1]


def test_nodes_of_unknown_shape_stay_alone_until_a_run_knows_it() -> None:
    graph = graph_of("x = a - b; z = x - a", "a:N b:N", "z")
    assert groups(graph) == []
    arrays = {name: np.zeros(3, np.float32) for name in "ab"}
    program = make_program(graph, infer_graph(graph).outputs, arrays, {})
    assert [type(step.source) for step in program.steps] == [Group]


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32, INT8, UINT64], ids=str)
def test_random_trees_give_the_bits_that_their_nodes_give(
    element_type: ElementType, kernels: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "mode", lambda: kernels)
    monkeypatch.setattr(compiled, "LEAST_BYTES_PER_PIECE", 64)
    generator = np.random.default_rng([seed, element_type.bits])
    pool = hard_values(element_type)
    shapes = ["3,1,7", "3,5,7", "5,1", "7", "1,1,1", "3,5,1"]
    fused = 0
    for _turn in range(12):
        inputs = {f"i{index}": str(generator.choice(shapes)) for index in range(4)}
        names, lines = list(inputs), []
        for index in range(int(generator.integers(2, 9))):
            left, right, third = generator.choice(names, 3)
            signs = ["-", "^", "max", "neg", *(["/"] if element_type.kind == "float" else [])]
            sign = generator.choice(signs) if element_type.kind != "unsigned" else generator.choice(["-", "^", "max"])
            if sign in ("max", "neg"):
                lines.append(f"n{index} = {sign} {left}" + (f" {right} {third}" if sign == "max" else ""))
            else:
                lines.append(f"n{index} = {left} {sign} {right}")
            names.append(f"n{index}")
        outputs = [names[-1], *(name for name in names[len(inputs) : -1] if generator.random() < 0.2)]
        text = " ".join(f"{name}:{shape}" for name, shape in inputs.items())
        graph = graph_of(";".join(lines), text, " ".join(outputs), element_type.name)
        feeds = {
            name: pool[generator.integers(0, pool.size, tuple(map(int, shape.split(","))))]
            for name, shape in inputs.items()
        }
        runner = Runner(graph, infer_graph(graph).outputs)
        fused += len(graph.nodes) - len(make_program(graph, (), feeds, {}).steps)
        expected = dict(feeds)
        for node in graph.nodes:
            operands = [expected[name] for name in node.inputs]
            expected[node.outputs[0]] = oracle.evaluate(node.operation.function, *operands, rule="numpy")
        for _again in range(2):
            results = runner.run(feeds)
            for name in outputs:
                assert oracle.same_bits(results[name], expected[name]), lines
    assert fused >= 6
