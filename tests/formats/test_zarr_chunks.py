"""Damaged chunks of zarr stores, of every registered codec: one sentence, within the memory that is promised."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec

from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats import zarr_stores
from eltwise.formats.chunk_limits import CodecLimits, TextLimits, longest_encoded
from eltwise.formats.tensor_sets import open_tensors
from eltwise.formats.zarr_stores import open_store
from support import damaged_chunks
from support.damaged_chunks import (
    CHAINS,
    CONFIGS,
    OF_OBJECTS,
    OPTIONAL,
    TEXTS,
    UNREADABLE,
    kinds,
    make,
    shard,
    v2_kinds,
    v3_kinds,
)
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]
X = (np.arange(4096) % 251).reshape(64, 64).astype(np.float32)
TEXT = {"id": "astype", "encode_dtype": "i1", "decode_dtype": "<U999999"}
RAW = {"name": "bytes", "configuration": {"endian": "little"}}
GROUPS = 4
"""So many processes read the stores of all kinds: to start one takes longer than to read the chunks of a kind."""

MOST_MEMORY = (64 + 40) << 10
"""In kB: what the slack allows, and what the comparison itself takes."""


def run(program: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", str(program), *map(str, arguments)]
    found = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=found, timeout=600)  # noqa: PLW1510, S603


def eltwise(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eltwise", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)  # noqa: PLW1510, S603


def source_of(path: Path) -> Any:
    """What reads the only array of a store, of numbers or of texts."""
    tensors = open_tensors(path)
    arrays: list[Any] = [*tensors.values(), *tensors.others.values()]
    (array,) = arrays
    return array.source


def test_every_codec_that_is_registered_is_tested_or_refused() -> None:
    known = {*CONFIGS, *OF_OBJECTS, *OPTIONAL, *TEXTS}
    assert set(v2_kinds()) <= known
    of_v3 = {"bytes", "endian", "transpose", "sharding_indexed"}
    assert {name.removeprefix("numcodecs.") for name in v3_kinds()} <= known | of_v3


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_damaged_chunk_gives_one_sentence_within_the_memory(group: int, tmp_path: Path) -> None:
    chosen = kinds()[group::GROUPS]
    done = run(Path(damaged_chunks.__file__), tmp_path, *chosen)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, ""), f"at {rows[-1:]}: {done.stderr[-500:]}"
    ends = [row for row in rows if row[3] == "end"]
    assert len(ends) == len(rows) / 2
    assert min(Counter(kind for kind, *_more in ends)[kind] for kind in chosen) > 10
    for kind, _number, damage, _end, code, err, memory in ends:
        is_found = not damage.startswith(("flipped", "bytes")) and not (
            "shard" in kind and damage.startswith("extended")
        )
        assert code in ((2,) if is_found else (0, 1, 2)), (kind, damage, code, err)
        assert err.count("\n") == (code == 2), (kind, damage, err)
        assert "Traceback" not in err, (kind, damage, err)
        assert memory < MOST_MEMORY, (kind, damage, memory)


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("kind", [f"2:{name}" for name in v2_kinds()] + [f"3:{name}" for name in v3_kinds()])
def test_good_chunks_are_read(kind: str, tmp_path: Path) -> None:
    name = kind[2:].removeprefix("numcodecs.")
    if name in (*OF_OBJECTS, *OPTIONAL, *UNREADABLE):
        pytest.skip("not a codec of numbers, or not installed")
    make(tmp_path / "a.zarr", kind)
    expected = zarr.open_array(str(tmp_path / "a.zarr"), mode="r")[...]
    source = source_of(tmp_path / "a.zarr")
    np.testing.assert_array_equal(source.read(0, expected.size).reshape(expected.shape), expected)


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("name", CHAINS)
def test_good_chunks_of_several_codecs_are_read(name: str, tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", f"3:{name}")
    source = source_of(tmp_path / "a.zarr")
    expected = zarr.open_array(str(tmp_path / "a.zarr"), mode="r")[...]
    np.testing.assert_array_equal(source.read(0, expected.size).reshape(expected.shape), expected)
    np.testing.assert_array_equal(source.box((slice(1, 3), slice(70, 999))), expected[1:3, 70:999])
    np.testing.assert_array_equal(source.at(np.array([5, 4095, 1030])), expected.reshape(-1)[[5, 4095, 1030]])


LETTERS = np.array(["", "a", "a\0", "bé", "漢字", "😀", "x" * 300], "T")


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize(("shape", "chunks"), [((), ()), ((0,), (1,)), ((5,), (5,)), ((6, 7), (2, 3))], ids=str)
@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"fill_value": "none"}], ids=str)
def test_texts_of_their_own_length_are_what_zarr_gives(
    tmp_path: Path, form: Any, shape: tuple[int, ...], chunks: tuple[int, ...], options: dict[str, Any]
) -> None:
    values = np.resize(LETTERS, shape) if shape else np.array("a\0é", "T")
    for name in ("full", "absent"):
        path = tmp_path / f"{name}.zarr"
        array = zarr.create_array(
            str(path), shape=shape, chunks=chunks, dtype=values.dtype, zarr_format=form, **options
        )
        if name == "full":
            array[...] = values
        expected = values if name == "full" else np.full(shape, options.get("fill_value", ""))
        (texts,) = open_tensors(path).others.values()
        assert (texts.type, texts.shape) == ("texts", shape)
        assert texts.read(0, expected.size).tolist() == expected.reshape(-1).tolist()


def test_texts_of_two_formats_of_zarr_are_compared(cli: Cli, tmp_path: Path) -> None:
    a, b, c = (
        store(tmp_path / name / "s.zarr", np.array(["x", "bé", last], "T"), (3,), zarr_format=form)
        for name, form, last in (("a", 2, "z"), ("b", 3, "z"), ("c", 3, "w"))
    )
    assert cli("compare", a, b)[::2] == (0, "")
    code, out, _err = cli("compare", a, c)
    assert code == 1
    assert "s: different (values): 1 of 3 differs; first [2]: 'w' instead of 'z'" in out


def test_all_texts_of_a_read_share_one_slack(tmp_path: Path) -> None:
    """Each chunk alone would be small enough."""
    values = np.array(["x" * (3 << 20)] * 8, "T")
    texts = source_of(store(tmp_path / "a.zarr", values, (1,)))
    for _ in range(2):
        assert texts.read(0, 4).tolist() == values[:4].tolist()
    with pytest.raises(FileFormatError, match="which is too large for 1 texts"):
        texts.read(0, 8)


def test_a_chunk_of_many_texts_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sizes = store(tmp_path / "a.zarr", np.array(["x"] * 40000, "T"), (40000,)), list[int]()
    check = TextLimits.check

    def counted(limits: TextLimits, data: memoryview, size: int) -> None:
        sizes.append(size)
        check(limits, data, size)

    monkeypatch.setattr(TextLimits, "check", counted)
    (texts,) = open_tensors(path).others.values()
    assert (texts.difference(texts), len(sizes)) == ("", 2)


def test_a_long_text_without_axes_takes_little_memory(tmp_path: Path) -> None:
    """zarr alone takes five hundred times as much as it is long."""
    text = "x" * (1 << 20) + "\0"
    source = source_of(store(tmp_path / "a.zarr", np.array(text, "T"), ()))
    tracemalloc.start()
    try:
        assert source.box(()).item() == text
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_fill_value_that_is_too_long_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = v2(tmp_path / "a.zarr", dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value="x" * 999)
    code, _out, err = cli("compare", path, path)
    assert (code, err.count("\n")) == (2, 1)
    assert "the fill value has 999 letters, expected up to 512" in err


def v2(folder: Path, **fields: Any) -> Path:
    folder.mkdir(exist_ok=True)
    known = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "compressor": None, "fill_value": 0}
    (folder / ".zarray").write_text(json.dumps({**known, "order": "C", "filters": None, **fields}))
    return folder


def v3(folder: Path, codecs: list[Any], **fields: Any) -> Path:
    folder.mkdir(exist_ok=True)
    known: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "float32",
        "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    }
    (folder / "zarr.json").write_text(json.dumps({**known, "codecs": codecs, **fields}))
    return folder


def grid(*sizes: int) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": sizes}}


@pytest.mark.parametrize("name", [*OF_OBJECTS, "vlen-utf8"])
@pytest.mark.parametrize("place", ["compressor", "filters"])
def test_codecs_of_objects_are_refused_before_a_chunk_is_read(cli: Cli, tmp_path: Path, name: str, place: str) -> None:
    config: dict[str, Any] = {"id": name}
    config |= {"labels": ["a"], "dtype": "<f4"} if name == "categorize" else {}
    config |= {"dtype": "<f4"} if name == "vlen-array" else {}
    folder = v2(tmp_path / "a.zarr", **{place: config if place == "compressor" else [config]})
    victim = tmp_path / "victim"

    class Code:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path(victim).write_text, ("run",))

    (folder / "0").write_bytes(pickle.dumps(Code()))
    code, _out, err = cli("compare", folder, folder)
    assert (code, err.count("\n"), victim.exists()) == (2, 1, False)


def _chunks_read(path: Path) -> tuple[int, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(zarr.open_array(str(path), mode="r").chunks)


@pytest.mark.parametrize(
    ("make_store", "words"),
    [
        (lambda path: v2(path, chunks=[0]), "a chunk has no elements"),
        (lambda path: v3(path, [RAW], chunk_grid=grid(0)), "a chunk has no elements"),
        (lambda path: v3(path, [shard([RAW], (0,))]), "cannot be read"),
        (lambda path: v2(path, chunks=[1 << 40]), "a chunk is too large"),
        (lambda path: v2(path, filters=[TEXT]), "only numbers are read"),
        (
            lambda path: v3(path, [shard([RAW], (1,))], data_type="uint8", shape=[1 << 27], chunk_grid=grid(1 << 27)),
            "holds 134217728 chunks, too many",
        ),
    ],
)
def test_impossible_chunks_are_refused_when_the_store_is_opened(
    cli: Cli, tmp_path: Path, make_store: Callable[[Path], Path], words: str
) -> None:
    path = make_store(tmp_path / "a.zarr")
    if words == "a chunk has no elements" and 0 not in _chunks_read(path):
        pytest.skip("zarr 3.4 reads such an array as fill values")
    code, _out, err = cli("compare", path, path)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err
    code, _out, err = cli("apply", "Abs-1", path, "-o", tmp_path / "out.zarr")
    assert (code, err.count("\n")) == (2, 1)


def test_an_empty_array_may_have_chunks_without_elements(tmp_path: Path) -> None:
    assert open_tensors(v2(tmp_path / "a.zarr", shape=[0], chunks=[0]))["a"].array.shape == (0,)


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_broken_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def as_folder(path: Path) -> None:
    path.mkdir()


NO_FILES = {
    as_pipe: "is a pipe or a device, not a file",
    as_device: "is a pipe or a device, not a file",
    as_broken_link: "is a link to what is not there",
    as_folder: "is a folder, not a file",
}


@pytest.mark.parametrize("other", NO_FILES)
@pytest.mark.parametrize("kind", ["2:zlib", "3:bytes", "3:shard-of-gzip"])
@pytest.mark.parametrize("command", [("compare",), ("reduce", "mean-squared-difference"), ("apply", "Subtract-1")])
def test_a_chunk_that_is_no_file_is_not_read(
    tmp_path: Path, kind: str, command: tuple[str, ...], other: Callable[[Path], None], cli: Cli
) -> None:
    a, b = tmp_path / "a.zarr", tmp_path / "b.zarr"
    make(a, kind)
    chunk = make(b, kind)
    chunk.unlink()
    other(chunk)
    target = ("-o", tmp_path / "out.zarr") if command[0] == "apply" else ()
    code, _out, err = cli(*command, a, b, *target)
    assert (code, err.count("\n")) == (2, 1)
    assert NO_FILES[other] in err


def as_link_to_a_folder_that_is_gone(path: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to("elsewhere")


def as_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"x")


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(
    ("other", "words"),
    [(as_link_to_a_folder_that_is_gone, "is a link to what is not there"), (as_file, "is a file, not a folder")],
)
@pytest.mark.parametrize("command", [("compare",), ("reduce", "mean-squared-difference"), ("apply", "Subtract-1")])
def test_chunks_that_are_out_of_sight_are_not_the_fill_value(
    tmp_path: Path, command: tuple[str, ...], depth: int, other: Callable[[Path], None], words: str, cli: Cli
) -> None:
    """Each folder above a chunk, of an array and of one in a group."""
    path = tmp_path / "a.zarr"
    array = zarr.open_group(path, mode="w").create_array("x", data=X[None], chunks=(1, 32, 32))
    folder = path.joinpath("x", "c", "0", "0").parents[2 - depth]
    if depth == 0:
        folder = folder / "c"
    other(folder)
    assert not np.asarray(array[...]).all()
    texts = (path, path) if command[0] == "compare" else (path / "x", path / "x")
    target = ("-o", tmp_path / "out.zarr") if command[0] == "apply" else ()
    code, _out, err = cli(*command, *texts, *target)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err


@pytest.mark.parametrize("form", [2, 3])
def test_a_missing_chunk_is_the_fill_value_as_long_as_the_store_is_there(tmp_path: Path, form: Any) -> None:
    """A disk that is not mounted any more leaves an empty folder."""
    path = store(tmp_path / "a.zarr", X, (32, 32), zarr_format=form, fill_value=7)
    tensors = open_tensors(path)
    for each in path.rglob("*0"):
        if each.is_file():
            each.unlink()
    np.testing.assert_array_equal(np.unique(tensors["a"].array[:32, :32]), 7)
    shutil.rmtree(path)
    for _ in range(2):
        with pytest.raises(FileFormatError, match=r"the description of 'a.zarr' is gone"):
            _ = tensors["a"].array
        path.mkdir(exist_ok=True)


def test_a_group_in_which_an_array_is_out_of_sight_is_not_read_without_it(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zarr.open_group(path, mode="w").create_array("x", data=X)
    (path / "y").symlink_to("elsewhere")
    (path / "notes").write_text("no array")
    code, _out, err = cli("compare", path, path)
    assert code == 2
    assert "tensor 'y': the zarr store cannot be read ('y' is a link to what is not there)" in err
    (path / "y").unlink()
    assert cli("compare", path, path)[0] == 0


@pytest.mark.parametrize("other", NO_FILES)
@pytest.mark.parametrize("name", ["x/zarr.json", "x/.zarray"])
def test_metadata_that_is_no_file_is_not_read(
    cli: Cli, tmp_path: Path, other: Callable[[Path], None], name: str
) -> None:
    path, form = tmp_path / "a.zarr", 2 if name == "x/.zarray" else 3
    zarr.open_group(str(path), mode="w", zarr_format=form).create_array("x", data=X)
    (path / name).unlink()
    other(path / name)
    code, _out, err = cli("compare", path, path)
    assert (code, err.count("\n")) == (2, 1)


def test_a_link_to_a_chunk_is_read(tmp_path: Path) -> None:
    chunk = make(tmp_path / "a.zarr", "3:bytes")
    whole = open_tensors(tmp_path / "a.zarr")["a"].array
    chunk.rename(tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    np.testing.assert_array_equal(open_tensors(tmp_path / "a.zarr")["a"].array, whole)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"shards": (100, 100)}], ids=str)
def test_a_damaged_chunk_among_many_gives_one_line(tmp_path: Path, options: dict[str, Any]) -> None:
    values = np.random.default_rng(1).random((400, 100), np.float32)
    a = store(tmp_path / "a.zarr", values, (1, 100), **options)
    b = tmp_path / "b.zarr"
    shutil.copytree(a, b)
    for damage in (b"", b"\xff" * 21, bytes(1 << 20)):
        (b / "c" / "3" / "0").write_bytes(damage)
        done = eltwise("compare", a, b)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (damage[:1], done.stderr[-300:])
        assert str(b) in done.stderr


def test_a_damaged_description_among_many_gives_one_line(tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    for number in range(200):
        group.create_array(f"x{number}", shape=(1,), dtype="f4")
    (tmp_path / "a.zarr" / "x7" / "zarr.json").write_text("{")
    done = eltwise("compare", tmp_path / "a.zarr", tmp_path / "a.zarr")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr[-300:]


def test_a_shard_whose_index_names_its_bytes_again_and_again_is_refused(tmp_path: Path) -> None:
    sizes = {"shape": [1 << 16], "chunk_grid": grid(1 << 16)}
    raw = {"name": "gzip", "configuration": {"level": 1}}
    path = v3(tmp_path / "a.zarr", [shard([RAW, raw], (16,), index_codecs=[RAW])], **sizes)
    index = np.zeros((1 << 12, 2), "<u8")
    index[:, 1] = 1 << 20
    (path / "c").mkdir()
    (path / "c" / "0").write_bytes(bytes(1 << 20) + index.tobytes())
    with pytest.raises(FileFormatError, match="the index of a shard names more bytes than the shard can have"):
        open_tensors(path)["a"].box((slice(0, 60000),))


@pytest.mark.parametrize("name", [name for name in CHAINS if name.startswith("shard")])
@pytest.mark.parametrize("stop", [1024, 1000], ids=["whole", "part"])
def test_an_empty_shard_is_not_the_fill_value(tmp_path: Path, name: str, stop: int) -> None:
    make(tmp_path / "a.zarr", f"3:{name}").write_bytes(b"")
    source = source_of(tmp_path / "a.zarr")
    with pytest.raises(FileFormatError, match="a shard, or a chunk in one, is empty"):
        source.box((slice(3, 4), slice(0, stop)))


@pytest.mark.parametrize("options", [{"chunks": (3, 5)}, {"chunks": (2, 5), "shards": (6, 15)}], ids=str)
def test_a_part_of_very_many_chunks_is_read_in_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(zarr_stores, "_MOST_PARTS", 4)
    tensor = open_tensors(store(tmp_path / "a.zarr", X, **options))["a"]
    np.testing.assert_array_equal(tensor.array, X)
    np.testing.assert_array_equal(tensor.read(70, 3001), X.reshape(-1)[70:3001])
    np.testing.assert_array_equal(tensor.box((slice(1, 60), slice(7, 64))), X[1:60, 7:])


def test_a_read_that_fails_spoils_no_other(tmp_path: Path) -> None:
    path = store(tmp_path / "a.zarr", X, (1, 64))
    (path / "c" / "7" / "0").write_bytes(b"bad")
    tensor = open_tensors(path)["a"]

    def row(number: int) -> np.ndarray | EltwiseError:
        try:
            return tensor.box((slice(number, number + 1), slice(0, 64)))
        except EltwiseError as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(row, [*range(64)] * 4)):
            if number % 64 == 7:
                assert isinstance(found, FileFormatError)
            else:
                np.testing.assert_array_equal(found, X[number % 64 : number % 64 + 1])


@pytest.mark.parametrize("content", [b"bad", bytes(1 << 21)])
def test_a_chunk_behind_a_url_is_limited_as_well(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    files, read = fsspec.filesystem("memory"), list[int]()
    whole = type(files).cat_file

    def counted(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        found = whole(self, path, *arguments, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(type(files), "cat_file", counted)
    array = zarr.create_array("memory://limited.zarr", shape=X.shape, chunks=(32, 64), dtype="f4", overwrite=True)
    array[...] = X
    (tensor,) = open_store("memory://limited.zarr").values()
    np.testing.assert_array_equal(tensor.array, X)
    files.pipe("/limited.zarr/c/1/0", content)
    with pytest.raises(FileFormatError, match=r"memory://limited.zarr: .* cannot be read"):
        tensor.read()
    assert 0 < max(read) <= 1 << 17


@pytest.mark.parametrize("codec", ["gzip", "zlib", "bz2", "lzma", "zstd", "lz4", "blosc", "base64"])
@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_random_bytes_stay_within_what_a_codec_makes_at_most(codec: str, size: int) -> None:
    import numcodecs

    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    encoded = memoryview(numcodecs.get_codec({"id": codec}).encode(data))
    limits = CodecLimits(codec, {}, size, longest_encoded(codec, {}, size))
    limits.check(encoded)
    if limits.decoder is not None:
        assert bytes(limits.decoder(encoded)) == data


@pytest.mark.parametrize("compressor", [BloscCodec(cname="lz4"), GzipCodec(level=1)], ids=["blosc", "gzip"])
def test_a_renamed_array_with_broken_chunks_is_unreadable_and_not_missing(
    cli: Cli, tmp_path: Path, compressor: Any
) -> None:
    for side, name in (("a", "old"), ("b", "new")):
        group = zarr.open_group(str(tmp_path / f"{side}.zarr"), mode="w")
        group.create_array(name, data=X, chunks=(16, 64), compressors=compressor)
        group.create_array("same", data=X)
    for chunk in (tmp_path / "b.zarr" / "new" / "c").glob("*/0"):
        chunk.write_bytes(chunk.read_bytes()[:30])
    code, out, err = cli("compare", tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert code == 2
    assert "tensor 'new'" in err
    assert err.count("\n") == 1
    assert "extra in B: new" not in out


@pytest.mark.parametrize("name", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
def test_a_large_blosc_chunk_that_is_cut_does_not_end_the_process(tmp_path: Path, name: Any) -> None:
    values = np.random.default_rng(1).integers(0, 9, (4, 1 << 20)).astype(np.float32)
    a = store(tmp_path / "a.zarr", values, (1, 1 << 20), compressors=BloscCodec(cname=name))
    chunk = a / "c" / "3" / "0"
    chunk.write_bytes(chunk.read_bytes()[: chunk.stat().st_size // 9])
    done = eltwise("compare", a, a)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr[-300:]
    assert "and its header says" in done.stderr
