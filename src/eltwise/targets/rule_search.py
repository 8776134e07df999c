"""Few rules that tell everything that was measured of a runtime, found as boxes of facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eltwise.faults.families import UNEXPLAINED
from eltwise.targets.rules import MEASURED_FACTS, SEVERITIES, Rule, Severity, level

Key = tuple[str, ...]
"""The values of the measured facts."""


@dataclass(frozen=True)
class Seen:
    """What a runtime did in one context: the severity and the faults of the worst, and its message if it refused."""

    severity: Severity | None = None
    faults: frozenset[str] = frozenset()
    message: str = ""


def rules_from(seen: Mapping[Key, Seen]) -> list[Rule]:
    """Find few rules that tell the severity of everything that was seen, the most severe first.

    A rule is a box: a set of values for each fact. It is grown around something that no rule tells yet, and holds
    nothing that is known to be less severe.
    """
    rules: list[Rule] = []
    values = [sorted({key[axis] for key in seen}) for axis in range(len(MEASURED_FACTS))]
    index_of = {key: tuple(of.index(value) for of, value in zip(values, key, strict=True)) for key in seen}
    for severity in reversed(SEVERITIES):
        known = {key: one for key, one in seen.items() if one.severity == severity}
        forbidden = np.zeros([len(of) for of in values], bool)
        for key in seen:
            forbidden[index_of[key]] = not _may_be_called(severity, key, seen)
        covered = np.zeros_like(forbidden)
        counts = Counter(name for one in known.values() for name in one.faults)
        for fault in sorted(counts, key=lambda name: (name == UNEXPLAINED, -counts[name])):
            needed = np.zeros_like(forbidden)
            for key, one in known.items():
                needed[index_of[key]] = fault in one.faults
                # What is explained is not to be called unexplained.
                forbidden[index_of[key]] |= fault == UNEXPLAINED and fault not in one.faults
            while (left := needed & ~covered).any():
                box = _widest_box(left, needed, forbidden)
                covered[np.ix_(*box)] = True
                pairs = zip(MEASURED_FACTS, values, box, strict=True)
                where = {name: frozenset(of[i] for i in chosen) for name, of, chosen in pairs if len(chosen) < len(of)}
                inside = (known[key].message for key in known if left[index_of[key]] and covered[index_of[key]])
                message = Counter(filter(None, inside)).most_common(1)
                rules.append(Rule(severity, fault, where, message[0][0] if message else ""))
    return rules


def _may_be_called(severity: Severity, key: Key, seen: Mapping[Key, Seen]) -> bool:
    """Whether a rule of a severity may hold for what was seen.

    Values that are wrong for equal shapes may be called so for others, and no values at all imprecise.
    """
    if level(seen[key].severity) >= level(severity):
        return True
    if severity == "refused" or key[-1].startswith("empty"):
        return severity in ("precision", "sign of zero or NaN")
    equal = seen.get((*key[:-1], "equal"), Seen()).severity
    return equal != "refused" and level(equal) >= level(severity)


def _widest_box(left: np.ndarray, needed: np.ndarray, forbidden: np.ndarray) -> list[list[int]]:
    """Of the boxes around the first thing left, grown axis by axis in several orders, the one that covers the most."""
    first, axes = np.argwhere(left)[0], range(left.ndim)
    boxes = []
    for start in axes:
        box = [[int(number)] for number in first]
        for axis in (*axes[start:], *axes[:start])[::-1]:
            part = np.ix_(*box[:axis], range(left.shape[axis]), *box[axis + 1 :])
            others = tuple(other for other in axes if other != axis)
            is_wrong, has_fault = (np.asarray(where[part].any(axis=others)) for where in (forbidden, needed))
            # What was not measured may be in the box if that makes the rule shorter, and is no reason to widen it.
            box[axis] = list(range(left.shape[axis]))
            if is_wrong.any():
                box[axis] = [number for number in box[axis] if has_fault[number] and not is_wrong[number]]
        boxes.append(box)
    return max(boxes, key=lambda box: (left[np.ix_(*box)].sum(), left[np.ix_(*box)].size))
