"""A runtime is given a whole model as a file: what it refuses of one is said, also where it takes the bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.formats.registry import read, write_file
from eltwise.targets.repair import repair_file
from eltwise.testing import assert_same_model
from eltwise.tracing import model_program
from eltwise.tracing.model_program import as_file, program_of
from support.local_hosts import LocalHost
from support.traced_models import parsed

MODEL = """g (float[6] x) => (float[2, 3] y)
<int64[2] sizes = {2, 3}, float[2, 3] w = {1, 2, 3, 4, 5, 6}> { r = Reshape(x, sizes) y = Sub(r, w) }"""
INPUTS = {"x": np.arange(6, dtype=np.float32)}


def with_external_sizes(folder: Path, text: str = MODEL) -> Path:
    """A model that onnxruntime refuses as it lies there, and takes with its external data inside."""
    model, path = parsed(text), folder / "model.onnx"
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="model.data")
    return path


def fails_check(path: Path) -> bool:
    return not eltwise.check(path, "onnxruntime").is_good


def fails_trace(path: Path) -> bool:
    return not eltwise.trace(path, runtime="onnxruntime", against="openvino", inputs=INPUTS).is_good


def is_refused(call: Callable[[Path], object]) -> Callable[[Path], bool]:
    def fails(path: Path) -> bool:
        with pytest.raises((EltwiseError, AssertionError), match="external"):
            call(path)
        return True

    return fails


CALLS: dict[str, Callable[[Path], bool]] = {
    "check": fails_check,
    "trace": fails_trace,
    "record": is_refused(lambda path: eltwise.record(path, runtime="onnxruntime")),
    "repair": is_refused(lambda path: eltwise.repair(path, "onnxruntime", verify=True)),
    "assert_same_model": is_refused(lambda path: assert_same_model(path, path, runtime="onnxruntime")),
}


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_file_that_the_runtime_refuses_is_not_said_to_run(name: str, is_loaded: bool, tmp_path: Path) -> None:
    path = with_external_sizes(tmp_path)
    assert CALLS[name](eltwise.load(path) if is_loaded else path)  # type: ignore[arg-type]


@pytest.mark.usefixtures("local_hosts")
def test_a_repaired_model_is_run_as_it_will_be_written(tmp_path: Path) -> None:
    path = with_external_sizes(tmp_path, MODEL.replace("float", "bfloat16"))
    with pytest.raises(EltwiseError, match="external"):
        eltwise.repair(path, "onnxruntime", verify=True)
    inside = onnx.load(path)
    model, _report = eltwise.repair(inside, "onnxruntime", verify=True)
    assert [node.schema.name for node in model.graph.nodes].count("Cast") > 1


@pytest.mark.parametrize("source", ["onnx", "external", "xml"])
def test_the_file_is_its_own_as_long_as_both_are_as_they_were(source: str, tmp_path: Path) -> None:
    path = tmp_path / ("model.xml" if source == "xml" else "model.onnx")
    if source == "external":
        with_external_sizes(tmp_path)
    elif source == "onnx":
        onnx.save(parsed(MODEL), path)
    else:
        eltwise.convert(parsed("g (float[2] x, float[2] y) => (float[2] z) { z = Sub(x, y) }"), to="openvino")[0].save(
            path
        )
    graph = read(path).graph
    program = program_of(graph)
    with as_file(graph) as same:
        assert same == replace(program, path=str(path))
    changed = replace(graph, name="other")
    with as_file(changed) as other:
        assert Path(other.path).parent != tmp_path
        assert read(Path(other.path)).graph == changed
    assert not Path(other.path).parent.exists()
    content = path.read_bytes()
    write_file(changed, path)
    assert path.read_bytes() != content
    with as_file(graph) as former:
        assert read(Path(former.path)).graph == graph
    path.unlink()
    with as_file(graph) as gone:
        assert read(Path(gone.path)).graph == graph


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("external", [False, True])
def test_a_file_of_many_weights_is_run_as_a_whole_where_memory_allows(
    external: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are not sent; what is in memory only is not run as a whole, nor is what may not fit there."""
    path, options = tmp_path / "model.onnx", {"location": "model.data", "size_threshold": 0}
    onnx.save(parsed("g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { y = Sub(x, w) }"), path)
    onnx.save(onnx.load(path), path, save_as_external_data=external, **(options if external else {}))
    monkeypatch.setattr(model_program, "LARGEST_SENT", 15)
    for source in (path, eltwise.load(path)):
        with as_file(read(path).graph) as program:
            assert (program.data, program.path) == (b"", str(path))
        assert eltwise.trace(source, runtime="onnxruntime", against="openvino").verdict == "agree"
        assert eltwise.check(source, "onnxruntime").is_good
        assert eltwise.record(source, runtime="onnxruntime").values
    for memory, source in ((None, path), (1 << 40, onnx.load(path))):
        monkeypatch.setattr(model_program, "memory_bytes", lambda memory=memory: memory)
        report = eltwise.trace(source, runtime="onnxruntime", against="openvino")
        assert report.verdict == "not_established"
        assert "the whole model was not run: more than " in str(report)
        with pytest.raises(EltwiseError, match="too large to be run as a whole, got 16 bytes of weights"):
            eltwise.record(source, runtime="onnxruntime")


@pytest.mark.usefixtures("local_hosts")
def test_a_model_is_not_made_in_float64_where_that_takes_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(
        parsed("g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { e = Softmax(x) y = Sub(e, w) }"), path
    )
    monkeypatch.setattr(model_program, "LARGEST_SENT", 16)
    monkeypatch.setattr(model_program, "memory_bytes", lambda: 8 * 32)
    assert eltwise.check(path, "onnxruntime").is_good
    monkeypatch.setattr(model_program, "memory_bytes", lambda: 8 * 32 - 1)
    with pytest.raises(EltwiseError, match="too much memory in float64, got 32 bytes; allowed: 31 bytes"):
        eltwise.trace(path, runtime="onnxruntime", against="float64")
    report = eltwise.check(path, "onnxruntime")
    assert not report.is_good
    assert "the weights take too much memory in float64" in str(report)
    assert eltwise.trace(path, runtime="onnxruntime", against="openvino:precision=f32").verdict == "agree"


@pytest.mark.usefixtures("local_hosts")
def test_a_cache_that_links_to_files_by_their_content_is_read_and_left(tmp_path: Path) -> None:
    """As the cache of Hugging Face: model and data are links to files of other names in one other folder."""
    text = "g (bfloat16[4] x) => (bfloat16[4] y) <bfloat16[4] w = {1, 2, 3, 4}> { y = Sub(x, w) }"
    snapshot, blobs, elsewhere = (tmp_path / name for name in ("snapshot", "blobs", "elsewhere"))
    for folder in (snapshot, blobs, elsewhere):
        folder.mkdir()
    path = with_external_sizes(snapshot, text)
    contents = {}
    for name in ("model.onnx", "model.data"):
        link, blob = snapshot / name, blobs / f"blob-of-{name.replace('.', '-')}"
        contents[blob] = link.read_bytes()
        link.rename(blob)
        link.symlink_to(blob)
    assert eltwise.compare(path, path).is_good
    assert not eltwise.check(path, "onnxruntime").is_good  # It has no Sub of bfloat16.
    for out in (snapshot / "repaired.onnx", elsewhere / "repaired.onnx"):
        repair_file(path, out, target="onnxruntime", run=True)
        assert eltwise.check(out, "onnxruntime").is_good
        assert not (data := out.with_name("repaired.onnx.data")).is_symlink()
        assert data.read_bytes() == contents[blobs / "blob-of-model-data"]
    assert {blob: blob.read_bytes() for blob in contents} == contents
    path.unlink()
    path.write_bytes(contents[blobs / "blob-of-model-onnx"])
    with pytest.raises(EltwiseError, match="leads out of the model's folder over a symbolic link"):
        eltwise.load(path)


CHANGES: dict[str, Callable[[object], object]] = {
    "check": lambda model: eltwise.check(model, "onnxruntime"),  # type: ignore[arg-type]
    "trace": lambda model: eltwise.trace(model, runtime="onnxruntime", against="openvino"),  # type: ignore[arg-type]
    "record": lambda model: eltwise.record(model, runtime="onnxruntime"),  # type: ignore[arg-type]
}


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_data_that_changes_blames_no_runtime(
    name: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = tmp_path / "model.onnx", tmp_path / "model.data"
    onnx.save(parsed("g (float[4] x) => (float[4] y) { y = Add(x, x) }"), path)
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32), "w"))
    model.graph.node[0].input[1] = "w"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location=data.name)
    loaded = eltwise.load(path)

    def change() -> None:
        data.write_bytes(np.arange(1, 5, dtype=np.float32).tobytes())

    if when == "before":
        change()
    else:
        run = LocalHost.run

        def changing(*arguments: object, **options: object) -> object:
            change()
            return run(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(LocalHost, "run", changing)
    try:
        result = CHANGES[name](loaded)
    except EltwiseError as error:
        result = error
    assert isinstance(result, EltwiseError) or getattr(result, "verdict", "") == "not_established", str(result)
    assert "changed while" in str(result)
