"""What two models compute beside their constants, as values that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from eltwise.core.errors import counted

_MOST_NAMED = 4


@dataclass(frozen=True)
class Structure:
    """The structure of a model; two are equal where only constants and names may differ.

    Attributes:
        domain: the specification of its operators.
        outputs: a digest of what makes each output.
        nodes: how many nodes there are of each operator with each set of attributes.
    """

    domain: str
    outputs: tuple[str, ...]
    nodes: Mapping[tuple[str, str], int]


def changes(a: Structure, b: Structure) -> str:
    """How two structures differ, as a phrase; empty where they do not."""
    if a == b:
        return ""
    if a.domain != b.domain:
        return "the operators are those of two specifications"
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
    return "; ".join(sides) or "the same nodes are connected otherwise"


def _by_operator(structure: Structure) -> Counter[str]:
    operators = Counter[str]()
    for (operator, _attributes), count in structure.nodes.items():
        operators[operator] += count
    return operators
