"""Published models of opset 6, as PyTorch wrote them, give their published outputs in new opsets on onnxruntime.

They come with the installed onnx package; some have a legacy ``axis``, most have convolutions, recurrences, pooling.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from eltwise.core.errors import EltwiseError
from onnx_models import published
from versions import convert_onnx_bytes

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
OLD = [
    path
    for path in sorted(DATA.glob("pytorch-*/*/model.onnx"))
    if onnx.load(path, load_external_data=False).opset_import[0].version == 6
]
Answers = dict[str, list[np.ndarray]]


def tensors(folder: Path, kind: str) -> list[np.ndarray]:
    paths = sorted(folder.glob(f"test_data_set_0/{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [numpy_helper.to_array(onnx.load_tensor(path)) for path in paths]


def run_all(models: dict[str, tuple[bytes, list[np.ndarray]]]) -> Answers:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    answers = {}
    for name, (data, given) in models.items():
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        names = [found.name for found in session.get_inputs()]
        answers[name] = session.run(None, dict(zip(names, given, strict=True)))
    return answers


def ask(models: dict[str, tuple[bytes, list[np.ndarray]]]) -> Answers:
    if find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed; the extra 'witnesses' has it")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(run_all, models).result()


@pytest.mark.skipif(not OLD, reason="the installed onnx package has no published models")
@pytest.mark.parametrize("opset", [7, 17, 26])
def test_published_models_give_their_published_outputs(opset: int) -> None:
    models = {
        path.parent.name: (convert_onnx_bytes(path.read_bytes(), opset)[0], tensors(path.parent, "input"))
        for path in OLD
    }
    assert len(models) > 100
    answers = ask(models)
    for path in OLD:
        expected, got = tensors(path.parent, "output"), answers[path.parent.name]
        assert [array.shape for array in got] == [array.shape for array in expected]
        for one, other in zip(got, expected, strict=True):
            assert np.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True), path.parent.name


@pytest.mark.skipif(not (DATA / "light").exists(), reason="the installed onnx package has no light networks")
def test_a_network_gives_the_same_bits_in_a_new_opset() -> None:
    data = (DATA / "light" / "light_squeezenet.onnx").read_bytes()
    converted, report = convert_onnx_bytes(data, 21)
    assert report.changes
    x = np.random.default_rng(2).normal(size=(1, 3, 224, 224)).astype(np.float32)
    answers = ask({"before": (data, [x]), "after": (converted, [x])})
    assert np.array_equal(answers["before"][0], answers["after"][0])


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


def bits(array: np.ndarray) -> tuple[object, ...]:
    """What two equal arrays share; any NaN is the same."""
    plain = np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array
    return (array.dtype, array.shape, plain.tobytes())


def run_those_that_load(models: dict[str, tuple[bytes, list[np.ndarray]]]) -> Answers:
    answers: Answers = {}
    for name, given in models.items():
        try:
            answers |= {name: [np.asarray(array) for array in run_all({name: given})[name]]}
        except Exception as error:  # noqa: BLE001 - whatever it raises is its refusal
            answers[name] = [np.array(str(error))]
    return answers


@pytest.mark.slow
@pytest.mark.parametrize(("opset", "least"), [(9, 50), (13, 100), (21, 150)])
def test_the_operators_of_onnx_give_the_same_bits_in_other_opsets(opset: int, least: int) -> None:
    """Every seventh of onnx's own test models, as far as it can be said in the opset and onnxruntime runs it."""
    before, after = {}, {}
    for name, data in list(published().items())[::7]:
        given = small_inputs(onnx.ModelProto.FromString(data))
        if given is None:
            continue
        with suppress(EltwiseError):
            after[name] = (convert_onnx_bytes(data, opset)[0], given)
            before[name] = (data, given)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        right = process.submit(run_those_that_load, before).result()
        got = process.submit(run_those_that_load, after).result()
    ran = [name for name, arrays in right.items() if all(array.dtype.kind in "fiub" for array in arrays)]
    assert len(ran) > least
    assert [
        name for name in ran if [bits(array) for array in got[name]] != [bits(array) for array in right[name]]
    ] == []
