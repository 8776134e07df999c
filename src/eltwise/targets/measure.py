"""Measure a runtime: what it does with every operator version in every context, and the rules that tell it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from math import prod

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
from eltwise.targets.rules import MEASURED_FACTS, SEVERITIES, Rule, RuleSet, Severity, level
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

_OPERAND_SOURCES = ("static", "dynamic", "a-constant", "b-constant", "both-constant", "a-plain", "b-plain")
_SOURCES = (*_OPERAND_SOURCES, "neighbours", "read-wider")
_PATTERNS = ("equal", "broadcast", "inside", "scalars", "empty", "high-rank")

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
    """The largest case of every operand source, broadcast pattern and number of operands, with the first two."""
    element_type = variant.element_type
    contexts = {name: SOURCES[name] for name in sources_of(variant.count) if name != CALL}
    contexts = {name: found for name, found in contexts.items() if variant.has_neutral or not found.has_neutral}
    if has_others_than_plain(element_type):
        contexts |= {f"{'ab'[index]}-plain": Context(constants=(index,)) for index in range(min(variant.count, 2))}
    if is_narrow(element_type) and variant.has_neutral:
        contexts["read-wider"] = Context(consumer="Cast")
    largest: dict[tuple[str, str, int], Case] = {}
    for source in contexts:
        base = source if source in SOURCES else "neighbours"
        for case in (*value_cases(variant, base, "quick", seed), *layout_cases(variant, base, "quick", seed)):
            if case.is_valid:
                key = (source, _pattern_of(case), len(case.operands))
                largest[key] = max(largest.get(key, case), case, key=lambda one: prod(one.shape()))
    for (source, pattern, _count), case in largest.items():
        # Nothing of scalars is dynamic, and a model of unknown sizes does not tell that one is 0.
        if source != "dynamic" or pattern not in ("scalars", "empty"):
            context = contexts[source]
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


class UpcastingHost(Host):
    """A host that can upcast every element-wise node of a model before it hands it over."""

    upcasts = False

    def run(self, program: Program, inputs: Sequence[np.ndarray], *, only_load: bool = False) -> Answer:
        """Run a program on the runtime, upcast if ``upcasts`` says so."""
        if not self.upcasts or not isinstance(program, ModelProgram):
            return super().run(program, inputs, only_load=only_load)
        try:
            graph, _report = upcast(load(program.data, program.weights or None).graph, lambda _node: True)
        except EltwiseError as error:
            return Answer("refused", words=f"not upcast: {error}")
        return super().run(program_of(graph), inputs, only_load=only_load)


def measure_variant(host: UpcastingHost, variant: Variant, references: References, seed: int) -> dict[Key, Seen]:
    """Measure a variant as it is and, if something is wrong and upcasting it keeps the bits, upcast."""
    host.upcasts = False
    found = _measure_written(host, variant, references, seed)
    is_wrong = any(seen.severity for seen in found.values())
    if is_wrong and variant.rule != "legacy" and exact_upcast(variant.schema.expression(2), variant.element_type):
        host.upcasts = True
        found |= _measure_written(host, variant, references, seed)
    return found


def _measure_written(host: UpcastingHost, variant: Variant, references: References, seed: int) -> dict[Key, Seen]:
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
    for result in CaseRunner(host, "static", references, thrifty=True).run(groups).results:
        results.setdefault(key_of[id(result.case)], []).append(result)
    rewrite = "upcast" if host.upcasts else "none"
    head = (variant.schema.name, str(variant.schema.version), variant.rule, variant.element_type.name, rewrite)
    explainer = Explainer()
    seen = {(*head, *key): _seen(key, found, explainer) for key, found in results.items()}
    # A refusal with other nodes around says something of those.
    return {key: one for key, one in seen.items() if key[-2] in _OPERAND_SOURCES or one.severity != "refused"}


def _seen(key: tuple[str, str], results: Sequence[CaseResult], explainer: Explainer) -> Seen:
    """What a runtime did in one context, by the worst of its cases."""
    outcomes = {result.outcome for result in results}
    words = next((result.answer.words for result in results if result.outcome in ("crashed", "hung", "refused")), "")
    for outcome, fault in (("crashed", "crashes"), ("hung", "hangs")):
        if outcome in outcomes:
            return Seen("refused", frozenset({fault}), _general(words))
    if "refused" in outcomes:
        return Seen(
            "refused", frozenset({"refused" if outcomes == {"refused"} else "refused in part"}), _general(words)
        )
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


def rules_from(seen: Mapping[Key, Seen]) -> list[Rule]:
    """Find few rules that tell the severity of everything that was seen, the most severe first.

    A rule is a box: a set of values for each fact. It is grown around something that no rule tells yet, and holds
    nothing that is known to be less severe.
    """
    if not seen:
        return []
    values = [sorted({key[axis] for key in seen}) for axis in range(len(MEASURED_FACTS))]
    index_of = {key: tuple(of.index(value) for of, value in zip(values, key, strict=True)) for key in seen}
    rules = []
    for severity in reversed(SEVERITIES):
        told = {key: one for key, one in seen.items() if one.severity == severity and not _is_redundant(key, seen)}
        forbidden = np.zeros([len(of) for of in values], bool)
        for key in seen:
            forbidden[index_of[key]] = not _may_be_called(severity, key, seen)
        covered = np.zeros_like(forbidden)
        for fault, _count in Counter(name for one in told.values() for name in one.faults).most_common():
            wanted = np.zeros_like(forbidden)
            for key, one in told.items():
                wanted[index_of[key]] |= fault in one.faults
            while (left := wanted & ~covered).any():
                box = _widest_box(left, wanted, forbidden)
                covered[np.ix_(*box)] = True
                pairs = zip(MEASURED_FACTS, values, box, strict=True)
                where = {name: frozenset(of[i] for i in chosen) for name, of, chosen in pairs if len(chosen) < len(of)}
                inside = (told[key] for key in told if covered[index_of[key]] and fault in told[key].faults)
                words = Counter(one.words for one in inside if one.words).most_common(1)
                rules.append(Rule(severity, fault, where, words[0][0] if words else ""))
    return rules


def _is_redundant(key: Key, seen: Mapping[Key, Seen]) -> bool:
    """Whether a node is as severe without the nodes around it, whatever its operands are."""
    *head, source, pattern = key
    without = [seen[other] for name in _OPERAND_SOURCES if (other := (*head, name, pattern)) in seen]
    return source not in _OPERAND_SOURCES and all(level(one.severity) >= level(seen[key].severity) for one in without)


def _may_be_called(severity: Severity, key: Key, seen: Mapping[Key, Seen]) -> bool:
    """Whether a rule of a severity may hold for what was seen.

    Values that are wrong for equal shapes may be called so for others, and no values at all imprecise.
    """
    if level(seen[key].severity) >= level(severity) or _is_redundant(key, seen):
        return True
    if severity == "refused":
        return False
    if key[-1] == "empty":
        return severity != "wrong values"
    equal = seen.get((*key[:-1], "equal"), Seen()).severity
    return equal != "refused" and level(equal) >= level(severity)


def _widest_box(left: np.ndarray, wanted: np.ndarray, forbidden: np.ndarray) -> list[list[int]]:
    """Of the boxes around the first thing left, grown axis by axis in several orders, the one that covers the most."""
    first, axes = np.argwhere(left)[0], range(left.ndim)
    found = []
    for start in axes:
        box = [[int(number)] for number in first]
        for axis in (*axes[start:], *axes[:start])[::-1]:
            part = np.ix_(*box[:axis], range(left.shape[axis]), *box[axis + 1 :])
            others = tuple(other for other in axes if other != axis)
            is_wrong, has_fault = (np.asarray(where[part].any(axis=others)) for where in (forbidden, wanted))
            # What was not measured may be in the box if that makes the rule shorter, and is no reason to widen it.
            box[axis] = list(range(left.shape[axis]))
            if is_wrong.any():
                box[axis] = [number for number in box[axis] if has_fault[number] and not is_wrong[number]]
        found.append(box)
    return max(found, key=lambda box: (left[np.ix_(*box)].sum(), left[np.ix_(*box)].size))


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
    references = References()
    with UpcastingHost(runtime, LIMIT) as host:
        version = host.version()
        same = known if known is not None and known.version == version else None
        wanted = requested(runtime, request, same if only_missing else None)
        loaded = _loaded_versions(host)
        done = 0
        try:
            for variant in wanted:
                tell(done, len(wanted), f"{runtime.name} {variant}")
                seen |= measure_variant(host, variant, references, request.seed)
                done += 1
        except KeyboardInterrupt:
            host.end()
    measured: set[tuple[str, ...]] = {(f"{key[0]}-{key[1]}", key[3], key[2], key[4]) for key in seen}
    if same is not None:
        seen |= _told(same, same.measured - measured)
        measured |= same.measured
    by_hand = tuple(rule for rule in known.rules if rule.by_hand) if known else ()
    rules = (*rules_from(seen), *by_hand)
    texts = FAULTS | dict(known.faults if known else {})
    faults = {rule.fault: texts.get(rule.fault, rule.fault) for rule in rules}
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    made = RuleSet(runtime.name, version, machine_name(), date, *loaded, frozenset(measured), rules, faults)
    return Outcome(made, len(wanted) - done)


def _told(rules: RuleSet, measured: Collection[tuple[str, ...]]) -> Iterator[tuple[Key, Seen]]:
    """What rules say of the contexts of what was measured before."""
    for (op, kind, broadcast, way), source, pattern in product(measured, _SOURCES, _PATTERNS):
        name, _minus, version = op.rpartition("-")
        key = (name, version, broadcast, kind, way, source, pattern)
        facts = {fact: frozenset({value}) for fact, value in zip(MEASURED_FACTS, key, strict=True)}
        found = [rule for rule in rules.matches(facts) if not rule.by_hand]
        first = [rule for rule in found if rule.severity == found[0].severity]
        words = next((rule.words for rule in first if rule.words), "")
        yield key, Seen(first[0].severity if first else None, frozenset(rule.fault for rule in first), words)


def _loaded_versions(host: Host) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The file versions and the ONNX opsets that a runtime loads, found with a smallest model of each."""
    if "ai.onnx" not in host.runtime.domains:
        return tuple(version for version in _OPENVINO_VERSIONS if loads(host, Origin("openvino", version))), ()
    file_versions, opsets = range(3, NEWEST_IR_VERSION + 1), range(1, registry.NEWEST_OPSET["ai.onnx"] + 1)
    return (
        tuple(version for version in file_versions if loads(host, Origin("ai.onnx", version, _EARLY_OPSET))),
        tuple(opset for opset in opsets if loads(host, Origin("ai.onnx", _USUAL_IR_VERSION, opset))),
    )


def loads(host: Host, origin: Origin) -> bool:
    """Whether a runtime loads a smallest model in some version."""
    is_onnx = origin.domain == "ai.onnx"
    schema = registry.resolve(origin.domain, "Identity" if is_onnx else "Convert", origin.opset or 1)
    assert schema is not None
    node = Node("y", schema.bind({} if is_onnx else {"destination_type": FLOAT32}), ("x",), ("y",))
    kind = TensorType(FLOAT32, of_sizes((2,)))
    outputs = (Port("y", kind, "y"),) if is_onnx else output_ports([ResultNames("y/result", "y", (), ())])
    written = origin if is_onnx else replace(origin, file_version=_WRITTEN_IR)
    graph = Graph("smallest", written, (Port("x", kind, "x"),), outputs, (node,), input_order=("x",))
    program = program_of(graph)
    if not is_onnx:
        stated, wanted = (f'version="{number}"'.encode() for number in (_WRITTEN_IR, origin.file_version))
        program = replace(program, data=program.data.replace(stated, wanted, 1))
    return host.run(program, (), only_load=True).kind == "result"
