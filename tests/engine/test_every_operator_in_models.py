"""Every operator version as a model: read from ONNX and IR, inferred, run, written and read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BOOL, FLOAT32, INT32, UINT32, ElementType, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from support.onnx_models import model, node, value
from support.openvino_models import PRECISIONS, Ir
from support.operands import in_file, operand_types, read_of, required


def type_of(schema: ElementwiseSchema) -> ElementType:
    return next(each for each in (INT32, UINT32, FLOAT32, BOOL) if each in schema.types)


def operands_of(schema: ElementwiseSchema, element_type: ElementType) -> dict[str, np.ndarray]:
    names = "abc" if schema.is_variadic else "abcde"[: len(schema.operands)]
    values = [[[-7, 7, 3], [0, 5, -2]], [[2, -2, 3], [1, -5, -2]], [[1, 9, -9], [0, 6, 0]], [[-1, 0, 2]], [[3, 5, 7]]]
    if "clip" in schema.function and len(names) == 3:  # Limits are scalars.
        values[1:] = [[[-3]], [[4]]]
    if schema.broadcasting == "axis":
        values[1:] = [[2], [1]]  # type: ignore[list-item]
    types = [element_type] * len(names) if schema.is_variadic else operand_types(schema, element_type, len(names))
    pairs = zip(names, values, types, strict=False)
    return {name: np.array(rows).astype(each.storage) for name, rows, each in pairs}


def result_of(schema: ElementwiseSchema, operands: dict[str, np.ndarray]) -> ElementType:
    computation, read = read_of(schema.bind(required(schema)), list(operands.values()))
    result = computation.result_type_of(tuple(of_numpy(array.dtype) for array in read))
    assert result is not None
    return result


def onnx_model(schema: ElementwiseSchema) -> eltwise.Model:
    element_type = type_of(schema)
    operands = operands_of(schema, element_type)
    result = result_of(schema, operands)
    return eltwise.load(
        model(
            [node(schema.name, list(operands), ["z"], **in_file(schema, required(schema)))],
            [
                value(name, ("N" if len(array) > 1 else 1, *array.shape[1:]), of_numpy(array.dtype).onnx_number)
                for name, array in operands.items()
            ],
            [helper.make_tensor_value_info("z", result.onnx_number, None)],
            opset=schema.version,
        )
    )


def ir_model(schema: ElementwiseSchema, **data: Any) -> eltwise.Model:
    element_type = type_of(schema)
    ir = Ir()
    result = result_of(schema, operands_of(schema, element_type))
    precision = PRECISIONS.get(result.ir, result.ir.upper())
    operands = operands_of(schema, element_type)
    for name, array in operands.items():
        ir.parameter(name, f"?,{array.shape[1]}", of_numpy(array.dtype).ir, names=name)
    attributes = {name: str(value) for name, value in in_file(schema, required(schema)).items()} | data
    inputs = [*operands, *ir.stated(schema, "z", element_type, attributes)]
    opset = f"opset{schema.version}"
    ir.layer(schema.name, "z", inputs, opset=opset, names="z", precision=precision, **attributes)
    ir.result("z", "r")
    return eltwise.load(ir.xml(), ir.weights)


def check(loaded: eltwise.Model, schema: ElementwiseSchema, function: str, path: Path) -> None:
    element_type = type_of(schema)
    operands = operands_of(schema, element_type)
    rule = "none" if schema.broadcasting in ("none", "legacy") else "numpy"
    (one,) = loaded.graph.nodes
    computation, read = read_of(one.bound, list(operands.values()))
    steps = computation.typed(element_type, [of_numpy(each.dtype) for each in read]).steps
    parameters = dict(steps[-1].parameters) if len(steps) == 1 else {}
    expected = oracle.evaluate(function, *read, rule=rule, parameters=parameters)  # type: ignore[arg-type]
    (output,) = loaded.outputs
    assert output.type.element_type is result_of(schema, operands)
    for _again in range(2):
        (result,) = loaded.run(operands).values()
        assert oracle.same_bits(result, expected)
    eltwise.save(loaded, path)
    again = eltwise.load(path)
    assert again.graph == loaded.graph
    (result,) = again.run(operands).values()
    assert oracle.same_bits(result, expected)


@pytest.mark.parametrize("schema", [each for each in registry.ELEMENTWISE if each.domain == "ai.onnx"], ids=str)
def test_onnx_models(schema: ElementwiseSchema, tmp_path: Path) -> None:
    check(onnx_model(schema), schema, schema.function, tmp_path / "m.onnx")


@pytest.mark.parametrize("schema", [each for each in registry.ELEMENTWISE if each.domain == "openvino"], ids=str)
def test_ir_models(schema: ElementwiseSchema, tmp_path: Path) -> None:
    check(ir_model(schema), schema, schema.function, tmp_path / "m.xml")


@pytest.mark.parametrize(("text", "function"), [("true", "floor_divide"), ("0", "divide"), ("FALSE", "divide")])
def test_an_ir_file_says_how_integers_are_divided(text: str, function: str, tmp_path: Path) -> None:
    schema = registry.find("Divide-1")
    check(ir_model(schema, m_pythondiv=text), schema, function, tmp_path / "m.xml")


def test_a_model_that_divides_by_0_names_the_node_and_gives_nothing() -> None:
    chain = model(
        [
            node("Sub", ["a", "b"], ["d"], "difference"),
            node("Div", ["a", "d"], ["q"], "quotient"),
            node("Add", ["q", "b"], ["z"], "sum"),
        ],
        [value(name, (2, 3), INT32.onnx_number) for name in "ab"],
        [value("z", (2, 3), INT32.onnx_number)],
        opset=14,
    )
    loaded = eltwise.load(chain)
    a, b = np.arange(6, dtype=np.int32).reshape(2, 3), np.full((2, 3), 9, np.int32)
    assert (loaded.run({"a": a, "b": b})["z"] == (np.trunc(a / (a - b)) + b)).all()
    b[1, 1] = a[1, 1]
    for _again in range(2):
        with pytest.raises(
            EltwiseError,
            match=r"Div-14 node 'quotient', operand B \('d'\): an integer .* by 0, got 0 at index \[1, 1\]",
        ):
            loaded.run({"a": a, "b": b})
