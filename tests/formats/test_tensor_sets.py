"""Sets of named tensors: every format gives the same elements; bad files are refused in one sentence."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

import eltwise
from eltwise.core.blocks import boxes
from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats.safetensors_files import open_checkpoint
from eltwise.formats.tensor_sets import open_tensors
from eltwise.testing import assert_same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def header(entries: dict[str, Any]) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


def _npy(folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def _fortran(folder: Path) -> Path:
    np.save(folder / "x.npy", np.asfortranarray(X).astype(">f4"))
    return folder / "x.npy"


def _npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", x=X)
    return folder / "a.npz"


def _compressed(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", x=np.asfortranarray(X))
    return folder / "a.npz"


def _pb(folder: Path) -> Path:
    (folder / "x.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    return folder / "x.pb"


def _safetensors(folder: Path) -> Path:
    save_file({"x": X}, folder / "m.safetensors")
    return folder / "m.safetensors"


def _sharded(folder: Path) -> Path:
    save_file({"x": X}, folder / "m-1.safetensors")
    save_file({"y": X}, folder / "m-2.safetensors")
    content = {"weight_map": {"x": "m-1.safetensors", "y": "m-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
    return folder


def _zarr(folder: Path) -> Path:
    zarr.open_group(folder / "z", mode="w").create_array("x", data=X, chunks=(1, 2, 3))
    return folder / "z"


def _onnx(folder: Path, external: bool = False) -> Path:
    graph = helper.make_graph(
        [
            helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(X)),
            helper.make_node("Erf", ["c"], ["y"]),
        ],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])],
        [numpy_helper.from_array(X, "x")],
    )
    path = folder / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path, save_as_external_data=external, location="m.data", size_threshold=0)
    return path


def _openvino(folder: Path) -> Path:
    graph = helper.make_graph(
        [helper.make_node("Sub", ["i", "x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("i", TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])],
        [numpy_helper.from_array(X, "x")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    converted, _report = eltwise.convert(model, to="openvino")
    eltwise.save(converted, folder / "m.xml")
    return folder / "m.xml"


MAKERS = [_npy, _fortran, _npz, _compressed, _pb, _safetensors, _sharded, _zarr, _onnx, _openvino]
MAKERS.append(lambda folder: _onnx(folder, external=True))


@pytest.mark.parametrize("make", MAKERS)
def test_every_format_gives_the_elements(make: object, tmp_path: Path) -> None:
    tensor = open_tensors(make(tmp_path))["x"]
    assert (tensor.element_type.name, tensor.shape) == ("float32", X.shape)
    np.testing.assert_array_equal(tensor.array, X)
    np.testing.assert_array_equal(tensor.read(5, 19), X.reshape(-1)[5:19])
    np.testing.assert_array_equal(tensor.box((slice(1, 2), slice(0, 2), slice(1, 4))), X[1:2, :2, 1:])
    np.testing.assert_array_equal(tensor.at(np.array([0, 23, 7])), [0, 23, 7])
    np.testing.assert_array_equal(tensor.transposed((2, 0, 1)).array, X.transpose(2, 0, 1))
    np.testing.assert_array_equal(tensor.transposed((2, 0, 1)).at(np.array([4, 9])), X.transpose(2, 0, 1).flat[[4, 9]])


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_is_equal_to_its_tensors_in_memory(make: object, tmp_path: Path) -> None:
    path = make(tmp_path)
    tensors = {name: tensor.array for name, tensor in open_tensors(path).items()}
    for sides in ((tensors, path), (path, tensors)):
        assert eltwise.compare(*sides).is_good
    assert_same(path, tensors if len(tensors) > 1 or path.suffix not in (".npy", ".pb") else X)


def test_a_folder_is_the_set_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    _npz(tmp_path)
    _pb(tmp_path / "sub")
    _zarr(tmp_path)
    (tmp_path / "notes.txt").write_text("not a tensor")
    assert sorted(open_tensors(tmp_path)) == ["a/x", "sub/x", "z/x"]


def test_files_of_one_stem_are_told_apart_by_their_endings(tmp_path: Path) -> None:
    _npy(tmp_path)
    _pb(tmp_path)
    _npz(tmp_path)
    assert sorted(open_tensors(tmp_path)) == ["a/x", "x.npy", "x.pb"]


def test_shards_are_read_whole(tmp_path: Path) -> None:
    """Tensors that the index does not name are compared and stored; one that two shards hold is refused."""
    for name, more in (("a", X), ("b", X + 1)):
        (tmp_path / name).mkdir()
        _sharded(tmp_path / name)
        save_file({"x": X, "unnamed": more}, tmp_path / name / "m-1.safetensors")
    a, b = tmp_path / "a", tmp_path / "b"
    save_file({"x": X}, b / "adapter.safetensors")
    report = eltwise.compare(a, b)
    assert [each.name for each in report.tensors if each.status == "differs"] == ["unnamed"]
    assert report.notes == ("b: left out, as no shard of the index: adapter.safetensors",)
    eltwise.delta(b, a, tmp_path / "b.delta")
    eltwise.restore(a, tmp_path / "b.delta", tmp_path / "restored.safetensors")
    assert eltwise.compare(b, tmp_path / "restored.safetensors").is_good
    save_file({"y": X, "x": X}, b / "m-2.safetensors")
    assert "'m-2.safetensors' holds it, too" in str(open_tensors(b).unreadable["x"])
    with pytest.raises(FileFormatError, match="holds it, too"):
        eltwise.delta(b, a, tmp_path / "b.delta")


def test_every_member_of_an_archive_is_compared(tmp_path: Path) -> None:
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", x=X)
        with zipfile.ZipFile(tmp_path / f"{name}.npz", "a", zipfile.ZIP_DEFLATED) as archive:
            archive.mkdir("folder")
            archive.writestr("folder/vocabulary.txt", f"the {name}")
            if name == "b":
                with pytest.warns(UserWarning, match="Duplicate"):
                    archive.writestr("x.npy", archive.read("x.npy"))
    report = eltwise.compare(tmp_path / "a.npz", tmp_path / "b.npz")
    assert report["folder/vocabulary.txt"].differing == 1
    assert "two tensors are called 'x'" in report.unreadable[0]


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_is_what_numpy_takes_it_for(compression: int, tmp_path: Path) -> None:
    """NumPy goes by how a member begins and not by its name."""
    np.save(tmp_path / "x.npy", X)
    contents = {"x": (tmp_path / "x.npy").read_bytes(), "text": b"a text", "short": b"\x93N", "empty": b""}
    with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    found = open_tensors(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as loaded:
        expected = {
            name: np.frombuffer(one, np.uint8) if isinstance(one := loaded[name], bytes) else one for name in contents
        }
    assert {name: np.array(tensor.array).tolist() for name, tensor in found.items()} == {
        name: array.tolist() for name, array in expected.items()
    }


def test_the_other_shards_are_read_where_one_is_bad(tmp_path: Path) -> None:
    folder = _sharded(tmp_path)
    bad = folder / "m-2.safetensors"
    bad.write_bytes(bad.read_bytes()[:-1])
    found = open_tensors(folder)
    assert (list(found), list(found.unreadable)) == (["x"], ["y"])
    assert "m-2.safetensors: not a readable safetensors file" in str(found.unreadable["y"])
    with pytest.raises(EltwiseError, match="not a readable"):
        open_checkpoint(folder)
    assert len(eltwise.compare(folder, folder).tensors) == 1


def test_small_types_are_read(tmp_path: Path) -> None:
    data = {"b": [2], "f": [2], "e": [3]}
    kinds = {"b": ("BF16", 4), "f": ("F8_E4M3", 2), "e": ("F4", 2)}
    entries, begin = {}, 0
    for name, (kind, size) in kinds.items():
        shape = data[name] if kind != "F4" else [4]
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, begin + size]}
        begin += size
    (tmp_path / "m.safetensors").write_bytes(header(entries) + bytes([0x80, 0x3F, 0, 0xC0, 0x38, 0x40, 0x21, 0xF4]))
    found = open_tensors(tmp_path / "m.safetensors")
    assert found["b"].element_type is BFLOAT16
    assert found["b"].array.astype(float).tolist() == [1.0, -2.0]
    assert found["f"].element_type is FLOAT8E4M3FN
    assert found["f"].array.astype(float).tolist() == [1.0, 2.0]
    assert found["e"].array.astype(np.float32).tolist() == [0.5, 1.0, 2.0, -6.0]
    assert found["e"].read(1, 3).astype(np.float32).tolist() == [1.0, 2.0]
    assert found["e"].at(np.array([3, 0])).astype(np.float32).tolist() == [-6.0, 0.5]


def test_what_no_type_is_for_is_kept_apart(tmp_path: Path) -> None:
    entries = {"c": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}
    (tmp_path / "m.safetensors").write_bytes(header(entries) + bytes(3))
    found = open_tensors(tmp_path / "m.safetensors")
    assert not found
    assert "float6_e2m3fn is unsupported" in str(found.unreadable["c"])


@given(st.lists(st.integers(0, 4), max_size=4).map(tuple), st.data())
def test_boxes_make_up_a_range(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    start = data.draw(st.integers(0, array.size))
    stop = data.draw(st.integers(start, array.size))
    parts = [array[box].reshape(-1) for box in boxes(shape, start, stop)]
    assert np.concatenate([*parts, np.zeros(0, int)]).tolist() == list(range(start, stop))


def bad(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def index(folder: Path, content: object) -> Path:
    return bad(folder, "model.safetensors.index.json", json.dumps(content).encode())


ONE = {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


X_AS_TEXT = b'"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}'

ACCEPTED = [
    (b"{" + X_AS_TEXT + b"," + X_AS_TEXT + b"}", "the name 'x' occurs twice"),
    (b'{"__metadata__":{"a":"b","a":"c"},' + X_AS_TEXT + b"}", "the name 'a' occurs twice"),
    (b'{"x":["U8",[8],[0,8]]}', "the header is not that of a safetensors file"),
]
"""Headers that the safetensors library reads and guesses what they mean, and what is said of them."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: f / "none.npz", "there is no such file"),
        (lambda f: bad(f, "m.txt", b""), "unknown file ending, got .txt"),
        (lambda f: f / "none.zarr", "there is no such file"),
        (lambda f: bad(f, "m.zarr", b""), "a zarr store is a folder, got a file"),
        (lambda _: "memory://none.zarr", "memory://none.zarr: the zarr store cannot be read"),
        (lambda _: "s3://a/m.npy", "s3://a/m.npy: files behind a URL are not read; allowed: zarr stores"),
        (lambda f: f"file://{f}/none.npy", "/none.npy: there is no such file"),
        *((lambda f, e=e: bad(f, f"m{e}", b"\x80\x04"), "this is a pickle") for e in (".pkl", ".pickle")),
        (lambda f: np.save(f / "x.npy", np.array([{}], object)) or f / "x.npy", "pickles are never loaded: save the"),
        (lambda f: bad(f, "m.safetensors", b""), "not a readable safetensors file"),
        (lambda f: bad(f, "m.safetensors", header(ONE) + bytes(7)), "not a readable safetensors file"),
        (lambda f: bad(f, "m.safetensors", header(ONE) + bytes(9)), "not a readable safetensors file"),
        (lambda f: bad(f, "m.safetensors", b"\xff" * 64), "not a readable safetensors file"),
        (
            lambda f: bad(f, "m.safetensors", header({"x": {**ONE["x"], "shape": [1 << 62, 9]}}) + bytes(8)),
            "not a readable",
        ),
        *(
            (lambda f, text=text: bad(f, "m.safetensors", struct.pack("<Q", len(text)) + text + bytes(8)), words)
            for text, words in ACCEPTED
        ),
        (lambda f: index(f, []), "the index has no weight_map"),
        (
            lambda f: index(f, {"weight_map": {"x": "../m.safetensors"}}),
            "the index names what is not a file in its folder",
        ),
        (lambda f: index(f, {"weight_map": {"x": "/etc/passwd"}}), "the index names what is not a file in its folder"),
        (lambda f: index(f, {"weight_map": {"x": "none.safetensors"}}), "there is no such file"),
        (lambda f: index(_safetensors(f).parent, {"weight_map": {"z": "m.safetensors"}}), "and it does not"),
        (lambda f: bad(f, "m.onnx", b"\x08"), "m.onnx"),
        (lambda f: bad(f, "m.xml", b"<net"), "m.xml"),
        (lambda f: f, "the folder holds no tensor files"),
        (lambda f: bad(f, "zarr.json", b"{").parent, "the zarr store cannot be read"),
    ],
)
def test_a_bad_file_is_one_sentence(make: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(EltwiseError) as caught:
        open_tensors(make(tmp_path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_shrinks_is_an_error_and_no_crash(tmp_path: Path) -> None:
    tensor = open_tensors(_npy(tmp_path))["x"]
    (tmp_path / "x.npy").write_bytes(b"")
    for read in (tensor.read, lambda: tensor.at(np.array([1])), lambda: tensor.box((slice(0, 1),) * 3)):
        with pytest.raises(FileFormatError, match="the file ended while it was read"):
            read()


def test_damaged_compressed_data_is_an_error(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).random(5000))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(FileFormatError, match="the archive cannot be unpacked"):
        open_tensors(tmp_path / "a.npz")["x"].read()


def test_complex_numbers_of_safetensors_are_compared_as_those_of_other_files(tmp_path: Path) -> None:
    values = np.complex64([1 + 2j, -0.0 + 3j, 4 - 1j]).reshape(3, 1)
    entry = {"dtype": "C64", "shape": [3, 1], "data_offsets": [0, 24]}
    header = json.dumps({"c": entry, "x": entry | {"dtype": "F64", "data_offsets": [24, 48]}}).encode()
    for name, changed in (("a", values), ("b", values * np.complex64([[1], [1], [-1]]))):
        content = struct.pack("<Q", len(header)) + header + changed.astype("<c8").tobytes() + bytes(24)
        (tmp_path / f"{name}.safetensors").write_bytes(content)
        np.savez(tmp_path / f"{name}.npz", c=changed, x=np.zeros((3, 1)))
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    for one, other in ((a, tmp_path / "a.npz"), (tmp_path / "a.npz", a), (b, tmp_path / "b.npz")):
        assert eltwise.compare(one, other).is_good
    report = eltwise.compare(a, b)
    assert [each.name for each in report.others if each.status == "differs"] == ["c"]


def test_an_archive_is_not_unpacked_where_it_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(1 << 20))
    (tmp_path / "few").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "few"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(total=1 << 30, used=0, free=1 << 20))
    with pytest.raises(FileFormatError, match=r"no room to unpack it, got 8388736 bytes; allowed: up to 1048576 bytes"):
        open_tensors(tmp_path / "a.npz")["x"].read()
    assert not [*(tmp_path / "few").iterdir()]


def test_zarr_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(EltwiseError, match=r"pip install 'eltwise\[scale\]'"):
        open_tensors(bad(tmp_path, ".zarray", b"{}").parent)


def test_constants_are_the_same_from_a_file_and_a_message(tmp_path: Path) -> None:
    """Initializers and Constant nodes of each attribute, external ones too; what is no array of numbers is left out."""
    values = {
        "value": X[0],
        "value_float": np.float32(1.5),
        "value_floats": np.array([1.5, -0.0], np.float32),
        "value_int": np.int64(-7),
        "value_ints": np.array([], np.int64),
    }
    attributes = {"value": numpy_helper.from_array(X[0]), "value_float": 1.5, "value_floats": [1.5, -0.0]}
    attributes |= {"value_int": -7, "value_string": "s"}
    nodes = [helper.make_node("Constant", [], [name], **{name: value}) for name, value in attributes.items()]  # type: ignore[arg-type]
    nodes.append(helper.make_node("Constant", [], ["value_ints"]))
    nodes[-1].attribute.append(helper.make_attribute("value_ints", [], attr_type=onnx.AttributeProto.INTS))
    output = helper.make_tensor_value_info("value", TensorProto.FLOAT, X[0].shape)
    graph = helper.make_graph(nodes, "g", [], [output], [numpy_helper.from_array(X, "x")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    inside, outside = tmp_path / "inside.onnx", tmp_path / "outside.onnx"
    onnx.save(model, inside)
    onnx.save(onnx.load(inside), outside, save_as_external_data=True, size_threshold=0, location="w")
    for one in (inside, outside):
        constants = open_tensors(one)
        assert constants.keys() == {"x", "value_string", *values}
        for name, expected in {"x": X, **values}.items():
            np.testing.assert_array_equal(constants[name].array, expected)
        report = eltwise.compare(one, model)
        assert (report.is_good, len(report.tensors)) == (True, 7)
    other = onnx.ModelProto.FromString(model.SerializeToString())
    next(node for node in other.graph.node if node.output[0] == "value_string").attribute[0].s = b"t"
    assert [one.name for one in eltwise.compare(model, other) if one.status == "differs"] == ["value_string"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_of_which_zarr_has_a_stale_description_are_not_read(zarr_format: Any, tmp_path: Path) -> None:
    """Consolidated metadata that was not written again after arrays grew, also in a group below: zarr reads it."""
    store = tmp_path / "s.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.create_group(store, zarr_format=zarr_format)
        root.create_array("x", data=X[0])
        root.create_group("g").create_array("same", data=X[1], attributes={"comment": "first"})
        root.create_array("texts", data=np.array(["a", "b"]), chunks=(2,))
        root.create_array("packed", data=X[1], attributes={"scale_factor": 0.5})
        for path in ("", "g"):
            zarr.consolidate_metadata(store, path=path)
        before = open_tensors(store)
        root = zarr.open_group(store, mode="a", use_consolidated=False)
        root["x"].append(X[1])
        root["texts"].resize(3)
        root["packed"].attrs["scale_factor"] = 2.0
        root["g/same"].attrs["comment"] = "second"
        zarr.open_group(store, path="g", mode="a", use_consolidated=False).create_array("new", data=X[0])
    opened = open_tensors(store)
    assert (sorted([*before, *before.others]), before.unreadable) == (["g/same", "packed", "texts", "x"], {})
    assert (list(opened), opened.others, sorted(opened.unreadable)) == (
        ["g/same"],
        {},
        ["g/new", "packed", "texts", "x"],
    )
    report = eltwise.compare(store, store)
    assert not report.is_good
    assert "the consolidated metadata is not that of the array" in report.unreadable[0]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_below_a_folder_that_nothing_describes_are_compared(zarr_format: Any, tmp_path: Path) -> None:
    """As other libraries write them, and those of the other format; links to what is around are not followed."""
    for store, number in (("a.zarr", 0), ("b.zarr", 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            group = zarr.create_group(tmp_path / store, zarr_format=zarr_format).create_group("g")
            for name, of_format in (("x", zarr_format), ("f/f/y", zarr_format), ("f/z", 5 - zarr_format)):
                values = X[0] if name == "x" else X[0] + number
                zarr.create_array(tmp_path / store / "g" / name, data=values, zarr_format=of_format)
        assert group["x"].shape == X[0].shape
        for mark in [*tmp_path.glob(f"{store}/g/f/*z*"), *tmp_path.glob(f"{store}/g/f/f/*z*")]:
            if mark.is_file():
                mark.unlink()
        for folder in ("g", "g/f", "g/f/f"):
            (tmp_path / store / folder / "up").symlink_to(tmp_path / store)
    assert sorted(open_tensors(tmp_path / "a.zarr")) == ["g/f/f/y", "g/f/z", "g/x"]
    report = eltwise.compare(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert {each.name: each.status for each in report} == {"g/f/f/y": "differs", "g/f/z": "differs", "g/x": "equal"}
    assert not report.unreadable


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_type_that_zarr_has_not_costs_its_array_alone(zarr_format: Any, tmp_path: Path) -> None:
    """Also where a description of all arrays, which zarr then refuses as a whole, names it once more."""
    store = tmp_path / "s.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.create_group(store, zarr_format=zarr_format)
        for name in ("x", "y"):
            root.create_array(name, data=X.astype(np.int32), chunks=X.shape)
        zarr.consolidate_metadata(store)
    for path in [*store.glob("y/*z*"), *store.glob("*z*")]:  # The array's own description, and the one of all.
        own, _y, after = path.read_text().partition('"y": {' if zarr_format == 3 else '"y/.zarray": {')
        described, changed = (own, "") if path.parent.name == "y" else (after, own + _y)
        path.write_text(changed + described.replace('"int32"', '"none"').replace('"<i4"', '"none"'))
    opened = open_tensors(store)
    assert (list(opened), sorted(opened.unreadable)) == (["x"], ["consolidated metadata", "y"])
    report = eltwise.compare(store, {"x": X.astype(np.int32)})
    assert ([one.status for one in report], len(report.unreadable), report.is_good) == (["equal"], 2, False)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_member_whose_checksum_is_wrong_is_no_tensor(save: Any, tmp_path: Path) -> None:
    """Compressed or not, however it is read, and beside members that are whole."""
    w = np.random.default_rng(0).standard_normal(1 << 16)  # More than is read with the header.
    save(tmp_path / "a.npz", w=w, v=X[1])
    data = bytearray((tmp_path / "a.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        member = archive.getinfo("w.npy")
    data[member.header_offset + 30 + len(member.filename) + 20 + member.compress_size - 9] ^= 0x55
    (tmp_path / "b.npz").write_bytes(data)
    report = eltwise.compare(tmp_path / "b.npz", tmp_path / "b.npz")
    assert (report.is_good, [one.status for one in report]) == (False, ["equal"]), str(report)
    assert "tensor 'w'" in str(report)
    np.testing.assert_array_equal(open_tensors(tmp_path / "b.npz")["v"].array, X[1])
    with pytest.raises(EltwiseError, match=r"b.npz"):
        _ = open_tensors(tmp_path / "b.npz")["w"].array


def test_a_folder_leaves_nothing_out_without_a_word(tmp_path: Path) -> None:
    """Linked folders are read, also where one leads back; files that hold no tensors by their endings are named."""
    for name, value in (("a", 5.0), ("b", 9.0)):
        outside, folder = tmp_path / f"of_{name}", tmp_path / name
        outside.mkdir()
        folder.mkdir()
        np.save(outside / "x.npy", np.full(3, value))
        np.save(folder / "w.npy", X[0])
        (folder / "linked").symlink_to(outside)
        (folder / "round").symlink_to(folder)
        (folder / "model.bin").write_bytes(b"anything")
    report = eltwise.compare(tmp_path / "a", tmp_path / "b")
    assert {one.name: one.status for one in report} == {"w": "equal", "linked/x": "differs"}
    assert report.notes == tuple(f"{name}: left out by their endings: model.bin" for name in "ab")


@pytest.mark.parametrize("is_sharded", [False, True])
def test_every_file_of_a_folder_is_read_or_named(
    is_sharded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In folders that cannot be listed, and beside the shards of a checkpoint, with any ending."""
    for name in "ab":
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "closed").mkdir()
        if is_sharded:
            _sharded(tmp_path / name)
        np.save(tmp_path / name / "below" / "w.npy", X + (name == "b"))
        (tmp_path / name / "UPPER.NPY").write_bytes((tmp_path / name / "below" / "w.npy").read_bytes())
        (tmp_path / name / "model.gguf").write_bytes(b"anything")
    scandir = os.scandir

    def listed(path: Any) -> Any:
        if Path(path).name == "closed":  # For the superuser none is.
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", listed)
    report = eltwise.compare(tmp_path / "a", tmp_path / "b")
    if is_sharded:
        names = "UPPER.NPY, below/w.npy, closed, model.gguf"
        assert report.notes == tuple(f"{name}: left out, as no shard of the index: {names}" for name in "ab")
        assert report.is_good
    else:
        assert report.notes == tuple(f"{name}: left out by their endings: model.gguf" for name in "ab")
        assert {each.name for each in report if each.status == "differs"} == {"UPPER", "below/w"}
        assert [*report.unreadable] == [
            f"{tmp_path / side / 'closed'}: the folder cannot be read (Permission denied)" for side in "ab"
        ]


def test_an_index_of_two_maps_is_refused(tmp_path: Path) -> None:
    """JSON libraries take the last one, and what the first names was read by none."""
    index = tmp_path / "model.safetensors.index.json"
    _sharded(tmp_path)
    index.write_text(index.read_text()[:-1] + ', "weight_map": {}}')
    with pytest.raises(FileFormatError, match="'weight_map' occurs twice"):
        open_tensors(index)
