"""How a node is to be written for a runtime, by the rules: as it is, upcast, with B aligned, or both. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from eltwise.core.dtypes import FLOAT16
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.upcast import exact_upcast
from eltwise.targets.rules import DEFAULT_SEVERITY, SEVERITIES, Match, RuleSet, Severity
from eltwise.targets.sites import Pattern, Site

Step = Literal["align", "upcast"]
"""What is done to a node: B is aligned by its shape instead of an axis; it is computed wider and cast back."""

Steps = tuple[Step, ...]

REFUSALS = ("refused", "hangs", "crashes")
"""Faults that cannot be allowed: there is no result."""

_OF_SHAPES = ("refused in part", "wrong shape", "axis ignored")
_ALL_STEPS: tuple[Steps, ...] = ((), ("upcast",), ("align",), ("align", "upcast"))


@dataclass(frozen=True)
class Answer:
    """What the rules say of a node.

    Attributes:
        is_measured: whether the operator version was measured with the type.
        matches: the rules that apply, the most severe first.
    """

    is_measured: bool
    matches: tuple[Match, ...] = ()

    @property
    def severity(self) -> Severity | None:
        """How severe the worst is, None where nothing is known to be wrong."""
        return self.matches[0].rule.severity if self.matches else None

    @property
    def level(self) -> int:
        """The severity as a number, -1 for none."""
        return -1 if self.severity is None else SEVERITIES.index(self.severity)

    @property
    def faults(self) -> tuple[str, ...]:
        """The names of all faults."""
        return tuple(match.rule.fault for match in self.matches)

    def without(self, allowed: Collection[str]) -> Answer:
        """The answer without the faults that are allowed."""
        kept = (match for match in self.matches if match.rule.fault in REFUSALS or match.rule.fault not in allowed)
        return Answer(self.is_measured, tuple(kept))


@dataclass(frozen=True)
class Decision:
    """How a node is to be written for a runtime.

    Attributes:
        site: the node.
        now: what happens to it as it is.
        steps: what is to be done to it; None where nothing that was measured helps.
        then: what happens to it so.
    """

    site: Site
    now: Answer
    steps: Steps | None
    then: Answer


def ask(rules: RuleSet, site: Site, rewrite: str = "none") -> Answer:
    """What the rules say of a node, as it is or upcast."""
    op = f"{site.schema.name}-{site.schema.version}"
    is_known = bool(site.sources) and "unknown-rank" not in site.patterns
    if not is_known or not rules.is_measured(op, site.type_name, site.broadcast, rewrite):
        return Answer(False)
    matches = rules.matches(site.situations(rewrite))
    if site.are_sizes:  # Numbers that fit int32 show nothing of what happens to others.
        matches = tuple(match for match in matches if match.rule.fault in (*REFUSALS, *_OF_SHAPES))
    return Answer(True, matches)


def decide(
    rules: RuleSet, site: Site, least: Severity = DEFAULT_SEVERITY, allowed: Collection[str] = (), opset: int = 0
) -> Decision:
    """Find the simplest way to write a node with which nothing as severe as ``least`` happens.

    What is less severe already is left as it is; of what is not, an exact way comes before one that is less severe.

    Args:
        rules: what is known of the runtime.
        site: the node.
        least: from which severity on something is to be done.
        allowed: faults that are accepted, by name.
        opset: the opset that an ONNX model is to have; 0 for its own.
    """
    now = ask(rules, site)
    there = in_opset(site, opset) if opset else site
    if there is None:
        return Decision(site, now, None, now)
    bound = SEVERITIES.index(least)
    answers = {steps: answer for steps, answer in _answers(rules, there) if answer.is_measured or not steps}
    if answers[()].without(allowed).level < bound:
        return Decision(site, now, (), answers[()])
    exact = (item for item in answers.items() if item[1].severity is None)
    better = (item for item in answers.items() if item[1].without(allowed).level < bound)
    for found in (*exact, *better):
        return Decision(site, now, *found)
    return Decision(site, now, None, now)


def _answers(rules: RuleSet, site: Site) -> Iterator[tuple[Steps, Answer]]:
    """The ways to write a node that keep every bit by themselves, the simplest first."""
    for steps in _ALL_STEPS:
        if "align" in steps and site.broadcast != "pdpd":
            continue
        if "upcast" in steps and not _is_upcast_exact(site):
            continue
        written = _with_numpy_broadcast(site, site.schema) if "align" in steps else site
        yield steps, ask(rules, written, "upcast" if "upcast" in steps else "none")


def _is_upcast_exact(site: Site) -> bool:
    if site.element_type is None or exact_upcast(site.schema.expression(2), site.element_type) is None:
        return False
    # Runtimes that compute float16 in float32 drop a cast to it between two such nodes, whatever one reader showed.
    return site.element_type is not FLOAT16 or "neighbours" not in site.sources


def in_opset(site: Site, opset: int) -> Site | None:
    """The node as another opset has it; None where that has no such operator or type."""
    schema = registry.resolve(site.schema.domain, site.schema.name, opset)
    if not isinstance(schema, ElementwiseSchema) or (site.element_type and site.element_type not in schema.types):
        return None
    if schema.broadcasting == site.broadcast:
        return replace(site, schema=schema)
    return _with_numpy_broadcast(site, schema) if schema.broadcasting == "numpy" else None


def _with_numpy_broadcast(site: Site, schema: ElementwiseSchema) -> Site:
    patterns: dict[Pattern, None] = {"broadcast" if found == "inside" else found: None for found in site.patterns}
    return replace(site, schema=schema, broadcast="numpy", patterns=tuple(patterns))
