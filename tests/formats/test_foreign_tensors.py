"""Files that other libraries read: the same elements as the library gives, and one sentence where it is missing."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import eltwise
from eltwise.core import foreign
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.formats import hdf5_files
from eltwise.formats.file_states import states_of
from eltwise.formats.foreign_tensors import Rows
from eltwise.formats.tensor_sets import open_tensors

Cli = Callable[..., tuple[int, str, str]]

W = np.random.default_rng(9).standard_normal((40, 64)).astype(np.float32)
NAMED = {"h.0.w": W, "h.0.b": W[0].astype(np.float16), "steps": np.int64([3])}


def written_torch(path: Path) -> dict[str, np.ndarray]:
    torch: Any = pytest.importorskip("torch")
    state = {name: torch.from_numpy(array.copy()) for name, array in NAMED.items()}
    torch.save({"model": state | {"bf": state["h.0.w"].to(torch.bfloat16), "one": state["h.0.w"][0, 0]}}, path)
    more = {"bf": W.astype(ml_dtypes.bfloat16), "one": W[0, 0].reshape(())}
    return {f"model.{name}": array for name, array in (NAMED | more).items()}


def written_gguf(path: Path) -> dict[str, np.ndarray]:
    gguf: Any = pytest.importorskip("gguf")
    kind = gguf.GGMLQuantizationType
    writer = gguf.GGUFWriter(path, "llama")
    for name, array in NAMED.items():
        writer.add_tensor(name, array)
    packed = {one: gguf.quantize(W, kind[one]) for one in ("Q8_0", "Q4_0", "BF16")}
    for name, data in packed.items():
        writer.add_tensor(name, data, raw_dtype=kind[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    more = {name: gguf.dequantize(packed[name], kind[name]) for name in ("Q8_0", "Q4_0")}
    return NAMED | more | {"BF16": W.astype(ml_dtypes.bfloat16)}


def written_hdf5(path: Path) -> dict[str, np.ndarray]:
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, array in NAMED.items():
            chunks = {"chunks": (8, 16), "compression": "gzip"} if array.ndim == 2 else {}
            file.create_dataset(name.replace(".", "/"), data=array, **chunks)
        file["mask"], file["big"], file["one"] = W > 0, W.astype(">f8"), np.float32(2)
    named = {name.replace(".", "/"): array for name, array in NAMED.items()}
    return named | {"mask": W > 0, "big": W.astype(np.float64), "one": np.array(2, np.float32)}


def written_netcdf(path: Path) -> dict[str, np.ndarray]:
    pytest.importorskip("scipy")
    xarray: Any = pytest.importorskip("xarray")
    xarray.Dataset({"w": (("y", "x"), W)}).to_netcdf(path, engine="scipy")
    return {"w": W}


Write = Callable[[Path], dict[str, np.ndarray]]
WRITERS: dict[str, Write] = {
    "m.pth": written_torch,
    "m.gguf": written_gguf,
    "m.h5": written_hdf5,
    "m4.nc": written_hdf5,
    "m3.nc": written_netcdf,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_tensor_has_the_elements_that_the_library_wrote(name: str, tmp_path: Path) -> None:
    arrays = WRITERS[name](tmp_path / name)
    opened = open_tensors(tmp_path / name)
    assert (opened.keys(), opened.unreadable) == (arrays.keys(), {})
    for key, array in arrays.items():
        tensor = opened[key]
        assert (tensor.shape, tensor.storage) == (array.shape, array.dtype), key
        assert tensor.array.tobytes() == array.tobytes(), key
        indices = np.random.default_rng(1).integers(0, array.size, 50)
        assert tensor.at(indices).tobytes() == array.reshape(-1)[indices].tobytes(), key
        half = array.size // 2
        assert tensor.read(half, array.size).tobytes() == array.reshape(-1)[half:].tobytes(), key
    assert eltwise.compare(tmp_path / name, arrays).is_good


TRUNCATED = """
import os, sys
from eltwise.core.errors import EltwiseError
from eltwise.formats.tensor_sets import open_tensors
opened = open_tensors(sys.argv[1])
os.truncate(sys.argv[1], 0)
for tensor in opened.values():
    try:
        tensor.array
    except EltwiseError as error:
        print(error)
"""


@pytest.mark.parametrize("name", ["m.gguf", "m3.nc"])
def test_a_file_that_is_truncated_while_it_is_read_does_not_end_the_process(name: str, tmp_path: Path) -> None:
    """Its library maps it, and a page that is gone is a signal."""
    arrays = WRITERS[name](tmp_path / name)
    done = subprocess.run(  # noqa: S603 - the text above
        [sys.executable, "-c", TRUNCATED, tmp_path / name], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.count("the file ended while it was read")) == (0, len(arrays)), done.stderr


def test_records_of_netcdf_are_read_where_they_lie(tmp_path: Path) -> None:
    """Each record holds an index of every variable along the dimension without an end."""
    scipy_io: Any = pytest.importorskip("scipy.io")
    arrays = {"a": W.astype(">f8"), "b": np.arange(40, dtype=">i2"), "c": W > 0}
    with scipy_io.netcdf_file(tmp_path / "a.nc", "w") as file:
        file.createDimension("t", None)
        file.createDimension("x", W.shape[1])
        for name, kind in (("a", "f8"), ("b", "i2"), ("c", "i1")):
            file.createVariable(name, kind, ("t", "x")[: arrays[name].ndim])[:] = arrays[name]
    opened = open_tensors(tmp_path / "a.nc")
    for name, array in arrays.items():
        assert np.array_equal(opened[name].array, array), name
        box = (slice(3, 39), slice(5, 60))[: array.ndim]
        assert np.array_equal(opened[name].box(box), array[box]), name


@pytest.mark.parametrize("unlimited", [True, False])
@pytest.mark.parametrize("change", ["exchanged", "one name", "as written"])
def test_variables_of_netcdf_that_scipy_reads_otherwise_are_refused(
    change: str, unlimited: bool, tmp_path: Path
) -> None:
    """scipy takes the variables of records to lie in the order of the header, and keeps one variable of a name."""
    scipy_io: Any = pytest.importorskip("scipy.io")
    path, arrays = tmp_path / "a.nc", {"aa": [1, 2, 3], "bb": [4, 5, 6], "cc": [7, 8, 9]}
    with scipy_io.netcdf_file(path, "w") as file:
        file.createDimension("t", None if unlimited else 3)
        for name, numbers in arrays.items():
            file.createVariable(name, "i4", ("t",))[:] = numbers
    data = path.read_bytes()
    step = 4 if unlimited else 12  # Records hold an element of each variable.
    one, other = (number.to_bytes(4, "big") for number in (len(data) - 36 + step, len(data) - 36 + 2 * step))
    assert (data.count(one), data.count(other)) == (1, 1)
    if change == "exchanged":
        data = data.replace(one, b"mark").replace(other, one).replace(b"mark", other)
        arrays |= {"bb": arrays["cc"], "cc": arrays["bb"]}
    elif change == "one name":
        data = data.replace(b"cc\0\0", b"aa\0\0")
    path.write_bytes(data)
    if change == "as written" or (change == "exchanged" and not unlimited):
        assert {name: each.array.tolist() for name, each in open_tensors(path).items()} == arrays
        return
    with pytest.raises(FileFormatError, match="another order" if change == "exchanged" else "have one name"):
        open_tensors(path)


def test_bytes_of_gguf_whose_order_is_not_known_are_not_read(tmp_path: Path) -> None:
    """Quantized tensors and bfloat16 are bytes for its library, which swaps only the numbers of NumPy."""
    gguf: Any = pytest.importorskip("gguf")
    kind = gguf.GGMLQuantizationType
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
    for name, array in NAMED.items():
        writer.add_tensor(name, array)
    for name in ("Q8_0", "Q4_0", "BF16"):
        writer.add_tensor(name, gguf.quantize(W, kind[name]), raw_dtype=kind[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    opened = open_tensors(tmp_path / "m.gguf")
    assert {name: tensor.array.tolist() for name, tensor in opened.items()} == {
        name: array.tolist() for name, array in NAMED.items()
    }
    assert set(opened.unreadable) == {"Q8_0", "Q4_0", "BF16"}


@pytest.mark.parametrize("ending", [b"", bytes(64)])
def test_a_size_in_gguf_is_no_reason_to_read_on(ending: bytes, tmp_path: Path) -> None:
    """Its library reads elements of an array behind the end of the file, as many as the header states."""
    pytest.importorskip("gguf")
    array = b"".join(value.to_bytes(size, "little") for value, size in ((9, 4), (4, 4), (1 << 60, 8)))
    counts = b"".join(value.to_bytes(size, "little") for value, size in ((3, 4), (0, 8), (1, 8), (1, 8)))
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + counts + b"x" + array + ending)
    with pytest.raises(FileFormatError, match="too short for what its header states"):
        open_tensors(tmp_path / "m.gguf")


def test_every_path_of_an_hdf5_file_is_a_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through hard, soft and external links, and what no link leads to is named; groups in themselves end."""
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["d"] = W + 1
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["g/w"], file["none"] = W, h5py.Empty("f4")
        file["hard"], file["again"] = file["g/w"], file["g"]
        file["soft"], file["external"] = h5py.SoftLink("/g/w"), h5py.ExternalLink("other.h5", "/d")
        file["dangling"], file["gone"] = h5py.SoftLink("/nowhere"), h5py.ExternalLink("gone.h5", "/d")
        file["g/up"] = h5py.SoftLink("/")
    opened = open_tensors(tmp_path / "m.h5")
    arrays = dict.fromkeys(("g/w", "hard", "again/w", "soft"), W) | {"external": W + 1, "none": np.empty(0, "f4")}
    assert {name: tensor.array.tolist() for name, tensor in opened.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert set(opened.unreadable) == {"dangling", "gone"}
    assert "other.h5" in opened["external"].where
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for level in range(30):
            for name in "ab":
                file[f"{level}/{name}"] = h5py.SoftLink(f"/{level + 1}")
        file.create_group("30")
    monkeypatch.setattr(hdf5_files, "_MOST_PATHS", 1000)
    with pytest.raises(FileFormatError, match="too many paths"):
        open_tensors(tmp_path / "many.h5")


def test_other_names_of_dimensions_are_a_note(tmp_path: Path) -> None:
    """In NetCDF 3 they were passed over."""
    pytest.importorskip("scipy")
    xarray: Any = pytest.importorskip("xarray")
    for path, axes in (("a.nc", ("y", "x")), ("b.nc", ("x", "y"))):
        xarray.Dataset({"w": (axes, W)}).to_netcdf(tmp_path / path, engine="scipy")
    report = eltwise.compare(tmp_path / "a.nc", tmp_path / "b.nc")
    assert report.is_good
    assert "w@dimension_names" in report.notes[0]


def test_what_hdf5_nests_is_compared(tmp_path: Path) -> None:
    """Arrays and texts of their own length, and elements that are arrays; not references, nor records of these."""
    h5py: Any = pytest.importorskip("h5py")
    vlen, text = h5py.vlen_dtype(np.float32), h5py.string_dtype()
    rows = [np.arange(2000, dtype=np.float32), np.zeros(0, np.float32)]
    kinds = {"references": h5py.ref_dtype, "records": np.dtype([("text", text), ("n", "<f4")])}
    grid = np.arange(4, dtype=np.float32).reshape(2, 2)
    changes: dict[str, Any] = {
        "nothing": 0,
        "rows": [np.where(np.arange(2000) == 1000, 7, rows[0]), rows[1]],
        "texts": ["a", "c"],
        "grids": np.stack([grid, np.tril(grid)]),
    }
    content: dict[str, Any] = {"rows": rows, "texts": ["a", "b"], "grids": np.stack([grid, grid])}
    for change in ("original", *changes):
        with h5py.File(tmp_path / f"{change}.h5", "w") as file:
            for key, kind in (("rows", vlen), ("texts", text)):
                stored = file.create_dataset(key, (2,), kind)
                stored[0], stored[1] = (changes if key == change else content)[key]
            grids = file.create_dataset("grids", (2,), np.dtype(("<f4", (2, 2))))
            grids[...] = (changes if change == "grids" else content)["grids"]
            for key, kind in kinds.items():
                file.create_dataset(key, (1,), kind)
    reports = {each: eltwise.compare(tmp_path / "original.h5", tmp_path / f"{each}.h5") for each in changes}
    for change, report in reports.items():
        differing = [each.name for each in report.tensors if each.status == "differs"]
        differing += [each.name for each in report.others if each.status == "differs"]
        assert differing == [each for each in changes if each == change != "nothing"]
        assert {key for key in kinds for text in report.unreadable if f"tensor {key!r}" in text} == {*kinds}
    assert reports["nothing"]["grids"].shape == (2, 2, 2)


@pytest.mark.parametrize("changed", [False, True])
def test_records_are_compared_by_the_names_of_their_fields(changed: bool, tmp_path: Path) -> None:
    """Whatever their order and where they lie: HDF5 itself gives them in another order once it has read some."""
    h5py: Any = pytest.importorskip("h5py")
    fields = {"b": "<f4", "a": ">i2", "c": "S3"}
    values: dict[str, Any] = {"b": [1.5, np.nan], "a": [2, 3], "c": [b"x", b"yz"]}
    apart = np.dtype({"names": [*fields], "formats": [*fields.values()], "offsets": [9, 6, 0], "itemsize": 16})
    orders = [[(name, fields[name]) for name in order] for order in ("bac", "cab")]
    paths = []
    for number, dtype in enumerate((apart, *map(np.dtype, orders))):
        records = np.zeros(2, dtype)
        for name in fields:
            records[name] = values[name]
        records["a"][1] += changed and number
        paths.append(tmp_path / f"{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            file["r"] = records
        if dtype is not apart:
            paths.append(tmp_path / f"{number}.npz")
            np.savez(paths[-1], r=records)
    with h5py.File(paths[0]) as file:
        assert file["r"][...].dtype.names is not None  # As a program does that reads the file meanwhile.
        for path in paths[1:]:
            for report in (eltwise.compare(paths[0], path), eltwise.compare(path, paths[0])):
                assert report.is_good is (not changed or path.stem == "0"), str(report)


def test_what_hdf5_reads_as_a_whole_is_not_larger_than_memory(tmp_path: Path) -> None:
    """Elements and compressed chunks, which a file of a few bytes can have of any size."""
    h5py: Any = pytest.importorskip("h5py")
    large = {"text": np.dtype("S1000000000"), "array": np.dtype(("<f4", (1 << 28,))), "bytes": np.dtype("V1000000000")}
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for name, kind in large.items():
            file.create_dataset(name, (4,), kind)
        file.create_dataset("small", (4,), "S1000")
        file.create_dataset("chunk", (1 << 29,), "f4", chunks=(1 << 29,), compression="gzip")
    report = eltwise.compare(tmp_path / "m.h5", tmp_path / "m.h5")
    assert [other.name for other in report.others] == ["small"]
    assert [*open_tensors(tmp_path / "m.h5").unreadable] == sorted([*large, "chunk"])


def test_a_dataset_of_which_a_source_is_missing_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 gives fill values for virtual sources that are gone, and zeros for the rest of a short raw file."""
    h5py: Any = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    with h5py.File("source.h5", "w") as file:
        file["d"] = W[0]
    with h5py.File("m.h5", "w") as file:
        file["inside"] = W[0]
        for name, source in {"same": ".", "good": "source.h5", "gone": "gone.h5", "short": "source.h5"}.items():
            size = W.shape[1] + (name == "short")
            virtual = h5py.VirtualLayout((size,), "f4")
            virtual[:] = h5py.VirtualSource(source, "inside" if source == "." else "d", shape=(size,))
            file.create_virtual_dataset(name, virtual)
        for name, size in {"raw": 64, "short raw": 65}.items():
            file.create_dataset(name, (size,), "f4", external=[("raw.bin", 0, size * 4)])
    W[0].tofile("raw.bin")
    opened = open_tensors(Path("m.h5"))
    assert set(opened.unreadable) == {"gone", "short", "short raw"}
    assert set(states_of([opened])) == {"m.h5", "source.h5", "raw.bin"}  # None of them may change while they are read.
    assert all(tensor.array.tobytes() == W[0].tobytes() for tensor in opened.values())


def test_a_virtual_dataset_whose_sources_have_numbers_for_names_is_not_read(tmp_path: Path) -> None:
    """HDF5 looks for them until one is missing, so that nothing says how many there should be."""
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "s0.h5", "w") as file:
        file["d"] = W[0]
    with h5py.File(tmp_path / "m.h5", "w") as file:
        space = h5py.h5s.create_simple((64,), (h5py.h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (64,), (64,))
        mapped = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        mapped.set_virtual(space, b"s%b.h5", b"/d", h5py.h5s.create_simple((64,)))
        h5py.h5d.create(file.id, b"d", h5py.h5t.IEEE_F32LE, space, dcpl=mapped)
    assert "the number of a block in their names, got s%b.h5" in str(open_tensors(tmp_path / "m.h5").unreadable["d"])


@pytest.mark.parametrize("damage", ["none", "gone", "short"])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", ["whole", "part", "endless"])
def test_a_virtual_dataset_is_read_only_with_all_files_behind_it(
    kind: str, depth: int, damage: str, tmp_path: Path
) -> None:
    """HDF5 fills in what is not there, also behind a source; a mapping without an end has what its source has."""
    h5py: Any = pytest.importorskip("h5py")
    is_endless = kind == "endless"
    sources = [tmp_path / f"{level}.h5" for level in range(depth + 1)]
    with h5py.File(sources[0], "w") as file:
        file.create_dataset("d", data=W[0], maxshape=(None,), chunks=(8,))
    for path, source in zip(sources[1:], sources, strict=False):
        part = slice(0, 64, 2) if kind == "part" and path == sources[-1] else slice(0, 64)
        part = slice(0, h5py.h5s.UNLIMITED) if is_endless else part
        virtual = h5py.VirtualLayout((64 // (part.step or 1),), "f4", maxshape=(None,) if is_endless else None)
        mapped = h5py.VirtualSource(source.name, "d", (64,), "f4", (None,) if is_endless else None)
        if kind == "whole":
            virtual[:] = mapped
        else:
            virtual[part if is_endless else slice(None)] = mapped[part]
        with h5py.File(path, "w") as file:
            file.create_virtual_dataset("d", virtual)
    if damage == "gone":
        sources[0].unlink()
    elif damage == "short":
        with h5py.File(sources[0], "a") as file:
            file["d"].resize((40,))
    opened = open_tensors(sources[-1])
    is_whole = damage == "none" or (kind, damage, depth) == ("endless", "short", 1)
    assert [*opened.unreadable] == ([] if is_whole else ["d"])
    if is_whole:
        expected = W[0, : 40 if damage == "short" else 64]
        assert opened["d"].array.tolist() == expected[:: 2 if kind == "part" else 1].tolist()
        assert len(states_of([opened])) == depth + 1


def test_a_virtual_dataset_that_maps_itself_is_refused(tmp_path: Path) -> None:
    """HDF5 ends the process where it is read."""
    h5py: Any = pytest.importorskip("h5py")
    for path, source in (("a.h5", "b.h5"), ("b.h5", "a.h5"), ("c.h5", ".")):
        virtual = h5py.VirtualLayout((64,), "f4")
        virtual[:] = h5py.VirtualSource(source, "d", (64,))
        with h5py.File(tmp_path / path, "w") as file:
            file.create_virtual_dataset("d", virtual)
    for path in ("a.h5", "c.h5"):
        assert "maps itself" in str(open_tensors(tmp_path / path).unreadable["d"])


def test_numbers_beside_the_tensors_of_torch_are_compared(tmp_path: Path) -> None:
    """Other objects are texts; where keys with dots give two values one name, brackets tell them apart."""
    torch: Any = pytest.importorskip("torch")
    content = {
        "w": torch.ones(3),
        "lr": 0.1,
        "step": 3,
        "on": True,
        "z": torch.ones(2) * 1j,
        "name": "a",
        "x.y": 1,
        "x": {"y": 2},
    }
    torch.save(content, tmp_path / "a.pt")
    torch.save(content | {"lr": 0.2, "name": "b", "z": torch.ones(2) + 1j}, tmp_path / "b.pt")
    report = eltwise.compare(tmp_path / "a.pt", tmp_path / "b.pt")
    assert [each.name for each in report.tensors if each.status == "differs"] == ["lr"]
    assert {each.name for each in report.tensors} == {"w", "lr", "step", "on", "['x.y']", "['x']['y']"}
    assert [str(each) for each in report.others if each.status == "differs"] == [
        "z: different (values): 2 of 2 differ; first [0]: '(1+1j)' instead of '1j'",
        "name: different (values): 'b' instead of 'a'",
    ]
    torch.save({"w": [torch.ones(3)]}, tmp_path / "a.pt")
    torch.save({"w": {"0": torch.ones(3)}}, tmp_path / "b.pt")
    assert not eltwise.compare(tmp_path / "a.pt", tmp_path / "b.pt").is_good
    assert eltwise.compare(tmp_path / "a.pt", {"w.0": np.ones(3, np.float32)}).is_good


@pytest.mark.parametrize("name", [*WRITERS, "m.pt", "m.bin"])
def test_a_file_that_is_damaged_is_one_sentence(name: str, tmp_path: Path) -> None:
    """Also where the library that would have read it is missing."""
    for content in (b"", b"\x80\x04", b"\x89HDF\r\n\x1a\n" + bytes(200), b"CDF\x01" + bytes(9), b"GGUF" + bytes(40)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(EltwiseError) as caught:
            open_tensors(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_tensor_of_torch_that_cannot_be_read_is_one_of_several(tmp_path: Path) -> None:
    """Without elements, and as a negated or conjugated view of others."""
    torch: Any = pytest.importorskip("torch")
    whole = torch.arange(4.0)
    views = {"negated": torch._neg_view(whole), "imaginary": torch.complex(whole, whole).conj().imag}
    torch.save({"w": whole, "m": torch.empty(3, device="meta"), **views}, tmp_path / "t.pt")
    opened = open_tensors(tmp_path / "t.pt")
    assert list(opened.unreadable) == ["m"]
    assert {name: one.array.tolist() for name, one in opened.items()} == {
        "w": whole.tolist(),
        **dict.fromkeys(views, (-whole).tolist()),
    }


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # That torch does not check what is made here.
def test_tensors_of_torch_of_every_layout_have_the_elements_of_torch(tmp_path: Path) -> None:
    """Also those that a few bytes make as large as nothing can hold: they are read part by part."""
    torch: Any = pytest.importorskip("torch")
    dense = torch.arange(-600.0, 600).reshape(40, 30) * (torch.arange(1200).reshape(40, 30) % 3 == 0)
    coo, turned = dense.to_sparse(), dense * 1j
    once = (coo.indices()[:1], dense[coo.indices()[0]])
    views = {"transposed": dense.t(), "expanded": dense[:, :1].expand(40, 30), "negated": torch._neg_view(dense)}
    views |= {"conjugated": turned.conj(), "true": (dense > 0).t(), "bytes": dense.to(torch.uint8)[::2, 1:]}
    layouts = {"coo": coo, "twice": torch.sparse_coo_tensor(*once), "halves": dense.bfloat16().to_sparse()}
    layouts |= {"csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc(), "bsr": dense.to_sparse_bsr((2, 3))}
    huge = {
        "view": torch.ones(1).expand(1 << 40),
        "sparse": torch.sparse_coo_tensor(coo.indices(), coo.values(), (1 << 20,) * 2),
    }
    torch.save({**views, **layouts, **huge}, tmp_path / "t.pt")
    opened = open_tensors(tmp_path / "t.pt")
    assert opened.unreadable == {}
    for name, stored in {**views, **layouts}.items():
        whole = stored.to_dense().resolve_conj().resolve_neg().contiguous()
        width = getattr(torch, f"uint{8 * whole.element_size()}", None) or torch.float32
        expected = (torch.view_as_real(whole) if whole.is_complex() else whole).view(width).numpy().tobytes()
        assert (opened.others if whole.is_complex() else opened)[name].read(0, whole.numel()).tobytes() == expected, (
            name
        )
    assert opened["view"].read(1 << 39, (1 << 39) + 2).tolist() == [1, 1]
    assert opened["sparse"].read(0, 30).tolist() == dense[0].tolist()


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    for name in ("m.pth", "m.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps({"w": Hostile()}))
        with pytest.raises((FileFormatError, UnsupportedError)):
            open_tensors(tmp_path / name)
    assert not (tmp_path / "ran").exists()


LIBRARIES = {
    "m.pth": "torch",
    "m.gguf": "gguf",
    "m.h5": "h5py",
    "m.nc": "scipy",
    "hf://org/model": "huggingface_hub",
    "m.delta": "zstandard",
    "m.zarr": "zarr",
    "a report": "pandas",
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(foreign, "import_module", missing)
    path = tmp_path / name
    if name == "m.zarr":
        path.mkdir()
        (path / "zarr.json").touch()
    else:
        (tmp_path / name.replace("/", "")).write_bytes(b"CDF\x01")
    report = eltwise.compare({"x": W}, {"x": W})
    read = {"a report": report.to_pandas, "m.delta": partial(eltwise.delta, path, path, tmp_path / "out")}
    with pytest.raises(UnsupportedError, match=rf"needs the package {LIBRARIES[name]}; pip install"):
        read.get(name, partial(open_tensors, name if name.startswith("hf") else path))()


def test_a_model_of_the_hub_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the cache of the library, which asks the network for nothing."""
    hub: Any = pytest.importorskip("huggingface_hub")
    commit = "0" * 40
    snapshot = tmp_path / "models--org--model" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (tmp_path / "models--org--model" / "refs").mkdir()
    (tmp_path / "models--org--model" / "refs" / "main").write_text(commit)
    save_file({"w": W}, snapshot / "model.safetensors")
    original = hub.snapshot_download
    offline = lambda *names, **more: original(*names, **more, cache_dir=tmp_path, local_files_only=True)  # noqa: E731
    monkeypatch.setattr(hub, "snapshot_download", offline)
    assert eltwise.compare("hf://org/model", {"w": W}).is_good
    for name in ("hf://model", "hf://org/none"):
        with pytest.raises(FileFormatError):
            eltwise.compare(name, {"w": W})


@pytest.mark.parametrize(
    ("array", "key", "is_good"),
    [("", "when", True), ("w", "when", True), ("", "units", True), ("w", "units", False), ("w", "scale_factor", False)],
)
def test_an_attribute_that_cannot_be_read_costs_itself_alone(
    tmp_path: Path, array: str, key: str, is_good: bool
) -> None:
    h5py: Any = pytest.importorskip("h5py")
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file["w"], file["v"] = W, W
        file["w"].attrs["comment"] = "as before"
        owner = file["w"] if array else file
        h5py.h5a.create(owner.id, key.encode(), h5py.h5t.UNIX_D32LE, h5py.h5s.create(h5py.h5s.SCALAR))
    tensors = open_tensors(path)
    assert (set(tensors), tensors.metadata) == ({"w", "v"}, {"w@comment": "'as before'"})
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["w"], file["v"] = W, W
        if array:
            file["w"].attrs[key] = 2
    for report in (eltwise.compare(path, tmp_path / "other.h5"), eltwise.compare(tmp_path / "other.h5", path)):
        assert [tensor.status for tensor in report.tensors] == ["equal", "equal"]
        assert report.is_good is is_good
        assert [other.status for other in report.others] == []
        sentences = [*report.notes, *report.unreadable]
        assert any(f"attribute '{array}@{key}': the attribute cannot be read" in sentence for sentence in sentences)


@pytest.mark.parametrize("kind", ["a float of 128 bits", "long doubles"])
def test_a_dataset_of_a_type_that_numpy_has_not_is_one_of_several(kind: str, tmp_path: Path) -> None:
    h5py: Any = pytest.importorskip("h5py")
    path = tmp_path / "m.h5"
    quad = h5py.h5t.IEEE_F64LE.copy()
    quad.set_size(16)
    quad.set_precision(128)
    quad.set_fields(127, 112, 15, 0, 112)
    quad.set_ebias(16383)
    with h5py.File(path, "w") as file:
        file["w"] = W
        if kind == "long doubles":
            file["a"] = np.zeros(2, np.longdouble)
        else:
            h5py.h5d.create(file.id, b"a", quad, h5py.h5s.create_simple((2,)))
    assert open_tensors(path)["w"].array.tobytes() == W.tobytes()
    report = eltwise.compare(path, {"w": W})
    assert ([tensor.status for tensor in report.tensors], len(report.unreadable)) == (["equal"], 1)
    assert "tensor 'a'" in report.unreadable[0]
    assert not report.is_good


def test_fields_of_gguf_are_those_of_both_byte_orders(tmp_path: Path) -> None:
    """The architecture decides on what is computed; texts have one form in both."""
    gguf: Any = pytest.importorskip("gguf")

    def written(name: str, architecture: str, order: Any = gguf.GGUFEndian.LITTLE) -> Path:
        writer = gguf.GGUFWriter(tmp_path / name, architecture, endianess=order)
        writer.add_token_list(["a", "bc"])
        writer.add_array("scores", [1.0, 2.0])
        writer.add_tensor("w", W)
        for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
            write()
        writer.close()
        return tmp_path / name

    a = written("a.gguf", "llama")
    report = eltwise.compare(a, written("b.gguf", "llama", gguf.GGUFEndian.BIG))
    assert (report.is_good, report.notes) == (True, ())
    other = eltwise.compare(a, written("c.gguf", "gemma"))
    assert [each.name for each in other.others if each.status == "differs"] == ["general.architecture"]


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (200, 3, 150)])
def test_boxes_of_another_library_give_ranges_and_single_elements(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.standard_normal(shape)
    rows = Rows(shape, lambda box: array[box], "")
    start, stop = sorted(rng.integers(0, array.size + 1, 2).tolist())
    assert (rows.read(start, stop) == array.reshape(-1)[start:stop]).all()
    for count in (0, 1, 30):
        indices = rng.integers(0, array.size, count)
        assert (rows.at(indices) == array.reshape(-1)[indices]).all()


def test_numbers_of_hdf5_with_other_names_differ_and_names_of_axes_are_noted(tmp_path: Path, cli: Cli) -> None:
    """An enumeration of HDF5 says what its numbers stand for; nested in arrays and records, too."""
    h5py: Any = pytest.importorskip("h5py")

    def written(path: Path, names: dict[str, int], axis: str, scale: str) -> Path:
        kind = h5py.enum_dtype(names, basetype="i1")
        kinds: dict[str, Any] = {
            "a": kind,
            "b": np.dtype((kind, (2,))),
            "d": np.dtype([("e", [("f", kind)]), ("g", "f4")]),
        }
        with h5py.File(path, "w") as file:
            file.create_dataset("v", (3,), h5py.vlen_dtype(kind))
            for name, dtype in kinds.items():
                file.create_dataset(name, (3,), dtype).dims[0].label = axis
            of_scale = file.create_dataset(scale, data=np.zeros(3))
            of_scale.make_scale()
            file.create_dataset("c", data=np.zeros(3)).dims[0].attach_scale(of_scale)
        return path

    names = {"land": 0, "sea": 1}
    one = written(tmp_path / "one.h5", names, "row", "x")
    same = written(tmp_path / "same.h5", dict(reversed(names.items())), "row", "x")
    assert cli("compare", one, same)[0] == 0
    other = written(tmp_path / "other.h5", {"sea": 0, "land": 1}, "row", "x")
    code, out, _err = cli("compare", one, other)
    assert code == 1
    assert all(f"{name}enumeration: different" in out for name in ("a@", "b@", "d@e.f.", "v@"))
    code, out, _err = cli("compare", one, written(tmp_path / "axis.h5", names, "column", "x"))
    assert code == 0
    assert "a@dimension_names" in out


def test_what_cannot_be_read_keeps_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 gives what it remembers of an open file: one that was written anew was compared as it had been."""
    h5py: Any = pytest.importorskip("h5py")
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("the system does not list open files")
    monkeypatch.chdir(tmp_path)
    with h5py.File("link.h5", "w") as file:
        file["w"], file["z"] = W, h5py.SoftLink("/none")
    with h5py.File("type.h5", "w") as file:
        file["w"], file["r"] = W, np.zeros(2, np.longdouble)
    with h5py.File("source.h5", "w") as file:
        virtual = h5py.VirtualLayout(W.shape, "f4")
        virtual[:] = h5py.VirtualSource("none.h5", "w", W.shape)
        file.create_virtual_dataset("w", virtual)
    with h5py.File("elements.h5", "w") as file:
        file.create_dataset("w", data=W, fletcher32=True)
    np.savez("elements.npz", w=W)
    for name in ("elements.h5", "elements.npz"):
        damaged = Path(name).read_bytes().replace(W[0].tobytes(), bytes(W[0].nbytes))
        Path(name).write_bytes(damaged)
    with h5py.File("attribute.h5", "w") as file:
        file["w"] = W
        h5py.h5a.create(file["w"].id, b"units", h5py.h5t.UNIX_D32LE, h5py.h5s.create(h5py.h5s.SCALAR))
    Path("shards").mkdir()
    save_file({"w": W}, "shards/s.safetensors")
    Path("shards/m.safetensors.index.json").write_text('{"weight_map": {"w": "s.safetensors", "v": "s.safetensors"}}')
    cases = sorted(path.name for path in tmp_path.iterdir())
    assert len(cases) == 7
    eltwise.compare({"w": W}, {"w": W + 1})  # What is loaded once.
    gc.disable()
    try:
        before = len([*descriptors.iterdir()])
        for name in cases:
            assert eltwise.compare({"w": W}, name).unreadable, name
            assert len([*descriptors.iterdir()]) == before, name
    finally:
        gc.enable()
