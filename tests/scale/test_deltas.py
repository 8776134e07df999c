"""Deltas of checkpoints: every bit comes back, and what is damaged, lies or does not belong together is refused."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import eltwise
from eltwise.scale.checksum import crc32c
from eltwise.scale.delta_file import FOOTER, MAGIC, PIECE, from_planes, open_delta, to_planes
from support.peak import PEAK_KIB
from support.waiting import wait_for

Cli = Callable[..., tuple[int, str, str]]


@given(st.sampled_from([1, 2, 4, 8]), st.integers(0, 300) | st.just(100_001), st.booleans(), st.integers(0, 99))
def test_planes_give_every_bit_back(width: int, count: int, has_base: bool, own_seed: int) -> None:
    values, other = np.random.default_rng(own_seed).integers(0, 256, (2, count * width), np.uint8)
    base = other if has_base else None
    planes = to_planes(values, base, width)
    assert planes.size == values.size
    assert from_planes(planes, base, width).tobytes() == values.tobytes()


def test_planes_hold_the_lowest_bytes_first_and_small_differences_in_them() -> None:
    values, base = np.array([7, 0, 0xFFFF, 300], np.uint16), np.array([9, 0xFFFF, 0, 301], np.uint16)
    planes = to_planes(values.view(np.uint8), base.view(np.uint8), 2)
    assert planes.reshape(2, 4).tolist() == [[0x7E, 0x81, 0x7F, 0x7F], [0x80] * 4]
    assert to_planes(np.array([0x01020304], np.uint32).view(np.uint8), None, 4).tolist() == [4, 3, 2, 1]


def tensors(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tuned checkpoint and its base, of every kind of tensor."""
    draw = np.random.default_rng(seed)
    base: dict[str, Any] = {
        "w": draw.standard_normal((64, 33), np.float32),
        "half": draw.standard_normal(1001).astype(np.float16),
        "brain": draw.standard_normal(77).astype(ml_dtypes.bfloat16),
        "wide": draw.standard_normal(5),
        "long": draw.integers(-(2**62), 2**62, 9),
        "bytes": draw.integers(0, 256, 31, np.uint8),
        "flags": draw.integers(0, 2, 10).astype(bool),
        "scalar": np.array(3, np.float32),
        "none": np.zeros((0, 4), np.float32),
        "gone": np.array([1], np.float32),
        "grown": np.array([1, 2], np.float32),
        "cast": np.array([1, 2], np.float32),
        "same": np.array([np.nan, -0.0], np.float32),
    }
    tuned = {name: value.copy() for name, value in base.items() if name != "gone"}
    tuned["w"] += draw.standard_normal((64, 33), np.float32) * np.float32(1e-3)
    tuned["w"].view(np.uint32)[0, :4] = [0x7FC00001, 0xFFFFFFFF, 0x80000000, 0x7F800000]
    tuned["half"].view(np.uint16)[:] = draw.integers(0, 2**16, 1001, np.uint16)
    tuned["long"][0] = -(2**63)
    tuned["grown"] = np.array([1, 2, 3], np.float32)
    tuned["cast"] = np.array([1, 2], np.float16)
    tuned["new"] = np.array([1, -1], np.int8)
    return tuned, base


@pytest.fixture
def checkpoints(tmp_path: Path, seed: int) -> tuple[Path, Path]:
    paths = tmp_path / "tuned.safetensors", tmp_path / "base.safetensors"
    for path, content in zip(paths, tensors(seed), strict=True):
        save_file(content, path, metadata={"format": "np", "of": path.stem})
    return paths


def test_a_restored_file_has_the_same_bytes(cli: Cli, checkpoints: tuple[Path, Path], tmp_path: Path) -> None:
    tuned, base = checkpoints
    code, out, _err = cli("delta", tuned, base, "--output", tmp_path / "d.eltd", "--json")
    assert code == 0
    counts = {"changed": 3, "unchanged": 7, "added": 1, "replaced": 2, "dropped": 1}
    assert {name: json.loads(out)[name] for name in counts} == counts
    assert cli("restore", base, tmp_path / "d.eltd", "--output", tmp_path / "back.safetensors") == (
        0,
        "13 tensors restored and verified\n",
        "",
    )
    assert (tmp_path / "back.safetensors").read_bytes() == tuned.read_bytes()


def test_a_tensor_has_a_plane_for_each_byte_of_its_elements(
    cli: Cli, checkpoints: tuple[Path, Path], tmp_path: Path, seed: int
) -> None:
    assert cli("delta", *checkpoints, "--output", tmp_path / "d.eltd")[0] == 0
    delta, _file = open_delta(tmp_path / "d.eltd")
    assert {each.name: each.width for each in delta.tensors} == {
        name: array.dtype.itemsize for name, array in tensors(seed)[0].items()
    }


def sharded(folder: Path, content: dict[str, Any]) -> Path:
    folder.mkdir()
    names = list(content)
    index: dict[str, str] = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: content[name] for name in part}, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return path


def test_checkpoints_in_shards(tmp_path: Path, seed: int) -> None:
    new, old = tensors(seed)
    tuned, base = sharded(tmp_path / "tuned", new), sharded(tmp_path / "base", old)
    eltwise.delta(tuned, base.parent, tmp_path / "d.eltd")
    eltwise.restore(base, tmp_path / "d.eltd", tmp_path / "back.safetensors")
    back = load_file(tmp_path / "back.safetensors")
    assert {name: (value.dtype, value.shape, value.tobytes()) for name, value in back.items()} == {
        name: (value.dtype, value.shape, value.tobytes()) for name, value in new.items()
    }


def test_a_tensor_of_many_pieces(tmp_path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    old = draw.standard_normal(3 * PIECE // 4 + 1, np.float32)
    new = old + draw.standard_normal(old.size, np.float32) * np.float32(1e-6)
    save_file({"x": new}, tmp_path / "tuned.safetensors")
    save_file({"x": old}, tmp_path / "base.safetensors")
    seen: list[int] = []
    report = eltwise.delta(
        tmp_path / "tuned.safetensors",
        tmp_path / "base.safetensors",
        tmp_path / "d.eltd",
        progress=lambda done, _count, _name: seen.append(done),
    )
    assert report.delta_bytes < 0.6 * report.tuned_bytes
    assert str(report).startswith("1 tensor: 1 changed; ")
    assert seen == [PIECE, 2 * PIECE, 3 * PIECE, 3 * PIECE + 4]
    eltwise.restore(tmp_path / "base.safetensors", tmp_path / "d.eltd", tmp_path / "back.safetensors")
    assert (tmp_path / "back.safetensors").read_bytes() == (tmp_path / "tuned.safetensors").read_bytes()


def test_another_base_is_refused_and_nothing_is_written(
    cli: Cli, checkpoints: tuple[Path, Path], tmp_path: Path
) -> None:
    tuned, base = checkpoints
    eltwise.delta(tuned, base, tmp_path / "d.eltd")
    (tmp_path / "back.safetensors").write_text("as it was")
    content = load_file(base)
    content["half"].view(np.uint16)[3] ^= 1
    save_file(content, base)
    line = ("restore", base, tmp_path / "d.eltd", "-o", tmp_path / "back.safetensors", "--force")
    code, _out, err = cli(*line)
    assert code == 2
    assert "tensor 'half': this is not the base that the delta was made with" in err
    del content["half"]
    save_file(content, base)
    assert "this is not the base" in cli(*line)[2]
    assert (tmp_path / "back.safetensors").read_text() == "as it was"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        *((lambda data, place=place: flipped(data, place), r"d\.eltd") for place in (0, 9, 200, -1, -30)),
        *((lambda data, end=end: data[:end], "no delta|bytes are missing|truncated") for end in (0, 7, 8, 31, -1)),
        (lambda data: data[: len(data) // 2], "no delta|bytes are missing|truncated"),
        (lambda data: data + data, "are of no tensor"),
        (lambda data: data + data[: len(data) // 3], "or were appended"),
    ],
)
def test_a_damaged_delta_is_refused(
    checkpoints: tuple[Path, Path], tmp_path: Path, changed: Callable[[bytes], bytes], words: str
) -> None:
    path = tmp_path / "d.eltd"
    eltwise.delta(*checkpoints, path)
    path.write_bytes(changed(path.read_bytes()))
    with pytest.raises(eltwise.EltwiseError, match=words):
        eltwise.restore(checkpoints[1], path, tmp_path / "back.safetensors")
    assert not (tmp_path / "back.safetensors").exists()


def flipped(data: bytes, place: int) -> bytes:
    found = bytearray(data)
    found[place] ^= 0x55
    return bytes(found)


def rewritten(path: Path, change: Callable[[dict[str, Any]], object], version: int = 1) -> None:
    """Give a delta another header, with the right checksum."""
    data = path.read_bytes()
    length = FOOTER.unpack(data[-FOOTER.size :])[2]
    fields = json.loads(data[-FOOTER.size - length : -FOOTER.size])
    change(fields)
    text = json.dumps(fields).encode()
    path.write_bytes(data[: -FOOTER.size - length] + text + FOOTER.pack(crc32c(text), version, len(text), MAGIC))


def first(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda header: header["tensors"][0].update(fields)


HUGE = {"size": 1 << 60, "shape": [1 << 60], "dtype": "U8", "width": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda header: header.update(piece_bytes=1 << 50),
            "piece_bytes: this value cannot be read, got 1125899906842624",
        ),
        (lambda header: header.update(tensors=3), "tensors: this value cannot be read, got 3; allowed: a list"),
        (lambda header: header["tensors"].append(header["tensors"][0]), "two tensors have one name"),
        (lambda header: header.update(safetensors_header="{}"), "safetensors refuses the header"),
        (lambda header: header.update(safetensors_header="{"), "safetensors refuses the header"),
        (
            lambda header: header.update(dropped=[3]),
            r"dropped\[0\]: this value cannot be read, got 3; allowed: a string",
        ),
        (first(**HUGE), "frames, expected"),
        (first(shape=[1 << 40, 1 << 40]), "its type and shape are not"),
        (first(shape=[-1]), r"shape\[0\]: this value cannot be read, got -1"),
        (first(size=True), r"tensors\[0\].size: this value cannot be read, got True"),
        (first(width=3), "width: this value cannot be read, got 3; allowed: one of 1, 2, 4, 8"),
        (first(kind="stranger"), "kind: .*allowed: one of difference, added, replaced"),
        (first(dtype="F99"), "unsupported element type"),
        (first(offset=1 << 40), "beyond the end"),
        (first(frames=[1 << 40]), "beyond the end"),
        (first(frames=[]), "frames, expected"),
        (first(base_checksum=None), "base_checksum"),
        (first(base_checksum=0), "not the base that the delta was made with"),
        (first(checksum=0), "the restored bytes have another checksum"),
    ],
)
def test_a_header_that_lies_is_refused(
    checkpoints: tuple[Path, Path], tmp_path: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    path = tmp_path / "d.eltd"
    eltwise.delta(*checkpoints, path)
    rewritten(path, change)
    with pytest.raises(eltwise.EltwiseError, match=words):
        eltwise.restore(checkpoints[1], path, tmp_path / "back.safetensors")


SMALL = {
    "x": np.arange(6, dtype=np.uint16).reshape(2, 3),
    "y": np.array([1.5], np.float32),
    "none": np.zeros((0, 4), np.int8),
}

HOSTILE = [
    *("5.0", "-0", "1e0", "1e999", "NaN", "-1", "true", "null", "18446744073709551616", "9" * 5000, "0", "1", "6"),
    *('"U16"', '"F99"', '"a"', '"5"', r'"\ud800"', r'"\u0000"', r'"\ud83d\ude00"'),
    *("[]", "{}", "[[]]", '["U8",[4],[0,4]]', '{"a":"b"}', '{"a":1}', '{"a":null}', "[" * 200_000),
    *('{"a":"b","a":"b"}', '{"dtype":"U16","dtype":"U16","shape":[2,3],"data_offsets":[0,12]}'),
    '{"dtype":"U16","shape":[2,3],"data_offsets":[0,12],"more":{"z":[1]}}',
]
"""JSON in the place of a value."""

NAMES = [
    '"__metadata__"',
    '"x"',
    '"y"',
    r'"\ud800"',
    r'"\u0078"',
    '""',
    r'"\u0000"',
    '"dtype"',
    r'"\u001b]0;PWN\u0007"',
]
"""JSON in the place of a name."""

AROUND = [
    ("", " "),
    ("", "\n\t "),
    (" ", ""),
    ("\ufeff", ""),
    ("", "x"),
    ("", "\0"),
    ("[", "]"),
    ("", "," * 3),
    ("", "{}"),
]
"""What comes before and after a header."""

MARK = "a value that is replaced"


def replaced(fields: Any) -> Iterator[str]:
    """The JSON of fields with each value and each name replaced in turn, and with each value there twice."""
    whole = json.dumps(fields)
    yield from (f"{before}{whole}{after}" for before, after in AROUND)
    for path in paths(fields):
        holder = copied = json.loads(whole)
        for step in path[:-1]:
            holder = holder[step]
        old = holder[path[-1]]
        holder[path[-1]] = MARK
        yield from (json.dumps(copied).replace(f'"{MARK}"', text) for text in HOSTILE)
        if isinstance(holder, dict):
            del holder[path[-1]]
            yield json.dumps(copied)
            holder[MARK] = old
            yield from (json.dumps(copied).replace(f'"{MARK}"', name) for name in (*NAMES, json.dumps(path[-1])))
            holder[path[-1]] = old
            yield json.dumps(copied).replace(f'"{MARK}"', json.dumps(path[-1]))


def paths(fields: Any) -> Iterator[tuple[Any, ...]]:
    """Where each value of JSON is."""
    steps = fields if isinstance(fields, dict) else range(len(fields)) if isinstance(fields, list) else ()
    for step in steps:
        yield (step,)
        yield from ((step, *rest) for rest in paths(fields[step]))


def headers(fields: dict[str, Any]) -> Iterator[str]:
    """Headers of deltas that lie: about the header of the result, about tensors, and about both in the same way."""
    header = json.loads(fields["safetensors_header"])
    for text in replaced(header):
        yield json.dumps({**fields, "safetensors_header": text})
        yield json.dumps({**fields, "safetensors_header": text}, ensure_ascii=False)
    yield from replaced(fields)
    for name in NAMES:
        renamed = json.dumps(header).replace('"none"', name)
        yield json.dumps({**fields, "safetensors_header": renamed}).replace('"name": "none"', f'"name": {name}')


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A base, and the delta of a checkpoint with metadata."""
    base, path = tmp_path / "base.safetensors", tmp_path / "d.eltd"
    save_file({"x": SMALL["x"] + np.uint16(1)}, base)
    save_file(SMALL, tmp_path / "tuned.safetensors", metadata={"format": "np", "of": "tuned"})  # type: ignore[arg-type]
    eltwise.delta(tmp_path / "tuned.safetensors", base, path)
    return base, path


@pytest.mark.slow
def test_whatever_a_header_says_the_file_is_one_or_nothing_is_written(small: tuple[Path, Path], tmp_path: Path) -> None:
    """It opens with safetensors and has these tensors and this metadata, or it is refused in one sentence."""
    base, path = small
    data, back, before = path.read_bytes(), tmp_path / "back.safetensors", sorted(tmp_path.iterdir())
    length = FOOTER.unpack(data[-FOOTER.size :])[2]
    fields, frames = json.loads(data[-FOOTER.size - length : -FOOTER.size]), data[: -FOOTER.size - length]
    restored = refused = 0
    for lie in headers(fields):
        text = lie.encode("utf-8", "surrogatepass")
        path.write_bytes(frames + text + FOOTER.pack(crc32c(text), 1, len(text), MAGIC))
        try:
            delta = eltwise.restore(base, path, back)
        except eltwise.EltwiseError as error:
            sentence = str(error)
        else:
            sentence = ""
        if sentence:
            assert sorted(tmp_path.iterdir()) == before, lie[:2000]
            assert sentence.isprintable()
            refused += 1
            continue
        check_restored(back, delta.header, {tensor.name: (tensor.dtype, [*tensor.shape]) for tensor in delta.tensors})
        eltwise.compare(back, back)
        back.unlink()
        restored += 1
    assert restored > 20
    assert refused > 500


def check_restored(path: Path, header: bytes, stated: dict[str, tuple[str, list[int]]]) -> None:
    with safe_open(path, "np") as file:
        found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        assert {name: (each.get_dtype(), each.get_shape()) for name, each in found.items()} == stated
        assert (file.metadata() or {}) == (json.loads(header).get("__metadata__") or {})
    values = load_file(path)
    assert sorted(values[name].tobytes() for name in stated) == sorted(value.tobytes() for value in SMALL.values())  # type: ignore[attr-defined]


ONE = '"x":{"dtype":"U16","shape":[2,3],"data_offsets":[0,12]}'


@pytest.mark.parametrize(
    "header",
    [
        f'{{"__metadata__":["a"],{ONE}}}',
        f'{{"__metadata__":{{"a":1}},{ONE}}}',
        f'{{"__metadata__":{{"a":"b","a":"c"}},{ONE}}}',
        f"{{{ONE},{ONE}}}",
        f"{{{ONE.replace('3', '3.0')}}}",
        f"{{{ONE.replace('[0', '[-0')}}}",
        pytest.param(f"{{{ONE}}}{' ' * 120_000_000}", marks=pytest.mark.slow),
        f'{{"__metadata__":{{"a":"\\ud800"}},{ONE}}}',
        f'{{"__metadata__":{{"a":"\ud800"}},{ONE}}}',
    ],
    ids=["a list", "a number", "metadata twice", "a tensor twice", "a float", "-0", "120 MB", "half", "half, escaped"],
)
def test_a_delta_of_what_safetensors_refuses(cli: Cli, tmp_path: Path, header: str) -> None:
    for name in ("tuned", "base"):
        save_file({"x": SMALL["x"]}, tmp_path / f"{name}.safetensors")  # type: ignore[dict-item]
    base, path, back = (tmp_path / name for name in ("base.safetensors", "d.eltd", "back.safetensors"))
    eltwise.delta(tmp_path / "tuned.safetensors", base, path)
    rewritten(path, lambda fields: fields.update(safetensors_header=header))
    code, out, err = cli("restore", base, path, "-o", back)
    assert (code, out, err.count("\n"), back.exists()) == (2, "", 1, False)
    assert err.startswith(f"eltwise: {path}: ")


def test_the_tensors_of_shards_that_no_file_can_hold(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their header would be larger than safetensors reads."""
    index = sharded(tmp_path / "tuned", dict.fromkeys("abcd", SMALL["x"]))
    monkeypatch.setattr("eltwise.formats.safetensors_files.LARGEST_HEADER", 100)
    code, _out, err = cli("delta", index, index, "-o", tmp_path / "d.eltd")
    assert code == 2
    assert "the header is too large for a safetensors file" in err
    assert not (tmp_path / "d.eltd").exists()


def test_a_result_that_does_not_fit_is_refused_with_both_sizes(
    cli: Cli, small: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, path = small
    needed = (tmp_path / "tuned.safetensors").stat().st_size
    free = [needed - 1, needed]
    monkeypatch.setattr("shutil.disk_usage", lambda _path: shutil._ntuple_diskusage(1 << 40, 0, free[0]))
    line = ("restore", base, path, "-o", tmp_path / "back.safetensors")
    code, _out, err = cli(*line)
    assert (code, (tmp_path / "back.safetensors").exists()) == (2, False)
    assert f"larger than the free space of its disk, got {needed} bytes; allowed: up to {needed - 1} bytes" in err
    free.pop(0)
    assert cli(*line)[0] == 0


def test_a_file_that_is_not_ours_is_replaced_with_force_only(
    cli: Cli, small: tuple[Path, Path], tmp_path: Path
) -> None:
    base, path = small
    tuned, back = tmp_path / "tuned.safetensors", tmp_path / "back.safetensors"
    assert cli("delta", tuned, base, "-o", path)[0] == 0
    for content in (b"", b"mine", MAGIC[:-1], b"x" * 100):
        for line in (("delta", tuned, base, "-o", tmp_path / "mine"), ("restore", base, path, "-o", back)):
            line[-1].write_bytes(content)
            code, out, err = cli(*line)
            assert (code, out, err.count("\n"), line[-1].read_bytes()) == (2, "", 1, content)
            assert "this file exists" in err
            assert "--force" in err
            assert cli(*line, "--force")[0] == 0
    assert back.read_bytes() == tuned.read_bytes()
    code, _out, err = cli("restore", base, path, "-o", back)
    assert (code, "this file exists" in err) == (2, True)
    (tmp_path / "mine").unlink()
    (tmp_path / "mine").mkdir()
    assert "not a file" in cli("delta", tuned, base, "-o", tmp_path / "mine", "--force")[2]


def test_a_frame_that_states_another_size_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    for name in ("tuned", "base"):
        save_file({"x": np.zeros(100, np.uint8)}, tmp_path / f"{name}.safetensors")
    path = tmp_path / "d.eltd"
    eltwise.delta(tmp_path / "tuned.safetensors", tmp_path / "base.safetensors", path)
    bomb = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 50) + b"\x01\x00\x00"
    data = path.read_bytes()
    header = data[-FOOTER.size - FOOTER.unpack(data[-FOOTER.size :])[2] :]
    path.write_bytes(MAGIC + bomb + header)
    rewritten(path, first(offset=8, frames=[len(bomb)]))
    with pytest.raises(eltwise.EltwiseError, match="another size than its piece"):
        eltwise.restore(tmp_path / "base.safetensors", path, tmp_path / "back.safetensors")


def test_another_version_is_refused(checkpoints: tuple[Path, Path], tmp_path: Path) -> None:
    eltwise.delta(*checkpoints, tmp_path / "d.eltd")
    rewritten(tmp_path / "d.eltd", lambda _header: None, version=2)
    with pytest.raises(eltwise.EltwiseError, match="unknown version of a delta, got 2; allowed: 1"):
        open_delta(tmp_path / "d.eltd")


def test_a_checkpoint_is_restored_to_a_file_of_its_ending_only(cli: Cli, small: tuple[Path, Path]) -> None:
    base, path = small
    code, _out, err = cli("restore", base, path, "-o", path.with_name("x.npy"))
    assert code == 2
    assert "cannot be written to a file with this ending, got .npy; allowed: .safetensors" in err


@pytest.mark.parametrize(
    ("given_files", "words"),
    [
        (("tuned.safetensors", "missing.safetensors"), "there is no such file"),
        (("tuned.safetensors", "x.npy"), "unknown file ending, got .npy"),
        (("empty", "base.safetensors"), "this folder is no checkpoint in shards"),
        (("evil.safetensors.index.json", "base.safetensors"), "names what is not a file in its folder"),
        (("cut.safetensors", "base.safetensors"), "not a readable safetensors file"),
    ],
)
def test_checkpoints_that_are_none(
    cli: Cli, checkpoints: tuple[Path, Path], tmp_path: Path, given_files: tuple[str, str], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "evil.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "../base.safetensors"}}))
    (tmp_path / "cut.safetensors").write_bytes(checkpoints[0].read_bytes()[:-1])
    code, _out, err = cli("delta", *(tmp_path / name for name in given_files), "-o", tmp_path / "d.eltd")
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "d.eltd").exists()


def test_a_full_disk_leaves_the_target_as_it_was(
    cli: Cli, checkpoints: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_error: object) -> None:
            self.file.close()

        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda *arguments: Full(opened(*arguments)))
    (tmp_path / "d.eltd").write_text("as it was")
    code, _out, err = cli("delta", *checkpoints, "-o", tmp_path / "d.eltd", "--force")
    assert code == 2
    assert "d.eltd: the file cannot be written (No space left on device)" in err
    assert (tmp_path / "d.eltd").read_text() == "as it was"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_checkpoint(tmp_path: Path) -> None:
    """What a process needs for 16 MiB and for 192 MiB of zeros, in a file of holes."""
    peaks = []
    for size in (16 << 20, 192 << 20):
        header = json.dumps({"x": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
        for name in ("tuned", "base"):
            with (tmp_path / f"{name}.safetensors").open("wb") as file:
                file.write(len(header).to_bytes(8, "little") + header)
                file.truncate(8 + len(header) + size)
        code = (
            "import sys, eltwise; tuned, base, d, back = sys.argv[1:];"
            "eltwise.delta(tuned, base, d); eltwise.restore(base, d, back, force=True);"
            f"print({PEAK_KIB})"
        )
        names = [str(tmp_path / name) for name in ("tuned.safetensors", "base.safetensors", "d.eltd", "b.safetensors")]
        done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)  # noqa: S603
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 100 * 1024


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no such signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_command_that_is_terminated_leaves_nothing(name: str, tmp_path: Path, seed: int) -> None:
    """SIGHUP comes when a terminal is closed."""
    number = signal.Signals[name]
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests were started to ignore it, as by nohup, and so is the command")
    values = np.random.default_rng(seed).standard_normal((16, 1 << 20), np.float32)
    save_file({"x": values}, tmp_path / "a.safetensors")
    save_file({"x": values + 1}, tmp_path / "b.safetensors")
    line = [sys.executable, "-m", "eltwise", "delta", "a.safetensors", "b.safetensors", "-o", "d.eltd", "--level", "19"]
    with subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE) as running:  # noqa: S603
        wait_for(lambda: bool(list(tmp_path.glob(".d.eltd.*"))))
        running.send_signal(number)
        assert (running.communicate(timeout=600)[1], running.returncode) == (b"", 128 + number)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.safetensors", "b.safetensors"]
