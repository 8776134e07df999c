"""Files and folders: read with a sentence for every failure, written to a temporary name and renamed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from eltwise.core.errors import FileFormatError, FileMissingError
from eltwise.core.foreign import reason_of
from eltwise.core.staging import Staging, sync_folder

Errors = type[Exception] | tuple[type[Exception], ...]
OF_PATHS = (OSError, ValueError)
"""What the system and Python raise of a path; the latter of one with a NUL character."""

Buffer = bytes | bytearray | memoryview
Chunk = Buffer | int
"""A part of a file's content; a number is so many zero bytes, left as a hole."""

STAGED = "data"
"""The name of a file or folder while it is written, in a folder of our own."""

LARGEST_PROTOBUF = 2**31 - 1
"""The largest protobuf message, in bytes."""

_SMALLEST_TAG = 8
"""A smaller byte would be the tag of field 0, which no message has."""

_PIECE = 1 << 20
_HOLE = bytes(_PIECE)


def unknown_ending(path: Path, allowed: str) -> FileFormatError:
    """Make the error for a file whose ending is not known."""
    return FileFormatError("unknown file ending", where=str(path), got=path.suffix or "none", allowed=allowed)


def state_of(status: os.stat_result) -> str:
    """What changes when a file does: its size, times of modification and change, and inode."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


@dataclass(frozen=True)
class ReadFile:
    """A file that was read: its path, and its state before that."""

    path: Path
    state: str

    @classmethod
    def of(cls, path: Path) -> ReadFile | None:
        """The file as it is now; None where it cannot be looked at."""
        try:
            return cls(path, state_of(path.stat()))
        except (OSError, ValueError):
            return None

    @property
    def size(self) -> int:
        """How many bytes it had."""
        return int(self.state.partition(" ")[0])

    @property
    def is_unchanged(self) -> bool:
        """Whether it still is what was read."""
        return ReadFile.of(self.path) == self


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Read a whole file.

    Raises:
        FileFormatError: for what is no file, cannot be read, or has more bytes than ``limit``.
    """
    with reading_errors(path):
        check_regular(path)
        size = path.stat().st_size
        if limit is not None and size > limit:
            raise FileFormatError("the file is too large", where=str(path), got=f"{size} bytes", allowed=f"{limit}")
        return path.read_bytes()


def read_message(path: Path) -> bytes:
    """Read a file that holds one protobuf message; the rest is not read where the first byte begins none.

    Raises:
        FileFormatError: where it is no file, cannot be read, or begins with no message.
    """
    check_regular(path)
    with reading_errors(path), path.open("rb") as file:
        first = file.read(1)
    if first and first[0] < _SMALLEST_TAG:
        raise FileFormatError("not a protobuf message", where=str(path), got=f"a first byte of {first[0]}")
    return read_bytes(path, LARGEST_PROTOBUF)


def check_regular(path: Path) -> None:
    """Refuse a path that exists and is not a file: a folder, and a pipe or device, which might never end."""
    with reading_errors(path):
        is_other = path.exists() and not path.is_file()
    if is_other:
        raise FileFormatError("this is a folder, a pipe or a device, not a file", where=str(path))


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder; one that cannot even be looked for is refused."""
    with reading_errors(path):
        return path.is_dir()


def copied(path: Path, size: int) -> Iterator[Chunk]:
    """The content of a file of this size, piece by piece."""
    done = 0
    with reading_errors(path), path.open("rb", buffering=0) as file:
        while done < size:
            if hole := min(_hole(file.fileno(), done), size - done):
                done = file.seek(done + hole)
                yield hole
                continue
            piece = file.read(min(_PIECE, size - done))
            if not piece:
                break
            done += len(piece)
            yield len(piece) if piece == _HOLE else piece
    if done < size:
        raise FileFormatError("the file ended while it was copied", where=str(path))


def _hole(descriptor: int, position: int) -> int:
    """How many bytes from a position on a file system stores nothing of; 0 where it does not tell."""
    if not hasattr(os, "SEEK_DATA"):
        return 0
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA) - position
    except OSError as error:  # Nothing is stored from there on, or the file ends before.
        return max(os.fstat(descriptor).st_size - position, 0) if error.errno == errno.ENXIO else 0


@contextmanager
def reading_errors(path: Path | str, kind: str = "file", errors: Errors = OF_PATHS) -> Iterator[None]:
    """Make errors those of what cannot be read; libraries and remote file systems raise any ``Exception``."""
    try:
        yield
    except errors as error:
        raise unreadable(path, error, kind) from None


def unreadable(path: Path | str, error: BaseException, kind: str = "file") -> FileFormatError:
    """Make the error for what the operating system or a library cannot read; one of the family is itself."""
    if isinstance(error, FileFormatError):
        return error
    if isinstance(error, FileNotFoundError) and kind == "file":
        return FileMissingError("there is no such file", where=str(path))
    return FileFormatError(f"the {kind} cannot be read ({reason_of(error)})", where=str(path))


def write_atomically(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write a temporary file and rename it: whatever happens, the path holds the old file or the whole new one."""
    write_together([(path, chunks)])


def write_text(path: Path, text: str) -> None:
    """Write a text file, as ``write_atomically`` does; what is no text, such as half a surrogate, is escaped."""
    write_atomically(path, [text.encode(errors="backslashreplace")])


def add_text(path: Path, text: str) -> None:
    """Add a text to the end of a file, behind an empty line; other programs may add to it meanwhile.

    Raises:
        FileFormatError: where it cannot be written, after which the file is as long as before, and for a link.
    """
    check_writable(path)
    if path.is_symlink():
        raise FileFormatError("this is a link, not a file", where=str(path), hint="name the file itself")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with writing_errors(path), os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        data = (("\n\n" if size else "") + text).encode(errors="backslashreplace")
        try:
            while data:
                data = data[file.write(data) :]
        except OSError:
            file.truncate(size)
            raise


def write_together(contents: Sequence[tuple[Path, Iterable[Chunk]]]) -> None:
    """Write a file, the last one, and its data: all of them to temporary files first, then rename each, in order.

    A link at one of the paths is replaced, not followed.

    Raises:
        FileFormatError: where one cannot be written; whatever was at the paths is unchanged then.
    """
    target, staged = contents[-1][0], list[tuple[Staging, Path]]()
    path = target
    with ExitStack() as stack:
        try:
            for path, chunks in contents:
                check_writable(path)
                if path != target and os.path.lexists(path) and not target.exists():
                    raise FileFormatError(
                        f"the model's data would replace {path.name}, and there is no {target.name} that it belongs to",
                        where=str(target),
                        hint="choose another name",
                    )
                resolved = unfollowed(path)
                folder = Staging.made(str(resolved))
                stack.callback(folder.remove)
                staged.append((folder, resolved))
                _write(folder.open(STAGED, is_new=True), chunks, resolved)
            for folder, resolved in staged:
                folder.publish(STAGED, str(resolved))
                sync_folder(str(resolved.parent))
        except OSError as error:
            raise unwritable(path, error) from None


def unfollowed(path: Path) -> Path:
    """A path with the links to its folder resolved, and one at its own place not."""
    return Path(os.path.realpath(path.parent)) / path.name


def _write(descriptor: int, chunks: Iterable[Chunk], target: Path) -> None:
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            if isinstance(chunk, int):
                file.seek(chunk, os.SEEK_CUR)
            else:
                file.write(chunk)
        file.truncate()
        prepare(descriptor, target)


def prepare(descriptor: int, target: Path) -> None:
    """Give a written file the mode of what it replaces, and wait until it is on the disk."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, _mode(target))
    os.fsync(descriptor)


def _mode(resolved: Path) -> int:
    """The mode of the file that is replaced, or of a new one; what we write is nothing to execute."""
    if resolved.is_file() and not resolved.is_symlink():
        return resolved.stat().st_mode & 0o666
    mask = os.umask(0o077)
    os.umask(mask)
    return ~mask & 0o666


def check_writable(path: Path) -> None:
    """Refuse a path that no file can be written to."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_file = True  # It can become one.
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None
    if not is_file:
        raise FileFormatError("this is a folder or a device, not a file", where=str(path))
    _check_folder(path, path.parent, "the output's folder")


def _check_folder(path: Path, folder: Path, name: str) -> None:
    """Refuse a path in whose folder nothing can be made."""
    if not folder.is_dir():
        raise FileFormatError(f"{name} does not exist", where=str(path), got=str(folder), hint="create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = "name another folder, or change its permissions"
        raise FileFormatError(f"nothing can be written in {name}", where=str(path), got=str(folder), hint=hint)


def check_space(path: Path, needed: int) -> None:
    """Refuse a file of so many bytes that the disk of its folder has no room for, before anything is written."""
    import shutil  # Only for what is large.

    with writing_errors(path):
        usage = shutil.disk_usage(unfollowed(path).parent)
    if usage.total and needed > usage.free:  # A file system that states no size at all does not know it.
        problem, hint = "the result is larger than the free space of its disk", "make room, or name another disk"
        sizes = {"got": f"{needed} bytes", "allowed": f"up to {usage.free} bytes"}
        raise FileFormatError(problem, where=str(path), **sizes, hint=hint)


def check_outputs(outputs: Sequence[Path], inputs: Iterable[Path] = (), *, are_folders: bool = False) -> None:
    """Refuse outputs that cannot be written, or would replace an input or each other, before anything is written.

    Args:
        outputs: the files that will be written.
        inputs: the files and folders that are read; they are the same also through links and other spellings.
        are_folders: whether the outputs are stores, which are folders.

    Raises:
        FileFormatError: naming the first such output.
    """
    read = list(inputs)
    for number, output in enumerate(outputs):
        if any(_is_same(output, other) for other in read):
            raise FileFormatError("the output would replace an input", where=str(output), hint="choose another name")
        if any(_is_same(output, other) for other in outputs[:number]):
            raise FileFormatError("two outputs have one name", where=str(output), hint="give each its own")
        if not are_folders:
            check_writable(output)
        else:
            _check_folder(output, output.resolve().parent, "the output's folder")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    try:
        return os.path.realpath(one) == os.path.realpath(other) or one.samefile(other)
    except (OSError, ValueError):
        return False  # One of them does not exist.


def check_new_folder(folder: Path) -> None:
    """Refuse a path that no new folder can be made at."""
    resolved = unfollowed(folder)
    with writing_errors(folder, "folder", OF_PATHS):
        if resolved.is_symlink():
            raise FileFormatError("this is a link, not a folder", where=str(folder), hint="name the folder itself")
        if resolved.is_dir() and any(resolved.iterdir()):
            raise FileFormatError("the folder is not empty", where=str(folder), hint="name a new or an empty folder")
        if resolved.exists() and not resolved.is_dir():
            raise FileFormatError("this is a file, not a folder", where=str(folder))
        _check_folder(folder, resolved.parent, "the folder above")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill: renamed to its path on success, removed otherwise.

    Raises:
        FileFormatError: where a folder that is not empty, a file or a link is at the path, or none can be made there.
    """
    check_new_folder(folder)
    resolved = unfollowed(folder)
    with writing_errors(folder, "folder"), ExitStack() as stack:
        staging = Staging.made(str(resolved))
        stack.callback(staging.remove)
        temporary = Path(staging.of(STAGED))
        temporary.mkdir()
        yield temporary
        publish_folder(staging, resolved)
        sync_folder(str(resolved.parent))


def publish_folder(staging: Staging, target: Path, name: str = STAGED) -> None:
    """Rename a filled folder to where it belongs; an empty folder there is replaced."""
    if target.is_dir():
        target.rmdir()  # Windows replaces no folder.
    staging.publish(name, str(target))


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing.

    Raises:
        FileFormatError: where it cannot be made.
    """
    with writing_errors(folder, "folder"):
        folder.mkdir(parents=True, exist_ok=True)


def write_into(folder: Path, name: str, data: bytes) -> None:
    """Write a file into a folder that is being filled; ``name`` may hold folders of its own."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


@contextmanager
def writing_errors(path: Path | str, kind: str = "file", errors: Errors = OSError) -> Iterator[None]:
    """Make errors those of what the operating system cannot write."""
    try:
        yield
    except errors as error:
        raise unwritable(path, error, kind) from None


def unwritable(path: Path | str, error: Exception, kind: str = "file") -> FileFormatError:
    """Make the error for a file that the operating system cannot write; one of the family is itself."""
    if isinstance(error, FileFormatError):
        return error
    return FileFormatError(f"the {kind} cannot be written ({reason_of(error)})", where=str(path))
