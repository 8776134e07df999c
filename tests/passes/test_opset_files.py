"""Model files in other opsets: weights that are never read, data that follows its model, nothing half written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import eltwise
from eltwise.conversion import convert_file
from eltwise.core.errors import FileFormatError
from eltwise.targets.repair import repair_file
from support.onnx_models import model, node, value

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
        file.write(np.array([1, 2, 3], np.float32).tobytes())
        file.seek(4 * GIB)
        file.write(np.array([5, 6], np.float32).tobytes())
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
from eltwise.conversion import convert_file

print(convert_file(Path(sys.argv[1]), Path(sys.argv[2]), opset=14))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(peak.split()[1], file=sys.stderr)
"""


HAS_STATUS = Path("/proc/self/status").exists()


def measured(source: Path, target: Path) -> str:
    """Convert a file in a process of its own, in less than 300 MiB; gives the report."""
    command = [sys.executable, "-c", MEASURED, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert int(done.stderr) * 1024 < 300 << 20
    return done.stdout


@pytest.mark.skipif(not HAS_STATUS, reason="the system does not tell the peak of its memory")
@pytest.mark.parametrize("folder", [".", "elsewhere"])
def test_four_gibibytes_of_weights_are_never_read(tmp_path: Path, folder: str) -> None:
    source = large_model(tmp_path)
    if source.with_name("weights.data").stat().st_blocks * 512 > GIB:
        pytest.skip("this file system has no holes")
    (tmp_path / folder).mkdir(exist_ok=True)
    target = tmp_path / folder / "new.onnx"
    measured(source, target)
    copied = target.with_name("weights.data" if folder == "." else "new.onnx.data").stat()
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


@pytest.mark.skipif(not HAS_STATUS, reason="the system does not tell the peak of its memory")
@pytest.mark.parametrize("size", [1 << 17, 1 << 18, 10**8, 10**12])
def test_sizes_without_weights_take_no_memory(tmp_path: Path, size: int) -> None:
    nodes = [node("Sub", ["x", "y"], ["d"]), node("Mul", ["d", "x"], ["e"]), node("Add", ["y", "e"], ["f"])]
    nodes += [node("Concat", ["f", "x"], ["c"], axis=0), node("Cast", ["c"], ["z"], to=TensorProto.INT64)]
    inputs = [value("x", (size,), TensorProto.INT64), value("y", (1,), TensorProto.INT64)]
    made = model(nodes, inputs, [value("z", None, TensorProto.INT64)], 13, 8)
    source = tmp_path / "long.onnx"
    source.write_bytes(made.SerializeToString())
    measured(source, tmp_path / "new.onnx")


def small_model(folder: Path, location: str = "weights.data") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "old.onnx"
    made = model([node("Sub", ["x", "b"], ["z"], axis=0, broadcast=1)], [value("x")], [value("z")], 6, 4)
    made.graph.initializer.append(outside("b", (2,), 0, location))
    path.write_bytes(made.SerializeToString())
    (folder / "weights.data").write_bytes(np.array([1, 2], np.float32).tobytes())
    return path


def result_of(path: Path) -> list[list[float]]:
    found: list[list[float]] = eltwise.load(path).run({"x": np.zeros((2, 3), np.float32)})["z"].tolist()
    return found


def test_the_data_follows_into_another_folder_and_is_a_file_of_its_own(tmp_path: Path) -> None:
    source = small_model(tmp_path / "a")
    (tmp_path / "b").mkdir()
    target = tmp_path / "b" / "new.onnx"
    told: list[tuple[int, int]] = []
    for _again in range(2):  # The second time the target and its data are there already.
        report = convert_file(source, target, opset=14, progress=lambda done, total, _name: told.append((done, total)))
        assert "external data became new.onnx.data: the target is in another folder" in str(report)
        assert result_of(target) == [[-1] * 3, [-2] * 3]
    assert told == [(8, 8)] * 2
    assert not (tmp_path / "a" / "weights.data").samefile(tmp_path / "b" / "new.onnx.data")
    assert names_in(tmp_path / "b") == ["new.onnx", "new.onnx.data"]


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


NAMES = (
    "weights.data",
    ".bashrc",
    ".cache/eltwise/kernel.object",
    ".git/hooks/pre-commit",
    "numpy.py",
    "sub/new.onnx.data",
    "new.onnx.data",
    "NEW.ONNX.DATA",
    "new.onnx",
    "kept",
    "link",
)


def hostile(folder: Path, names: tuple[str, ...] = NAMES, opset: int = 13) -> Path:
    """A model that has a tensor of 300 in each of these files, which may be executed; ``link`` is one."""
    nodes, tensors, result = [], [], "x"
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "link":
            path.symlink_to("kept")
        else:
            path.write_bytes(np.array([9, *range(number, number + 300)], np.float32).tobytes() + bytes(number))
            path.chmod(0o755)
        tensors.append(outside(f"w{number}", (300,), 4, name))
        nodes.append(node("Sub", [result, f"w{number}"], [f"r{number}"]))
        result = f"r{number}"
    made = model(nodes, [value("x", (300,))], [value(result, (300,))], opset, 8, tensors)
    path = folder / "hostile.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def run_of(path: Path) -> list[float]:
    (result,) = eltwise.load(path).run({"x": np.zeros(300, np.float32)}).values()
    found: list[float] = result.tolist()
    return found


def saved(source: Path, target: Path) -> None:
    eltwise.save(eltwise.load(source), target, external_data=True)


WRITERS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "converted": (lambda source, target: convert_file(source, target, opset=17), "new.onnx"),
    "as it is": (lambda source, target: convert_file(source, target, opset=13), "new.onnx"),
    "to IR": (convert_file, "new.xml"),
    "repaired": (lambda source, target: repair_file(source, target, target="onnxruntime"), "new.onnx"),
    "saved": (saved, "new.onnx"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_no_name_in_a_model_chooses_a_file_that_is_written(tmp_path: Path, writer: str) -> None:
    write, name = WRITERS[writer]
    source, home = hostile(tmp_path / "archive"), tmp_path / "home"
    for kept in (".bashrc", ".cache/eltwise/kernel.object", "kept", "New.Onnx.Data"):
        (home / kept).parent.mkdir(parents=True, exist_ok=True)
        (home / kept).write_bytes(b"the user's")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    expected = run_of(source)
    write(source, home / name)
    assert run_of(home / name) == expected
    made = {path for path in home.rglob("*") if path.is_file()} - before.keys()
    beside = {"new.xml": "new.bin"}.get(name, "new.onnx.data")
    assert {path.name for path in made} <= {name, beside}
    assert all(path.parent == home and path.stat().st_mode & 0o111 == 0 for path in made)
    assert all(path.read_bytes() == content for path, content in before.items())
    assert sorted(path.name for path in home.iterdir() if path.is_dir()) == [".cache"]


def test_in_the_same_folder_the_data_stays_where_it_is(tmp_path: Path) -> None:
    names = ("weights.data", "sub/w.data", ".hidden", "kept", "link", "new.onnx.data")
    source = hostile(tmp_path, names)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()}
    for write, name in WRITERS.values():
        if write is not saved:
            write(source, tmp_path / name)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert run_of(tmp_path / "new.onnx") == run_of(tmp_path / "new.xml") == run_of(source)
    assert set(names_in(tmp_path)) - {path.relative_to(tmp_path).as_posix() for path in before} == {
        "new.onnx",
        "new.xml",
        "new.bin",
        "sub",
    }


@pytest.mark.parametrize("writer", ["converted", "as it is", "repaired", "saved"])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_in_the_datas_place_is_replaced_and_not_followed(
    tmp_path: Path, writer: str, link: Callable[[Path, Path], None]
) -> None:
    write, name = WRITERS[writer]
    source = hostile(tmp_path / "archive", ("weights.data", "other.data"), 13)
    (tmp_path / "home").mkdir()
    victim, target = tmp_path / "victim", tmp_path / "home" / name
    victim.write_bytes(b"the user's")
    target.write_bytes(b"old")
    data = target.with_name("new.onnx.data")
    link(data, victim)
    write(source, target)
    assert victim.read_bytes() == b"the user's"
    assert run_of(target) == run_of(source)
    assert not data.is_symlink()


@pytest.mark.parametrize("writer", ["converted", "as it is", "to IR", "repaired"])
@pytest.mark.parametrize("link", ["", "symbolic", "hard"])
def test_the_data_that_is_read_is_not_written_over(tmp_path: Path, writer: str, link: str) -> None:
    write, name = WRITERS[writer]
    beside = {"new.xml": "new.bin"}.get(name, "new.onnx.data")
    source = hostile(tmp_path, (f"sub/{beside}",) if not link else ("weights.data",))
    target = tmp_path / "sub" / name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(b"old")
    if link == "symbolic":
        target.with_name(beside).symlink_to(tmp_path / "weights.data")
    if link == "hard":
        target.with_name(beside).hardlink_to(tmp_path / "weights.data")
    with pytest.raises(FileFormatError, match="the output would replace an input"):
        write(source, target)
    assert target.read_bytes() == b"old"
    assert len(run_of(source)) == 300


@pytest.mark.parametrize("writer", WRITERS)
def test_data_without_the_model_that_it_belongs_to_is_not_replaced(tmp_path: Path, writer: str) -> None:
    write, name = WRITERS[writer]
    source = hostile(tmp_path / "archive", ("weights.data",), 13)
    (tmp_path / "home").mkdir()
    data = tmp_path / "home" / {"new.xml": "new.bin"}.get(name, "new.onnx.data")
    data.write_bytes(b"the user's")
    with pytest.raises(FileFormatError, match=rf"would replace {data.name}, and there is no {name}"):
        write(source, tmp_path / "home" / name)
    assert data.read_bytes() == b"the user's"
    assert names_in(tmp_path / "home") == [data.name]


def test_what_is_noted_of_the_data_stays_right(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for names, noted in ((("weights.data",), True), (("weights.data", "other.data"), False)):
        source = hostile(tmp_path / f"a{len(names)}", names)
        made = onnx.load_model(source, load_external_data=False)
        for tensor in made.graph.initializer:
            tensor.external_data.add(key="checksum", value="0")
        source.write_bytes(made.SerializeToString())
        target = tmp_path / "b" / "new.onnx"
        convert_file(source, target, opset=13)
        copied = onnx.load_model(target, load_external_data=False)
        for tensor in copied.graph.initializer:
            assert ("checksum" in {entry.key for entry in tensor.external_data}) == noted
        onnx.checker.check_model(str(target))
        assert run_of(target) == run_of(source)


def test_data_with_the_targets_name_already_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    source = hostile(tmp_path / "a", ("new.onnx.data",))
    (tmp_path / "b").mkdir()
    assert convert_file(source, tmp_path / "b" / "new.onnx", opset=13).unchanged
    assert (tmp_path / "b" / "new.onnx").read_bytes() == source.read_bytes()
    assert run_of(tmp_path / "b" / "new.onnx") == run_of(source)


def test_in_place_the_data_stays(tmp_path: Path) -> None:
    source = small_model(tmp_path)
    convert_file(source, source, opset=14, in_place=True)
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
        convert_file(source, tmp_path / "b" / "new.onnx", opset=14)
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize("folder", ["a", "b"])
@pytest.mark.parametrize("location", ["w\0.data", "\0", "deep/\0"])
def test_a_location_that_is_no_path_is_refused_wherever_the_model_goes(
    tmp_path: Path, location: str, folder: str
) -> None:
    source, target = small_model(tmp_path / "a", location), tmp_path / folder / "new.onnx"
    target.parent.mkdir(exist_ok=True)
    with pytest.raises(FileFormatError, match=r"^old\.onnx: initializer 'b': the external data's location is no path"):
        convert_file(source, target, opset=14)
    with pytest.raises(FileFormatError, match="the external data's location is no path"):
        repair_file(source, target, target="onnxruntime")
    assert not target.exists()


def test_a_model_is_not_written_over_its_own_data(tmp_path: Path) -> None:
    source, data = small_model(tmp_path, "new.onnx"), tmp_path / "new.onnx"
    data.write_bytes(np.array([1, 2], np.float32).tobytes())
    with pytest.raises(FileFormatError, match="the output would replace an input"):
        convert_file(source, data, opset=14)
    assert data.read_bytes() == np.array([1, 2], np.float32).tobytes()


def test_where_the_model_cannot_be_written_its_data_is_not_left(tmp_path: Path) -> None:
    source = small_model(tmp_path / "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(FileFormatError):
        convert_file(source, tmp_path / "b" / ("n" * 300 + ".onnx"), opset=14)
    assert list((tmp_path / "b").iterdir()) == []
