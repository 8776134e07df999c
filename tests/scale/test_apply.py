"""Operators on files in blocks: the same bits as in memory, resumed where they were ended, or refused in a sentence."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import zarr
from safetensors.numpy import load_file, save_file

import eltwise
from eltwise.scale import blocks
from eltwise.scale.apply import apply_files
from eltwise.scale.blocks import BlockCall
from eltwise.scale.journal import JobIdentity, open_journal
from support.buckets import BUCKET
from support.onnx_models import model, node, value
from support.peak import PEAK_KIB
from support.stores import Stop, begun, chunk_files, read, store, unfinished
from support.waiting import wait_for

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def operands(seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.standard_normal((23, 31), np.float32), draw.standard_normal((23, 31), np.float32)


def written(path: Path, kind: str, values: np.ndarray) -> Path:
    """A file or store of some kind."""
    if kind == "npy":
        np.save(path.with_suffix(".npy"), values)
        return path.with_suffix(".npy")
    if kind == "fortran":
        np.save(path.with_suffix(".npy"), np.asfortranarray(values))
        return path.with_suffix(".npy")
    options: dict[str, Any] = {  # type: ignore[assignment]
        "v2": {"zarr_format": 2},
        "v3": {},
        "sharded": {"shards": (10, 14)},
        "plain": {"compressors": None},
        "large": {"chunks": (23, 16)},
    }[kind]
    return store(path.with_suffix(".zarr"), values, **options)


@pytest.mark.parametrize(
    ("first", "second", "output"),
    [
        ("v2", "v2", "c.zarr"),
        ("v3", "v2", "c.zarr"),
        ("sharded", "large", "c.zarr"),
        ("plain", "npy", "c.zarr"),
        ("npy", "v3", "c.zarr"),
        ("v3", "npy", "c.npy"),
        ("fortran", "sharded", "c.npy"),
    ],
)
def test_a_result_has_the_bits_of_one_in_memory(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, first: str, second: str, output: str
) -> None:
    a, b = (written(tmp_path / name, kind, x) for name, kind, x in zip("ab", (first, second), operands, strict=True))
    assert cli("apply", "Subtract-1", a, b, "--output", tmp_path / output) == (0, "", "")
    assert read(tmp_path / output).tobytes() == eltwise.subtract(*operands).tobytes()
    if output == "c.zarr":
        made = zarr.open_array(str(tmp_path / output), mode="r")
        assert made.attrs["eltwise"]["complete"] is True
        if first in ("v2", "v3", "sharded", "plain"):
            model = zarr.open_array(str(a), mode="r")
            assert (made.chunks, made.shards, made.metadata.zarr_format, made.compressors) == (
                (model.chunks, model.shards, model.metadata.zarr_format, model.compressors)
            )
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("operator", "attributes", "shape"),
    [
        ("Subtract-1", {}, (31,)),
        ("Subtract-1", {}, (23, 1)),
        ("Subtract-1", {}, ()),
        ("Subtract-1", {"auto_broadcast": "pdpd", "axis": 0}, (23,)),
        ("Sub-6", {"broadcast": 1, "axis": 0}, (23,)),
        ("Less-1", {}, (23, 31)),
    ],
)
@pytest.mark.parametrize("block", [1 << 20, 40])
def test_every_broadcast(
    cli: Cli,
    operands: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operator: str,
    attributes: dict[str, Any],
    shape: tuple[int, ...],
    block: int,
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
    a, b = operands[0], operands[1].reshape(-1)[: int(np.prod(shape))].reshape(shape)
    paths = store(tmp_path / "a.zarr", a), written(tmp_path / "b", "npy", b)
    options = [text for name, value in attributes.items() for text in ("--attr", f"{name}={value}")]
    expected = eltwise.operator(operator, **attributes)(a, b)
    for output in ("c.npy", "c.zarr"):
        assert cli("apply", operator, *paths, *options, "-o", tmp_path / output) == (0, "", "")
        assert read(tmp_path / output).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"dimension_names": ("row", None), "chunks": (4, 9)},
        {"shards": (10, 14)},
        {"compressors": None},
        {"compressors": [{"name": "gzip", "configuration": {"level": 2}}]},
        {"zarr_format": 2, "compressors": None},
        {"zarr_format": 2, "chunks": (23, 3)},
    ],
    ids=str,
)
def test_a_store_is_described_as_its_first_operand_is(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, options: dict[str, Any]
) -> None:
    a = store(tmp_path / "a.zarr", operands[0], **options)
    assert cli("apply", "Sub-14", a, a, "-o", tmp_path / "c.zarr") == (0, "", "")
    expected, made = (zarr.open_array(str(path), mode="r") for path in (a, tmp_path / "c.zarr"))
    for name in ("shape", "dtype", "chunks", "shards", "compressors"):
        assert getattr(made, name) == getattr(expected, name), name
    for name in ("zarr_format", "dimension_names"):
        assert getattr(made.metadata, name, None) == getattr(expected.metadata, name, None), name


@pytest.mark.parametrize("ending", ["npy", "zarr"])
def test_a_path_is_not_read_as_a_url(cli: Cli, tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "a#1"
    folder.mkdir()
    (tmp_path / "a").mkdir()
    operand, result = folder / f"x?;b%23c.{ending}", folder / f"z?;b%23c.{ending}"
    if ending == "zarr":
        zarr.create_array(zarr.storage.LocalStore(operand), shape=(4,), dtype="f4")[...] = 3
    else:
        np.save(operand, np.full(4, 3, np.float32))
    assert cli("apply", "Sub-14", operand, operand, "-o", result)[0] == 0
    assert cli("compare", operand, result)[0] == 1
    assert {path.name for path in folder.iterdir()} == {operand.name, result.name}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "a#1"}
    assert not list((tmp_path / "a").iterdir())


def test_no_elements_and_one(cli: Cli, tmp_path: Path) -> None:
    for name, values in (("none", np.zeros((0, 4), np.int8)), ("one", np.array(5, np.int8))):
        path = store(tmp_path / f"{name}.zarr", values, chunks=(1,) * values.ndim if values.ndim else ())
        for output in (f"{name}-c.npy", f"{name}-c.zarr"):
            assert cli("apply", "Subtract-1", path, path, "-o", tmp_path / output) == (0, "", "")
            assert read(tmp_path / output).tobytes() == (values - values).tobytes()


def checkpoint(path: Path, names: str, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    content = {name: draw.standard_normal((9, 11)).astype(ml_dtypes.bfloat16) for name in names}
    save_file(content, path, metadata={"format": "pt"})
    return content


def test_checkpoints_tensor_by_tensor(cli: Cli, tmp_path: Path, seed: int) -> None:
    a = checkpoint(tmp_path / "a.safetensors", "xyz", seed)
    b = checkpoint(tmp_path / "b.safetensors", "zyx", seed + 1)
    files = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    code, out, _err = cli("apply", "Sub-14", *files, "--output", tmp_path / "c.safetensors", "--json")
    assert code == 0
    found = load_file(tmp_path / "c.safetensors")
    lost = 0
    for name, tensor in found.items():
        assert tensor.tobytes() == eltwise.subtract(a[name], b[name]).tobytes()
        lost += int((eltwise.add(b[name], tensor).view(np.uint16) != a[name].view(np.uint16)).sum())
    assert lost > 0
    counts = {"blocks": 3, "resumed": 0, "damaged": 0, "elements": 297, "bytes": 594, "not_inverted": lost}
    assert json.loads(out)["outputs"]["result"] == counts | {"was_complete": False, "changed": []}
    out = cli("apply", "Sub-14", *files, "--output", tmp_path / "c.safetensors")[1]
    assert out.startswith(f"b + (a - b) is not a for {lost} of 297 elements")


def test_shards(cli: Cli, tmp_path: Path, seed: int) -> None:
    content = checkpoint(tmp_path / "one.safetensors", "x", seed) | checkpoint(tmp_path / "two.safetensors", "y", seed)
    index = tmp_path / "m.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "one.safetensors", "y": "two.safetensors"}}))
    assert cli("apply", "Add-14", index, index, "-o", tmp_path / "c.safetensors") == (0, "", "")
    found = load_file(tmp_path / "c.safetensors")
    assert {name: value.tobytes() for name, value in found.items()} == {
        name: eltwise.add(value, value).tobytes() for name, value in content.items()
    }


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the blocks that are computed."""
    count = [0]
    compute = BlockCall.compute

    def counting(self: BlockCall, given: Any) -> np.ndarray:
        count[0] += 1
        return compute(self, given)

    monkeypatch.setattr(BlockCall, "compute", counting)
    return count


@pytest.mark.parametrize("output", ["{}/c.npy", "{}/c.zarr", f"{BUCKET}{{}}/c.zarr"])
def test_a_job_that_was_ended_goes_on_and_computes_no_block_twice(
    cli: Cli,
    operands: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    computed: list[int],
    output: str,
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 124)
    target = output.format(tmp_path)
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))
    reads = [0]
    read_block = BlockCall.read

    def ending(self: BlockCall, cut: Any) -> list[np.ndarray]:
        reads[0] += 1
        if reads[0] == 10:
            raise Stop
        return read_block(self, cut)

    monkeypatch.setattr(BlockCall, "read", ending)
    with pytest.raises(Stop):
        apply_files(eltwise.operator("Subtract-1"), [str(a), str(b)], target)
    before = computed[0]
    assert before > 0
    assert not (tmp_path / "c.npy").exists()
    code, out, err = cli("apply", "Subtract-1", a, b, "-o", target, "--json")
    found = json.loads(out)["outputs"]["result"]
    assert (code, found["resumed"], computed[0]) == (0, before, found["blocks"])
    assert err == f"resumed: {before} of {found['blocks']} blocks were done before\n"
    assert read(target).tobytes() == eltwise.subtract(*operands).tobytes()
    assert not list(tmp_path.glob(".*"))


SLOW = """
import sys, time
from eltwise.scale.blocks import BlockCall
compute = BlockCall.compute
def slow(self, operands):
    time.sleep(0.05)
    return compute(self, operands)
BlockCall.compute = slow
from eltwise.scale import blocks
blocks.BLOCK_BYTES = 124
from eltwise.cli import main
sys.argv = ["eltwise", *sys.argv[1:]]
main()
"""


def started(*arguments: object) -> subprocess.Popen[bytes]:
    """The command line with slow blocks, in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", SLOW, *map(str, arguments)], stderr=subprocess.PIPE)  # noqa: S603


def lines_of(target: Path) -> int:
    """How many blocks the journal of a target names."""
    journal = target.with_name(f".{target.name}.eltwise") / "journal"
    return max(journal.read_bytes().count(b"\n") - 1, 0) if journal.exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_a_killed_process_is_resumed_and_a_second_one_is_refused(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))
    target, command = tmp_path / "c.zarr", ("apply", "Subtract-1", a, b, "-o", tmp_path / "c.zarr")
    for turn in (1, 2):
        running = started(*command)
        wait_for(lambda turn=turn: lines_of(target) >= 4 * turn)  # type: ignore[misc]
        if turn == 2:
            code, _out, err = cli(*command)
            assert (code, "another process writes this target" in err) == (2, True)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert not target.exists()
        assert zarr.open_array(str(begun(target)), mode="r").attrs["eltwise"]["complete"] is False
    done, before = lines_of(target), chunk_files(begun(target))
    code, _out, err = cli(*command)
    assert (code, err) == (0, f"resumed: {done} of 25 blocks were done before\n")
    assert len(set(before.items()) & set(chunk_files(target).items())) >= done
    assert read(target).tobytes() == eltwise.subtract(*operands).tobytes()
    assert cli(*command) == (0, "", f"{target} is complete already\n")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_a_killed_process_that_wrote_a_file_is_resumed(operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))
    target, command = tmp_path / "c.npy", ("apply", "Subtract-1", a, b, "-o", tmp_path / "c.npy")
    running = started(*command)
    wait_for(lambda: lines_of(target) >= 3)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    done = lines_of(target)
    again = started(*command)
    assert f"resumed: {done} of 23 blocks were done before" in again.communicate()[1].decode()
    assert read(tmp_path / "c.npy").tobytes() == eltwise.subtract(*operands).tobytes()


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
def test_a_target_that_another_process_writes_is_refused(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, output: str
) -> None:
    a = store(tmp_path / "a.zarr", operands[0])
    with ExitStack() as stack:
        open_journal(stack, tmp_path / output, JobIdentity("", (), ()), 1)
        code, _out, err = cli("apply", "Subtract-1", a, a, "-o", tmp_path / output)
    assert code == 2
    assert err == f"eltwise: {tmp_path / output}: another process writes this target; wait until it is done\n"


def test_a_part_that_is_gone_is_written_again(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    a = store(tmp_path / "a.zarr", operands[0])
    with unfinished():
        apply_files(eltwise.operator("Subtract-1"), [str(a), str(a)], str(tmp_path / "c.npy"))
    (tmp_path / ".c.npy.eltwise" / "data").unlink()
    assert cli("apply", "Subtract-1", a, a, "-o", tmp_path / "c.npy") == (0, "", "")
    assert not read(tmp_path / "c.npy").any()


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
def test_a_full_disk_leaves_what_can_be_resumed(
    cli: Cli,
    operands: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    computed: list[int],
    output: str,
) -> None:
    import zarr.storage._local as local

    monkeypatch.setattr(blocks, "BLOCK_BYTES", 124)
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))
    (tmp_path / "c.npy").write_bytes(b"as it was")
    calls = [0]

    def full(function: Any) -> Any:
        def writing(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] > 8:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*arguments, **options)

        return writing

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full(os.pwrite))
        patched.setattr(local, "_put", full(local._put))
        code, _out, err = cli("apply", "Subtract-1", a, b, "-o", tmp_path / output)
    assert code == 2
    assert err.count("\n") == 1
    assert "No space left on device" in err
    assert "blocks are kept for the same command" in err
    assert (tmp_path / "c.npy").read_bytes() == b"as it was"
    done = computed[0]
    assert cli("apply", "Subtract-1", a, b, "-o", tmp_path / output, "--json")[0] == 0
    assert read(tmp_path / output).tobytes() == eltwise.subtract(*operands).tobytes()
    assert done < computed[0]


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
def test_a_disk_on_which_nothing_fits_holds_nothing_afterwards(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """Not even the first line of a journal."""
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))

    def full(*_arguments: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("write", "pwrite"):
        monkeypatch.setattr(os, name, full, raising=False)
    code, _out, err = cli("apply", "Subtract-1", a, b, "-o", tmp_path / output)
    assert (code, err.count("\n"), "No space left on device" in err) == (2, 1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
def test_a_corrupt_chunk_is_named_and_the_rest_is_kept(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path, computed: list[int], output: str
) -> None:
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))
    chunk = b / "c" / "2" / "3"
    whole = chunk.read_bytes()
    chunk.write_bytes(b"not zstd")
    command = ("apply", "Subtract-1", a, b, "-o", tmp_path / output)
    code, _out, err = cli(*command)
    assert code == 2
    assert err.count("\n") == 1
    assert f"{b}" in err
    assert "cannot be read" in err
    if output == "c.zarr":
        assert "chunk [2, 3]" in err
        assert "24 of 25 blocks are kept" in err
    assert computed[0] == (24 if output == "c.zarr" else computed[0])
    chunk.write_bytes(whole)  # Which blocks it was read for, nothing says: all are computed again.
    note = f"begun anew, since {b} changed since {tmp_path / output} was begun\n"
    assert cli(*command) == (0, "", note if output == "c.zarr" else "")
    assert read(tmp_path / output).tobytes() == eltwise.subtract(*operands).tobytes()


def test_a_result_of_another_command_is_left_as_it_is(
    cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    a, b = (store(tmp_path / f"{name}.zarr", values) for name, values in zip("ab", operands, strict=True))
    target = tmp_path / "c.zarr"
    assert cli("apply", "Subtract-1", a, b, "-o", target)[0] == 0
    before = chunk_files(target)
    for others in (("Subtract-1", b, a), ("openvino.Add-1", a, b), ("Sub-14", a, a)):
        code, out, err = cli("apply", *others, "-o", target)
        assert (code, out, "is not what this command has begun" in err) == (2, "", True), err
    assert chunk_files(target) == before


def test_other_operands_do_not_resume_a_job(cli: Cli, operands: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    a, b = (written(tmp_path / name, "npy", values) for name, values in zip("ab", operands, strict=True))
    other = store(tmp_path / "other.zarr", operands[0])
    for output in ("c.npy", "c.zarr"):
        with unfinished():
            apply_files(eltwise.operator("Subtract-1"), [str(a), str(b)], str(tmp_path / output))
    for given in ((a, other), (other, b)):
        for output in ("c.npy", "c.zarr"):
            code, _out, err = cli("apply", "Subtract-1", *given, "-o", tmp_path / output)
            assert (code, "another job on this target was begun and not finished" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a.zarr", "b.zarr"), "name a file with --output"),
        (("a.zarr", "missing.zarr", "-o", "c.zarr"), "there is no such file"),
        (("a.zarr", "short.zarr", "-o", "c.zarr"), "broadcast"),
        (("a.zarr", "int.zarr", "-o", "c.zarr"), "operand A is float32 and operand B is int32"),
        (("a.zarr", "group.zarr", "-o", "c.zarr"), "this zarr store is a group of arrays, got x"),
        (("a.zarr", "a.zarr", "-o", "int.zarr"), "the target exists"),
        (("a.zarr", "a.zarr", "-o", "group.zarr"), "the target exists"),
        (("a.zarr", "a.zarr", "-o", "other.zarr"), "the target exists"),
        (("a.zarr", "a.zarr", "-o", "no/c.zarr"), "folder does not exist"),
        (("a.zarr", "a.zarr", "-o", "no/c.npy"), "folder does not exist"),
        (("a.zarr", "a.zarr", "-o", "a.zarr/c.zarr"), "the output lies in an input"),
        (("a.zarr", "a.zarr", "-o", "c.npz"), "with this ending, got .npz; allowed: .npy, .zarr"),
        (("a.zarr", "a.zarr", "-o", "c.zarr", "--memory", "1MiB"), "--memory 257MiB"),
        (("a.zarr", "a.zarr", "-o", "c.zarr", "--memory", "much"), "not a size of memory, got 'much'"),
        (("a.zarr", "a.zarr", "-o", "c.npy", "--scheduler", "tcp://127.0.0.1:9"), "zarr stores only"),
        (("a.zarr", "one.safetensors", "-o", "c.zarr"), "another operand is a checkpoint"),
        (("one.safetensors", "two.safetensors", "-o", "c.safetensors"), "1 of the tensors of"),
        (("one.safetensors", "one.safetensors", "-o", "c.zarr"), "allowed: .safetensors"),
        (("one.safetensors", "evil.safetensors.index.json", "-o", "c.safetensors"), "not a file in its folder"),
        (("one.safetensors", "cut.safetensors", "-o", "c.safetensors"), "not a readable safetensors file"),
    ],
)
def test_what_is_refused_before_anything_is_written(
    cli: Cli,
    operands: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, values in zip("ab", operands, strict=True):
        store(tmp_path / f"{name}.zarr", values)
    store(tmp_path / "short.zarr", operands[0][:-1])
    store(tmp_path / "int.zarr", operands[0].astype(np.int32))
    zarr.open_group("group.zarr", mode="w").create_array("x", shape=(3,), dtype="f4")
    Path("other.zarr").mkdir()
    Path("other.zarr", "mine").touch()
    checkpoint(Path("one.safetensors"), "xy", 0)
    checkpoint(Path("two.safetensors"), "x", 0)
    Path("cut.safetensors").write_bytes(Path("one.safetensors").read_bytes()[:-4])
    Path("evil.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "/etc/passwd"}}))
    before = sorted(tmp_path.rglob("*"))
    code, _out, err = cli("apply", "Subtract-1", *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_division_by_zero_names_the_operand(cli: Cli, tmp_path: Path) -> None:
    a = store(tmp_path / "a.zarr", np.zeros((23, 31), np.int32))
    for output in ("c.npy", "c.zarr"):
        code, _out, err = cli("apply", "Divide-1", a, a, "-o", tmp_path / output)
        assert code == 2
        assert "an integer cannot be divided by 0" in err
    assert {path.name for path in tmp_path.iterdir()} == {"a.zarr"}


APPLY = "from eltwise.scale.apply import apply_files; apply_files(eltwise.operator('Subtract-1'), [a, b], c, resources)"
RUN = "from eltwise.scale.models import run_files; run_files('m.onnx', {'x': a, 'y': b}, {'z': c}, resources)"


@pytest.mark.slow
@pytest.mark.parametrize("job", [APPLY, RUN])
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_under_the_limit(tmp_path: Path, job: str) -> None:
    """Operands of 512 MiB each, in files of holes."""
    for name in "ab":
        values = np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.float32, (1 << 27,))
        values[-1] = 1
    nodes = [node("Sub", ["x", "y"], ["d"]), node("Mul", ["d", "x"], ["m"]), node("Add", ["m", "d"], ["z"])]
    onnx.save(model(nodes, [value("x", None), value("y", None)], [value("z", None)]), tmp_path / "m.onnx")
    code = (
        "import eltwise; from eltwise.scale.jobs import Resources;"
        f"a, b, c = 'a.npy', 'b.npy', 'c.npy'; resources = Resources(400 << 20); {job};"
        f"print({PEAK_KIB})"
    )
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, cwd=tmp_path, env=in_folder(), capture_output=True, text=True, check=True)  # noqa: S603
    assert int(done.stdout) < 400 * 1024


def in_folder() -> dict[str, str]:
    """The environment of a process in another folder."""
    return os.environ | {"PYTHONPATH": str(Path(eltwise.__file__).parents[1])}
