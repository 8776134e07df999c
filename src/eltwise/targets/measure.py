"""Measure a runtime: what it does with every operator version in every context, and the rules that tell it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from eltwise.conformance.cases import SOURCES, Case, Context
from eltwise.conformance.compare import CaseResult, References
from eltwise.conformance.explain import Explainer
from eltwise.conformance.runner import CaseRunner
from eltwise.conformance.suite import hard_values_of, layout_cases, value_cases
from eltwise.conformance.variants import Variant, variants
from eltwise.core.broadcasting import Rule as BroadcastRule
from eltwise.core.dtypes import FLOAT32
from eltwise.core.escaping import shortened
from eltwise.core.machine import machine_name, today
from eltwise.core.progress import Progress
from eltwise.core.shapes import of_sizes
from eltwise.faults.families import (
    CRASHES,
    HANGS,
    OTHER_SHAPE,
    OTHER_TYPE,
    REFUSED,
    REFUSED_IN_PART,
    WIDER_BETWEEN_NODES,
    WRONG_ALIGNMENT,
)
from eltwise.formats.openvino.ports import ResultNames, output_ports
from eltwise.ir.graph import Graph, Node, Origin, Port
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import is_arithmetic
from eltwise.runtimes import Host, Runtime
from eltwise.targets.rule_search import Key, Seen, rules_from
from eltwise.targets.rules import MEASURED_FACTS, RuleSet, Severity, level
from eltwise.targets.run import severity_of
from eltwise.targets.sites import HELD_IN_LESS, HIGHEST_ORDINARY_RANK, is_narrow, patterns_of, plain_numbers
from eltwise.tracing.model_program import program_of

NEWEST_IR_VERSION = 14
_OPENVINO_VERSIONS = range(7, 14)
_EARLY_OPSET, _USUAL_IR_VERSION, _WRITTEN_IR = 9, 8, 11
_ORDINARY = 2.0**10

_CONTEXTS: dict[str, Context] = {
    **{name: context for name, context in SOURCES.items() if not context.has_neutral},
    "a-plain": Context(constants=(0,)),
    "b-plain": Context(constants=(1,)),
    "read-wider": Context(is_cast=True),
}
_PATTERNS = ("equal", "broadcast", "inside", "scalars", "empty", "empty-list", "high-rank")


def requested(runtime: Runtime, ops: Collection[str] = (), types: Collection[str] = ()) -> list[Variant]:
    """The operator versions, types and broadcast rules that a runtime can be asked about; all if none are named."""
    return [
        variant
        for variant in variants()
        if is_arithmetic(variant.schema)
        and variant.schema.domain in runtime.domains
        and (not ops or str(variant.schema) in ops)
        and (not types or variant.element_type.name in types)
    ]


def measure(
    runtime: Runtime,
    variants: Sequence[Variant],
    progress: Progress,
    known: RuleSet | None,
) -> tuple[RuleSet, int]:
    """Measure a runtime; what is known of the same version and was not measured now stays.

    A ``KeyboardInterrupt`` ends it with what was measured whole. Progress is of operator versions, types and rules.

    Returns:
        The rules, and how much was not measured because it was interrupted.

    Raises:
        UnsupportedError: if the runtime cannot be started.
    """
    seen: dict[Key, Seen] = {}
    measured: set[Key] = set()
    references = References()
    with Host(runtime) as host:
        version = host.version()
        loaded = _loaded_versions(host)
        same = known if known is not None and known.version == version else None
        left, count = list(variants), len(variants)
        try:
            for variant in variants:
                progress(count - len(left), count, f"{runtime.name} {variant}")
                seen |= measure_variant(host, variant, references)
                measured.add(scope_of(left.pop(0)))
        except KeyboardInterrupt:
            host.end()
    if same is not None:
        seen |= _told(same, same.measured - measured)
        measured |= same.measured
    rules = (*rules_from(seen), *(rule for rule in (known.rules if known else ()) if rule.by_hand))
    date = today()
    return RuleSet(runtime.name, version, machine_name(), date, *loaded, frozenset(measured), rules), len(left)


def scope_of(variant: Variant) -> Key:
    """The operator version, type and broadcast rule, as rules name them."""
    return (f"{variant.schema.name}-{variant.schema.version}", variant.element_type.name, variant.rule)


def measure_variant(host: Host, variant: Variant, references: References) -> dict[Key, Seen]:
    """Measure a variant in every context."""
    keys = {case: key for key, case in cases_of(variant)}
    results: dict[tuple[str, str], list[CaseResult]] = {}
    for case, result in CaseRunner(host, references, most_together=len(keys), is_thrifty=True).run([*keys]).items():
        results.setdefault(keys[case], []).append(result)
    head = (variant.schema.name, str(variant.schema.version), variant.rule, variant.element_type.name)
    explainer = Explainer()
    seen = {(*head, *key): _seen(key[0], outcomes, explainer) for key, outcomes in results.items()}
    # A refusal of a node and a cast that reads it says nothing of the node.
    return {key: one for key, one in seen.items() if key[-2] != "read-wider" or one.severity != "refused"}


def cases_of(variant: Variant) -> Iterator[tuple[tuple[str, str], Case]]:
    """The largest case of every operand source, broadcast pattern and number of operands, with the first two."""
    element_type, largest = variant.element_type, dict[tuple[str, str, int], Case]()
    sources = {name for name in variant.sources if name in _CONTEXTS}
    if element_type in HELD_IN_LESS:
        sources |= {"a-plain", *(["b-plain"] if variant.count > 1 else [])}
    if is_narrow(element_type) and variant.has_neutral:
        sources.add("read-wider")
    for source in sorted(sources):
        base = source if source in SOURCES else "neighbours"
        values = value_cases(variant, base, "quick", 0)
        for case in (*values, *_rare_patterns(values[0]), *layout_cases(variant, base, "quick", 0)):
            if case.is_valid:
                key = (source, _pattern_of(case), len(case.operands))
                largest[key] = max(largest.get(key, case), case, key=lambda one: prod(one.shape()))
    for (source, pattern, count), case in largest.items():
        # Nothing of scalars is dynamic, and a model of unknown sizes does not tell that one is 0.
        if source == "dynamic" and pattern in ("scalars", "empty", "empty-list"):
            continue
        context = _CONTEXTS[source]
        is_plain = source.endswith("-plain") and context.constants[0] < count
        varied = _with_plain(case, context.constants[0]) if is_plain else case
        yield (source, pattern), replace(varied, context=context)


def _rare_patterns(case: Case) -> Iterator[Case]:
    """The case in a high rank, and without elements: conformance does not ask for these with every operand source."""
    ones = (1,) * HIGHEST_ORDINARY_RANK
    yield replace(case, operands=tuple(operand.reshape(ones + operand.shape) for operand in case.operands))
    for shape in ((0,), (1, 0)):
        yield replace(case, operands=tuple(operand[:0].reshape(shape) for operand in case.operands))


def _pattern_of(case: Case) -> str:
    axis = dict(case.attributes).get("axis", -1)
    rule = BroadcastRule(case.rule, axis if isinstance(axis, int) else -1)
    patterns = patterns_of(rule, [of_sizes(operand.shape) for operand in case.operands])
    return "scalars" if "scalars" in patterns else next(iter(patterns))


def _with_plain(case: Case, index: int) -> Case:
    """The case with other numbers in place of those that are not plain."""
    pool, operand = hard_values_of(case.element_type), case.operands[index]
    others = np.random.default_rng(0).choice(pool[plain_numbers(pool, case.element_type)], operand.shape)
    plain = np.asarray(np.where(plain_numbers(operand, case.element_type), operand, others))
    return replace(case, operands=(*case.operands[:index], plain, *case.operands[index + 1 :]))


def _seen(source: str, results: Sequence[CaseResult], explainer: Explainer) -> Seen:
    """What a runtime did in one context, by the worst of its cases."""
    outcomes = {result.outcome for result in results}
    message = next(
        (result.answer.message for result in results if result.outcome in ("crashed", "hung", "refused")), ""
    )
    refusal = REFUSED if outcomes == {"refused"} else REFUSED_IN_PART
    for outcome, fault in (("crashed", CRASHES), ("hung", HANGS), ("refused", refusal)):
        if outcome in outcomes:
            return Seen("refused", frozenset({fault}), _general(message))
    severities = [severity for severity in map(_severity, results) if severity]
    if not severities:
        return Seen()
    worst = max(severities, key=level)
    if source == "read-wider":
        return Seen(worst, frozenset({WIDER_BETWEEN_NODES}))
    faults = frozenset(result.problem for result in results if result.problem)
    faults |= {family for reason in explainer.explain(results)[0] for family in reason.families}
    is_severe = faults & {OTHER_SHAPE, OTHER_TYPE, WRONG_ALIGNMENT}
    return Seen("wrong values" if is_severe else worst, faults)


def _severity(result: CaseResult) -> Severity | None:
    """How severe a result is: by its largest difference, and by those of operands of ordinary size.

    Of a result that a cast to float32 reads, what the cast gives of the exact result counts.
    """
    case, got, exact = result.case, result.got, result.expected
    if exact is None or not result.wrong_count:
        return None
    is_integer = case.element_type.kind != "float"
    if case.context.is_cast:
        with np.errstate(all="ignore"):
            severity = severity_of(got, exact.astype(np.float32), False)
        return "wrong values" if severity and is_integer else severity
    if got is None or is_integer or not result.wrong:
        return severity_of(got, exact, False)
    wrong = np.array(result.wrong)
    with np.errstate(all="ignore"):
        magnitudes = np.abs([operand.astype(np.float64) for operand in case.operands_at(wrong)])
    ordinary = wrong[((magnitudes >= 1 / _ORDINARY) & (magnitudes <= _ORDINARY)).all(axis=0)]
    if severity_of(got.reshape(-1)[ordinary], exact.reshape(-1)[ordinary], True) == "wrong values":
        return "wrong values"
    if exact.dtype != np.bool_:
        return severity_of(got, exact, False)
    return "sign of zero or NaN" if np.isnan(magnitudes).any(axis=0).all() else "precision"


def _general(message: str) -> str:
    """A runtime's message without what it says of the model of the case.

    >>> _general("no implementation for Sub(6) node with name 'case0'")
    'no implementation for {op}'
    """
    message = re.sub(
        r"(?:,? (?:node )?with name| In Node,)? ?[('\"]*(?:case|result|before|between|after|made)\d.*", "", message
    )
    message = re.sub(r"\b[A-Z]\w+\(\d+\)|opset1::\w+", "{op}", message)
    return shortened(" ".join(message.split()), 200)


def _told(rules: RuleSet, scopes: Collection[Key]) -> Iterator[tuple[Key, Seen]]:
    """What rules say of the contexts of what was measured before."""
    measured = replace(rules, rules=tuple(rule for rule in rules.rules if not rule.by_hand))
    for (op, kind, broadcast), source, pattern in product(scopes, _CONTEXTS, _PATTERNS):
        name, _minus, version = op.rpartition("-")
        key = (name, version, broadcast, kind, source, pattern)
        matches = measured.matches({fact: frozenset({value}) for fact, value in zip(MEASURED_FACTS, key, strict=True)})
        first = [rule for rule in matches if rule.severity == matches[0].severity]
        message = next((rule.message for rule in first if rule.message), "")
        yield key, Seen(first[0].severity if first else None, frozenset(rule.fault for rule in first), message)


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
        stated, needed = (f'version="{number}"'.encode() for number in (_WRITTEN_IR, origin.file_version))
        program = replace(program, data=program.data.replace(stated, needed, 1))
    return host.run(program, (), only_load=True).kind == "result"
