"""Measured rules: which fault a runtime has at which op sites, how severe it is, and in which words it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from eltwise.core.errors import unknown_name

Severity = Literal["sign of zero or NaN", "precision", "wrong values", "refused"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""What a finding means for a model, from the least to the most severe."""

DEFAULT_SEVERITY: Severity = "wrong values"
"""From this severity on a finding counts."""

Situation = Mapping[str, str]
"""One set of facts about a node: its operator and types, and either its operand sources or what stands around it."""

SELECTORS = ("op", "version", "broadcast", "type", "rewrite")
NODE_SELECTORS = ("source", "pattern")
PAIR_SELECTORS = ("operand", "producer", "other", "readers", "sizes")
FACTS = (*SELECTORS, *NODE_SELECTORS, *PAIR_SELECTORS)
"""What a rule may be about: the node itself, how its operands reach it and how their shapes lie, or a pair: the node
that makes one operand (``producer``), what the other is, who else reads, and whether sizes are known."""


@dataclass(frozen=True)
class Rule:
    """One thing that a runtime does otherwise than the specification says.

    Attributes:
        severity: what it means for a model.
        fault: its name in plain words.
        where: by fact, the values for which the rule applies; a fact that is not named may have any value.
        words: what the runtime itself says, where it refuses; ``{op}`` stands for the operator.
        by_hand: whether a person wrote it; ``eltwise targets --refresh`` keeps it as it is.
    """

    severity: Severity
    fault: str
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    words: str = ""
    by_hand: bool = False

    def applies(self, situation: Situation) -> bool:
        """Whether a situation is one that the rule is about."""
        return all(situation.get(name) in values for name, values in self.where.items())


@dataclass(frozen=True)
class Scope:
    """Operator versions and element types that were measured, written as they are or otherwise."""

    ops: frozenset[str]
    types: frozenset[str]
    broadcasts: frozenset[str]
    rewrites: frozenset[str]


@dataclass(frozen=True)
class RuleSet:
    """All that is known of one version of a runtime.

    Attributes:
        runtime: its name.
        version: the version that was measured, with the settings that change results.
        machine: the processor.
        date: when.
        file_versions: the versions of the file format that it loads: ONNX's ir_version, or that of OpenVINO's IR.
        opsets: the ONNX opsets that it loads; none for IR.
        scopes: what was measured.
        rules: what it does otherwise than specified; where no rule applies, it does what is specified.
        faults: what each fault is, in a clause.
    """

    runtime: str
    version: str = ""
    machine: str = ""
    date: str = ""
    file_versions: tuple[int, ...] = ()
    opsets: tuple[int, ...] = ()
    scopes: tuple[Scope, ...] = ()
    rules: tuple[Rule, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> str:
        """The version without what is said of settings."""
        return self.version.partition(" ")[0]

    def is_measured(self, op: str, element_type: str, broadcast: str, rewrite: str = "none") -> bool:
        """Whether an operator version, named like ``Sub-14``, was measured with a type and a broadcast rule."""
        return (op, element_type, broadcast, rewrite) in self._measured

    @cached_property
    def _measured(self) -> frozenset[tuple[str, str, str, str]]:
        return frozenset(
            (op, element_type, broadcast, rewrite)
            for scope in self.scopes
            for op in scope.ops
            for element_type in scope.types
            for broadcast in scope.broadcasts
            for rewrite in scope.rewrites
        )

    def matches(self, situations: Iterable[Situation]) -> tuple[Match, ...]:
        """The rules that apply in any of some situations, the most severe first; of each fault the most severe."""
        known = list(situations)
        found: dict[str, Match] = {}
        for severity in reversed(SEVERITIES):
            for rule in self.rules:
                if rule.severity == severity and rule.fault not in found:
                    first = next(filter(rule.applies, known), None)
                    if first is not None:
                        found[rule.fault] = Match(rule, first)
        return tuple(found.values())


@dataclass(frozen=True)
class Match:
    """A rule that applies to a node, and the first situation in which it does."""

    rule: Rule
    situation: Situation


def severity_named(name: str) -> Severity:
    """Find a severity by its name or the beginning of it.

    Raises:
        NameUnknownError: naming those that there are.
    """
    found = [known for known in SEVERITIES if name and known.startswith(name)]
    if len(found) != 1:
        raise unknown_name("severity", name, SEVERITIES)
    return found[0]


def is_at_least(severity: Severity, least: Severity) -> bool:
    """Whether a severity counts where ``least`` is the least that does."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)
