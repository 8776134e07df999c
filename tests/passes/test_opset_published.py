"""Published models of opset 6, as PyTorch wrote them, give their published outputs in new opsets on onnxruntime.

They come with the installed onnx package; some have a legacy ``axis``, most have convolutions, recurrences, pooling.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.nodes import published_schema
from support.conversions import answer_of
from support.onnx_models import published
from support.versions import convert_onnx_bytes

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
OLD = [
    path
    for path in sorted(DATA.glob("pytorch-*/*/model.onnx"))
    if onnx.load(path, load_external_data=False).opset_import[0].version == 6
]


def tensors(folder: Path, kind: str) -> list[np.ndarray]:
    paths = sorted(folder.glob(f"test_data_set_0/{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]


def run(data: bytes, given: list[np.ndarray]) -> list[np.ndarray | None]:
    answer = answer_of("onnxruntime", (data,), given)
    assert answer.kind == "result", answer.message
    return list(answer.arrays)


@pytest.mark.skipif(not OLD, reason="the installed onnx package has no published models")
@pytest.mark.parametrize("opset", [7, 17, 26])
def test_published_models_give_their_published_outputs(opset: int) -> None:
    assert len(OLD) > 100
    for path in OLD:
        got = run(convert_onnx_bytes(path.read_bytes(), opset)[0], tensors(path.parent, "input"))
        for one, other in zip(got, tensors(path.parent, "output"), strict=True):
            assert one is not None
            assert one.shape == other.shape
            assert np.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True), path.parent.name


@pytest.mark.skipif(not (DATA / "light").exists(), reason="the installed onnx package has no light networks")
def test_a_network_gives_the_same_bits_in_a_new_opset() -> None:
    data = (DATA / "light" / "light_squeezenet.onnx").read_bytes()
    converted, report = convert_onnx_bytes(data, 21)
    assert report.changes
    x = np.random.default_rng(2).normal(size=(1, 3, 224, 224)).astype(np.float32)
    assert np.array_equal(run(data, [x])[0], run(converted, [x])[0])  # type: ignore[arg-type]


def small_inputs(made: onnx.ModelProto) -> list[np.ndarray] | None:
    """Drawn values for the inputs of a model; None where one is no tensor of numbers with a known shape."""
    generator = np.random.default_rng(8)
    constants = {tensor.name for tensor in made.graph.initializer}
    drawn = []
    for found in (found for found in made.graph.input if found.name not in constants):
        kind, sizes = found.type.tensor_type.elem_type, [size.dim_value for size in found.type.tensor_type.shape.dim]
        if kind not in (1, 2, 3, 6, 7, 9, 10, 11) or 0 in sizes:
            return None
        values = generator.normal(size=sizes) if kind in (1, 10, 11) else generator.integers(0, 3, sizes)
        drawn.append(np.asarray(values).astype(onnx.helper.tensor_dtype_to_np_dtype(kind)))
    return drawn


def is_same(got: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Equal but for noise: on some processors, onnxruntime sums in another order in another opset."""
    if got is None or right is None or got.dtype != right.dtype or got.shape != right.shape:
        return False
    if got.dtype.kind != "f":
        return np.array_equal(got, right)
    scale = float(np.max(np.abs(right), initial=0, where=np.isfinite(right)))
    return np.allclose(got, right, rtol=0, atol=8 * float(np.finfo(right.dtype).eps) * scale, equal_nan=True)


@cache
def answered(name: str) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """Drawn inputs of one of onnx's test models, and what onnxruntime gives; None where it does not run there."""
    data = published()[name]
    given = small_inputs(onnx.ModelProto.FromString(data))
    right = answer_of("onnxruntime", (data,), given) if given is not None else None
    if given is None or right is None or right.kind != "result" or any(array is None for array in right.arrays):
        return None
    return given, [array for array in right.arrays if array is not None]


@pytest.mark.slow
@pytest.mark.parametrize(("opset", "least"), [(9, 50), (13, 100), (21, 150)])
def test_the_operators_of_onnx_give_the_same_values_in_other_opsets(opset: int, least: int) -> None:
    """Every seventh of onnx's own test models, as far as it can be said in the opset and onnxruntime runs it."""
    ran, wrong = 0, []
    for name, data in list(published().items())[::7]:
        with suppress(EltwiseError):
            converted, _report = convert_onnx_bytes(data, opset)
            if answer := answered(name):
                given, right = answer
                got, ran = answer_of("onnxruntime", (converted,), given), ran + 1
                wrong += [] if got.kind == "result" and all(map(is_same, got.arrays, right)) else [name]
    assert ran > least
    assert wrong == []


def with_defaults(data: bytes) -> bytes:
    """A model whose nodes state every attribute that has a default, as PyTorch's exporter writes them."""
    made = onnx.ModelProto.FromString(data)
    opset = next((entry.version for entry in made.opset_import if not entry.domain), 1)
    for one in made.graph.node:
        schema = published_schema(one.op_type, opset) if not one.domain else None
        stated = {attribute.name for attribute in one.attribute}
        for name, attribute in schema.attributes.items() if schema is not None else ():
            if name not in stated and attribute.default_value.type:
                one.attribute.add().CopyFrom(attribute.default_value)
    return made.SerializeToString()


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 13, 17])
def test_a_default_that_is_stated_keeps_no_node_from_another_opset(opset: int) -> None:
    converted = 0
    for data in list(published().values())[::7]:
        try:
            short = onnx.load_from_string(convert_onnx_bytes(data, opset)[0])
        except EltwiseError:
            continue
        if (stated := with_defaults(data)) != data:
            long = onnx.load_from_string(convert_onnx_bytes(stated, opset)[0])
            assert [one.op_type for one in long.graph.node] == [one.op_type for one in short.graph.node]
            converted += 1
    assert converted > 20
