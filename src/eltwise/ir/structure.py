"""What two models compute beside the elements of their constants, as values that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eltwise.core.errors import counted

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
        return f"{counted(sum(others.values()), 'node')} of {', '.join(operators)} with other attributes"
    return "; ".join(sides)


def _by_operator(wiring: Wiring) -> Counter[str]:
    operators = Counter[str]()
    for (operator, _attributes), count in wiring.nodes.items():
        operators[operator] += count
    return operators
