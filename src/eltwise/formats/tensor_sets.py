"""Sets of named tensors: what a file or folder holds, read lazily; the ending selects the format.

``.npy`` and ``.pb`` hold one tensor, named after the file; ``.npz``, ``.safetensors`` (also in shards, with an index)
and zarr several; of ``.onnx`` and ``.xml`` it is the constants. A folder is the set of all of these in it, named by
their paths. The files of other libraries are read by them (see ``foreign_tensors`` and ``hdf5_files``). Pickles of
other objects are never loaded.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.border import check_path, stripped
from eltwise.core.dtypes import UINT8, ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, errors_located, named
from eltwise.core.foreign import reason_of
from eltwise.formats import files, foreign_tensors, hdf5_files, npy, registry
from eltwise.formats.file_tensors import FileRange, OpenFile, UnpackedFile, range_of
from eltwise.formats.safetensors_files import INDEX, index_in, open_checkpoint, read_index
from eltwise.formats.store_paths import is_url, local
from eltwise.formats.structure import ConstantNames, structure_of
from eltwise.ir.graph import Foreign, Graph
from eltwise.ir.infer import constant_tensor
from eltwise.ir.scopes import Names
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Source, Tensor, Transposed, of_array
from eltwise.ir.values import Values, type_of_values

if TYPE_CHECKING:
    from onnx import TensorProto

ENDINGS = (".npy", ".npz", ".pb", ".safetensors", ".zarr", ".onnx", ".xml")
"""Those of files that need no other library; a folder is the set of these."""

_OF_TORCH = (".pt", ".pth", ".ckpt", ".bin")
_PICKLES = (".pkl", ".pickle")
HUB = "hf://"
_STORE = ".zarr"

_TENSOR = 4
"""The type of an attribute of ONNX that is a tensor."""

_MOST_FILES = 100_000
_PIECE = 1 << 24


def open_tensors(source: str | os.PathLike[str], raw_type: ElementType | None = None) -> TensorSet:
    """Open a file, a folder, a zarr store behind a URL, or a model on the Hub; only headers are read.

    Args:
        source: the path or URL.
        raw_type: the element type of raw void bytes in .npy and .npz files.

    Raises:
        FileFormatError: where it is not of a known format, or its header is wrong.
    """
    text = local(os.fspath(source))
    check_path("", text)
    if text.startswith(HUB):
        return open_tensors(foreign_tensors.fetched(text.removeprefix(HUB)), raw_type)
    if is_url(text):
        return _behind_url(text)
    path = Path(text)
    with files.reading_errors(path):
        if path.is_dir():
            return _of_folder(path, raw_type)
    if path.name.endswith(INDEX):
        return _safetensors(path)
    ending = path.suffix.lower()
    if ending in _PICKLES:
        problem = "this is a pickle, and loading one runs the code in it, so it is never loaded"
        raise FileFormatError(problem, where=str(path), hint="save its arrays: numpy.savez(path, **arrays)")
    if not path.exists() and (ending in ENDINGS or ending in OPENERS):
        raise files.unreadable(path, FileNotFoundError())
    if ending not in OPENERS:
        allowed = ", ".join(dict.fromkeys((*ENDINGS, *OPENERS)))
        raise (
            files.unknown_ending(path, allowed)
            if ending != _STORE
            else FileFormatError("a zarr store is a folder", where=str(path), got="a file")
        )
    files.check_regular(path)
    return OPENERS[ending](path, raw_type)


def _behind_url(url: str) -> TensorSet:
    ending = PurePosixPath(url).suffix.lower()
    if ending != _STORE and (ending in ENDINGS or ending in OPENERS):
        problem, allowed = "files behind a URL are not read", "zarr stores, hf://ORGANISATION/MODEL, or a path"
        raise FileFormatError(problem, where=url, allowed=allowed)
    return _zarr(url)


def constants_of(graph: Graph, where: str) -> TensorSet:
    """The constants of a model, the values of its Constant nodes and the tensors in attributes of other nodes.

    Those of functions and of graphs in nodes, as the branches of If, are named by a path: ``NODE/else_branch/NAME`` and
    ``FUNCTION/NAME``. What lies in other files is not read.
    """
    metadata = {**dict(graph.metadata), **_opsets_of(graph)}
    constants = TensorSet(where, format=graph.origin.domain, metadata=metadata, stores_once=True)
    names, constant_names = Names(), ConstantNames()
    for path, body in (("", graph), *((function.name, function.body) for function in graph.functions)):
        _add_constants(constants, body, names.fresh(path) + "/" if path else "", names, constant_names)
    constants.models[""] = structure_of(graph, constant_names)
    return constants


def _opsets_of(graph: Graph) -> dict[str, str]:
    """The opsets that an ONNX model imports, which decide on the versions of its operators."""
    origin = graph.origin
    imports = [f"{domain} {version}" for domain, version in (("ai.onnx", origin.opset), *sorted(origin.other_opsets))]
    return {"opset_import": ", ".join(imports)} if origin.domain == "ai.onnx" else {}


def _add_constants(constants: TensorSet, graph: Graph, path: str, names: Names, constant_names: ConstantNames) -> None:
    """Add the constants of a graph and of those in its nodes; no two graphs have one path."""
    where, constant_names.paths[id(graph)] = constants.where, path
    for name, tensor in graph.constants:
        constants.add(path + name, tensor.opened, path + name, where)
    for node in graph.nodes:
        if node.schema.behaviour == "constant":
            name = path + node.outputs[0]
            constants.add(name, lambda node=node, name=name: constant_tensor(node.bound).opened(name, where))
        elif isinstance(node.operation, Foreign):
            tensors = [
                (each, value) for each, value in node.operation.attributes if getattr(value, "type", 0) == _TENSOR
            ]
            for attribute, message in tensors:
                name = names.fresh(f"{path}{node.label}/{attribute}")
                constant_names.attributes[id(node), attribute] = name
                constants.add(name, lambda message=message, name=name: _attribute(message.t, name, where))
            if node.operator == ("", "Constant") and not tensors:  # Of strings, which are compared as they lie there.
                name, parts = path + node.outputs[0], [value for _each, value in node.operation.attributes]
                constants.add(name, lambda parts=parts, name=name: of_array(name, _bytes_of(parts), where))
        for attribute, inner in node.graphs:
            _add_constants(
                constants, inner, names.fresh(f"{path}{node.label}/{attribute}") + "/", names, constant_names
            )


def _attribute(message: TensorProto, name: str, where: str) -> Tensor:
    """The tensor in an attribute of an ONNX node that is not run, as the value of ConstantOfShape."""
    from eltwise.formats.onnx.external import ExternalData
    from eltwise.formats.onnx.tensors import read_tensor

    return read_tensor(message, ExternalData(None)).opened(name, where)


def _bytes_of(messages: Sequence[Any]) -> np.ndarray:
    return np.frombuffer(b"".join(each.SerializeToString(deterministic=True) for each in messages), np.uint8)


def _of_folder(path: Path, raw_type: ElementType | None) -> TensorSet:
    """A zarr store, a checkpoint in shards, or a folder of files."""
    from eltwise.formats.store_paths import is_store

    if is_store(path):
        return _zarr(path, raw_type)
    paths, others, errors = _files_of(path)
    index = index_in(path)
    if index is not None:
        tensors = _safetensors(index)
        parts = {index.name, *(shard for _name, shard in read_index(index))}
        others += [file.relative_to(path).as_posix() for file in paths] + [*errors]
        if others := sorted(set(others) - parts):
            tensors.notes.append(f"{path.name}: left out, as no shard of the index: {named(others)}")
        return tensors
    tensors = TensorSet(str(path), format="folder", unreadable=errors)
    if others:
        tensors.notes.append(f"{path.name}: left out by their endings: {named(others)}")
    inside = [file.relative_to(path) for file in paths]
    stems = Counter(file.with_suffix("") for file in inside)
    for relative in inside:
        file, stem = path / relative, relative.with_suffix("").as_posix()
        stem = stem if stems[relative.with_suffix("")] == 1 else relative.as_posix()
        try:
            inner = open_tensors(file, raw_type)
            prefix = stem if inner.is_one else f"{stem}/"
            for content in inner.arrays:
                full = stem if inner.is_one else f"{stem}/{content.name}"
                tensors.add(full, content.renamed, full)
            tensors.unreadable.update({f"{stem}/{name}": error for name, error in inner.unreadable.items()})
            tensors.notes.extend(inner.notes)
            tensors.parameters.update({prefix + name: text for name, text in inner.parameters.items()})
            tensors.metadata.update({prefix + name: text for name, text in inner.metadata.items()})
            if "" in inner.models:
                tensors.models[stem] = inner.models[""]
        except EltwiseError as error:
            tensors.unreadable[stem] = stripped(error).located(where=str(file))
    if not (tensors.tensors or tensors.others or tensors.unreadable):
        allowed = ", ".join(ENDINGS)
        raise FileFormatError("the folder holds no tensor files", where=str(path), allowed=allowed)
    return tensors


def _files_of(folder: Path) -> tuple[list[Path], list[str], dict[str, EltwiseError]]:
    """The tensor files and zarr stores in a folder and those below it, the names of other files, and what is closed.

    Links to folders are followed, but for those to a folder that they lie in.
    """
    from eltwise.formats.store_paths import is_store

    paths, others, errors = list[Path](), list[str](), dict[str, EltwiseError]()

    def refuse(error: OSError) -> None:
        errors[Path(error.filename).relative_to(folder).as_posix()] = files.unreadable(error.filename, error, "folder")

    for directory, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here, around = Path(directory), Path(os.path.realpath(directory))
        stores = [name for name in sorted(folders) if os.access(here / name, os.X_OK) and is_store(here / name)]
        real = {name: Path(os.path.realpath(here / name)) for name in folders if name not in stores}
        folders[:] = sorted(name for name, one in real.items() if one not in (around, *around.parents))
        paths += [here / name for name in stores]
        for name in sorted(names):
            if Path(name).suffix.lower() in ENDINGS:
                paths.append(here / name)
            else:
                others.append((here / name).relative_to(folder).as_posix())
        if len(paths) + len(others) > _MOST_FILES:
            raise FileFormatError("the folder holds too many files", where=str(folder), allowed=f"{_MOST_FILES}")
    return paths, others, errors


def _npy(path: Path, raw_type: ElementType | None) -> TensorSet:
    file = OpenFile(path)
    with path.open("rb") as stream:
        layout = npy.read_layout(stream, file.size, str(path), raw_type)
        offset = stream.tell()
    tensors = TensorSet(str(path), is_one=True)
    tensors.add(path.stem, _of_layout, path.stem, layout, file, offset, str(path))
    return tensors


def _of_layout(name: str, layout: npy.NpyLayout, file: OpenFile, offset: int, where: str) -> Tensor | Values:
    """The tensor or the other values behind an .npy header."""
    shape, element_type = layout.shape, layout.element_type
    in_file = shape[::-1] if layout.fortran else shape
    source: Source
    if isinstance(element_type, ElementType):
        source = range_of(element_type, in_file, file, offset, layout.order, packs=False)
    else:
        source = FileRange(file, offset, in_file, element_type)
    if layout.fortran and len(shape) > 1:
        source = Transposed(source, tuple(range(len(shape)))[::-1])
    if isinstance(element_type, ElementType):
        return Tensor(source, element_type, name, where)
    return Values(source, name, where, type_of_values(element_type), element_type.itemsize)


def _npz(path: Path, raw_type: ElementType | None) -> TensorSet:
    file, tensors = OpenFile(path), TensorSet(str(path), format="npz")
    with _zip_errors("not a readable .npz file", str(path)), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                name = member.filename.removesuffix(".npy")
                tensors.add(name, _member, name, archive, member, file, raw_type)
    return tensors


@contextmanager
def _zip_errors(problem: str, where: str) -> Iterator[None]:
    try:
        yield
    except EltwiseError:
        raise
    except (*npy.ZIP_ERRORS, OSError) as error:
        raise FileFormatError(f"{problem} ({reason_of(error)})", where=where) from None


def _member(
    name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: OpenFile, raw_type: ElementType | None
) -> Tensor | Values:
    """A tensor of an .npz file, or other values; a member that does not begin as .npy is its bytes, as for NumPy."""
    where = str(file.path)
    npy.check_member(member, where)
    layout, begin = npy.NpyLayout(UINT8, "<", (member.file_size,), fortran=False), 0
    with _zip_errors("the member cannot be read", where), archive.open(member) as stream:
        if member.filename.endswith(".npy") or stream.peek(len(npy.MAGIC)).startswith(npy.MAGIC):  # type: ignore[attr-defined]
            layout = npy.read_layout(stream, member.file_size, where, raw_type)  # type: ignore[arg-type]
            begin = stream.tell()
    if member.compress_type == zipfile.ZIP_STORED:
        checked = UnpackedFile(file, file.size, lambda: _checked(file, member, where))
        return _of_layout(name, layout, checked, _offset_of(file, member, where) + begin, where)
    unpacked = UnpackedFile(file, member.file_size, lambda: _unpacked(file.path, member, where))
    return _of_layout(name, layout, unpacked, begin, where)


def _checked(file: OpenFile, member: zipfile.ZipInfo, where: str) -> OpenFile:
    """The archive itself, where the checksum of a member that is not compressed is that of its bytes."""
    with (
        errors_located(operand=f"tensor {member.filename.removesuffix('.npy')!r}"),
        _zip_errors("the member cannot be read", where),
        zipfile.ZipFile(file.path) as archive,
        archive.open(member) as stream,
    ):
        while stream.read(_PIECE):
            pass
    return file


def _offset_of(file: OpenFile, member: zipfile.ZipInfo, where: str) -> int:
    """Where the bytes of a member begin: behind its own header, whose lengths are those of name and extra field."""
    local = file.bytes_at(member.header_offset, 30).tobytes()
    if local[:4] != b"PK\x03\x04":
        raise FileFormatError("the archive's directory points to no member", where=where)
    return member.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")


def _unpacked(path: Path, member: zipfile.ZipInfo, where: str) -> OpenFile:
    """Decompress a member into a file that vanishes with its last reader."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if member.file_size > free:
        problem, got = "the folder for temporary files has no room to unpack it", f"{member.file_size} bytes"
        hint = "set TMPDIR to a folder on another disk"
        raise FileFormatError(problem, where=where, got=got, allowed=f"up to {free} bytes", hint=hint)
    descriptor, name = tempfile.mkstemp(prefix="eltwise-")
    try:
        with (
            _zip_errors("the archive cannot be unpacked", where),
            os.fdopen(descriptor, "wb") as target,
            zipfile.ZipFile(path) as archive,
            archive.open(member) as source,
        ):
            shutil.copyfileobj(source, target, _PIECE)
        return OpenFile(Path(name), is_temporary=True)
    except FileFormatError:
        Path(name).unlink(missing_ok=True)
        raise


def _pb(path: Path, _wanted: ElementType | None) -> TensorSet:
    from eltwise.formats.onnx.tensors import read_tensor_proto

    array = read_tensor_proto(files.read_message(path), path, str(path)).array
    return TensorSet(str(path), {path.stem: of_array(path.stem, array, str(path))}, is_one=True)


def _safetensors(path: Path, _wanted: ElementType | None = None) -> TensorSet:
    """The tensors of a file, or of all shards that an index names."""
    tensors = TensorSet(str(path), format="safetensors")
    checkpoint = open_checkpoint(path, tensors.unreadable)
    tensors.metadata.update(checkpoint.metadata)
    for name, stored in checkpoint.tensors.items():
        tensors.add(name, stored.opened)
    return tensors


def _zarr(source: Path | str, _wanted: ElementType | None = None) -> TensorSet:
    from eltwise.formats.zarr_stores import open_store

    return open_store(source)


_NODES = "the nodes"
"""What stands for the nodes of a model where they cannot be read."""


def _onnx(path: Path, _wanted: ElementType | None) -> TensorSet:
    return constants_of(registry.read(path, reads_weights=False).graph, str(path))


def _openvino(path: Path, _wanted: ElementType | None) -> TensorSet:
    from eltwise.formats.openvino.reader import read_constants

    constants = read_constants(path)
    try:
        graph = registry.read(path, reads_weights=False).graph
    except EltwiseError as error:  # The constants can be compared.
        constants.unreadable[_NODES] = stripped(error).located(where=str(path), operand="nodes")
        return constants
    constants.models[""] = structure_of(graph, ConstantNames())
    constants.metadata.update(graph.metadata)
    return constants


OPENERS: dict[str, Callable[[Path, ElementType | None], TensorSet]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".pb": _pb,
    ".safetensors": _safetensors,
    ".onnx": _onnx,
    ".xml": _openvino,
    **dict.fromkeys(_OF_TORCH, lambda path, _type: foreign_tensors.open_torch(path)),
    ".gguf": lambda path, _type: foreign_tensors.open_gguf(path),
    **dict.fromkeys((".h5", ".hdf5", ".nc"), lambda path, _type: hdf5_files.open_hdf5(path)),
}
