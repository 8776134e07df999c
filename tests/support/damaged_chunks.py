"""Zarr stores of every codec that is registered, and chunks that are damaged in every way; read in a child process.

``python damaged_chunks.py FOLDER KIND...`` compares a good store of each kind with stores that each have one damaged
chunk, and writes a line of JSON for each: the kind, the damage, the exit code, what went to stderr and the peak memory.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import random
import shutil
import struct
import sys
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numcodecs
import numcodecs.registry
import numpy as np
import zarr
import zarr.registry
import zstandard
from numcodecs.compat import ensure_bytes

from eltwise.cli import main

SIZES, CHUNK = (4, 1024), (1, 1024)
BOMB = 128 << 20
"""In bytes: what a bomb holds, where a chunk holds 4 kB."""

LONGER = "longer than any chunk"
"""A chunk of as many zeros as a bomb holds; a hole in a file takes no time to write."""

_LZMA = [{"id": lzma.FILTER_LZMA2, "preset": 1}]
NUMBERS = np.dtype("<f4")
CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    **{name: ({}, "<f4") for name in ("gzip", "zlib", "bz2", "lzma", "zstd", "lz4", "base64", "shuffle")},
    **{name: ({}, "<f4") for name in ("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3")},
    "bitround": ({"keepbits": 10}, "<f4"),
    "delta": ({"dtype": "<f4"}, "<f4"),
    "astype": ({"encode_dtype": "<f8", "decode_dtype": "<f4"}, "<f4"),
    "fixedscaleoffset": ({"offset": 1, "scale": 8, "dtype": "<f4", "astype": "<i2"}, "<f4"),
    "quantize": ({"digits": 3, "dtype": "<f4"}, "<f4"),
    "packbits": ({}, "|b1"),
    "scale_offset": ({"scale": 2.0}, "<f4"),
    "blosc": ({"cname": "zstd"}, "<f4"),
}
"""For each codec its parameters, and the element type of an array that has it."""

OF_OBJECTS = ("pickle", "json2", "msgpack2", "categorize", "vlen-array", "vlen-bytes")
OPTIONAL = ("zfpy", "pcodec", "cast_value")
"""Codecs of packages that are not installed."""

UNREADABLE = ("endian",)
"""An old name of ``bytes``, which zarr registers and then refuses."""

_INNER = ("bytes", "endian", "transpose", "sharding_indexed")
BLOSC = tuple(f"blosc-{name}" for name in numcodecs.blosc.list_compressors())
TEXTS = ("vlen-utf8", "texts-in-gzip", "shard-of-texts")
CHAINS = (
    *("gzip-in-zstd", "shuffle-in-zlib", "shard-of-blosc", "shard-of-gzip", "shard-of-shards", "shard-index-first"),
    *TEXTS[1:],
)


def v2_kinds() -> list[str]:
    """What is registered for arrays of format 2."""
    return sorted(set(numcodecs.registry.codec_registry) | set(numcodecs.registry.entries))


def v3_kinds() -> list[str]:
    """What is registered for arrays of format 3."""
    registries = vars(zarr.registry)  # Its name depends on the version.
    return sorted(registries.get("__codec_registries") or registries["_codec_registries"])


def kinds() -> list[str]:
    """Every codec of numbers of each format, the compressors in blosc, and codecs one after another."""
    found = [f"2:{name}" for name in v2_kinds()] + [f"3:{name}" for name in v3_kinds()]
    named = {kind: kind[2:].removeprefix("numcodecs.") for kind in found}
    left = [kind for kind, name in named.items() if name not in (*OF_OBJECTS, *OPTIONAL, *UNREADABLE)]
    return left + [f"{form}:{name}" for form in (2, 3) for name in BLOSC] + [f"3:{name}" for name in CHAINS]


def config_of(name: str) -> tuple[dict[str, Any], str]:
    """The parameters of a codec and the element type of its array."""
    if name in BLOSC:
        return {"cname": name.removeprefix("blosc-")}, "<f4"
    if name in TEXTS:
        return {}, "T"
    if name in (*_INNER, *CHAINS):
        return {}, "<f4"
    return CONFIGS[name]


def make(path: Path, kind: str) -> Path:
    """Make a store with a codec; gives the file of its last chunk."""
    form, _, full = kind.partition(":")
    name = full.removeprefix("numcodecs.")
    config, element_type = config_of(name)
    numbers = (np.arange(np.prod(SIZES)) % 251).reshape(SIZES)
    values = numbers.astype(element_type)
    if name in TEXTS:
        values = np.array(
            [["aé\u6f22\U0001f600"[: number % 5] * (number % 7) for number in row] for row in numbers], "T"
        )
    if form == "2":
        codec = numcodecs.get_codec({"id": name.partition("-")[0] if name in BLOSC else name, **config})
        codecs = {"filters": [codec], "compressors": None} if name in TEXTS else {"compressors": codec}
        array = zarr.create_array(
            str(path), shape=SIZES, chunks=CHUNK, dtype=np.dtype(element_type), zarr_format=2, **codecs
        )
        array[...] = values
        return path / "3.0"
    path.mkdir(parents=True)
    fields = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": SIZES,
        "data_type": {"<f4": "float32", "|b1": "bool", "T": "string"}[element_type],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": {"<f4": 0, "|b1": False, "T": ""}[element_type],
        "codecs": chain(full, name, config),
    }
    (path / "zarr.json").write_text(json.dumps(fields))
    zarr.open_array(str(path), mode="r+")[...] = values
    return path / "c" / "3" / "0"


def chain(full: str, name: str, config: dict[str, Any]) -> list[dict[str, Any]]:
    """The codecs of an array of format 3."""
    raw = {"name": "bytes", "configuration": {"endian": "little"}}
    if name in CHAINS:
        return _chain(name, raw)
    if name in TEXTS:
        return [{"name": name}]
    if name == "bytes":
        return [{"name": name, "configuration": {"endian": "little"}}]
    if name == "transpose":
        return [{"name": name, "configuration": {"order": [1, 0]}}, raw]
    if name == "sharding_indexed":
        return [shard([raw])]
    if name in BLOSC or full == "blosc":
        own = {"typesize": 4, "clevel": 5, "shuffle": "shuffle", "blocksize": 0, **config}
        return [raw, {"name": "blosc", "configuration": own}]
    standard = {"gzip": {"level": 1}, "zstd": {"level": 1, "checksum": False}, "crc32c": None}
    if full in standard:
        return [raw, {"name": full} if standard[full] is None else {"name": full, "configuration": standard[full]}]
    codec = {"name": full, "configuration": config}
    is_filter = name in ("delta", "astype", "fixedscaleoffset", "quantize", "bitround", "packbits", "scale_offset")
    return [codec, raw] if is_filter else [raw, codec]


def shard(codecs: list[dict[str, Any]], sizes: tuple[int, ...] = (1, 64), **more: Any) -> dict[str, Any]:
    """The codec of shards of chunks with some codecs."""
    raw = {"name": "bytes", "configuration": {"endian": "little"}}
    index = [raw, {"name": "crc32c"}]
    configuration = {"chunk_shape": sizes, "codecs": codecs, "index_codecs": index, **more}
    return {"name": "sharding_indexed", "configuration": configuration}


def _chain(name: str, raw: dict[str, Any]) -> list[dict[str, Any]]:
    compressed = {"name": "gzip", "configuration": {"level": 1}}
    blosc = {"typesize": 4, "clevel": 5, "shuffle": "shuffle", "blocksize": 0, "cname": "lz4"}
    texts: dict[str, Any] = {"name": "vlen-utf8"}
    chains: dict[str, list[dict[str, Any]]] = {
        "gzip-in-zstd": [raw, compressed, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
        "shuffle-in-zlib": [
            raw,
            {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}},
            {"name": "numcodecs.zlib", "configuration": {"level": 1}},
        ],
        "shard-of-blosc": [shard([raw, {"name": "blosc", "configuration": blosc}])],
        "shard-of-gzip": [shard([raw, compressed])],
        "shard-of-shards": [shard([shard([raw, compressed], (1, 16))])],
        "texts-in-gzip": [texts, compressed],
        "shard-of-texts": [shard([texts, compressed])],
        "shard-index-first": [shard([raw, compressed], index_location="start")],
    }
    return chains[name]


def damages(kind: str, whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Damaged chunks with their names; the kinds of a codec share them, and another kind of each codec begins."""
    alike = _alike(_codec(kind))
    every = [*_of_other_lengths(whole), *_changed(kind, whole)]
    yield from every[(alike.index(kind) + _codecs().index(_codec(kind))) % len(alike) :: len(alike)]
    yield from bombs(_codec(kind))
    yield LONGER, b""


def _of_other_lengths(whole: bytes) -> Iterator[tuple[str, bytes]]:
    for length in sorted({0, 1, 3, 4, 12, 15, 16, 17, len(whole) // 2, len(whole) - 5, len(whole) - 1}):
        if 0 <= length < len(whole):
            yield f"truncated to {length}", whole[:length]
    for more in (b"\0", b"\xff" * 16, whole, b"\0" * 70000):
        yield f"extended by {len(more)}", whole + more


def _codec(kind: str) -> str:
    return kind.partition(":")[2].removeprefix("numcodecs.")


@cache
def _alike(codec: str) -> list[str]:
    return [kind for kind in kinds() if _codec(kind) == codec]


@cache
def _codecs() -> list[str]:
    return list(dict.fromkeys(map(_codec, kinds())))


def _changed(kind: str, whole: bytes) -> Iterator[tuple[str, bytes]]:
    generator = random.Random(kind)  # noqa: S311
    places = [*range(0, min(16, len(whole)), 2), *(generator.randrange(len(whole)) for _ in range(4))]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << generator.randrange(8)
        yield f"flipped at {place}", bytes(flipped)
    for value in (0, 255):
        for place in range(0, min(20, len(whole)), 4):
            yield f"bytes {place} to {place + 4} are {value}", whole[:place] + bytes([value]) * 4 + whole[place + 4 :]


def bombs(name: str) -> Iterator[tuple[str, bytes]]:
    """Chunks that hold far more than they should."""
    few = bytes(BOMB // 12)
    if name in ("gzip", "bz2", "lzma", "shard-of-gzip"):
        member = {"bz2": bz2.compress, "lzma": lzma.compress}.get(name, gzip.compress)(few)
        yield "bomb of members", member * 12
    if name in ("vlen-utf8", "texts-in-gzip"):
        letters = b"x" * (BOMB // 16) + "\U0001f600".encode()  # Four bytes a letter once they are decoded.
        few = struct.pack("<II", CHUNK[1], len(letters)) + letters + bytes(4 * (CHUNK[1] - 1))
        yield "bomb of letters", few if name == "vlen-utf8" else gzip.compress(few, 1)
    if name in ("zlib", "shuffle-in-zlib"):
        yield "bomb", zlib.compress(bytes(BOMB))
    if name == "gzip-in-zstd":
        inner = gzip.compress(few) * 12
        yield "bomb in a bomb", zstandard.compress(inner)
        yield "bomb around it", zstandard.compress(bytes(BOMB))
    if name == "zstd":
        yield "bomb", zstandard.compress(bytes(BOMB))
        yield "bomb of frames", zstandard.compress(few) * 12
        unknown = zstandard.ZstdCompressor(write_content_size=False)
        yield "bomb of unknown size", unknown.compress(bytes(BOMB))
        yield "bomb of frames of unknown size", unknown.compress(few) * 12
    if name == "lz4" or name.startswith("blosc"):
        options = {"cname": name.removeprefix("blosc-")} if name in BLOSC else {}
        codec = {"id": name.partition("-")[0], **options}
        yield "bomb", ensure_bytes(numcodecs.get_codec(codec).encode(bytes(BOMB)))


def compared(a: Path, b: Path, *options: str) -> tuple[int, str]:
    """The exit code of the command that compares two stores, and what it writes to stderr."""
    sys.argv = ["eltwise", "compare", str(a), str(b), *options]
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), errors.getvalue()
        except BaseException as error:  # noqa: BLE001  # A traceback is what is looked for.
            return 1, f"Traceback: {error!r}\n"
    return 0, errors.getvalue()


def peak() -> int:
    """The most memory that this process has had, in kB."""
    with open("/proc/self/status") as status:  # noqa: PTH123
        return int(next(line.split()[1] for line in status if line.startswith("VmHWM")))


def run(folder: Path, chosen: list[str]) -> None:
    """Compare all stores of some kinds."""
    warnings.simplefilter("ignore")
    for kind in chosen:
        good, bad = (folder / kind.replace(":", "-") / name for name in ("good.zarr", "bad.zarr"))
        if not good.exists():
            make(good, kind)
            shutil.copytree(good, bad)
        chunk = make_path(bad)
        whole = make_path(good).read_bytes()
        compared(good, good)
        for number, (damage, content) in enumerate(damages(kind, whole)):
            print(json.dumps([kind, number, damage, "begin"]), flush=True)  # noqa: T201
            chunk.write_bytes(content)
            if damage == LONGER:
                os.truncate(chunk, BOMB)
            del content
            before = reset_peak()
            # Causes are looked for in the same chunks, which takes most of the time where a damage gives other numbers.
            code, err = compared(good, bad, *(["--no-causes"] if number % 4 else []))
            print(json.dumps([kind, number, damage, "end", code, err, peak() - before]), flush=True)  # noqa: T201


def make_path(store: Path) -> Path:
    """The file of the last chunk."""
    return store / "3.0" if (store / ".zarray").exists() else store / "c" / "3" / "0"


def reset_peak() -> int:
    """Make the peak what the memory is now; gives that, in kB."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
