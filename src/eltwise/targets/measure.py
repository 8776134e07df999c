"""Measure a runtime: every operator version in every situation that a rule can be about, and rules made of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import CaseResult, References
from eltwise.conformance.explain import Explainer
from eltwise.conformance.faults import UNEXPLAINED, WRONG_SHAPE, WRONG_TYPE
from eltwise.conformance.runner import CaseRunner
from eltwise.conformance.suite import Variant, variants
from eltwise.core.dtypes import FLOAT32
from eltwise.core.errors import EltwiseError
from eltwise.core.machine import machine_name
from eltwise.core.shapes import of_sizes
from eltwise.formats.openvino.ports import ResultNames, output_ports
from eltwise.ir.graph import Graph, Node, Origin, Port, TensorType
from eltwise.model import Model, load
from eltwise.ops import registry
from eltwise.passes.upcast import exact_upcast, upcast
from eltwise.runtimes import Answer, Host, Program, Runtime
from eltwise.runtimes import Model as ModelProgram
from eltwise.targets.cases import node_cases, pair_cases
from eltwise.targets.constants import NEUTRAL
from eltwise.targets.generalize import Key, Seen, rules_from
from eltwise.targets.rules import NODE_SELECTORS, PAIR_SELECTORS, SELECTORS, SEVERITIES, RuleSet, Scope, Severity
from eltwise.targets.run import program_of, severity_of
from eltwise.targets.sites import Pair

LIMIT = 60.0
"""How many seconds one answer may take."""

NEWEST_IR_VERSION = 14
_OPENVINO_VERSIONS = range(7, 14)
_EARLY_OPSET, _USUAL_IR_VERSION, _WRITTEN_IR = 9, 8, 11
_TOGETHER = 32
_SCALARS = 16
_DIGITS = 96

FAMILIES: tuple[tuple[str, str], ...] = (
    (r".*int32 arithmetic.*|.*clamped to int32", "int32 arithmetic"),
    (r".*(prepared for|clamped to) bfloat16", "constant prepared for bfloat16"),
    (r"float32 arithmetic.*|.*(rounded|clamped) to float32|float64 arithmetic|round.*", "float32 arithmetic"),
    (r"sign of zero lost|zeros not added|negated reverse difference|result is B", "sign of zero lost"),
    (r"saturation.*|B negated first", "saturation"),
    (r".*flushed.*", "subnormals flushed"),
)
"""Fault models that mean the same for a model, and the one name that rules have for them."""

FAULTS = {
    "refused": "the runtime does not load or run it",
    "refused in part": "the runtime refuses it for some shapes",
    "crashes": "the process of the runtime ends",
    "hangs": "the runtime gives no answer",
    "kept wider between nodes": "the result is not brought to its type before the next node reads it",
    "computed together with the node before": "it and the node that makes its operand become one step, "
    "or their constants become one",
    "constant left out": "the node is left out, since its constant is 0, or is 0 or 1 in float32",
    "other values": "other values, which no known fault explains",
}
"""What faults are that are not known by values alone."""

Tell = Callable[[int, int, str], None]
Measured = dict[Key, Seen]


@dataclass(frozen=True)
class Request:
    """What is measured: versioned names, and types by their NumPy names, all where empty; the seed of random values."""

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
    return [
        found
        for found in variants()
        if found.count == 2
        and found.schema.domain in runtime.domains
        and (not request.ops or str(found.schema) in request.ops)
        and (not request.types or found.element_type.name in request.types)
        and not (known and known.is_measured(_op(found), found.element_type.name, found.rule))
    ]


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
        UnsupportedError: where the runtime cannot be started.
    """
    nodes: Measured = {}
    pairs: Measured = {}
    with Host(runtime, LIMIT) as host:
        version = host.version()
        is_same = known is not None and known.version == version
        wanted = requested(runtime, request, known if only_missing and is_same else None)
        versions = _loaded_versions(host)
        done = 0
        try:
            for variant in wanted:
                tell(done, len(wanted), f"{runtime.name} {variant}")
                first, second = measure_variant(host, variant, request.seed)
                nodes |= first
                pairs |= second
                done += 1
        except KeyboardInterrupt:
            host.end()
    if known is not None and is_same:
        nodes, pairs = _joined(known, nodes, pairs, request.seed)
    by_hand = tuple(rule for rule in known.rules if rule.by_hand) if known else ()
    rules = RuleSet(
        runtime.name,
        version,
        machine_name(),
        datetime.now(UTC).strftime("%Y-%m-%d"),
        *versions,
        scopes_of(nodes),
        (*rules_from(nodes, pairs), *by_hand),
    )
    texts = {
        rule.fault: FAULTS.get(rule.fault) or (known.faults.get(rule.fault) if known else "") or rule.fault
        for rule in rules.rules
    }
    return Outcome(replace(rules, faults=texts), len(wanted) - done)


def measure_variant(host: Host, variant: Variant, seed: int) -> tuple[Measured, Measured]:
    """Measure a variant as it is and, where something is wrong and it keeps the bits, upcast."""
    nodes, pairs = _measure_written(host, variant, seed, "none")
    is_wrong = any(seen.severity for seen in (*nodes.values(), *pairs.values()))
    if is_wrong and variant.rule != "legacy" and exact_upcast(variant.schema.expression(2), variant.element_type):
        with _UpcastingHost(host.runtime, LIMIT) as upcasting:
            more_nodes, more_pairs = _measure_written(upcasting, variant, seed, "upcast")
        nodes, pairs = nodes | more_nodes, pairs | more_pairs
    return nodes, pairs


class _UpcastingHost(Host):
    """A host that upcasts every element-wise node of a model before it hands it over."""

    def run(self, program: Program, inputs: Sequence[np.ndarray], *, only_load: bool = False) -> Answer:
        assert isinstance(program, ModelProgram)
        model: Model = load(program.data, program.weights or None)
        try:
            graph, _report = upcast(model.graph, lambda _node: True)
        except EltwiseError as error:
            return Answer("refused", words=f"not upcast: {error}")
        return super().run(program_of(graph), inputs, only_load=only_load)


def _measure_written(host: Host, variant: Variant, seed: int, rewrite: str) -> tuple[Measured, Measured]:
    head = (*_head(variant), rewrite)
    references, explainer = References(), Explainer()
    nodes = _run(host, node_cases(variant, seed), references, explainer)
    found = {(*head, *key): seen for key, seen in nodes.items()}
    if all(seen.severity == "refused" for seen in nodes.values()):
        return found, {}  # Where there is no kernel, nothing is made of several nodes.
    pairs = _run(host, ((_pair_key(pair), case) for pair, case in pair_cases(variant, seed)), references, explainer)
    return found, {(*head, *key): seen for key, seen in pairs.items()}


def _run(host: Host, cases: Iterator[tuple[Key, Case]], references: References, explainer: Explainer) -> Measured:
    keyed = [(key, case) for key, case in cases if case.is_valid]
    key_of = {id(case): key for key, case in keyed}
    # A runtime may treat a model of known sizes otherwise than one in which any size is not known.
    by_context: dict[tuple[object, ...], list[Case]] = {}
    for _key, case in keyed:
        by_context.setdefault((case.context.is_dynamic, case.context.consumer, case.size > _DIGITS**2), []).append(case)
    groups = [
        tuple(cases[start : start + _TOGETHER])
        for cases in by_context.values()
        for start in range(0, len(cases), _TOGETHER)
    ]
    results: dict[Key, list[CaseResult]] = {}
    for result in CaseRunner(host, "static", references, thrifty=False).run(groups).results:
        results.setdefault(key_of[id(result.case)], []).append(result)
    return {key: seen_of(key, found, explainer) for key, found in results.items()}


def seen_of(key: Key, results: Sequence[CaseResult], explainer: Explainer) -> Seen:
    """What a runtime did in one situation, by the worst of its cases."""
    outcomes = {result.outcome for result in results}
    words = next((result.answer.words for result in results if result.outcome in ("crashed", "hung", "refused")), "")
    for outcome, fault in (("crashed", "crashes"), ("hung", "hangs")):
        if outcome in outcomes:
            return Seen("refused", frozenset({fault}), general(words))
    if "refused" in outcomes:
        fault = "refused" if outcomes == {"refused"} else "refused in part"
        return Seen("refused", frozenset({fault}), general(words))
    judged = [_as_read(result) for result in results]
    found = [(severity, result) for severity, result in judged if severity]
    if not found:
        return Seen()
    faults = _faults(key, [result for _severity, result in found], explainer)
    if faults & {WRONG_SHAPE, WRONG_TYPE, "other values", "axis ignored"}:
        return Seen("wrong values", faults)
    return Seen(max((severity for severity, _result in found), key=SEVERITIES.index), faults)


def _as_read(result: CaseResult) -> tuple[Severity | None, CaseResult]:
    """How severe a result is; of one that a cast to float32 reads, what the cast gives of the exact result counts."""
    exact, got = result.expected, result.got
    if exact is None:
        return None, result
    if result.case.context.consumer == "Cast":
        with np.errstate(all="ignore"):
            exact = exact.astype(np.float32)
        is_integer = result.case.element_type.is_integer
        severity = severity_of(got, exact, False)
        return ("wrong values" if severity and is_integer else severity), result
    return severity_of(got, exact, False), result


def _faults(key: Key, results: Sequence[CaseResult], explainer: Explainer) -> frozenset[str]:
    if len(key) == len(NODE_SELECTORS):
        return frozenset({"kept wider between nodes"}) if key[0] == "read-wider" else _by_values(results, explainer)
    _operand, producer, other, _readers, _sizes = key
    if other in NEUTRAL:
        return frozenset({"constant left out"})
    if producer == "cast":
        return frozenset({"kept wider between nodes"})
    return (
        _by_values(results, explainer) if producer == "none" else frozenset({"computed together with the node before"})
    )


def _by_values(results: Sequence[CaseResult], explainer: Explainer) -> frozenset[str]:
    names = {result.problem for result in results if result.problem}
    compared = [result.compared for result in results if result.compared is not None]
    names |= {name for reason in explainer.explain(compared) for name in reason.names}
    return frozenset(family(name) for name in names)


def family(name: str) -> str:
    """The name that rules have for a fault model.

    >>> family("B clamped to int32"), family("unexplained"), family("axis ignored")
    ('int32 arithmetic', 'other values', 'axis ignored')
    """
    if name == UNEXPLAINED:
        return "other values"
    return next((known for pattern, known in FAMILIES if re.fullmatch(pattern, name)), name)


def general(words: str) -> str:
    """A runtime's words without what they say of the model of the case.

    >>> general("no implementation for Sub(6) node with name 'case0'")
    'no implementation for {op}'
    """
    words = re.sub(
        r"(?:,? (?:node )?with name| In Node,)? ?[('\"]*(?:case|result|before|between|after|made)\d.*", "", words
    )
    words = re.sub(r"\b[A-Z]\w+\(\d+\)|opset1::\w+", "{op}", words)
    return " ".join(words.split())[:200]


def _joined(known: RuleSet, nodes: Measured, pairs: Measured, seed: int) -> tuple[Measured, Measured]:
    """What was measured now, and what the rules say of everything else that they cover."""
    all_nodes, all_pairs = dict(nodes), dict(pairs)
    heads = {key[: len(SELECTORS)] for key in nodes}
    rules = replace(known, rules=tuple(rule for rule in known.rules if not rule.by_hand))
    for variant, rewrite in product(variants(), ("none", "upcast")):
        head = (*_head(variant), rewrite)
        if head in heads or not known.is_measured(_op(variant), variant.element_type.name, variant.rule, rewrite):
            continue
        all_nodes |= _told(rules, head, NODE_SELECTORS, (key for key, _case in node_cases(variant, seed)))
        all_pairs |= _told(rules, head, PAIR_SELECTORS, (_pair_key(pair) for pair, _case in pair_cases(variant, seed)))
    return all_nodes, all_pairs


def _told(rules: RuleSet, head: Key, names: Sequence[str], keys: Iterator[Key]) -> Measured:
    """What rules say of situations, as if it had been measured."""
    found: Measured = {}
    for key in dict.fromkeys(keys):
        matches = rules.matches([dict(zip((*SELECTORS, *names), (*head, *key), strict=True))])
        worst = [match.rule for match in matches if match.rule.severity == matches[0].rule.severity]
        words = next((rule.words for rule in worst if rule.words), "")
        found[(*head, *key)] = (
            Seen(worst[0].severity, frozenset(rule.fault for rule in worst), words) if worst else Seen()
        )
    return found


def scopes_of(nodes: Mapping[Key, Seen]) -> tuple[Scope, ...]:
    """What was measured, in few lines: types with the same rewrites, operator versions with the same types."""
    rewrites: dict[tuple[str, str, str], set[str]] = {}
    for op, version, broadcast, element_type, rewrite, *_rest in nodes:
        rewrites.setdefault((f"{op}-{version}", broadcast, element_type), set()).add(rewrite)
    types: dict[tuple[str, str, frozenset[str]], set[str]] = {}
    for (op, broadcast, element_type), found in rewrites.items():
        types.setdefault((op, broadcast, frozenset(found)), set()).add(element_type)
    ops: dict[tuple[str, frozenset[str], frozenset[str]], set[str]] = {}
    for (op, broadcast, which), found in types.items():
        ops.setdefault((broadcast, which, frozenset(found)), set()).add(op)
    scopes = (
        Scope(frozenset(of), kinds, frozenset({broadcast}), which) for (broadcast, which, kinds), of in ops.items()
    )
    return tuple(sorted(scopes, key=lambda scope: (sorted(scope.ops), sorted(scope.types), sorted(scope.broadcasts))))


def _head(variant: Variant) -> Key:
    return (variant.schema.name, str(variant.schema.version), variant.rule, variant.element_type.name)


def _op(variant: Variant) -> str:
    return f"{variant.schema.name}-{variant.schema.version}"


def _pair_key(pair: Pair) -> Key:
    return (pair.operand, pair.producer, pair.other, pair.readers, pair.sizes)


def _loaded_versions(host: Host) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The file versions and the ONNX opsets that a runtime loads, found with a smallest model of each."""
    if "ai.onnx" not in host.runtime.domains:
        return tuple(version for version in _OPENVINO_VERSIONS if loads(host, Origin("openvino", version))), ()
    file_versions = range(3, NEWEST_IR_VERSION + 1)
    opsets = range(1, registry.NEWEST_OPSET["ai.onnx"] + 1)
    return (
        tuple(version for version in file_versions if loads(host, Origin("ai.onnx", version, _EARLY_OPSET))),
        tuple(opset for opset in opsets if loads(host, Origin("ai.onnx", _USUAL_IR_VERSION, opset))),
    )


def loads(host: Host, origin: Origin) -> bool:
    """Whether a runtime loads a smallest model in some version."""
    is_onnx = origin.domain == "ai.onnx"
    schema = registry.resolve(origin.domain, "Identity" if is_onnx else "Convert", origin.opset or 1)
    assert schema is not None
    attributes: dict[str, object] = {} if is_onnx else {"destination_type": FLOAT32}
    written = origin if is_onnx else replace(origin, file_version=_WRITTEN_IR)
    kind = TensorType(FLOAT32, of_sizes((2,)))
    outputs = (Port("y", kind, "y"),) if is_onnx else output_ports([ResultNames("y/result", "y", (), ())])
    node = Node("y", schema.bind(attributes), ("x",), ("y",))
    graph = Graph("smallest", written, (Port("x", kind, "x"),), outputs, (node,), input_order=("x",))
    program = program_of(graph)
    if not is_onnx:
        stated, wanted = (f'version="{number}"'.encode() for number in (_WRITTEN_IR, origin.file_version))
        program = replace(program, data=program.data.replace(stated, wanted, 1))
    return host.run(program, (), only_load=True).kind == "result"
