"""Rules made of single measurements: the fewest boxes of facts that tell the same severity of every one of them.

A box is a set of values for each fact; it may hold what was not measured, and nothing less severe than it says. Boxes
are grown from what no box covers yet, those that cover the most first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.targets.rules import NODE_SELECTORS, PAIR_SELECTORS, SELECTORS, SEVERITIES, Rule, Severity

Key = tuple[str, ...]
"""The values of all facts of a situation: ``SELECTORS``, then those of a node or of a pair."""

_SEEDS = 8
_OPERAND_SOURCES = ("static", "dynamic", "a-constant", "b-constant", "both-constant", "a-plain", "b-plain")
_UNMEASURED = -9


@dataclass(frozen=True)
class Seen:
    """What a runtime did in one situation; without a severity, what is specified.

    Attributes:
        severity: how severe the worst is that it did otherwise.
        faults: the faults of that severity.
        words: what the runtime said.
    """

    severity: Severity | None = None
    faults: frozenset[str] = frozenset()
    words: str = ""

    @property
    def level(self) -> int:
        """The severity as a number, -1 for none."""
        return -1 if self.severity is None else SEVERITIES.index(self.severity)


def rules_from(nodes: Mapping[Key, Seen], pairs: Mapping[Key, Seen]) -> list[Rule]:
    """Find rules that tell every severity that was measured.

    A node between others is also one of known or unknown sizes or with constants, and a pair is also a node. Where
    those are as severe already, nothing is to be told; but nothing more severe must be.
    """
    needed_nodes = {
        key: seen if key[-2] in _OPERAND_SOURCES else _beyond(seen, _least(nodes, key[:-2], _OPERAND_SOURCES, key[-1:]))
        for key, seen in nodes.items()
    }
    needed_pairs = {key: _beyond(seen, _level_alone(nodes, key)) for key, seen in pairs.items()}
    found = [*_rules(needed_nodes, (*SELECTORS, *NODE_SELECTORS)), *_rules(needed_pairs, (*SELECTORS, *PAIR_SELECTORS))]
    return sorted(found, key=lambda rule: -SEVERITIES.index(rule.severity))


def _beyond(seen: Seen, known: int) -> Seen:
    """What is to be told of a situation beside others that are as severe as ``known`` at least."""
    return Seen(SEVERITIES[known]) if seen.level <= known and known >= 0 else seen


def _level_alone(nodes: Mapping[Key, Seen], key: Key) -> int:
    """The least level that the node of a pair has whatever else it is."""
    operand, _producer, other, _readers, sizes = key[len(SELECTORS) :]
    beside = "b" if operand == "a" else "a"
    sources: Sequence[str] = (f"{beside}-constant", f"{beside}-plain")
    if other == "run-time":
        sources = ("static",) if sizes == "known" else ("dynamic",)
    return _least(nodes, key[: len(SELECTORS)], sources, ("equal", "broadcast", "inside", "scalars", "high-rank"))


def _least(nodes: Mapping[Key, Seen], head: Key, sources: Sequence[str], patterns: Sequence[str]) -> int:
    """The least level of some situations of a node; below all others where none was measured."""
    keys = [(*head, source, pattern) for source in sources for pattern in patterns]
    return min((nodes[key].level for key in keys if key in nodes), default=_UNMEASURED)


class _Space:
    """Situations as an array of levels with an axis for each fact."""

    def __init__(self, seen: Mapping[Key, Seen], names: Sequence[str]) -> None:
        self.names = names
        self.values = [sorted({key[axis] for key in seen}) for axis in range(len(names))]
        numbers = [{value: number for number, value in enumerate(values)} for values in self.values]
        self.places = {key: tuple(of[value] for of, value in zip(numbers, key, strict=True)) for key in seen}
        self.levels = np.full([len(values) for values in self.values], _UNMEASURED, np.int8)
        for key, place in self.places.items():
            self.levels[place] = seen[key].level
        self._empty = self.values[-1].index("empty") if "empty" in self.values[-1] else None

    def is_less(self, level: int) -> np.ndarray:
        """What is less severe; operands without elements can be refused or give another shape, no more."""
        found: np.ndarray = np.asarray((self.levels < level) & (self.levels != _UNMEASURED))
        if self._empty is not None and level < len(SEVERITIES) - 2:
            found[..., self._empty] &= self.levels[..., self._empty] >= 0
        return found


Box = list[list[int]]


def _rules(seen: Mapping[Key, Seen], names: Sequence[str]) -> Iterator[Rule]:
    if not seen:
        return
    space = _Space(seen, names)
    for level in reversed(range(len(SEVERITIES))):
        counts = Counter(fault for one in seen.values() if one.level == level for fault in one.faults)
        covered = np.zeros(space.levels.shape, bool)
        is_less = space.is_less(level)
        for fault, _count in counts.most_common():
            wanted = np.zeros(space.levels.shape, bool)
            of_fault = {key: one for key, one in seen.items() if one.level == level and fault in one.faults}
            for key in of_fault:
                wanted[space.places[key]] = True
            while (left := wanted & ~covered).any():
                box = _widest(space, left, wanted, is_less)
                covered[np.ix_(*box)] = True
                yield _rule(space, box, level, fault, of_fault)


def _widest(space: _Space, left: np.ndarray, wanted: np.ndarray, is_less: np.ndarray) -> Box:
    """Of the boxes around a few uncovered situations the one that covers the most, in the fewest words."""
    places = np.argwhere(left)
    best: tuple[tuple[int, int], Box] | None = None
    axes = list(range(len(space.names)))
    orders = [order for turn in axes for order in (axes[turn:] + axes[:turn], (axes[turn:] + axes[:turn])[::-1])]
    for seed in places[:: max(1, len(places) // _SEEDS)]:
        for order in orders:
            box = _grown(space, seed, order, wanted, is_less)
            gain = int(left[np.ix_(*box)].sum())
            said = sum(len(numbers) < len(values) for numbers, values in zip(box, space.values, strict=True))
            if best is None or (gain, -said) > best[0]:
                best = (gain, -said), box
    assert best is not None
    return best[1]


def _grown(space: _Space, seed: np.ndarray, order: Sequence[int], wanted: np.ndarray, is_less: np.ndarray) -> Box:
    """Widen a box axis by axis by the values with which it holds the fault and nothing that is less severe."""
    box: Box = [[int(number)] for number in seed]
    for axis in order:
        everything = list(range(len(space.values[axis])))
        part = np.ix_(*box[:axis], everything, *box[axis + 1 :])
        others = tuple(other for other in range(len(box)) if other != axis)
        is_wrong, has_fault = (np.asarray(found[part].any(axis=others)) for found in (is_less, wanted))
        # What was not measured may be in the box where it makes the rule shorter, and is no reason to widen it.
        box[axis] = [number for number in everything if not is_wrong[number] and has_fault[number]]
        if not is_wrong.any():
            box[axis] = everything
    return box


def _rule(space: _Space, box: Box, level: int, fault: str, seen: Mapping[Key, Seen]) -> Rule:
    where = {
        name: frozenset(values[number] for number in numbers)
        for name, values, numbers in zip(space.names, space.values, box, strict=True)
        if len(numbers) < len(values)
    }
    # A rule about pairs names what makes the operand, so that it is not taken for one about nodes.
    if "producer" in space.names and not where.keys() & set(PAIR_SELECTORS):
        where["producer"] = frozenset(space.values[space.names.index("producer")])
    inside = [one for key, one in seen.items() if all(key[space.names.index(name)] in of for name, of in where.items())]
    words = Counter(one.words for one in inside if one.words).most_common(1)
    return Rule(SEVERITIES[level], fault, where, words[0][0] if words else "")
