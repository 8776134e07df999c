"""Measure a runtime: what it does with every operator version in every context, and the rules that tell it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product

import numpy as np

from eltwise.conformance.asking import CaseRunner
from eltwise.conformance.cases import Case
from eltwise.conformance.compare import CaseResult, References
from eltwise.conformance.contexts import CALL, SOURCES, Context, sources_of
from eltwise.conformance.fault_models.catalog import UNEXPLAINED
from eltwise.conformance.fault_models.explain import Explainer
from eltwise.conformance.suite import Variant, hard_values_of, layout_cases, value_cases, variants
from eltwise.core.broadcasting import Rule as BroadcastRule
from eltwise.core.dtypes import FLOAT32
from eltwise.core.errors import EltwiseError
from eltwise.core.machine import machine_name
from eltwise.core.shapes import of_sizes
from eltwise.formats.openvino.ports import ResultNames, output_ports
from eltwise.ir.graph import Graph, Node, Origin, Port, TensorType
from eltwise.model import load
from eltwise.ops import registry
from eltwise.passes.upcast import exact_upcast, upcast
from eltwise.runtimes import Answer, Host, Program, Runtime
from eltwise.runtimes import Model as ModelProgram
from eltwise.targets.rules import MEASURED_FACTS, SEVERITIES, Rule, RuleSet, Severity, boxes, level
from eltwise.targets.run import program_of, severity_of
from eltwise.targets.sites import has_others_than_plain, is_narrow, patterns_of, plain_numbers

LIMIT = 60.0
"""How many seconds one answer may take."""

NEWEST_IR_VERSION = 14
_OPENVINO_VERSIONS = range(7, 14)
_EARLY_OPSET, _USUAL_IR_VERSION, _WRITTEN_IR = 9, 8, 11
_TOGETHER = 32
_LARGE = 10_000

FAMILIES: tuple[tuple[str, str], ...] = (
    (r".*int32 arithmetic.*|.*clamped to int32", "int32 arithmetic"),
    (r".*(prepared for|clamped to) bfloat16", "constant prepared for bfloat16"),
    (r"float32 arithmetic.*|.*(rounded|clamped) to float32|float64 arithmetic|round.*", "float32 arithmetic"),
    (r"sign of zero lost|zeros not added|negated reverse difference|result is B", "sign of zero lost"),
    (r"saturation.*|B negated first", "saturation"),
    (r".*flushed.*", "subnormals flushed"),
    (UNEXPLAINED, "other values"),
)
"""Fault models that mean the same for a model, and the one name that rules have for them."""

FAULTS = {
    "refused": "the runtime does not load or run it",
    "refused in part": "the runtime refuses it for some shapes",
    "crashes": "the process of the runtime ends",
    "hangs": "the runtime gives no answer",
    "kept wider between nodes": "the result is not brought to its type before the next node reads it",
    "other values": "other values, which no known fault explains",
}
"""What faults are that are not known by values alone."""

Tell = Callable[[int, int, str], None]
Key = tuple[str, ...]
"""The values of the measured facts."""


@dataclass(frozen=True)
class Seen:
    """What a runtime did in one context: the severity and the faults of the worst, and its words if it refused."""

    severity: Severity | None = None
    faults: frozenset[str] = frozenset()
    words: str = ""


@dataclass(frozen=True)
class Request:
    """What is measured: versioned names, and types by their NumPy names, all if empty; the seed of random values."""

    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """The rules that were made; ``left`` counts the variants that were not measured when it was interrupted."""

    rules: RuleSet
    left: int = 0


def requested(runtime: Runtime, request: Request, known: RuleSet | None = None) -> list[Variant]:
    """The operator versions, types and broadcast rules to measure, without those that are known already."""
    measured = known.measured if known else frozenset()
    return [
        found
        for found in variants()
        if found.schema.domain in runtime.domains
        and (not request.ops or str(found.schema) in request.ops)
        and (not request.types or found.element_type.name in request.types)
        and (f"{found.schema.name}-{found.schema.version}", found.element_type.name, found.rule, "none") not in measured
    ]


def cases_of(variant: Variant, seed: int) -> Iterator[tuple[tuple[str, str], Case]]:
    """The cases of every operand source and broadcast pattern, with the names of both."""
    element_type = variant.element_type
    contexts = {name: SOURCES[name] for name in sources_of(variant.count) if name != CALL}
    contexts = {name: found for name, found in contexts.items() if variant.has_neutral or not found.has_neutral}
    if has_others_than_plain(element_type):
        contexts |= {f"{'ab'[index]}-plain": Context(constants=(index,)) for index in range(min(variant.count, 2))}
    if is_narrow(element_type) and variant.has_neutral:
        contexts["read-wider"] = Context(consumer="Cast")
    for source, context in contexts.items():
        base = source if source in SOURCES else "neighbours"
        for case in (*value_cases(variant, base, "quick", seed), *layout_cases(variant, base, "quick", seed)):
            if not case.is_valid:
                continue
            pattern = _pattern_of(case)
            # Nothing of scalars is dynamic, and a model of unknown sizes does not tell that one is 0.
            if source == "dynamic" and pattern in ("scalars", "empty"):
                continue
            made = _with_plain(case, context.constants[0], seed) if source.endswith("-plain") else case
            yield (source, pattern), replace(made, context=context)


def _pattern_of(case: Case) -> str:
    axis = dict(case.attributes).get("axis", -1)
    rule = BroadcastRule(case.rule, axis if isinstance(axis, int) else -1)
    found = patterns_of(rule, [of_sizes(operand.shape) for operand in case.operands])
    return "scalars" if "scalars" in found else next(iter(found))


def _with_plain(case: Case, index: int, seed: int) -> Case:
    """The case with other numbers in place of those that are not plain."""
    if index >= len(case.operands):
        return case
    pool, operand = hard_values_of(case.element_type), case.operands[index]
    others = np.random.default_rng(seed).choice(pool[plain_numbers(pool, case.element_type)], operand.shape)
    plain = np.asarray(np.where(plain_numbers(operand, case.element_type), operand, others))
    return replace(case, operands=(*case.operands[:index], plain, *case.operands[index + 1 :]))


def measure_variant(host: Host, variant: Variant, seed: int) -> dict[Key, Seen]:
    """Measure a variant as it is and, if something is wrong and upcasting it keeps the bits, upcast."""
    found = _measure_written(host, variant, seed, "none")
    is_wrong = any(seen.severity for seen in found.values())
    if is_wrong and variant.rule != "legacy" and exact_upcast(variant.schema.expression(2), variant.element_type):
        with _UpcastingHost(host.runtime, LIMIT) as upcasting:
            found |= _measure_written(upcasting, variant, seed, "upcast")
    return found


class _UpcastingHost(Host):
    """A host that upcasts every element-wise node of a model before it hands it over."""

    def run(self, program: Program, inputs: Sequence[np.ndarray], *, only_load: bool = False) -> Answer:
        assert isinstance(program, ModelProgram)
        try:
            graph, _report = upcast(load(program.data, program.weights or None).graph, lambda _node: True)
        except EltwiseError as error:
            return Answer("refused", words=f"not upcast: {error}")
        return super().run(program_of(graph), inputs, only_load=only_load)


def _measure_written(host: Host, variant: Variant, seed: int, rewrite: str) -> dict[Key, Seen]:
    key_of: dict[int, tuple[str, str]] = {}
    by_context: dict[tuple[object, ...], list[Case]] = {}
    # A runtime may treat a model of known sizes otherwise than one in which any size is not known.
    for key, case in cases_of(variant, seed):
        key_of[id(case)] = key
        kind = (case.context.is_dynamic, case.context.consumer, key[1] == "high-rank", case.size > _LARGE)
        by_context.setdefault(kind, []).append(case)
    groups = [
        tuple(cases[start : start + _TOGETHER])
        for cases in by_context.values()
        for start in range(0, len(cases), _TOGETHER)
    ]
    results: dict[tuple[str, str], list[CaseResult]] = {}
    for result in CaseRunner(host, "static", References(), thrifty=True).run(groups).results:
        results.setdefault(key_of[id(result.case)], []).append(result)
    head = (variant.schema.name, str(variant.schema.version), variant.rule, variant.element_type.name, rewrite)
    explainer = Explainer()
    return {(*head, *key): _seen(key, found, explainer) for key, found in results.items()}


def _seen(key: tuple[str, str], results: Sequence[CaseResult], explainer: Explainer) -> Seen:
    """What a runtime did in one context, by the worst of its cases."""
    outcomes = {result.outcome for result in results}
    words = next((result.answer.words for result in results if result.outcome in ("crashed", "hung", "refused")), "")
    for outcome, fault in (("crashed", "crashes"), ("hung", "hangs")):
        if outcome in outcomes:
            return Seen("refused", frozenset({fault}), _general(words))
    if "refused" in outcomes:
        return Seen("refused", frozenset({"refused" if outcomes == {"refused"} else "refused in part"}), _general(words))
    severities = [found for found in map(_severity, results) if found]
    if not severities:
        return Seen()
    if key[0] == "read-wider":
        return Seen(max(severities, key=level), frozenset({"kept wider between nodes"}))
    names = {result.problem for result in results if result.problem}
    compared = [result.compared for result in results if result.compared is not None]
    names |= {name for reason in explainer.explain(compared) for name in reason.names}
    faults = frozenset(_family(name) for name in names)
    shape_faults = {"wrong shape", "wrong type", "axis ignored", "other values"}
    return Seen("wrong values" if faults & shape_faults else max(severities, key=level), faults)


def _severity(result: CaseResult) -> Severity | None:
    """How severe a result is; of one that a cast to float32 reads, what the cast gives of the exact result counts."""
    if result.expected is None or not result.wrong_count:
        return None
    if result.case.context.consumer != "Cast":
        return severity_of(result.got, result.expected, False)
    with np.errstate(all="ignore"):
        severity = severity_of(result.got, result.expected.astype(np.float32), False)
    return "wrong values" if severity and result.case.element_type.is_integer else severity


def _family(name: str) -> str:
    """The name that rules have for a fault model."""
    return next((known for pattern, known in FAMILIES if re.fullmatch(pattern, name)), name)


def _general(words: str) -> str:
    """A runtime's words without what they say of the model of the case.

    >>> _general("no implementation for Sub(6) node with name 'case0'")
    'no implementation for {op}'
    """
    words = re.sub(
        r"(?:,? (?:node )?with name| In Node,)? ?[('\"]*(?:case|result|before|between|after|made)\d.*", "", words
    )
    words = re.sub(r"\b[A-Z]\w+\(\d+\)|opset1::\w+", "{op}", words)
    return " ".join(words.split())[:200]


def measure(runtime: Runtime, request: Request, tell: Tell, known: RuleSet | None, *, only_missing: bool) -> Outcome:
    """Measure a runtime; what is known of the same version and was not measured now stays.

    A ``KeyboardInterrupt`` ends it with what was measured whole.

    Args:
        runtime: the runtime.
        request: what is measured.
        tell: told of the progress.
        known: the rules that there are.
        only_missing: whether only what they do not cover is measured.

    Raises:
        UnsupportedError: if the runtime cannot be started.
    """
    seen: dict[Key, Seen] = {}
    with Host(runtime, LIMIT) as host:
        version = host.version()
        same = known if known is not None and known.version == version else None
        wanted = requested(runtime, request, same if only_missing else None)
        made = RuleSet(runtime.name, version, machine_name(), datetime.now(UTC).strftime("%Y-%m-%d"), *_loaded(host))
        done = 0
        try:
            for variant in wanted:
                tell(done, len(wanted), f"{runtime.name} {variant}")
                seen |= measure_variant(host, variant, request.seed)
                done += 1
        except KeyboardInterrupt:
            host.end()
    measured = frozenset((f"{op}-{version}", kind, broadcast, way) for op, version, broadcast, kind, way, *_rest in seen)
    if same is not None:
        seen |= _told(same, same.measured - measured)
        measured |= same.measured
    by_hand = tuple(rule for rule in known.rules if rule.by_hand) if known else ()
    rules = (*rules_from(seen), *by_hand)
    texts = FAULTS | dict(known.faults if known else {})
    faults = {rule.fault: texts.get(rule.fault, rule.fault) for rule in rules}
    return Outcome(replace(made, measured=measured, rules=rules, faults=faults), len(wanted) - done)


def _told(rules: RuleSet, measured: frozenset[tuple[str, ...]]) -> Iterator[tuple[Key, Seen]]:
    """What rules say of the contexts of what was measured before."""
    for (op, kind, broadcast, way), source, pattern in product(measured, _SOURCES, _PATTERNS):
        name, _minus, version = op.rpartition("-")
        key = (name, version, broadcast, kind, way, source, pattern)
        facts = {fact: frozenset({value}) for fact, value in zip(MEASURED_FACTS, key, strict=True)}
        found = [rule for rule in rules.matches(facts) if not rule.by_hand]
        first = [rule for rule in found if rule.severity == found[0].severity]
        words = next((rule.words for rule in first if rule.words), "")
        yield key, Seen(first[0].severity if first else None, frozenset(rule.fault for rule in first), words)
