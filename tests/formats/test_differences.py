"""Two files that differ in one thing are never equal without a word, in every format, alone and in a folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import save_file

import eltwise
from eltwise.testing import assert_same

W = np.random.default_rng(9).standard_normal((4, 8)).astype(np.float32)
Content = dict[str, np.ndarray]
Cli = Callable[..., tuple[int, str, str]]


def written_npz(path: Path, content: Content, _text: str) -> None:
    np.savez(path, **content)  # type: ignore[arg-type]


def written_safetensors(path: Path, content: Content, text: str) -> None:
    save_file(content, path, metadata={"text": text} if text else None)


def written_zarr(path: Path, content: Content, text: str, version: Any = 3) -> None:
    zarr: Any = pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(path, mode="w", zarr_format=version)
        for name, array in content.items():
            group.create_array(name, data=array, attributes={"text": text} if text else {})
        group.attrs.update({"of": text})


def written_zarr_2(path: Path, content: Content, text: str) -> None:
    written_zarr(path, content, text, 2)


def written_onnx(path: Path, content: Content, text: str) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in content.items()]
    nodes = [helper.make_node("Sum", ["x", *content], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], constants), ir_version=8)
    helper.set_model_props(model, {"text": text} if text else {})
    onnx.save(model, path)


def written_openvino(path: Path, content: Content, text: str) -> None:
    openvino: Any = pytest.importorskip("openvino")
    ops: Any = pytest.importorskip("openvino.opset13")
    x = total = ops.parameter([4, 8], np.float32, name="x")
    for name, array in content.items():
        total = ops.add(total, ops.convert(ops.constant(array, name=name), "f32"))
    model = openvino.Model([total], [x], "g")
    if text:
        model.set_rt_info(text, "text")
    openvino.save_model(model, path, compress_to_fp16=False)


def written_gguf(path: Path, content: Content, text: str) -> None:
    gguf: Any = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    if text:
        writer.add_token_list([text.encode(), b"\xff"])
    for name, array in content.items():
        writer.add_tensor(name, array)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()


def written_hdf5(path: Path, content: Content, text: str) -> None:
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.attrs["empty"] = h5py.Empty("f")
        for name, array in content.items():
            stored = file.create_dataset(f"g/{name}", data=array)
            stored.attrs["references"] = np.array([file.ref, stored.ref], h5py.ref_dtype)
        if text:
            stored.attrs["scale_factor"] = np.arange(5000.0) + ord(text)


def written_netcdf(path: Path, content: Content, text: str) -> None:
    pytest.importorskip("scipy")
    xarray: Any = pytest.importorskip("xarray")
    attributes = {"units": text} if text else {}
    variables = {name: ((f"{name}0", f"{name}1"), array, attributes) for name, array in content.items()}
    xarray.Dataset(variables).to_netcdf(path, engine="scipy")


def written_torch(path: Path, content: Content, text: str) -> None:
    torch: Any = pytest.importorskip("torch")
    torch.save({"text": text, **{name: torch.from_numpy(array) for name, array in content.items()}}, path)


WRITERS: dict[str, Callable[[Path, Content, str], None]] = {
    "m.npz": written_npz,
    "m.safetensors": written_safetensors,
    "m.zarr": written_zarr,
    "m-2.zarr": written_zarr_2,
    "m.onnx": written_onnx,
    "m.xml": written_openvino,
    "m.gguf": written_gguf,
    "m.h5": written_hdf5,
    "m.nc": written_netcdf,
    "m.pt": written_torch,
}
IN_FOLDERS = ("m.npz", "m.safetensors", "m.zarr", "m.onnx")
ELSEWHERE = W + np.where(np.arange(W.size).reshape(W.shape) == 13, np.spacing(W), 0).astype(np.float32)
OTHERS: dict[str, tuple[Content, str]] = {
    "an element": ({"w": ELSEWHERE, "v": W[::-1].copy()}, "a"),
    "a shape": ({"w": W, "v": W[:1].copy()}, "a"),
    "a type": ({"w": W, "v": W[::-1].astype(np.float64)}, "a"),
    "a tensor more": ({"w": W, "v": W[::-1].copy(), "u": W + 1}, "a"),
    "a tensor less": ({"w": W}, "a"),
    "a text": ({"w": W, "v": W[::-1].copy()}, "b"),
    "no text": ({"w": W, "v": W[::-1].copy()}, ""),
}


DECIDES = ("m.gguf", "m.h5", "m.nc", "m.pt")
"""Of these the text is content: a field, an attribute by which elements are decoded, a value with a key."""


@pytest.mark.parametrize(("name", "around"), [*((name, "") for name in WRITERS), *((each, "f") for each in IN_FOLDERS)])
def test_files_that_differ_in_one_thing_are_not_equal_without_a_word(
    name: str, around: str, tmp_path: Path, cli: Cli
) -> None:
    """A text that describes the file is a note, and any other difference decides: in all that tells the result."""
    write = WRITERS[name]

    def made(folder: str, content: Content, text: str) -> Path:
        path = tmp_path / folder / around / name
        path.parent.mkdir(parents=True)
        write(path, content, text)
        return tmp_path / folder if around else path

    first = {"w": W, "v": W[::-1].copy()}
    a = made("a", first, "a")
    same = eltwise.compare(a, made("same", first, "a"))
    assert (same.is_good, same.notes) == (True, ())
    for what, (content, text) in OTHERS.items():
        if "text" in what and name == "m.npz":  # It holds nothing beside arrays.
            continue
        b = made(what, content, text)
        is_note = "text" in what and name not in DECIDES
        for one, other in ((a, b), (b, a)):
            report = eltwise.compare(one, other)
            assert verdicts(one, other, cli) == {is_note}, (what, str(report))
            assert bool(report.notes) == is_note, (what, str(report))
            assert not is_note or "metadata that differs" in report.notes[0]


def verdicts(a: Path, b: Path, cli: Cli) -> set[bool]:
    """Whether two files are equal, as the report, its JSON, its headline, assertions and the exit code say it."""
    report = eltwise.compare(a, b)
    exit_code, output, _errors = cli("compare", str(a), str(b), "--json", "-")
    content = json.loads(output)
    differing = [each for each in (*content["tensors"], *content["others"]) if each["status"] == "differs"]
    is_equal = [report.is_good, exit_code == 0, not (differing or content["missing"] or content["extra"])]
    is_equal.append(not any(word in report.headline[0] for word in ("different", "missing", "extra")))
    for check in (report.assert_within, lambda: assert_same(b, a)):
        try:
            check()
            is_equal.append(True)
        except AssertionError:
            is_equal.append(False)
    return set(is_equal)


TEXTS: Any = np.array([["a", ""], ["bc", "d"]])
OTHER_TEXTS = {
    "another": (np.array([["a", ""], ["bc", "e"]]), "1 of 4 differs; first [1, 1]: 'e' instead of 'd'"),
    "moved": (np.array([["", "a"], ["bc", "d"]]), "2 of 4 differ; first [0, 0]: '' instead of 'a'"),
    "joined": (np.array([["ab", ""], ["c", "d"]]), "2 of 4 differ; first [0, 0]: 'ab' instead of 'a'"),
    "shape": (TEXTS.T[:1].copy(), "the shape is [1, 2] instead of [2, 2]"),
}


@pytest.mark.parametrize("name", ["m.npz", "m.zarr", "m-2.zarr", "m.h5", "m.nc"])
def test_arrays_of_texts_are_compared(name: str, tmp_path: Path, cli: Cli) -> None:
    """How they are encoded is no difference: equal ones have one length in two files, and another type."""

    def made(folder: str, texts: Any, content: Content) -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir()
        texts = texts if name in ("m.npz", "m.zarr", "m-2.zarr") else np.char.encode(texts)
        WRITERS[name](path, content | {"names": texts}, "a")
        return path

    a = made("a", TEXTS, {"w": W})
    for same in (made("same", TEXTS, {"w": W}), made("wider", TEXTS.astype("U7"), {"w": W})):
        report = eltwise.compare(a, same)
        assert verdicts(a, same, cli) == {True}, str(report)
        assert len(report.tensors) == 1
    for folder, (texts, difference) in OTHER_TEXTS.items():
        b = made(folder, texts, {"w": W})
        assert verdicts(a, b, cli) == verdicts(b, a, cli) == {False}
        phrase = "" if name == "m.nc" else difference  # It has an axis for the signs.
        assert f"names: different (values): {phrase}" in str(eltwise.compare(a, b)), folder
    only, other = made("only", TEXTS, {}), made("other", OTHER_TEXTS["another"][0], {})
    assert verdicts(only, only, cli) == {True}
    assert verdicts(only, other, cli) == {False}
    report = eltwise.compare(a, {"w": W})
    assert "names" in report.missing[-1]
    assert not report.is_good


RECORDS = np.zeros(4, [("a", "<f4"), ("b", [("c", "S3"), ("d", "<i2", (2,))])])
OTHER_VALUES: dict[str, Any] = {
    "complex64": np.complex64([1, 2j, -0.0, np.nan]),
    "complex128": np.array([1, 2j, -0.0, np.nan]),
    "dates": np.array(["2024-01-01", "1999-12-31", "1970-01-01", "NaT"], "M8[ns]"),
    "records": RECORDS,
}


@pytest.mark.parametrize("values", OTHER_VALUES)
@pytest.mark.parametrize("name", ["m.npz", "m.h5"])
def test_values_that_no_element_type_is_for_are_compared(name: str, values: str, tmp_path: Path, cli: Cli) -> None:
    """Every bit of each counts, and how they lie in the file does not: they made the file unreadable."""
    if (name, values) == ("m.h5", "dates"):
        pytest.skip("HDF5 has no such type")
    array = OTHER_VALUES[values]

    def made(folder: str, content: Any) -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir()
        WRITERS[name](path, {"w": W, "x": content}, "a")
        return path

    a, swapped = made("a", array), made("swapped", array.astype(array.dtype.newbyteorder(">")))
    assert verdicts(a, swapped, cli) == verdicts(swapped, a, cli) == {True}
    for index in (0, array.nbytes // 2, array.nbytes - 1):
        changed = array.copy()
        changed.view(np.uint8).reshape(-1)[index] ^= 1
        b = made(f"byte {index}", changed)
        assert verdicts(a, b, cli) == verdicts(b, a, cli) == {False}
        assert "(values): 1 of 4 differs; first [" in str(eltwise.compare(a, b)), index
    assert verdicts(a, made("float32", np.float32([1, 2, 3, 4])), cli) == {False}


def test_texts_in_files_of_one_array_are_compared(tmp_path: Path, cli: Cli) -> None:
    paths = [tmp_path / f"{name}.npy" for name in "abc"]
    for path, texts in zip(paths, (TEXTS, TEXTS.astype("U9"), OTHER_TEXTS["moved"][0]), strict=True):
        np.save(path, texts)
    assert verdicts(paths[0], paths[1], cli) == {True}
    assert verdicts(paths[0], paths[2], cli) == {False}


def test_of_two_formats_only_metadata_of_one_name_is_compared(tmp_path: Path) -> None:
    """What one of them cannot hold is no difference."""
    save_file({"w": W}, tmp_path / "a.safetensors", metadata={"format": "pt"})
    np.savez(tmp_path / "b.npz", w=W)
    assert eltwise.compare(tmp_path / "a.safetensors", tmp_path / "b.npz").notes == ()
