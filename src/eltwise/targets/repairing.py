"""Models made right for a runtime: exactly the nodes that need it are written otherwise, or nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

from eltwise.core.errors import AttributeValueError, EltwiseError, UnsupportedError, raise_all
from eltwise.ir.graph import Graph
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.model import Examination, Model
from eltwise.passes.places import Place
from eltwise.passes.report import Change, Report
from eltwise.targets.checking import here, measured
from eltwise.targets.examining import Examined, examined, examined_again
from eltwise.targets.judging import NOT_DIFFERENT, Decision, decide, judged, to_allow
from eltwise.targets.malformed import malformed
from eltwise.targets.proving import proved
from eltwise.targets.rewriting import joined, rewrite_graph, rewrite_proto
from eltwise.targets.stamping import Stamps, stamps_for
from eltwise.targets.table import Measurement, Target, Way, target_named

if TYPE_CHECKING:
    from onnx import ModelProto

    from eltwise.model import Source


def repair(
    source: Source | Model,
    target: str,
    *,
    allow: str | Sequence[str] = (),
    weights: bytes | None = None,
    verify: bool = False,
) -> tuple[Model | ModelProto, Report]:
    """Make a model right for a runtime, by what was measured of it: exactly, or not at all.

    Args:
        source: what ``load`` takes, or a loaded model. An ONNX model may hold any operators, an IR those that run here.
        target: ``onnxruntime`` or ``openvino``.
        allow: differences that are accepted, by the names of their reasons as ``check`` says them; one or several.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether the repaired model is run there, and the one before here, on hard values, and the bits compared.

    Returns:
        The model and the report. An ONNX file comes as an ``onnx.ModelProto`` whose external data is where it was, an
        IR and a loaded model as a ``Model``.

    Raises:
        EltwiseError: with every reason of every node that cannot be made exact.
        VerificationError: where the repaired model does not give the same bits there, which no measurement showed.
    """
    known = target_named(target)
    model = examined(source, weights)
    made, report = repair_examined(model, known, allow)
    if verify:
        report = replace(report, comparison=proved(lambda: here(source, weights), made, known))
    if made.proto is None or not isinstance(source, Model):
        return made.proto if made.proto is not None else loaded(made), report
    from eltwise.model import load

    return (source if report.unchanged else load(made.proto)), _with_dropped(report, source.graph)


def repair_examined(model: Examined, target: Target, allow: str | Sequence[str] = ()) -> tuple[Examined, Report]:
    """Make a model that was read right for a runtime; the arguments and errors are those of ``repair``."""
    measurement, note = measured(target, model)
    if measurement is None:
        raise UnsupportedError(
            f"{target} reads ONNX only", where=model.where, got="an IR", hint="convert it first: eltwise convert"
        )
    allow = _allowed_names(allow, measurement)
    if not model.uses_onnx:
        kind = "ONNX without ONNX's own operators"
        return model, Report(kind, kind, unchanged=True)
    stamps = stamps_for(model, measurement, allow)
    decisions = [decide(measurement, place, allow, stamps.opset) for place in judged(measurement, model.places)]
    runtime = f"{target} {measurement.number}"
    wrong = malformed(model, target)
    said = {problem.node for problem in wrong if problem.node}
    of_nodes = (problem for problem in _problems(decisions, runtime) if problem.node not in said)
    problems = [*_problems_of_stamps(stamps, runtime), *wrong, *of_nodes]
    raise_all([problem.located(where=model.where) for problem in problems])
    try:
        made, report, undecided = _rewritten(model, stamps, decisions, measurement, allow)
        raise_all(list(_problems(undecided, runtime)))
        kept = {decision.place.node for decision in decisions if decision.way == ""}
        made, report = _with_neighbours(made, report, kept, measurement, allow)
    except EltwiseError as error:
        raise error.located(where=model.where) from None
    notes = (note,) if note else ()
    return made, replace(report, assumptions=(*report.assumptions, *_allowed(decisions), *notes))


def _allowed_names(allow: object, measurement: Measurement) -> tuple[str, ...]:
    """The names of what is allowed, of which one alone may be a text; names that nothing in the table has are refused.

    Raises:
        AttributeValueError: naming those that there are.
    """
    names = (allow,) if isinstance(allow, str) or not isinstance(allow, Iterable) else tuple(allow)
    answers = (answer for found in measurement.answers.values() for answer in found.values())
    known = dict.fromkeys([*NOT_DIFFERENT, *(reason for answer in answers for reason in answer.reasons)])
    for name in names:
        if name not in list(known):
            raise AttributeValueError(
                "there is no such difference to allow", operand="--allow", got=repr(name), allowed=", ".join(known)
            )
    return names


def _problems_of_stamps(stamps: Stamps, runtime: str) -> Iterator[EltwiseError]:
    if stamps.reason:
        subject, loaded = stamps.refused[-1]
        yield UnsupportedError(f"{runtime} does not load {subject}: {stamps.reason}", allowed=loaded)


def _problems(decisions: Sequence[Decision], runtime: str) -> Iterator[EltwiseError]:
    for decision in decisions:
        if decision.way is not None:
            continue
        place, now = decision.place, decision.now
        what = f"{now.kind} on {runtime}"
        reasons = f" ({', '.join(now.reasons)})" if now.reasons else ""
        names = to_allow(now)
        yield UnsupportedError(
            f"{what}{reasons}, and no way to write it is known to be exact there",
            operator=place.schema.versioned_name,
            node=place.node,
            got=place.element_type.name if place.element_type else "",
            hint="to leave it as it is: " + " ".join(f"--allow {name!r}" for name in names) if names else "",
        )


def _rewritten(
    model: Examined, stamps: Stamps, decisions: Sequence[Decision], measurement: Measurement, allow: Sequence[str]
) -> tuple[Examined, Report, list[Decision]]:
    """The model, what was changed, and the nodes for which there was no way once the model was in another opset."""
    if model.graph is not None:
        if model.unread and any(decision.way for decision in decisions):
            raise_all(list(model.unread))
        ways: dict[Place, Way] = {decision.place: decision.way or "" for decision in decisions}
        graph, report = rewrite_graph(model.graph, lambda place: ways.get(place, ""))
        return replace(model, graph=graph), _with_dropped(report, model.graph), []
    assert model.proto is not None
    proto = deepcopy(model.proto)
    changes: list[Change] = []
    if stamps.file_version != model.origin.file_version:
        proto.ir_version = stamps.file_version
        reason = f"nothing in the model needs more than {stamps.file_version}"
        changes.append(
            Change("", f"ir_version {model.origin.file_version}", (f"ir_version {stamps.file_version}",), reason)
        )
    undecided: list[Decision] = []

    def way_of(place: Place) -> Way:
        """In another opset a node is another one, with other neighbours, so that it is decided anew."""
        if not measurement.knows(place.schema):
            return ""
        decision = decide(measurement, place, allow)
        if decision.way is None:
            undecided.append(decision)
        return decision.way or ""

    report = rewrite_proto(proto, way_of, stamps.opset)
    both = replace(report, changes=(*changes, *report.changes), unchanged=report.unchanged and not changes)
    return replace(model, proto=proto), both, undecided


def _with_neighbours(
    made: Examined, report: Report, kept: set[str], measurement: Measurement, allow: Sequence[str]
) -> tuple[Examined, Report]:
    """Judge the nodes again that were left as they were: beside what was written, one may not be right any more.

    Raises:
        EltwiseError: naming those that no way to write them makes right there.
    """
    while kept and not report.unchanged:
        places = [place for place in judged(measurement, examined_again(made).places) if place.node in kept]
        decisions = [
            decision for decision in (decide(measurement, place, allow) for place in places) if decision.way != ""
        ]
        if not decisions:
            break
        raise_all(list(_problems(decisions, measurement.runtime)))
        ways: dict[str, Way] = {decision.place.node: decision.way or "" for decision in decisions}
        kept = kept - ways.keys()
        made, second = _written(made, lambda place, ways=ways: ways.get(place.node, ""))  # type: ignore[misc]
        report = joined(report, second)
    return made, report


def _written(made: Examined, way_of: Callable[[Place], Way]) -> tuple[Examined, Report]:
    if made.graph is not None:
        graph, report = rewrite_graph(made.graph, way_of)
        return replace(made, graph=graph), report
    assert made.proto is not None
    return made, rewrite_proto(made.proto, way_of)


def _with_dropped(report: Report, before: Graph) -> Report:
    """The report with what a graph does not hold and what is written anew therefore does not say."""
    return report if report.unchanged else replace(report, dropped=(*report.dropped, *before.not_held))


def _allowed(decisions: Sequence[Decision]) -> Iterator[str]:
    for decision in decisions:
        if not decision.then.runs:
            place, then = decision.place, decision.then
            yield f"{place.schema.versioned_name} node {place.node!r}: allowed: {', '.join(to_allow(then))}"


def loaded(made: Examined) -> Model:
    """The model of an IR that was read or made.

    Raises:
        EltwiseError: where it has problems.
    """
    assert made.graph is not None
    inference = infer_graph(made.graph)
    raise_all([*structure_problems(made.graph), *inference.problems])
    return Model(Examination(made.graph, inference, ()))
