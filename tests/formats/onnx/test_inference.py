"""Types of a model's values, for operators behind others of which onnx knows nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, defs, helper
from onnx.parser import parse_model

from eltwise.core.dtypes import INT64
from eltwise.formats.onnx.inference import infer_types, refused_by_inference
from eltwise.formats.registry import read

DOMAINS = {"": 21, "ai.onnx.ml": 5, "foreign": 1}
BODY = helper.make_graph([helper.make_node("Neg", ["x"], ["q"])], "b", [], [helper.make_empty_tensor_value_info("q")])
TENSOR = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])
VALUES = {
    AttributeProto.INT: 1,
    AttributeProto.FLOAT: 0.5,
    AttributeProto.STRING: "a",
    AttributeProto.INTS: [1],
    AttributeProto.FLOATS: [0.5],
    AttributeProto.STRINGS: ["a"],
    AttributeProto.TENSOR: TENSOR,
    AttributeProto.GRAPH: BODY,
}


def model_of(schema: defs.OpSchema, attributes: dict[str, object], operand: str) -> ModelProto:
    """A node that reads a value of unknown type, or the input."""
    count = max(schema.min_input, min(schema.max_input, 1))
    outputs = [f"y{number}" for number in range(max(1, schema.min_output))]
    nodes = [
        helper.make_node("Foreign", ["x"], ["unknown"], domain="foreign"),
        helper.make_node(schema.name, [operand] * count, outputs, domain=schema.domain, **attributes),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])], [])
    opsets = [helper.make_opsetid(domain, version) for domain, version in DOMAINS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def every_operator() -> Iterator[tuple[str, ModelProto]]:
    """Each operator with all attributes, with the required ones, and with one more; behind a value of unknown type."""
    for domain, name in sorted({(one.domain, one.name) for one in defs.get_all_schemas_with_history()}):
        if domain not in DOMAINS or not defs.has(name, DOMAINS[domain], domain):
            continue
        schema = defs.get_schema(name, DOMAINS[domain], domain)
        kinds = {name: int(one.type.value) for name, one in schema.attributes.items()}  # type: ignore[attr-defined]
        values = {name: VALUES[kind] for name, kind in kinds.items() if kind in VALUES}
        needed = {name: values[name] for name, one in schema.attributes.items() if one.required and name in values}
        for chosen in (values, needed, *({**needed, name: value} for name, value in values.items())):
            yield schema.name, model_of(schema, chosen, "unknown")


def infer_all() -> None:
    """Infer the types of all of them, each name printed before."""
    for name, model in every_operator():
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        graph = read(model).graph
        infer_types(graph)
        list(refused_by_inference(graph))


def test_no_operator_behind_a_value_of_unknown_type_ends_the_process() -> None:
    command = [sys.executable, "-c", "from test_inference import infer_all; infer_all()"]
    folder = Path(__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603 - this interpreter
    assert done.returncode == 0, f"after {done.stdout.split()[-1:]}: {done.stderr[-300:]}"
    assert len(set(done.stdout.split())) > 150


@pytest.mark.parametrize("source", ["x", "initializer", "body", "shadowed"])
def test_what_such_an_operator_makes_has_its_type_where_the_operand_has_one(source: str) -> None:
    """An operand of the same name in a body may be another value, of unknown type."""
    text = {
        "x": "g (float[2, 3] x) => (y) { u = foreign.F(x) y = EyeLike<dtype = 7>(x) }",
        "initializer": "g (float[2] x) => (y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> { y = EyeLike<dtype = 7>(w) }",
        "body": """g (bool c, float[2, 3] x) => (y) { y = If (c) <
            then_branch = t () => (a) { z = Neg(x) a = EyeLike<dtype = 7>(z) },
            else_branch = e () => (b) { b = EyeLike<dtype = 7>(x) }> }""",
        "shadowed": """g (bool c, float[2, 3] x) => (y, z) { z = Neg(x) y = If (c) <
            then_branch = t () => (a) { z = foreign.F(x) a = EyeLike<dtype = 7>(z) },
            else_branch = e () => (b) { b = EyeLike<dtype = 7>(x) }> }""",
    }[source]
    header = '<ir_version: 10, opset_import: ["" : 21, "foreign" : 1]> '
    graph = read(onnx.parser.parse_model(header + text)).graph
    types = infer_types(graph)
    refused = list(refused_by_inference(graph))
    if source != "shadowed":
        assert types[id(graph)]["y"].element_type is INT64
        assert refused == []


EINSUM = """<ir_version: 9, opset_import: ["" : 19]> g (float[3, 3, 3] x, float[3, 3, 3] z) => (y) {{
    w = Neg (x)  y = Einsum <equation = "{}"> (w, z)
}}"""


@pytest.mark.parametrize("equation", ["....ii,...jj->...ij", "......ii,...jj->...ij", "i...i...,...jj->...ij"])
def test_inference_ends_at_an_einsum_with_dots_that_are_no_ellipsis(equation: str, tmp_path: Path) -> None:
    """Onnx's own does not, and no signal of Python's ends it."""
    path = tmp_path / "model.onnx"
    path.write_bytes(parse_model(EINSUM.format(equation)).SerializeToString())
    subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-m", "eltwise", "check", str(path)], check=True, capture_output=True, timeout=30
    )
