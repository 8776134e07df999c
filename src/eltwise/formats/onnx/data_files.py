"""External data of a model that is written to another folder: copied into one file that is named after the target.

No name in a model chooses a file that is written: what an unpacked archive says must not reach files of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from eltwise.core.errors import FileFormatError
from eltwise.formats.files import Chunk, unreadable
from eltwise.formats.onnx.external import ALIGNMENT, ExternalData, fields_of, location_beside, move, size_of

Progress = Callable[[int, int], None]
"""What is told how many bytes of how many have been copied."""

_PIECE = 1 << 20
_HOLE = bytes(_PIECE)


def tensors_in(message: Message) -> Iterator[TensorProto]:
    """Every tensor of a message: initializers, sparse ones, and those in attributes, of inner graphs too."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        if isinstance(current, TensorProto):
            yield current
            continue
        inner = [value for field, value in current.ListFields() if field.message_type is not None]
        waiting += [
            one for value in reversed(inner) for one in ([value] if isinstance(value, Message) else value[::-1])
        ]


def data_files(model: ModelProto, folder: Path) -> dict[Path, list[TensorProto]]:
    """The files of a model's external data, with the tensors that each holds, those in attributes and subgraphs too.

    Raises:
        FileFormatError: where a location is not inside the folder or names no file.
    """
    external, found = ExternalData(folder), dict[Path, list[TensorProto]]()
    for tensor in tensors_in(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            location = fields_of(tensor.external_data).get("location", "")
            found.setdefault(external.path_of(location), []).append(tensor)
    return found


def check_not_read(path: Path, files: Iterable[Path]) -> None:
    """Refuse to write a file that is one of those that a model's external data is read from.

    Raises:
        FileFormatError: naming the file.
    """
    if path.exists() and any(path.samefile(file) for file in files):
        raise FileFormatError(
            "this file holds external data of the model that is read", where=str(path), hint="choose another name"
        )


def move_data(
    model: ModelProto, folder: Path | None, target: Path, progress: Progress | None = None
) -> tuple[list[tuple[Path, Iterable[Chunk]]], bool]:
    """Point a model to the file that its external data goes to, where that is not in the target's folder already.

    Args:
        model: the model, whose tensors point to the new file afterwards.
        folder: the folder that the data is in; None where it is not known.
        target: the file that the model will be written to.
        progress: told how many bytes have been copied, while the content is taken.

    Returns:
        The new file and its content, the old files one after another; none where the data stays where it is. And
        whether the model was changed for it.

    Raises:
        FileFormatError: where a location is not inside the model's folder or names no file, and where the model or its
            data would be written over the data that it is read from.
    """
    if folder is None:
        return [], False
    files = data_files(model, folder)
    check_not_read(target, files)
    if not files or folder.resolve() == target.parent.resolve():
        return [], False
    name = location_beside(target)
    check_not_read(target.with_name(name), files)
    parts: list[tuple[Path, int, int]] = []
    end, is_moved = 0, False
    for path, tensors in files.items():
        start = -(-end // ALIGNMENT) * ALIGNMENT
        end = start + size_of(path)
        parts.append((path, start, end))
        for tensor in tensors:
            is_moved |= move(tensor, name, start, keeps_notes=len(files) == 1)
    return [(target.with_name(name), _content(parts, progress))], is_moved


def _content(parts: Sequence[tuple[Path, int, int]], progress: Progress | None) -> Iterator[Chunk]:
    position, total = 0, parts[-1][-1]
    for path, start, end in parts:
        yield start - position
        position = start
        try:
            with path.open("rb", buffering=0) as file:
                while piece := file.read(min(_PIECE, end - position)):
                    yield len(piece) if piece == _HOLE else piece
                    position += len(piece)
                    if progress:
                        progress(position, total)
        except OSError as error:
            raise unreadable(path, error) from None
        if position != end:
            raise FileFormatError("the external data file ended while it was copied", where=str(path))
