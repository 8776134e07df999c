"""Model files in other opsets: weights that are never read, data that follows its model, nothing half written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import eltwise
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.passes.onnx_versions.converted_files import convert_onnx_file
from eltwise.targets.files import repair_file
from onnx_models import model, node, sub_model, value

GIB = 1 << 30


def outside(name: str, dims: tuple[int, ...], offset: int, location: str = "weights.data") -> TensorProto:
    tensor = TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": str(offset), "length": str(4 * int(np.prod(dims)))}
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=text)
    return tensor


def large_model(folder: Path) -> Path:
    """A model of opset 6 with 4 GiB of weights, nearly all of them a hole in the file."""
    data = folder / "weights.data"
    with data.open("wb") as file:
        file.write(np.float32([1, 2, 3]).tobytes())
        file.seek(4 * GIB)
        file.write(np.float32([5, 6]).tobytes())
    nodes = [
        node("Sub", ["x", "b"], ["y"], "minus", axis=0, broadcast=1),
        node("Sub", ["y", "last"], ["z"], "again", axis=1, broadcast=1),
        node("Shape", ["huge"], ["s"]),
    ]
    tensors = [outside("b", (3,), 0), outside("last", (2,), 4 * GIB), outside("huge", (4, GIB // 4 - 1024), 4096)]
    outputs = [value("z", (3, 2, 2)), value("s", (2,), TensorProto.INT64)]
    path = folder / "old.onnx"
    path.write_bytes(model(nodes, [value("x", (3, 2, 2))], outputs, 6, 4, tensors).SerializeToString())
    return path


MEASURED = """
import sys
from pathlib import Path
from eltwise.passes.onnx_versions.converted_files import convert_onnx_file

print(convert_onnx_file(Path(sys.argv[1]), Path(sys.argv[2]), 14))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(peak.split()[1], file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of its memory")
@pytest.mark.parametrize("folder", [".", "elsewhere"])
def test_four_gibibytes_of_weights_are_never_read(tmp_path: Path, folder: str) -> None:
    source = large_model(tmp_path)
    if source.with_name("weights.data").stat().st_blocks * 512 > GIB:
        pytest.skip("this file system has no holes")
    (tmp_path / folder).mkdir(exist_ok=True)
    target = tmp_path / folder / "new.onnx"
    command = [sys.executable, "-c", MEASURED, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert "the initializer itself" in done.stdout
    assert int(done.stderr) * 1024 < 300 << 20
    copied = target.with_name("weights.data").stat()
    assert copied.st_size == 4 * GIB + 8
    assert copied.st_blocks * 512 < 64 << 20
    converted = onnx.load_model(target, load_external_data=False)
    assert [list(tensor.dims) for tensor in converted.graph.initializer] == [[3, 1, 1], [2, 1], [4, GIB // 4 - 1024]]
    for tensor, (name, offset) in zip(converted.graph.initializer, (("b", 0), ("last", 4 * GIB)), strict=False):
        assert (tensor.name, tensor.external_data[1].value) == (name, str(offset))
    del converted.graph.node[2], converted.graph.initializer[2], converted.graph.output[1]
    target.write_bytes(converted.SerializeToString())
    result = eltwise.load(target).run({"x": np.full((3, 2, 2), 9, np.float32)})["z"]
    assert result[..., 0].tolist() == result[..., 1].tolist() == [[3, 2], [2, 1], [1, 0]]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of its memory")
@pytest.mark.parametrize("size", [1 << 17, 1 << 18, 10**8, 10**12])
def test_sizes_without_weights_take_no_memory(tmp_path: Path, size: int) -> None:
    nodes = [node("Sub", ["x", "y"], ["d"]), node("Mul", ["d", "x"], ["e"]), node("Add", ["y", "e"], ["z"])]
    source = tmp_path / "long.onnx"
    source.write_bytes(
        model(nodes, [value("x", (size,)), value("y", (1,))], [value("z", None)], 13, 8).SerializeToString()
    )
    command = [sys.executable, "-c", MEASURED, str(source), str(tmp_path / "new.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert int(done.stderr) * 1024 < 300 << 20


def small_model(folder: Path, location: str = "weights.data") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "old.onnx"
    made = model([node("Sub", ["x", "b"], ["z"], axis=0, broadcast=1)], [value("x")], [value("z")], 6, 4)
    made.graph.initializer.append(outside("b", (2,), 0, location))
    path.write_bytes(made.SerializeToString())
    (folder / "weights.data").write_bytes(np.float32([1, 2]).tobytes())
    return path


def result_of(path: Path) -> list[list[float]]:
    found: list[list[float]] = eltwise.load(path).run({"x": np.zeros((2, 3), np.float32)})["z"].tolist()
    return found


def test_the_data_follows_into_another_folder_and_is_a_file_of_its_own(tmp_path: Path) -> None:
    source = small_model(tmp_path / "a")
    (tmp_path / "b").mkdir()
    target = tmp_path / "b" / "new.onnx"
    told: list[tuple[int, int]] = []
    for _again in range(2):  # The second time the data is there already.
        convert_onnx_file(source, target, 14, lambda done, total: told.append((done, total)))
        assert result_of(target) == [[-1] * 3, [-2] * 3]
    assert told == [(8, 8)]
    assert not (tmp_path / "a" / "weights.data").samefile(tmp_path / "b" / "weights.data")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["new.onnx", "weights.data"]


def test_folders_below_the_model_are_made(tmp_path: Path) -> None:
    source = small_model(tmp_path / "a", "deep/weights.data")
    (tmp_path / "a" / "deep").mkdir()
    (tmp_path / "a" / "weights.data").rename(tmp_path / "a" / "deep" / "weights.data")
    (tmp_path / "b").mkdir()
    convert_onnx_file(source, tmp_path / "b" / "new.onnx", 14)
    assert result_of(tmp_path / "b" / "new.onnx") == [[-1] * 3, [-2] * 3]


def test_in_place_the_data_stays(tmp_path: Path) -> None:
    source = small_model(tmp_path)
    convert_onnx_file(source, source, 14)
    assert result_of(source) == [[-1] * 3, [-2] * 3]


@pytest.mark.parametrize(
    "location",
    [
        "../a/weights.data",
        "/etc/passwd",
        "",
        "none.data",
        "link.data",
        "folder",
        "pipe",
        "w\0.data",
        "n" * 5000,
        "loop",
    ],
)
def test_data_that_cannot_follow_is_refused(tmp_path: Path, location: str) -> None:
    source = small_model(tmp_path / "a", location)
    (tmp_path / "a" / "link.data").symlink_to("/etc/passwd")
    (tmp_path / "a" / "folder").mkdir()
    (tmp_path / "a" / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "a" / "pipe")
    (tmp_path / "b").mkdir()
    with pytest.raises(FileFormatError):
        convert_onnx_file(source, tmp_path / "b" / "new.onnx", 14)
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize("folder", ["a", "b"])
@pytest.mark.parametrize("location", ["w\0.data", "\0", "deep/\0"])
def test_a_location_that_is_no_path_is_refused_wherever_the_model_goes(
    tmp_path: Path, location: str, folder: str
) -> None:
    source, target = small_model(tmp_path / "a", location), tmp_path / folder / "new.onnx"
    target.parent.mkdir(exist_ok=True)
    with pytest.raises(FileFormatError, match=r"^old\.onnx: initializer 'b': the external data's location is no path"):
        convert_onnx_file(source, target, 14)
    with pytest.raises(FileFormatError, match="the external data's location is no path"):
        repair_file(source, target, target="onnxruntime")
    assert not target.exists()


def test_another_file_in_the_datas_place_is_kept(tmp_path: Path) -> None:
    source = small_model(tmp_path / "a")
    (tmp_path / "b").mkdir()
    for content in (b"01234567", b"short"):
        (tmp_path / "b" / "weights.data").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"weights\.data.*another file is there; choose another folder"):
            convert_onnx_file(source, tmp_path / "b" / "new.onnx", 14)
        assert (tmp_path / "b" / "weights.data").read_bytes() == content
        assert not (tmp_path / "b" / "new.onnx").exists()


def test_a_model_is_not_written_over_its_own_data(tmp_path: Path) -> None:
    source = small_model(tmp_path)
    with pytest.raises(FileFormatError, match="over its own external data"):
        convert_onnx_file(source, tmp_path / "weights.data", 14)
    assert (tmp_path / "weights.data").read_bytes() == np.float32([1, 2]).tobytes()


def test_where_the_model_cannot_be_written_its_data_is_not_left(tmp_path: Path) -> None:
    source = small_model(tmp_path / "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(FileFormatError):
        convert_onnx_file(source, tmp_path / "b" / ("n" * 300 + ".onnx"), 14)
    assert list((tmp_path / "b").iterdir()) == []


def test_a_refusal_leaves_the_target_as_it_was(tmp_path: Path) -> None:
    source, target = tmp_path / "old.onnx", tmp_path / "new.onnx"
    source.write_bytes(sub_model(6, axis=1, broadcast=1).SerializeToString() + b"\x0a")
    target.write_bytes(b"kept")
    with pytest.raises(EltwiseError, match=r"old\.onnx"):
        convert_onnx_file(source, target, 14)
    assert target.read_bytes() == b"kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.onnx", "old.onnx"]


def test_a_model_that_is_right_already_is_written_byte_for_byte(tmp_path: Path) -> None:
    source, target = tmp_path / "old.onnx", tmp_path / "new.onnx"
    # A field that nobody knows, and one that is given twice: whoever wrote this file again would write it otherwise.
    data = sub_model(14).SerializeToString() + b"\xfa\x3e\x01?" + b"\x08\x08"
    source.write_bytes(data)
    assert convert_onnx_file(source, target, 14).unchanged
    assert target.read_bytes() == data
