"""What a runtime does with single nodes, by the table: which way to write each of them is right there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from eltwise.core.dtypes import FLOAT16
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.exactness import exact_wider
from eltwise.passes.places import Layout, Place
from eltwise.targets.table import WAYS, Answer, Measurement, Way, worst

NOT_DIFFERENT = ("not measured", "refused in part")
"""Kinds of answers that may be allowed by their own names; differences are allowed by the names of their reasons."""


@dataclass(frozen=True)
class Decision:
    """How a node is to be written for a runtime.

    Attributes:
        place: the node.
        now: what happens to it as it is.
        way: how it is to be written; None where nothing that was measured is right or allowed.
        then: what happens to it so.
    """

    place: Place
    now: Answer
    way: Way | None
    then: Answer


def judged(measurement: Measurement, places: Iterable[Place]) -> tuple[Place, ...]:
    """The nodes of operators of which anything was measured; of the others nothing can be said."""
    return tuple(place for place in places if measurement.knows(place.schema))


def decide(measurement: Measurement, place: Place, allowed: Collection[str] = (), opset: int = 0) -> Decision:
    """Find the first way to write a node that is exact on a runtime; else the first that differs only as is allowed.

    Args:
        measurement: what is known of the runtime.
        place: the node.
        allowed: reasons for differences that are accepted, by name.
        opset: the opset that an ONNX model is to have; 0 for its own.
    """
    moved = in_opset(place, opset) if opset else place
    now = measurement.answer(place)
    if moved is None:
        return Decision(place, now, None, now)
    answers = dict(_answers(measurement, place, moved))
    for way, answer in answers.items():
        if answer.runs:
            return Decision(place, now, way, answer)
    for way, answer in answers.items():
        if is_allowed(answer, allowed):
            return Decision(place, now, way, answer)
    return Decision(place, now, None, now)


def is_allowed(answer: Answer, allowed: Collection[str]) -> bool:
    """Whether an answer differs only as is allowed."""
    names = set(to_allow(answer))
    return bool(names) and names <= set(allowed)


def to_allow(answer: Answer) -> tuple[str, ...]:
    """The names that would have to be allowed; none where the runtime does not run it at all."""
    if answer.kind == "differs":
        return answer.reasons
    return (answer.kind, *answer.reasons) if answer.kind in NOT_DIFFERENT else ()


def _answers(measurement: Measurement, place: Place, moved: Place) -> Iterator[tuple[Way, Answer]]:
    """The ways that a node can be written in, simplest first, each with what happens then."""
    is_newer = place.rule == "legacy" and moved.rule != "legacy"
    for way in WAYS:
        if is_newer != ("newer" in way) or not _is_exact(moved, way):
            continue
        there: Way = "wider" if "wider" in way else ""
        if is_newer:
            yield way, worst([measurement.answer(place, way), measurement.answer(moved, there)])
        else:
            yield way, measurement.answer(moved, way)


def _is_exact(place: Place, way: Way) -> bool:
    """Whether a way keeps every bit by itself."""
    if "wider" in way and (
        place.element_type is None or exact_wider(place.schema.expression(), place.element_type) is None
    ):
        return False
    # Runtimes that compute float16 in float32 drop a cast to it between two such nodes, whatever one reader showed.
    if "wider" in way and place.element_type is FLOAT16 and "neighbours" in place.surroundings:
        return False
    return "aligned" not in way or place.rule == "pdpd"


def in_opset(place: Place, opset: int) -> Place | None:
    """The node as another opset has it; None where that has no such operator or type."""
    schema = registry.resolve(place.schema.domain, place.schema.name, opset)
    if not isinstance(schema, ElementwiseSchema) or (place.element_type and place.element_type not in schema.types):
        return None
    if schema.broadcasting == place.rule:
        return replace(place, schema=schema)
    if schema.broadcasting != "numpy":
        return None
    layouts: dict[Layout, None] = {"broadcast" if layout == "inside" else layout: None for layout in place.layouts}
    return replace(place, schema=schema, rule="numpy", layouts=tuple(layouts))
