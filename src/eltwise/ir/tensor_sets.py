"""Sets of named tensors, with what lies beside them in their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from eltwise.core.border import stripped
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.ir.structure import Structure
from eltwise.ir.tensors import Tensor
from eltwise.ir.values import Values


@dataclass(frozen=True)
class TensorSet(Mapping[str, Tensor]):
    """Named tensors in the order of their file.

    Attributes:
        where: the file or folder.
        tensors: the tensors by name.
        unreadable: the tensors, and in a folder the files, that cannot be read, with the reason.
        is_one: whether the format holds one tensor without a name.
        format: what the file is; "" for what is in memory.
        others: arrays of what no element type is for, and other values with a name of their own.
        parameters: what decides on the meaning of the elements or on what is computed with them, by name: the
            attributes by which elements are decoded, the fields of GGUF; a text, or a digest of it.
        metadata: what describes the file, such as what wrote it and when; in the same form.
        stores_once: whether equal tensors are stored once, as exporters store the constants of a model.
        notes: sentences on what else is there: what is no tensor, and what contradicts the tensors.
        models: the structure of each model whose constants these are, by its path in a folder; "" for a single one.
    """

    where: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    unreadable: dict[str, EltwiseError] = field(default_factory=dict)
    is_one: bool = False
    format: str = ""
    others: dict[str, Values] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    stores_once: bool = False
    notes: list[str] = field(default_factory=list)
    models: dict[str, Structure] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    @property
    def arrays(self) -> list[Tensor | Values]:
        """All that has elements: the tensors, and the other values."""
        return [*self.tensors.values(), *self.others.values()]

    def add(self, name: str, make: Callable[..., Tensor | Values], *arguments: Any) -> None:
        """Add what a function gives for some arguments, or the reason why it cannot be read.

        Of two with one name neither can be read.
        """
        try:
            if name in self.tensors or name in self.others or name in self.unreadable:
                self.tensors.pop(name, None)
                self.others.pop(name, None)
                raise FileFormatError(f"two tensors are called {name!r}")
            content = make(*arguments)
            if isinstance(content, Tensor):
                self.tensors[name] = content
            else:
                self.others[name] = content
        except EltwiseError as error:
            self.unreadable[name] = stripped(error).located(where=self.where, operand=f"tensor {name!r}")
