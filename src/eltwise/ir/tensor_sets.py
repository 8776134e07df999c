"""Sets of named tensors, what lies beside them in their files, and the structure of models whose constants they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eltwise.core.border import stripped
from eltwise.core.errors import EltwiseError, FileFormatError, counted
from eltwise.ir.tensors import Tensor
from eltwise.ir.values import Values

_MOST_NAMED = 4

Labels = Mapping[str, str]
"""What stands for a constant, by its name; constants of two models that belong to each other have one label."""


class Wiring(NamedTuple):
    """What a model computes of its inputs.

    Attributes:
        nodes: how many nodes there are of each operator version with each set of attributes.
        outputs: a digest of what makes each output, which names, the order of nodes and the elements of constants do
            not change.
    """

    nodes: Mapping[tuple[str, str], int]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Structure:
    """The structure of a model.

    Attributes:
        domain: the specification of its operators.
        inputs: the type of each input.
        names: the names of the inputs and of the outputs, by which callers address them; none where a converter may
            have drawn them.
        wiring: walks the nodes, with labels of the constants.
    """

    domain: str
    inputs: tuple[str, ...]
    names: tuple[tuple[str, ...], tuple[str, ...]]
    wiring: Callable[[Labels], Wiring]


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


def changed_inputs(a: Structure, b: Structure) -> str:
    """How the inputs of two structures of one domain differ, as a phrase; empty where they do not."""
    if len(a.inputs) != len(b.inputs):
        return f"A has {counted(len(a.inputs), 'input')}, B {len(b.inputs)}"
    for number, types in enumerate(zip(a.inputs, b.inputs, strict=True)):
        if types[0] != types[1]:
            return f"input {number} is {types[0]} in A and {types[1]} in B"
    return ""


def changed_names(a: Structure, b: Structure) -> str:
    """How the names of as many inputs and outputs differ, as a phrase; empty where they do not."""
    for kind, names in zip(("input", "output"), zip(a.names, b.names, strict=True), strict=True):
        for number, (one, other) in enumerate(zip(*names, strict=True)):
            if one != other:
                return f"{kind} {number} is called {one!r} in A and {other!r} in B"
    return ""


def changed_nodes(a: Wiring, b: Wiring) -> str:
    """How the nodes of two models differ, as a phrase; empty where only their connections may."""
    sides = []
    for side, one, other in (("A", a, b), ("B", b, a)):
        more = Counter(_by_operator(one)) - Counter(_by_operator(other))
        if more:
            named = [f"{count} more {name}" for name, count in more.most_common(_MOST_NAMED)]
            rest = [f"{len(more) - _MOST_NAMED} other operators"] if len(more) > _MOST_NAMED else []
            sides.append(f"{side} has {', '.join([*named, *rest])}")
    others = Counter(a.nodes) - Counter(b.nodes)
    if not sides and others:
        operators = dict.fromkeys(operator for operator, _attributes in others)
        return f"{counted(sum(others.values()), 'node')} of {', '.join(operators)} with other values of attributes"
    return "; ".join(sides)


def _by_operator(wiring: Wiring) -> Counter[str]:
    operators = Counter[str]()
    for (operator, _attributes), count in wiring.nodes.items():
        operators[operator] += count
    return operators
