"""Inputs that change before, during and after a job: the result of the new content or a refusal, never a mixture."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import zarr
from safetensors.numpy import save_file

import eltwise
from eltwise.core.errors import FileFormatError
from eltwise.scale import blocks
from eltwise.scale.apply import apply_files
from eltwise.scale.blocks import BlockCall
from eltwise.scale.checksum import crc32c
from eltwise.scale.jobs import JobPart, Resources
from eltwise.scale.models import run_files
from eltwise.scale.sources import open_sources
from eltwise.scale.zarr_target import ZarrBlocks, ZarrTarget
from eltwise.testing import assert_same
from support.buckets import BUCKET
from support.onnx_models import model, node, value
from support.stores import begun, read, store, unfinished

Cli = Callable[..., tuple[int, str, str]]
Write = Callable[[Path, np.ndarray], str]


def _npy(folder: Path, values: np.ndarray) -> str:
    np.save(folder / "a.npy", values)
    return str(folder / "a.npy")


def _fortran(folder: Path, values: np.ndarray) -> str:
    np.save(folder / "a.npy", np.asfortranarray(values))
    return str(folder / "a.npy")


def _safetensors(folder: Path, values: np.ndarray) -> str:
    save_file({"x": values}, folder / "a.safetensors")
    return str(folder / "a.safetensors")


def _shards(folder: Path, values: np.ndarray) -> str:
    save_file({"x": values}, folder / "one.safetensors")
    index = folder / "a.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "one.safetensors"}}))
    return str(index)


def _zarr(**options: Any) -> Write:
    def write(folder: Path, values: np.ndarray) -> str:
        return str(store(folder / "a.zarr", values, overwrite=True, **options))

    return write


def _url(folder: Path, values: np.ndarray) -> str:
    place = f"{BUCKET}{folder}/a.zarr"
    zarr.create_array(place, shape=values.shape, chunks=(5, 7), dtype="f4", overwrite=True)[...] = values
    return place


KINDS: dict[str, Write] = {
    "npy": _npy,
    "fortran": _fortran,
    "safetensors": _safetensors,
    "shards": _shards,
    "zarr 3": _zarr(),
    "zarr 2": _zarr(zarr_format=2),
    "not compressed": _zarr(compressors=None),
    "sharded": _zarr(shards=(10, 14)),
    "url": _url,
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 124)


@pytest.fixture
def contents(seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    old = draw.standard_normal((23, 31), np.float32)
    return old, old + np.float32(1)


def targets(kind: str, folder: Path) -> list[str]:
    if kind in ("safetensors", "shards"):
        return [str(folder / "c.safetensors")]
    return [str(folder / "c.npy"), str(folder / "c.zarr"), f"{BUCKET}{folder}/c.zarr"]


def exists(target: str) -> bool:
    if "://" not in target:
        return Path(target).exists()
    try:
        return zarr.open_array(target, mode="r").attrs["eltwise"]["complete"] is True
    except FileNotFoundError:
        return False


def twice(path: str) -> list[str]:
    return [path, path]


def apply(path: str, target: str) -> Any:
    return apply_files(eltwise.operator("Add-14"), twice(path), target)


def replaced(path: str, write: Callable[[], object]) -> None:
    """Write an input anew with its old times, as ``cp -p`` and ``rsync -t`` do."""
    if "://" in path:
        write()
        return
    files = [Path(path)] if Path(path).is_file() else [each for each in Path(path).rglob("*") if each.is_file()]
    if path.endswith(".index.json"):
        files.append(Path(path).with_name("one.safetensors"))
    times = {file: file.stat() for file in files}
    write()
    for file, status in times.items():
        if file.exists():
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def with_change(change: Callable[[], None]) -> Callable[..., np.ndarray]:
    """A method that computes blocks, and makes a change before the third."""
    compute, calls = BlockCall.compute, [0]

    def changing(self: BlockCall, operands: Any) -> np.ndarray:
        calls[0] += 1
        if calls[0] == 3:
            change()
        return compute(self, operands)

    return changing


@pytest.mark.parametrize("kind", KINDS)
def test_before_a_job_goes_on(kind: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    old, new = contents
    for target in targets(kind, tmp_path):
        path = KINDS[kind](tmp_path, old)
        with unfinished():
            apply(path, target)
        assert not exists(target)
        replaced(path, lambda: KINDS[kind](tmp_path, new))
        outcome = apply(path, target)
        assert (outcome.resumed, outcome.changed[:1]) == (0, (path,))
        assert read(target).tobytes() == (new + new).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_while_a_job_runs(
    kind: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = contents
    for target in targets(kind, tmp_path):
        path = KINDS[kind](tmp_path, old)

        def change(path: str = path) -> None:
            replaced(path, lambda: KINDS[kind](tmp_path, new))

        with monkeypatch.context() as patched:
            patched.setattr(BlockCall, "compute", with_change(change))
            with pytest.raises(eltwise.EltwiseError, match=r"changed while it was read|cannot be read") as refused:
                apply(path, target)
        assert path.removesuffix(".index.json").removesuffix("a.safetensors") in str(refused.value)
        assert not exists(target)
        apply(path, target)
        assert read(target).tobytes() == (new + new).tobytes()


def test_what_a_worker_writes_late_is_not_in_the_next_job(
    contents: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that hung, for a process that was killed, before the inputs changed."""
    old, new = contents
    path, target = KINDS["zarr 3"](tmp_path, old), tmp_path / "c.zarr"
    late: list[Callable[[], None]] = []
    write, finish = ZarrBlocks.write, ZarrTarget.finish

    def held(self: ZarrBlocks, part: JobPart, index: int, block: np.ndarray) -> None:
        worker = ZarrBlocks.opened(self.text, self.store)
        late.append(partial(write, worker, part, index, block))

    def finished(self: ZarrTarget) -> None:
        for each in late:
            each()
        finish(self)

    with unfinished(), monkeypatch.context() as patched:
        patched.setattr(ZarrBlocks, "write", held)
        apply(path, str(target))
    assert len(late) > 1
    KINDS["zarr 3"](tmp_path, new)
    with monkeypatch.context() as patched:
        patched.setattr(ZarrTarget, "finish", finished)
        apply(path, str(target))
    assert read(target).tobytes() == (new + new).tobytes()
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_job(kind: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    old, new = contents
    for target in targets(kind, tmp_path):
        path = KINDS[kind](tmp_path, old)
        apply(path, target)
        assert read(target).tobytes() == (old + old).tobytes()
        replaced(path, lambda: KINDS[kind](tmp_path, new))
        try:
            apply(path, target)
        except eltwise.EltwiseError as refused:
            assert "was made of another content of" in str(refused)  # noqa: PT017 - one of two right answers
            assert read(target).tobytes() == (old + old).tobytes()
        else:
            assert read(target).tobytes() == (new + new).tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("safetensors", "shards")])
@pytest.mark.parametrize("output", ["z.npy", "z.zarr"])
def test_models_while_they_run(
    kind: str, output: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input and the model itself."""
    old, new = contents
    path, target, file = KINDS[kind](tmp_path, old), tmp_path / output, tmp_path / "m.onnx"
    onnx.save(model([node("Add", ["x", "x"], ["z"], "plus")], [value("x", None)], [value("z", None)]), file)

    def job() -> None:
        run_files(str(file), {"x": path}, {"z": str(target)}, Resources())

    def of_input() -> None:
        KINDS[kind](tmp_path, new)

    def of_model() -> None:
        file.write_bytes(file.read_bytes().replace(b"plus", b"PLUS"))

    for change in (of_model, of_input):
        with monkeypatch.context() as patched:
            patched.setattr(BlockCall, "compute", with_change(change))
            with pytest.raises(eltwise.EltwiseError, match=r"changed while it was read|cannot be read"):
                job()
        assert not target.exists()
    job()
    assert read(str(target)).tobytes() == (new + new).tobytes()


@contextmanager
def changed_at_the_second_read(path: str, write: Callable[[], object]) -> Iterator[None]:
    """Replace what lies at a path when a tensor is read for the second time."""
    from eltwise.ir.tensors import Tensor

    located, calls = Tensor._located, [0]

    def changing(self: Tensor, *arguments: Any) -> np.ndarray:
        calls[0] += 1
        if calls[0] == 2:
            replaced(path, write)
        return located(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Tensor, "_located", changing)
        yield
    assert calls[0] >= 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["reduce", "compare"])
def test_what_gives_one_answer(
    cli: Cli, kind: str, command: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    old, new = contents
    path = KINDS[kind](tmp_path, old)
    if kind == "url" and command == "compare":
        pytest.skip("compare takes no URL")
    arguments = ("compare", *twice(path)) if command == "compare" else ("reduce", "sum", "Subtract-1", *twice(path))
    with changed_at_the_second_read(path, lambda: KINDS[kind](tmp_path, new)):
        code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert cli(*arguments)[0] == 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "url"])
def test_what_an_assertion_reads(kind: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    """It compared a part of one content with a part of another."""
    old, new = contents
    path = KINDS[kind](tmp_path, old)
    with (
        changed_at_the_second_read(path, lambda: KINDS[kind](tmp_path, new)),
        pytest.raises(eltwise.EltwiseError, match=r"changed while it was read|cannot be read"),
    ):
        assert_same(*twice(path))
    assert_same(*twice(path))


def test_a_chunk_that_is_added_or_removed_is_a_change(contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    from eltwise.formats.file_states import state

    path = store(tmp_path / "a.zarr", contents[0])
    states = [state(str(path))]
    chunk = path / "c" / "1" / "1"
    content = chunk.read_bytes()
    chunk.unlink()
    states.append(state(str(path)))
    chunk.write_bytes(content)
    states.append(state(str(path)))
    (path / "c" / "1" / "loop").symlink_to(path)
    states.append(state(str(path)))
    assert len(set(states)) == 4
    shutil.rmtree(path)
    with pytest.raises(eltwise.EltwiseError, match="there is no such file"):
        state(str(path))


@pytest.mark.parametrize("output", ["c.npy", "c.zarr", "c.safetensors", f"{BUCKET}/damage/c.zarr"])
@pytest.mark.parametrize("length", [0, 1, 60])
def test_a_finished_block_that_changed_on_disk_is_computed_again(
    cli: Cli,
    output: str,
    length: int,
    contents: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
) -> None:
    """The bytes of a block are others, or, of a chunk, fewer."""
    import fsspec

    is_checkpoint = output.endswith(".safetensors")
    path = KINDS["safetensors" if is_checkpoint else "not compressed"](tmp_path, contents[0])
    target = output.replace("damage", f"damage{length}") if "://" in output else str(tmp_path / output)
    with unfinished():
        apply(path, target)
    folder = tmp_path / f".{output}.eltwise" / "data"
    if "://" in target:
        system, root = fsspec.core.url_to_fs(target)
        content = system.cat_file(f"{root}/c/1/2")
        system.pipe_file(f"{root}/c/1/2", bytes(length) + content[length + 1 :])
    elif output == "c.zarr":
        chunk = begun(tmp_path / output) / "c" / "1" / "2"
        chunk.write_bytes(bytes(length) + chunk.read_bytes()[length + 1 :])
    else:
        content = folder.read_bytes()
        folder.write_bytes(content[: -400 - length] + bytes(length + 1) + content[-399:])
    code, _out, err = cli("apply", "Add-14", *twice(path), "-o", target)
    assert code == 0
    assert "1 had changed since and were computed again" in err
    assert read(target).tobytes() == (contents[0] + contents[0]).tobytes()
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def lined(line: bytes) -> bytes:
    """A line of a journal with its own checksum."""
    return line + b" %08x" % crc32c(line)


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
@pytest.mark.parametrize(
    "forged",
    [
        lambda line: lined(b"199 0 00000000"),
        lambda line: lined(b"23 0 00000000" if line.count(b" ") else b""),
        lambda line: b"-5 0 00000000 00000000",
        lambda line: b"1000000000000000000000000000000 0 00000000 00000000",
        lambda line: b"0 0",
        lambda line: line[:-1] + (b"0" if line[-1:] != b"0" else b"1"),
        lambda line: b"[" * 200_000,
        lambda line: b"\xff" * 50,
    ],
)
def test_a_forged_journal_is_refused(
    cli: Cli,
    output: str,
    forged: Callable[[bytes], bytes],
    contents: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
) -> None:
    path, target = KINDS["not compressed"](tmp_path, contents[0][:, :1]), tmp_path / output
    with unfinished():
        apply(path, str(target))
    journal = tmp_path / f".{output}.eltwise" / "journal"
    head, *lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([head, forged(lines[0]), *lines[1:]]))
    code, _out, err = cli("apply", "Add-14", *twice(path), "-o", target)
    assert (code, err.count("\n"), target.exists()) == (2, 1, False)
    assert "names a block that the result does not have, or is damaged" in err
    journal.write_bytes(b"[" * 200_000 + b"\n")
    code, _out, err = cli("apply", "Add-14", *twice(path), "-o", target)
    assert (code, err.count("\n"), "got a file that is no journal" in err) == (2, 1, True)
    journal.write_bytes(b"eltwise-job-2 " + b"[" * 200_000 + b"\n")
    code, _out, err = cli("apply", "Add-14", *twice(path), "-o", target)
    assert (code, err.count("\n"), "another job on this target" in err) == (2, 1, True)
    shutil.rmtree(journal.parent)
    assert cli("apply", "Add-14", *twice(path), "-o", target) == (0, "", "")


def test_a_complete_target_whose_elements_changed_is_refused(
    cli: Cli, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    path, target = KINDS["not compressed"](tmp_path, contents[0]), tmp_path / "c.zarr"
    command = ("apply", "Add-14", *twice(path), "-o", target)
    assert cli(*command) == (0, "", "")
    assert cli(*command) == (0, "", f"{target} is complete already\n")
    chunk = target / "c" / "0" / "0"
    chunk.write_bytes(b"\1" + chunk.read_bytes()[1:])
    code, _out, err = cli(*command)
    assert (code, err.count("\n")) == (2, 1)
    assert "its elements are not those that were written; delete it" in err


@pytest.mark.parametrize("changed", ["tuned", "base"])
def test_a_delta(
    cli: Cli, changed: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eltwise.formats.safetensors_files import TensorBytes

    old, new = contents
    for name in ("tuned", "base"):
        save_file({"x": old, "y": new}, tmp_path / f"{name}.safetensors")
    read, calls, path = TensorBytes.bytes_at, [0], tmp_path / f"{changed}.safetensors"

    def changing(self: TensorBytes, start: int, stop: int) -> np.ndarray:
        calls[0] += 1
        if calls[0] == 2:
            replaced(str(path), lambda: save_file({"x": new, "y": new}, path))
        return read(self, start, stop)

    command = ("delta", tmp_path / "tuned.safetensors", tmp_path / "base.safetensors", "-o", tmp_path / "d.eltd")
    with monkeypatch.context() as patched:
        patched.setattr(TensorBytes, "bytes_at", changing)
        code, _out, err = cli(*command)
    assert (code, err.count("\n"), (tmp_path / "d.eltd").exists()) == (2, 1, False)
    assert f"{path}: this input was changed while it was read" in err
    assert cli(*command)[0] == 0


def away(path: Path) -> None:
    """Move something away and back, as a rotation of data sets does."""
    path.rename(path.with_name("away"))
    path.with_name("away").rename(path)


def linked_elsewhere(path: Path) -> None:
    """Let a link lead elsewhere for a while."""
    goal = path.readlink()
    for other in (path.parent, goal):
        path.unlink()
        path.symlink_to(other)


@pytest.mark.parametrize("what", ["a.zarr", "a.zarr/c/2", "a.zarr/c/2/1", "link.zarr"])
def test_what_is_gone_for_a_moment_is_a_change(
    what: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = KINDS["zarr 3"](tmp_path, contents[0])
    (tmp_path / "link.zarr").symlink_to(path)
    source = str(tmp_path / what) if what == "link.zarr" else path
    change = linked_elsewhere if what == "link.zarr" else away
    with monkeypatch.context() as patched:
        patched.setattr(BlockCall, "compute", with_change(lambda: change(tmp_path / what)))
        gone = r"changed while it was read|is gone\)|is a link to what is not there"
        with pytest.raises(eltwise.EltwiseError, match=gone):
            apply(source, str(tmp_path / "c.npy"))
    assert not (tmp_path / "c.npy").exists()


def test_what_could_not_be_read_while_it_was_gone_is_a_change(
    contents: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = KINDS["zarr 3"](tmp_path, contents[0])

    def fail() -> None:
        away(tmp_path / "a.zarr")
        raise FileFormatError("the zarr store cannot be read", where=source)

    with monkeypatch.context() as patched:
        patched.setattr(BlockCall, "compute", with_change(fail))
        with pytest.raises(eltwise.EltwiseError, match="changed while it was read"):
            apply(source, str(tmp_path / "c.npy"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "url"])
def test_inputs_behind_links(cli: Cli, kind: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    """Downloaded models are links into a store of files."""
    path = Path(KINDS[kind](tmp_path, contents[0]))
    home = tmp_path / "home"
    home.mkdir()
    for each in (path, *path.parent.glob("one.safetensors")):
        (home / each.name).symlink_to(each)
    (target, *_more) = targets(kind, home)
    apply(str(home / path.name), target)
    assert read(target).tobytes() == (contents[0] + contents[0]).tobytes()
    for command in (("reduce", "sum", "Subtract-1"), ("compare",)):
        assert cli(*command, home / path.name, home / path.name)[0] == 0


def test_many_links_to_folders_are_walked_once(contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    from eltwise.formats.file_states import state

    path = store(tmp_path / "a.zarr", contents[0])
    for number in range(40):
        (path / f"d{number}").mkdir()
        for name in "xy":
            (path / f"d{number}" / name).symlink_to(f"../d{number + 1}")
    assert state(str(path)) == state(str(path))


@pytest.mark.parametrize("is_complete", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        lambda chunk: chunk.write_bytes(chunk.read_bytes()[:30]),
        lambda chunk: chunk.write_bytes(b"\0" * 5000),
        lambda chunk: (chunk.unlink(), chunk.mkdir()),
    ],
)
def test_damaged_chunks_of_a_target_are_read_within_limits(
    cli: Cli,
    damage: Callable[[Path], object],
    is_complete: bool,
    contents: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
) -> None:
    blosc = [{"name": "blosc", "configuration": {"cname": "lz4"}}]
    path = str(store(tmp_path / "a.zarr", contents[0], compressors=blosc))
    target = tmp_path / "c.zarr"
    command = ("apply", "Add-14", path, path, "-o", target)
    if is_complete:
        assert cli(*command)[0] == 0
    else:
        with unfinished():
            apply(path, str(target))
    damage((target if is_complete else begun(target)) / "c" / "1" / "2")
    code, _out, err = cli(*command)
    assert err.count("\n") == 1
    if is_complete:
        assert (code, "its elements are not those that were written" in err) == (2, True)
    elif code == 0:
        assert "1 had changed since and were computed again" in err
        assert read(str(target)).tobytes() == (contents[0] + contents[0]).tobytes()
    else:
        assert not target.exists()


def test_a_target_of_a_pipe_or_a_device_does_not_hang(
    cli: Cli, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    path = KINDS["zarr 3"](tmp_path, contents[0])
    for number, name in enumerate(("zarr.json", ".zarray", "zarr.json")):
        target = tmp_path / f"c{number}.zarr"
        target.mkdir()
        if number < 2:
            os.mkfifo(target / name)
        else:
            (target / name).symlink_to("/dev/zero")
        code, _out, err = cli("apply", "Add-14", *twice(path), "-o", target)
        assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_staged_store_that_is_a_link_is_not_followed(
    cli: Cli, depth: int, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    path, target = KINDS["zarr 3"](tmp_path, contents[0]), tmp_path / "c.zarr"
    with unfinished():
        apply(path, str(target))
    staged = (begun(target).parent, begun(target))[depth]
    staged.rename(tmp_path / "other")
    staged.symlink_to(tmp_path / "other")
    code, _out, err = cli("apply", "Add-14", *twice(path), "-o", target)
    assert (code, err.count("\n"), target.exists()) == (2, 1, False)


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
@pytest.mark.parametrize("journal", [b"", b"my diary, no newline", b"my diary\n"])
def test_a_folder_of_the_user_is_not_touched(
    cli: Cli, output: str, journal: bytes, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    path, mine = KINDS["zarr 3"](tmp_path, contents[0]), tmp_path / f".{output}.eltwise"
    mine.mkdir(0o700)
    (mine / "journal").write_bytes(journal)
    (mine / "data").mkdir()
    (mine / "data" / "mine").write_bytes(b"precious")
    code, _out, err = cli("apply", "Add-14", *twice(path), "-o", tmp_path / output)
    assert (code, err.count("\n")) == (2, 1)
    assert (mine / "journal").read_bytes() == journal
    assert (mine / "data" / "mine").read_bytes() == b"precious"


def lengthened(file: Path) -> None:
    file.write_bytes(file.read_bytes() + bytes(8))


def altered(file: Path) -> None:
    """Other content of the same size."""
    content = file.read_bytes()
    file.write_bytes(content.replace(b"0.0", b"1.0") if b"fill_value" in content else bytes([*content[::-1]]))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "url"])
def test_a_worker_refuses_what_is_no_copy(kind: str, contents: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    """Chunks that a copy lacks are the fill value to zarr, so that a job would end well with wrong numbers."""
    path, copy = KINDS[kind](tmp_path, contents[0]), tmp_path.with_name(f"{tmp_path.name}-copy")
    network = tmp_path / "m.onnx"
    network.write_bytes(b"a model")
    sent = pickle.dumps(open_sources([path], [None]).named([str(network)]))
    shutil.copytree(tmp_path, copy)
    shutil.rmtree(tmp_path)
    shutil.copytree(copy, tmp_path)
    assert pickle.loads(sent).open().texts == (path,)  # noqa: S301
    files = sorted(each for each in tmp_path.rglob("*") if each.is_file() and not each.name.startswith("zarr."))
    chunks = [each for each in files if ".zarr" in str(each) and each.name != ".zarray"]
    for file in {network, files[-1], *tmp_path.rglob("zarr.json"), *tmp_path.rglob(".zarray")}:
        for change in (Path.unlink, lengthened, *((altered,) if file not in chunks else ())):
            shutil.rmtree(tmp_path)
            shutil.copytree(copy, tmp_path)
            change(file)
            with pytest.raises(FileFormatError):
                pickle.loads(sent).open()  # noqa: S301
