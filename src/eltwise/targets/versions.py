"""Which opset and file version a model is to have for a runtime: its own, or the nearest that loads and is exact."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from eltwise.ir.graph import Graph
from eltwise.targets.rewrites import decide
from eltwise.targets.rules import DEFAULT_SEVERITY, RuleSet, Severity
from eltwise.targets.sites import Site


@dataclass(frozen=True)
class Versions:
    """What a model's versions are to be.

    Attributes:
        opset: the ONNX opset; 0 for an IR.
        file_version: the version of the file format.
        refused: the versions of the model that the runtime refuses, each with those that it loads.
        reason: why no version would do; empty where one does.
    """

    opset: int
    file_version: int
    refused: tuple[tuple[str, str], ...] = ()
    reason: str = ""


def versions_for(
    graph: Graph,
    sites: Sequence[Site],
    rules: RuleSet,
    least: Severity = DEFAULT_SEVERITY,
    allowed: Collection[str] = (),
) -> Versions:
    """Choose the versions: those that a model has where they load and nothing in it needs others.

    Args:
        graph: the model.
        sites: its op sites.
        rules: what is known of the runtime.
        least: from which severity on something is to be done.
        allowed: faults that are accepted, by name.
    """
    origin, refused = graph.origin, []
    if rules.opsets and origin.opset and origin.opset not in rules.opsets:
        refused.append((f"opset {origin.opset}", f"opsets {_span(rules.opsets)}"))
    opset = origin.opset
    if rules.opsets and origin.opset:
        opset = _opset(origin.opset, sites, rules, least, allowed)
    version, reason = origin.file_version, ""
    name = "ir_version" if origin.domain == "ai.onnx" else "OpenVINO IR"
    # Files of ir_version 1 and 2 cannot say an opset, and are written in version 3 where that is needed.
    if version not in rules.file_versions and version >= min(rules.file_versions, default=0):
        refused.append((f"{name} {version}", f"{name} {_span(rules.file_versions)}"))
        version, reason = _file_version(graph, rules)
    return Versions(opset, version, tuple(refused), reason)


def _opset(own: int, sites: Sequence[Site], rules: RuleSet, least: Severity, allowed: Collection[str]) -> int:
    """The model's own opset, else the next newer one, else the next older one, in which every node can be written."""
    last = 0
    for opset in _nearest(own, rules.opsets):
        last = last or opset
        if all(decide(rules, site, least, allowed, opset).steps is not None for site in sites):
            return opset
    return last


def _nearest(own: int, opsets: Collection[int]) -> Iterator[int]:
    yield from sorted(opset for opset in opsets if opset >= own)
    yield from sorted((opset for opset in opsets if opset < own), reverse=True)


def _file_version(graph: Graph, rules: RuleSet) -> tuple[int, str]:
    """The newest version that the runtime loads, and why it does not do for this model."""
    own = graph.origin.file_version
    wanted = max((known for known in rules.file_versions if known < own), default=0)
    if graph.origin.domain != "ai.onnx" or not wanted:
        return own, "an IR of another version has other ports" if wanted else "it is too old"
    from eltwise.formats.onnx.messages import needed_file_version
    from eltwise.formats.onnx.writer import write_model_proto

    needed, words = needed_file_version(write_model_proto(graph))
    return (own, f"{words} needs ir_version {needed}, and it loads up to {wanted}") if needed > wanted else (wanted, "")


def _span(numbers: Collection[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if numbers else "none"
