"""Names of tensors: the pattern of a name, and the rules by which those of one set are those of another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_COMPONENT = re.compile(r"[./]|[^./]+")


def pattern_of(name: str) -> str:
    """A name with ``*`` for its numbers, which tensors of all layers share.

    >>> pattern_of("model.layers.11.mlp.fc1.weight")
    'model.layers.*.mlp.fc1.weight'
    """
    return _NUMBER.sub("*", name)


def numbers_of(name: str) -> list[str]:
    """The numbers of a name that its pattern has ``*`` for."""
    return _NUMBER.findall(name)


@dataclass(frozen=True)
class Renaming:
    """A rule by which names differ: another beginning, with the same numbers in it.

    Attributes:
        a: how names in A begin, as a pattern.
        b: how those in B do.
        is_beginning: whether something follows, which is the same in both.
    """

    a: str
    b: str
    is_beginning: bool

    def __str__(self) -> str:
        a, b = (one.rstrip("./") for one in (self.a, self.b))
        a, b = (f"{one}.*" if one and self.is_beginning else one or "*" for one in (a, b))
        return f"{a} -> {b}"


def renaming_of(name: str, other: str) -> Renaming:
    """The rule that gives one name for another.

    >>> print(renaming_of("model.layers.3.attn.q.weight", "transformer.h.3.attn.q.weight"))
    model.layers.* -> transformer.h.*
    """
    a, b = _COMPONENT.findall(name), _COMPONENT.findall(other)
    same = 0
    while same < min(len(a), len(b)) and a[-1 - same] == b[-1 - same]:
        same += 1
    begin_a, begin_b = "".join(a[: len(a) - same]), "".join(b[: len(b) - same])
    if numbers_of(begin_a) == numbers_of(begin_b):
        begin_a, begin_b = pattern_of(begin_a), pattern_of(begin_b)
    return Renaming(begin_a, begin_b, bool(same))


def renamings(pairs: Iterable[tuple[str, str]]) -> list[tuple[Renaming, int]]:
    """The rules of pairs of names, with how many each gives; the most common first."""
    return Counter(renaming_of(a, b) for a, b in pairs if a != b).most_common()


class Renamer:
    """Gives for names of A those of B that rules seen before lead to."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._rules: dict[str, list[Renaming]] = {}
        for rule, _count in renamings(pairs):
            self._rules.setdefault(rule.a, []).append(rule)

    def names_of(self, name: str) -> Iterator[str]:
        """The names that a name may have, those of the longest beginning first."""
        components = _COMPONENT.findall(name)
        for length in range(len(components), -1, -1):
            beginning, rest = "".join(components[:length]), "".join(components[length:])
            for key in dict.fromkeys((beginning, pattern_of(beginning))):
                for rule in self._rules.get(key, ()):
                    numbers = iter(numbers_of(beginning) if key != beginning else ())
                    start = "".join(next(numbers, one) if one == "*" else one for one in re.split(r"(\*)", rule.b))
                    yield start + rest
