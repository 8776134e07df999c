"""What two sets hold beside tensors, compared: other values, parameters, the nodes of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Literal

from eltwise.comparison.labels import labels_of
from eltwise.comparison.matching import Pairs
from eltwise.core.border import stripped
from eltwise.core.containers import CONTAINERS
from eltwise.core.errors import EltwiseError, named
from eltwise.ir.tensor_sets import Labels, Structure, TensorSet, changed_inputs, changed_names, changed_nodes

_LONGEST_SHOWN = 80


@dataclass(frozen=True)
class OtherReport:
    """What is known of something beside the tensors that both sides can hold.

    Attributes:
        name: its name, or its path in a folder; "" for the nodes of a single model.
        kind: ``values``, a ``parameter``, or the ``nodes`` of a model.
        explanation: how it differs; empty if it does not.
    """

    name: str
    kind: Literal["values", "parameter", "nodes"]
    explanation: str = ""

    @property
    def status(self) -> Literal["equal", "differs"]:
        """``equal`` or ``differs``."""
        return "differs" if self.explanation else "equal"

    @property
    def label(self) -> str:
        """The name, or what it is."""
        return self.name or f"the {self.kind}"

    def __str__(self) -> str:
        return f"{self.label}: {'different' if self.explanation else 'equal'} ({self.kind}): {self.explanation}"

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        return {**asdict(self), "status": self.status}


def missing_values(a: TensorSet, b: TensorSet) -> list[str]:
    """The names of other values that A has and B has not."""
    names = {*a.others} if _are_single(a, b) else {*b.others, *b.unreadable, *b}
    return [name for name in a.others if name not in names]


def _are_single(a: TensorSet, b: TensorSet) -> bool:
    """Whether each side has one array of other values and nothing else, and one has it without a name."""
    return (
        (a.is_one or b.is_one) and len(a.others) == len(b.others) == 1 and not (a or b or a.unreadable or b.unreadable)
    )


def compare_values(a: TensorSet, b: TensorSet, errors: list[EltwiseError]) -> Iterator[OtherReport]:
    """Compare the other values that both sides have; the errors of those that cannot be read are added to a list."""
    pairs = [(name, one, b.others.get(name)) for name, one in a.others.items()]
    if _are_single(a, b):
        pairs = [(name, one, next(iter(b.others.values()))) for name, one, _other in pairs]
    for name, one, other in pairs:
        if other is not None:
            try:
                difference = one.difference(other)
            except EltwiseError as error:
                errors.append(stripped(error))
                continue
            yield OtherReport(name, "values", difference)
        elif name in b.tensors:
            yield OtherReport(name, "values", "B has numbers instead of it")
    for name in b.others:
        if name in a.tensors:
            yield OtherReport(name, "values", "A has numbers instead of it")


def compare_parameters(a: TensorSet, b: TensorSet, pairs: Pairs) -> Iterator[OtherReport]:
    """Compare the parameters that can be read on both sides, and the nodes of models, whose constants are in pairs."""
    yield from _nodes(a, b, pairs)
    for name in _comparable(a, b, a.parameters, b.parameters):
        if name in a.unreadable or name in b.unreadable:
            continue
        one, other = a.parameters.get(name), b.parameters.get(name)
        if one == other:
            yield OtherReport(name, "parameter")
        elif one is None or other is None:
            yield OtherReport(name, "parameter", f"only {'A' if other is None else 'B'} has it")
        else:
            is_short = max(len(one), len(other)) <= _LONGEST_SHOWN
            yield OtherReport(name, "parameter", f"{one} and {other}" if is_short else "other values")


def _comparable(a: TensorSet, b: TensorSet, one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The names to compare; of two formats, or a single array beside a container, those that both have.

    The forms of containers say nothing but of the same names: what one nests has dotted names in another format.

    Attributes of an array that only one side has are left out, as the array is missing or extra.
    """
    if a.format != b.format or a.is_one != b.is_one:  # One may have no place for it.
        return [name for name in one if name in other and name != CONTAINERS]
    arrays = {*a, *a.others, *a.unreadable} ^ {*b, *b.others, *b.unreadable}
    names = [name for name in {**one, **other} if name.rpartition("@")[0] not in arrays]
    return [name for name in names if not arrays or name != CONTAINERS]


def _nodes(a: TensorSet, b: TensorSet, pairs: Pairs) -> Iterator[OtherReport]:
    for path in sorted(a.models.keys() ^ b.models.keys() if a.format == b.format == "folder" else ()):
        yield OtherReport(path, "nodes", f"only {'A' if path in a.models else 'B'} has the model")
    labels = cache(partial(labels_of, a, b, pairs))
    for path in sorted(a.models.keys() & b.models):
        if a.models[path].domain == b.models[path].domain:
            difference = _changes(a.models[path], b.models[path], path, labels)
            hint = "; `eltwise trace A B` compares what they compute" if difference else ""
            yield OtherReport(path, "nodes", difference + hint)


def _changes(a: Structure, b: Structure, path: str, labels: Callable[[bool], tuple[Labels, Labels]]) -> str:
    """How a model differs but for the elements of its constants, which are read only where they may decide."""
    if difference := changed_inputs(a, b):
        return difference
    for by_content in (False, True):
        of_a, of_b = (_within(path, each) for each in labels(by_content))
        one, other = a.wiring(of_a), b.wiring(of_b)
        if one == other:
            return changed_names(a, b)
        if difference := changed_nodes(one, other):
            return difference
    return "the same nodes are connected otherwise"


def _within(path: str, labels: Labels) -> Labels:
    """The labels of the constants of a model in a folder."""
    prefix = f"{path}/" if path else ""
    return {name.removeprefix(prefix): label for name, label in labels.items() if name.startswith(prefix)}


def notes(a: TensorSet, b: TensorSet) -> Iterator[str]:
    """A sentence on metadata that differs, and one on each model whose nodes cannot be compared with those of B."""
    names = [name for name in _comparable(a, b, a.metadata, b.metadata) if a.metadata.get(name) != b.metadata.get(name)]
    if names:
        yield f"metadata that differs, which does not count: {named(names)}"
    for path in sorted(a.models.keys() & b.models):
        if a.models[path].domain != b.models[path].domain:
            of_model = f" of {path!r}" if path else ""
            yield f"the nodes{of_model} are those of two formats, and are not compared; `eltwise trace A B` runs both"
