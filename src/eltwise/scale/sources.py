"""The operands of a job: files and stores by path or URL, matched by the names of their tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, FileFormatError, NameUnknownError, raise_all
from eltwise.formats import files
from eltwise.formats.file_states import States, extent, states_of
from eltwise.formats.safetensors_files import INDEX, index_in
from eltwise.formats.store_paths import is_store, is_url, local
from eltwise.formats.tensor_sets import open_tensors
from eltwise.ir.tensor_sets import TensorSet
from eltwise.scale.blocks import BlockCall, BlockComputation

_MOST_NAMED = 8


def is_streamed(text: str) -> bool:
    """Whether a path or URL names what is read in blocks only: a zarr store or a checkpoint."""
    path = Path(text)
    is_named_so = path.suffix.lower() in (".zarr", ".safetensors") or path.name.endswith(INDEX)
    return is_url(text) or is_named_so or path.is_dir()


def absolute(text: str) -> str:
    """What names a file or store for every worker of a cluster."""
    return text if is_url(text) else str(Path(text).resolve())


@dataclass(frozen=True, eq=False)
class Sources:
    """Opened operands.

    Attributes:
        texts: their paths or URLs.
        raw_types: for each, the element type of raw bytes in .npy files.
        sets: the tensors of each.
    """

    texts: tuple[str, ...]
    raw_types: tuple[ElementType | None, ...]
    sets: tuple[TensorSet, ...]

    @property
    def is_named(self) -> bool:
        """Whether the tensors have names, as those of checkpoints have."""
        return any(not each.is_one for each in self.sets)

    def files(self) -> list[Path]:
        """The local files and stores that are read."""
        texts = {*self.texts, *(tensor.where for each in self.sets for tensor in each.values())}
        return [Path(text) for text in texts if not is_url(text)]

    def calls(self, computation: BlockComputation) -> list[tuple[str, BlockCall]]:
        """What is computed of the tensors of each name; nothing is read.

        Raises:
            EltwiseError: naming what does not go together.
        """
        if not self.is_named:
            return [("result", computation.call([next(iter(each.values())) for each in self.sets]))]
        self._check_names()
        entries, problems = [], []
        for name in self.sets[0]:
            try:
                entries.append((name, computation.call([each[name] for each in self.sets])))
            except EltwiseError as error:
                problems.append(error.located(where=self.where(name)))
        raise_all(problems, _MOST_NAMED)
        return entries

    def where(self, name: str) -> str:
        """Where the tensors of a name are, for errors: those of the first operand."""
        return f"{self.texts[0]}: tensor {name!r}" if self.is_named else self.texts[0]

    def _check_names(self) -> None:
        first, where = self.sets[0], self.sets[0].where
        for other in self.sets[1:]:
            for here, others in ((first, other), (other, first)):
                missing = [name for name in here if name not in others]
                if missing:
                    raise NameUnknownError(
                        f"{len(missing)} of the tensors of {here.where} are not in this file",
                        where=others.where,
                        got=", ".join(missing[:_MOST_NAMED]) + (", ..." if len(missing) > _MOST_NAMED else ""),
                        allowed=f"the names of {where}",
                    )

    def named(self, others: Iterable[str] = ()) -> NamedSources:
        """What names them to the workers of a cluster, in a job of its own; which other files these must have, too."""
        paths = sorted({absolute(str(path)) for path in (*self.files(), *map(Path, others)) if path.exists()})
        extents = tuple((path, extent(path)) for path in paths)
        return NamedSources(tuple(map(absolute, self.texts)), self.raw_types, extents, uuid4().hex)

    def metadata(self) -> dict[str, str]:
        """What the first operand holds beside its tensors, if it is a checkpoint of safetensors."""
        first = self.sets[0]
        return first.metadata if first.where.endswith((".safetensors", INDEX)) else {}

    def states(self) -> tuple[States, ...]:
        """The state of each operand: of all files and stores in which its tensors lie."""
        return tuple(states_of([each]) for each in self.sets)

    def identities(self) -> list[object]:
        """What each operand is beside the state of its files: its path, and the types and shapes of its tensors."""
        return [
            [absolute(text), [[name, tensor.element_type.name, tensor.shape] for name, tensor in tensors.items()]]
            for text, tensors in zip(self.texts, self.sets, strict=True)
        ]


@dataclass(frozen=True)
class NamedSources:
    """Operands by name, which a worker of a cluster opens itself: once a job, as files may change.

    Attributes:
        texts: their paths or URLs, the same for all workers.
        raw_types: as of ``Sources``.
        extents: the local files and stores that must be there, each with what a copy has alike.
        job: a name that no other job has.
    """

    texts: tuple[str, ...]
    raw_types: tuple[ElementType | None, ...]
    extents: tuple[tuple[str, str], ...]
    job: str

    def open(self) -> Sources:
        """Open them. That is no part of unpickling: a worker that fails in it is waited for without end.

        Raises:
            EltwiseError: as ``open_sources``, and for files and stores of another extent, as an incomplete copy, whose
                missing chunks would be read as the fill value, or another model.
        """
        sources = open_sources(self.texts, self.raw_types)
        for path, expected in self.extents:
            if extent(path) != expected:
                problem = "this is not on a worker of the cluster as it is here: files are missing or others"
                raise FileFormatError(problem, where=path, hint="give every worker the same files at the same paths")
        return sources


def open_sources(texts: Sequence[str], raw_types: Sequence[ElementType | None]) -> Sources:
    """Open operands; only headers are read.

    Args:
        texts: paths, or URLs of zarr stores.
        raw_types: for each, the element type of raw bytes in .npy files.

    Raises:
        EltwiseError: for one that cannot be opened, or holds tensors of types that nothing here reads.
    """
    texts = [local(text) for text in texts]
    sets = tuple(map(_opened, texts, raw_types))
    for each in sets:
        raise_all(list(each.unreadable.values()), _MOST_NAMED)
        for name, other in each.others.items():
            raise ElementTypeError(
                "unsupported element type",
                where=each.where,
                operand=f"tensor {name!r}",
                got=other.type,
                allowed="numbers",
            )
    kinds = {each.is_one for each in sets}
    if len(kinds) > 1:
        one = next(each for each in sets if each.is_one)
        raise FileFormatError(
            "this is one array, and another operand is a checkpoint", where=one.where, allowed="checkpoints only"
        )
    return Sources(tuple(texts), tuple(raw_types), sets)


def _opened(text: str, raw_type: ElementType | None) -> TensorSet:
    path, is_remote = Path(text), is_url(text)
    if not is_remote and not path.exists():
        raise files.unreadable(path, FileNotFoundError())
    tensors = open_tensors(text, raw_type)
    if is_remote or (path.is_dir() and not path.name.endswith(INDEX) and is_store(path)):
        _check_array(text, tensors)
    elif not tensors.is_one and not is_checkpoint(path):
        problem, allowed = "this cannot be read in blocks", ".npy, .zarr, .safetensors"
        raise FileFormatError(problem, where=text, got=path.suffix or "a folder", allowed=allowed)
    return tensors


def _check_array(text: str, tensors: TensorSet) -> None:
    if not tensors.is_one:
        names = ", ".join([*tensors][:_MOST_NAMED]) or "none"
        problem, hint = "this zarr store is a group of arrays", "name one of them"
        raise FileFormatError(
            problem, where=text, got=names, hint=f"{hint}, for example {text}/{next(iter(tensors), 'x')}"
        )


def is_checkpoint(path: Path) -> bool:
    """Whether it is a safetensors file, an index of shards, or a folder with one."""
    if path.is_dir():
        return index_in(path) is not None
    return path.suffix.lower() == ".safetensors" or path.name.endswith(INDEX)
