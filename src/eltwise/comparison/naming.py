"""Names of tensors: the pattern of a name, and the rules by which those of one set are those of another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_COMPONENT = re.compile(r"[./]|[^./]+")
_MOST_LEVELS = 4
_Levels = list[tuple[int, str]]


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
    """A rule by which names differ: another beginning or another ending, with the same numbers in it.

    Attributes:
        a: how names in A begin or end, as a pattern.
        b: how those in B do.
        same: what is the same in both: the ``end`` of names, their ``start``, or nothing.
    """

    a: str
    b: str
    same: Literal["end", "start", ""]

    def __str__(self) -> str:
        if self.same == "start":
            return f"*{self.a} -> *{self.b}"
        a, b = (one.rstrip("./") for one in (self.a, self.b))
        a, b = (f"{one}.*" if one and self.same else one or "*" for one in (a, b))
        return f"{a} -> {b}"


def renaming_of(name: str, other: str) -> Renaming:
    """The rule that gives one name for another.

    >>> print(renaming_of("model.layers.3.attn.q.weight", "transformer.h.3.attn.q.weight"))
    model.layers.* -> transformer.h.*
    >>> print(renaming_of("layers.3.attn.q.weight", "layers.3.attn.q.kernel"))
    *weight -> *kernel
    """
    a, b = _COMPONENT.findall(name), _COMPONENT.findall(other)
    at_end, at_start = (_same(one, two) for one, two in ((a[::-1], b[::-1]), (a, b)))
    if at_start and not at_end:
        first, second = "".join(a[at_start:]), "".join(b[at_start:])
    else:
        first, second = "".join(a[: len(a) - at_end]), "".join(b[: len(b) - at_end])
    if numbers_of(first) == numbers_of(second):
        first, second = pattern_of(first), pattern_of(second)
    return Renaming(first, second, "end" if at_end else "start" if at_start else "")


def _same(a: list[str], b: list[str]) -> int:
    """With how many equal components two names begin."""
    return next(
        (number for number, (one, two) in enumerate(zip(a, b, strict=False)) if one != two), min(len(a), len(b))
    )


def renamings(pairs: Iterable[tuple[str, str]]) -> list[tuple[Renaming, int]]:
    """The rules of pairs of names, with how many each gives; the most common first."""
    return Counter(renaming_of(a, b) for a, b in pairs if a != b).most_common()


def exchanged(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """The patterns of names that may be exchanged in other names: their numbers are in another order, or their words.

    A shift of numbers keeps their order. Numbers of several levels may change places.

    >>> exchanged([("layers.1.q", "h.1.q"), ("layers.2.q", "h.0.q"), ("layers.1.k", "h.0.k"), ("layers.2.k", "h.1.k")])
    ['layers.*.q']
    >>> exchanged([("enc.q", "e.k"), ("enc.k", "e.q"), ("enc.norm1", "e.norm2"), ("enc.norm2", "e.norm3")])
    ['enc.q', 'enc.k']
    """
    numbers: dict[tuple[str, str], list[tuple[_Levels, _Levels]]] = {}
    components: dict[tuple[int, str, str], dict[str, tuple[str, str]]] = {}
    for a, b in ((a, b) for a, b in pairs if a != b):
        patterns = pattern_of(a), pattern_of(b)
        numbers.setdefault(patterns, []).append((_levels(a), _levels(b)))
        one, other = (_COMPONENT.findall(name) for name in (a, b))
        for index, (word, new) in enumerate(zip(one, other, strict=False)):
            if not word.isdigit():
                rest, same = ("".join((*parts[:index], *parts[index + 1 :])) for parts in (one, other))
                components.setdefault((index, rest, same), {})[word] = new, patterns[0]
    result = [a for (a, _b), each in numbers.items() if not _keeps_order(each)]
    for each in components.values():
        result += [pattern for word, (new, pattern) in each.items() if new != word and each.get(new, ("",))[0] == word]
    return list(dict.fromkeys(result))


def _levels(name: str) -> _Levels:
    """The numbers of a name, of any length, in the form in which they have their order."""
    return [(len(number), number) for number in (one.lstrip("0") for one in numbers_of(name))]


def _keeps_order(numbers: list[tuple[_Levels, _Levels]]) -> bool:
    """Whether names have the order of their new names, of which levels may have changed places."""
    first, second = numbers[0]
    if len(first) != len(second) or len(first) > _MOST_LEVELS:
        return True
    ordered = [new for _number, new in sorted(numbers)]
    return any(
        (moved := [[new[level] for level in levels] for new in ordered]) == sorted(moved)
        for levels in permutations(range(len(first)))
    )


class Renamer:
    """Gives for names of A those of B that rules seen before lead to."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._rules: dict[tuple[str, bool], list[Renaming]] = {}
        for rule, _count in renamings(pairs):
            self._rules.setdefault((rule.a, rule.same == "start"), []).append(rule)
        self._has_endings = any(is_ending for _a, is_ending in self._rules)

    def names_of(self, name: str) -> Iterator[str]:
        """The names that a name may have, those of the longest beginning first, then those of the longest ending."""
        components = _COMPONENT.findall(name)
        for length in range(len(components), -1, -1):
            beginning, rest = "".join(components[:length]), "".join(components[length:])
            yield from (start + rest for start in self._others(beginning, is_ending=False))
        for length in range(len(components) + 1 if self._has_endings else 0):
            rest, ending = "".join(components[:length]), "".join(components[length:])
            yield from (rest + end for end in self._others(ending, is_ending=True))

    def _others(self, part: str, *, is_ending: bool) -> Iterator[str]:
        """What a beginning or an ending is in B."""
        for key in dict.fromkeys((part, pattern_of(part))):
            for rule in self._rules.get((key, is_ending), ()):
                numbers = iter(numbers_of(part) if key != part else ())
                yield "".join(next(numbers, one) if one == "*" else one for one in re.split(r"(\*)", rule.b))
