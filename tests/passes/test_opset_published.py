"""Published models of opset 6, as PyTorch wrote them, give their published outputs in new opsets on onnxruntime.

They come with the installed onnx package; some have a legacy ``axis``, most have convolutions, recurrences, pooling.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

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
