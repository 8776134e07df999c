"""Test vectors: every case as files that others read, ONNX's own backend runner among them."""

from __future__ import annotations

import json
import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import eltwise
import eltwise.backend
from eltwise import oracle
from eltwise.conformance import test_vectors
from eltwise.conformance.variants import Variant, variants
from eltwise.core.dtypes import by_name
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats.tensor_files import TensorFile, read_tensor_file

ONNX = ("Sub-6/float32/legacy", "Sub-7/int64/numpy", "Sub-14/uint8/numpy", "Sub-14/bfloat16/numpy")
OPENVINO = ("Subtract-1/uint4/numpy", "SquaredDifference-1/float16/pdpd", "Subtract-1/bfloat16/none")
CHOSEN = [variant for variant in variants() if str(variant) in (*ONNX, *OPENVINO)]
SOURCES = ("static", "b-constant")


def exported(folder: Path, seed: int, chosen: list[Variant] = CHOSEN, sources: tuple[str, ...] = SOURCES) -> int:
    return test_vectors.export(folder, chosen, sources, "quick", seed, lambda *_: None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("vectors") / "vectors"
    exported(made, 5)
    return made


@pytest.fixture(scope="module")
def entries(folder: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads((folder / test_vectors.MANIFEST).read_text(encoding="utf-8"))["cases"]
    return read


def test_the_manifest_names_every_file_and_no_other(folder: Path, entries: list[dict[str, Any]]) -> None:
    named = {
        name for entry in entries for name in (*entry["inputs"].values(), *entry["outputs"].values(), entry["model"])
    }
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert named <= there
    assert {Path(name).name for name in there - named} == {"manifest.json", "README.md", "data.json", "model.bin"}
    assert len({entry["name"] for entry in entries}) == len(entries)


def test_every_variant_has_what_must_work_and_what_must_be_refused(entries: list[dict[str, Any]]) -> None:
    counts = Counter((f"{entry['op']}/{entry['dtype']}/{entry['broadcast']}", entry["expected"]) for entry in entries)
    for variant in CHOSEN:
        assert counts[str(variant), "ok"] > 4
        assert counts[str(variant), "refused"] > 1
    for entry in entries:
        assert bool(entry.get("why")) == (entry["expected"] == "refused") == (not entry["outputs"])


def run(folder: Path, entry: dict[str, Any]) -> np.ndarray:
    """Run a case with eltwise, from its files alone."""
    model = eltwise.load(folder / entry["model"])
    types = dict(zip(("a0", "b0"), (operand["dtype"] for operand in entry["operands"]), strict=True))
    arrays = []
    for name, file in entry["inputs"].items():
        if file.endswith(".pb"):
            proto = onnx.TensorProto.FromString((folder / file).read_bytes())
            assert proto.name == name
            arrays.append(numpy_helper.to_array(proto))
        else:
            arrays.append(read_tensor_file(TensorFile(folder / file), by_name(types[name])))
    (result,) = model.run({str(place): array for place, array in enumerate(arrays)}).values()
    return result


def test_eltwise_gives_the_expected_outcome_on_every_case(folder: Path, entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        if entry["expected"] == "refused":
            with pytest.raises(EltwiseError):
                run(folder, entry)
            continue
        (file,) = entry["outputs"].values()
        if file.endswith(".pb"):
            expected = numpy_helper.to_array(onnx.TensorProto.FromString((folder / file).read_bytes()))
        else:
            expected = read_tensor_file(TensorFile(folder / file), by_name(entry["dtype"]))
        assert oracle.same_bits(run(folder, entry), expected), entry["name"]


def backend_tests(folder: Path) -> list[unittest.TestCase]:
    from onnx.backend.test import BackendTest, loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "import_recursive", lambda _package: None)  # Making ONNX's own cases takes nine seconds.
        runner = BackendTest(eltwise.backend.EltwiseBackend, __name__)
    for test in loader.load_model_tests(str(folder / "onnx"), "compute"):
        runner._add_model_test(test, "Vectors")
    kind = runner.test_cases["OnnxBackendVectorsModelTest"]
    names = unittest.TestLoader().getTestCaseNames(kind)
    return [kind(name) for name in names if name.endswith("_cpu")]


def test_onnx_s_own_backend_runner_reads_the_cases(
    folder: Path, entries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = backend_tests(folder)
    wanted = [entry for entry in entries if entry["model"].startswith("onnx/compute/")]
    assert len(tests) == len(wanted) > 100
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for test in tests:
            test.run(result)
        assert not result.skipped
        assert result.wasSuccessful(), (result.errors + result.failures)[0]
        right = eltwise.backend.EltwiseRep.run
        monkeypatch.setattr(
            eltwise.backend.EltwiseRep, "run", lambda self, inputs, **_: tuple(a + a for a in right(self, inputs))
        )
        wrong = unittest.TestResult()
        tests[0].run(wrong)
        assert not wrong.wasSuccessful()


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    chosen = [variant for variant in CHOSEN if str(variant) == ONNX[1]]
    first, second, other = tmp_path / "first", tmp_path / "second", tmp_path / "other"
    for place, seed in ((first, 5), (second, 5), (other, 6)):
        exported(place, seed, chosen, ("static",))

    def contents(place: Path) -> dict[str, bytes]:
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}

    assert contents(first) == contents(second)
    assert contents(first).keys() == contents(other).keys()
    assert contents(first) != contents(other)


def test_a_folder_that_is_taken_is_refused_before_anything_is_computed(folder: Path) -> None:
    with pytest.raises(FileFormatError, match="the folder is not empty"):
        exported(folder, 5)
