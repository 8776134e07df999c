"""What is to be done to a model for a runtime, by the rules: node by node, its opset and the version of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Literal, get_args

from eltwise.core.errors import EltwiseError, UnsupportedError, raise_all, unknown_name
from eltwise.faults.families import OTHER_SHAPE, REFUSED_IN_PART, WRONG_ALIGNMENT
from eltwise.ir.graph import Graph
from eltwise.ir.scopes import all_graphs
from eltwise.model import Model, read
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, is_arithmetic
from eltwise.passes.analysis import Analysis
from eltwise.passes.upcast import exact_upcast
from eltwise.runtimes import Runtime
from eltwise.runtimes.registry import BY_NAME, adapter_of, is_function
from eltwise.targets.rules import REFUSALS, Rule, RuleSet, Severity, level, span
from eltwise.targets.sites import Site, sites_of

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

TargetName = Literal["onnxruntime", "openvino"]

Step = Literal["align", "upcast"]
"""What is done to a node: B is aligned by its shape instead of an axis; it is computed wider and cast back."""

STEPS: tuple[Step, Step] = ("align", "upcast")

Steps = tuple[Step, ...]

_OF_SHAPES = (REFUSED_IN_PART, OTHER_SHAPE, WRONG_ALIGNMENT)


def unread(analysis: Analysis) -> tuple[EltwiseError, ...]:
    """Why the graph of an IR is not whole: layers of other operators, without which it cannot be written."""
    if analysis.graph.origin.domain == "ai.onnx":
        return ()
    return tuple(problem for problem in analysis.unread if isinstance(problem, UnsupportedError))


def other_operators(analysis: Analysis) -> Mapping[str, int]:
    """The operators of all nodes that are not element-wise or lie in functions, with how many there are."""
    graph = analysis.graph
    in_functions = {id(inner) for function in graph.functions for inner in all_graphs(function.body)}
    names = Counter(
        ".".join(filter(None, node.operator))
        for body in all_graphs(graph)
        for node in body.nodes
        if id(body) in in_functions or not is_arithmetic(node.schema)
    )
    names.update(f"set of layers ({problem.problem})" for problem in unread(analysis))
    return names


def read_model(source: Source | Model, weights: bytes | None = None) -> Model:
    """Read a model; operators that eltwise does not run may be in it. No external data is read.

    Raises:
        EltwiseError: if there is no model, or an IR has problems of its own.
    """
    model = read(source, weights, reads_weights=False)
    if model.graph.origin.domain != "ai.onnx" and not unread(model.analysis):
        raise_all([problem for problem in model.problems if not isinstance(problem, UnsupportedError)])
    return model


def target_named(name: object) -> TargetName:
    """Find a target by its name.

    Raises:
        NameUnknownError: naming the targets that there are.
    """
    targets: tuple[TargetName, ...] = get_args(TargetName)
    for target in targets:
        if isinstance(name, str) and name == target:
            return target
    error = unknown_name("target", name if isinstance(name, str) else repr(name), targets)
    if is_function(name) or name in BY_NAME:
        error.hint = f"eltwise trace MODEL --runtime {name} --against float64 compares models in any runtime"
    raise error


def runtime_on(target: str, model: Model) -> Runtime | None:
    """The runtime of a target that reads the format of a model, installed or not; None where it does not read it."""
    domain = model.graph.origin.domain
    runtime = adapter_of(target, domain)
    return runtime if runtime is not None and domain in runtime.domains else None


def version_note(runtime: Runtime, rules: RuleSet, run: str = "") -> str:
    """What is to be said if another version runs here than was measured, or the same in another way; empty if not.

    Args:
        runtime: the runtime.
        rules: what was measured.
        run: the version that ran here, with its settings; without it, only the installed number is compared.
    """
    package = next(iter(runtime.packages), "")
    try:
        installed = run.partition(" ")[0] or version(package)
    except PackageNotFoundError:
        return ""
    if installed == rules.number:
        if run in ("", rules.version):
            return ""
        return f"the rules are of {rules.version}, it runs as {run} here: processors differ in that"
    return (
        f"{package} {installed} is installed here, the rules are of {rules.number} "
        f"(eltwise targets --refresh --runtime {runtime.name} measures the installed one)"
    )


def worst(rules: Sequence[Rule]) -> Severity | None:
    """How severe the worst is of what applies; None if nothing does."""
    return rules[0].severity if rules else None


def ask(rules: RuleSet, site: Site) -> tuple[Rule, ...] | None:
    """The rules that apply to a node; None if it was not measured."""
    scope = (f"{site.schema.name}-{site.schema.version}", site.type_name, site.broadcast)
    if not site.context or scope not in rules.measured:
        return None
    matches = rules.matches(site.facts)
    if site.are_sizes:  # Numbers that fit int32 show nothing of what happens to others.
        return tuple(rule for rule in matches if rule.fault in (*REFUSALS, *_OF_SHAPES))
    return matches


def measured(graph: Graph, rules: RuleSet) -> list[Site]:
    """The nodes of a model that were measured."""
    return [site for site in sites_of(graph) if ask(rules, site) is not None]


def decide(rules: RuleSet, site: Site, least: Severity, opset: int = 0) -> tuple[Steps | None, tuple[Rule, ...]]:
    """Find the simplest rewrite of a node with which nothing as severe as ``least`` happens.

    What is less severe already is left as it is; of what is not, an exact way comes before one that is less severe.

    Args:
        rules: what is known of the runtime.
        site: the node.
        least: from which severity on something is to be done.
        opset: the opset that an ONNX model is to have; 0 for its own.

    Returns:
        What is to be done to it, None if nothing that was measured helps; and the rules that apply to it so.
    """
    upgraded = in_opset(site, opset) if opset else site
    now = ask(rules, upgraded or site) or ()
    if upgraded is None or level(worst(now)) < level(least):
        return (None if upgraded is None else ()), now
    # Those that keep every bit by themselves, the simplest first.
    aligned = _with_numpy_broadcast(upgraded, upgraded.schema) if upgraded.broadcast == "pdpd" else None
    rewritten: dict[Steps, Site | None] = {
        ("upcast",): _upcast(upgraded),
        ("align",): aligned,
        ("align", "upcast"): aligned and _upcast(aligned),
    }
    known = {steps: ask(rules, written) for steps, written in rewritten.items() if written is not None}
    better = [(steps, then) for steps, then in known.items() if then is not None and level(worst(then)) < level(least)]
    exact = [(steps, then) for steps, then in better if not then]
    return next(iter((*exact, *better)), (None, now))


def _upcast(site: Site) -> Site | None:
    """The node as it is computed in a wider type, between casts."""
    wide = exact_upcast(site.expression, site.element_type) if site.element_type else None
    if wide is None or not site.context:
        return None
    source = site.context["source"] - {"read-wider"}
    producer, narrow = frozenset({"cast"}), frozenset({site.type_name})
    context = {**site.context, "source": source, "producer": producer, "upcast": narrow}
    return replace(site, element_type=wide, context=context)


def in_opset(site: Site, opset: int) -> Site | None:
    """The node as another opset has it; None if that has no such operator or type."""
    schema = registry.resolve(site.schema.domain, site.schema.name, opset)
    if not isinstance(schema, ElementwiseSchema) or (site.element_type and site.element_type not in schema.types):
        return None
    if schema.broadcasting == site.broadcast:
        return replace(site, schema=schema)
    return _with_numpy_broadcast(site, schema) if schema.broadcasting == "numpy" else None


def _with_numpy_broadcast(site: Site, schema: ElementwiseSchema) -> Site:
    patterns = frozenset("broadcast" if pattern == "inside" else pattern for pattern in site.context.get("pattern", ()))
    context = {**site.context, "pattern": patterns} if site.context else {}
    return replace(site, schema=schema, broadcast="numpy", context=context)


@dataclass(frozen=True)
class Versions:
    """What a model's versions are to be: its own if they load and nothing in it needs others, or the nearest.

    Attributes:
        opset: the ONNX opset; 0 for an IR.
        file_version: the version of the file format.
        refused: the versions of the model that the runtime refuses, each with those that it loads.
        reason: why no version would do; empty if one does.
    """

    opset: int
    file_version: int
    refused: tuple[tuple[str, str], ...] = ()
    reason: str = ""


def choose_versions(graph: Graph, rules: RuleSet, least: Severity) -> Versions:
    """Choose the versions in which a runtime loads a model and every node can be written."""
    origin, refused = graph.origin, []
    opset, file_version, reason = origin.opset, origin.file_version, ""
    if rules.opsets and opset:
        if opset not in rules.opsets:
            refused.append((f"opset {opset}", f"opsets {span(rules.opsets)}"))
        opset = _nearest_opset(opset, measured(graph, rules), rules, least)
    # Files of ir_version 1 and 2 cannot say an opset, and are written in version 3 where that is needed.
    if file_version not in rules.file_versions and file_version >= min(rules.file_versions, default=0):
        name = "ir_version" if origin.domain == "ai.onnx" else "OpenVINO IR"
        refused.append((f"{name} {file_version}", f"{name} {span(rules.file_versions)}"))
        file_version, reason = _older_file_version(graph, rules)
    return Versions(opset, file_version, tuple(refused), reason)


def _nearest_opset(stated: int, sites: Sequence[Site], rules: RuleSet, least: Severity) -> int:
    """The model's own opset, else the next newer one, else the next older one, in which every node can be written."""
    newer = sorted(opset for opset in rules.opsets if opset >= stated)
    older = sorted((opset for opset in rules.opsets if opset < stated), reverse=True)
    for opset in (*newer, *older):
        if all(decide(rules, site, least, opset)[0] is not None for site in sites):
            return opset
    return (*newer, *older)[0]


def _older_file_version(graph: Graph, rules: RuleSet) -> tuple[int, str]:
    """The newest version that the runtime loads, and why it does not do for this model."""
    stated = graph.origin.file_version
    version = max((known for known in rules.file_versions if known < stated), default=0)
    if graph.origin.domain != "ai.onnx" or not version:
        return stated, "an IR of another version has other ports" if version else "it is too old"
    from eltwise.formats.onnx.messages import needed_file_version
    from eltwise.formats.onnx.writer import write_model_proto

    needed, message = needed_file_version(write_model_proto(graph))
    return (
        (stated, f"{message} needs ir_version {needed}, and it loads up to {version}")
        if needed > version
        else (version, "")
    )
