"""The model as it is deployed: run as a whole, of which a runtime may compute several nodes as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from eltwise.comparison.tolerance import Tolerance, Tolerances
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import EltwiseError, named
from eltwise.faults.families import NOT_REPRODUCIBLE, OTHER_TYPE
from eltwise.ir.graph import Port
from eltwise.runtimes import Host
from eltwise.tracing.difference import Difference, largest, measure, relative_error
from eltwise.tracing.matching import matched_ports
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Runs
from eltwise.tracing.records import WITHIN, TracedNode, TracedOutput
from eltwise.tracing.repeated import NO_OUTPUT, Repeated
from eltwise.tracing.runner import Values, is_float
from eltwise.tracing.switches import Judge, Trial
from eltwise.tracing.whole_runs import nodes_of, run_reference, run_whole_repeatedly, too_large

_DECIDES = "it decides on a branch or a round"
_ALL_EMPTY = "no output has an element, which shows nothing"
_FAR = 4.0
"""So many times the error of the segments is more than what the whole model adds by rounding."""

OTHER_THAN_SEGMENTS = "the whole model gives other results than its parts"


@dataclass(frozen=True)
class Whole:
    """The outputs of two models that were run as a whole.

    Attributes:
        outputs: each with its difference from that of the reference.
        tested: the arrays of the tested runtime, by value.
        reference: those of the reference, by the values of the tested model.
        tested_apart: the outputs for which the whole tested model gives another result than its segments, all of which
            ran, and on which both runtimes agree; none that agrees with the reference where that rounds ties by itself.
        reference_apart: the same of the reference.
        has_run: whether the tested runtime ran the whole model.
        notes: what is not established of the runs.
        far: for each output that differs in segments, and far more in the whole tested model, so large an error.
    """

    outputs: tuple[TracedOutput, ...]
    tested: Values
    reference: Values
    tested_apart: frozenset[str]
    reference_apart: frozenset[str]
    has_run: bool
    notes: tuple[str, ...] = ()
    far: Tolerances = ()


def compare_whole(
    runs: Runs,
    nodes: Mapping[int, TracedNode],
    segments: tuple[Values, Values],
    untied: Callable[[], Values] | None = None,
) -> Whole:
    """Run both models as a whole and compare what they give out.

    An output differs if it is beyond the tolerance of the reference's; of one model, also if it is beyond that of what
    both runtimes agree on where they run the model in segments. Two models are compared as they are deployed. Where the
    reference rounded ties to the side of these segments, the whole model may round them as the reference does by
    itself.

    Args:
        runs: the runs.
        nodes: the results of the nodes.
        segments: the outputs of both as they were computed in segments, by the values of the tested model. They stand
            for a reference that cannot be deployed.
        untied: computes the outputs of the reference that rounds ties by itself; None where it did.
    """
    matching = matched_ports(runs.model.graph.outputs, runs.reference.model.graph.outputs)
    pairs = {port.value: (port, other) for port, other in matching if port.value not in runs.model.deciding}
    decided, for_all = _decided(runs, segments), too_large(runs)
    reasons = {value: _reason(runs, port, other) or for_all for value, (port, other) in pairs.items()}
    partners = {value: other.value for value, (_port, other) in pairs.items() if other and not reasons[value]}
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(run_reference, runs, nodes, partners, segments[1])
        actual = run_whole_repeatedly(runs, runs.tested, runs.feeds, list(partners))
        expected = waiting.result()
    tested, reference = actual.first.values, expected.first.values
    produced = _of_parts(runs, nodes, tested.keys() - actual.others.keys())
    tested_apart = {value for value in produced if _leaves_segments(runs, value, tested, *segments)}
    produced -= expected.others.keys()
    reference_apart = {value for value in produced if _leaves_segments(runs, value, reference, *segments[::-1])}
    agreed = {} if untied is None else _untied(runs, tested, reference, tested_apart, untied)
    reference |= agreed
    tested_apart -= agreed.keys()
    comparison = _Comparison(runs, actual, expected, segments[0], tested_apart, [output.name for output in decided])
    outputs = [
        TracedOutput(port.name, "not_compared", message=reasons[value])
        if reasons[value]
        else comparison.output(port, other)
        for value, (port, other) in pairs.items()
    ]
    matched = {other.value for _port, other in pairs.values() if other} | runs.model.deciding
    extra = [port for port in runs.reference.model.graph.outputs if port.value not in matched]
    others = [TracedOutput(port.name, "not_compared", message="only the other model has it") for port in extra]
    return Whole(
        _with_elements([*decided, *outputs, *others]),
        tested,
        reference,
        frozenset(tested_apart),
        frozenset(reference_apart - agreed.keys()),
        not (actual.first.message or actual.failure),
        tuple(_notes(runs, actual, expected)),
        tuple(_far(runs, produced, tested, reference, *segments)),
    )


@dataclass(frozen=True)
class _Comparison:
    """The runs of two whole models, with what was learned of them before their outputs are compared.

    Attributes:
        runs: the runs of the trace.
        actual: the tested model, as often as it ran.
        expected: the reference, which has no other values where it rounds ties as the tested one.
        segments: the outputs of the tested model in segments.
        apart: the outputs that its segments give otherwise.
        decided: what decides on branches and rounds otherwise in the reference.
    """

    runs: Runs
    actual: Repeated
    expected: Repeated
    segments: Values
    apart: Collection[str]
    decided: Sequence[str]

    def output(self, port: Port, other: Port | None) -> TracedOutput:
        """An output that both models have, of numbers that are not random."""
        runs, actual, value = self.runs, self.actual, port.value
        tested, reference = actual.first.values, self.expected.first.values
        if value not in tested:
            status = "failed" if value in reference else "not_compared"
            return TracedOutput(port.name, status, message=f"{runs.tested.name}: {actual.first.message}")
        if message := self._doubt(value):
            return TracedOutput(port.name, "not_compared", message=message)
        if value in actual.others:
            repeated = _compared(runs, port, actual.others, tested, actual.message)
            return replace(repeated, cause=NOT_REPRODUCIBLE)
        if actual.failure:
            return TracedOutput(port.name, "failed", message=f"{runs.tested.name}: {actual.failure}")
        if message := self._doubt_of_values(value):
            return TracedOutput(port.name, "not_compared", message=message)
        if message := _other_type(runs, port, other):
            return TracedOutput(port.name, "differs", message=message)
        is_apart = value in self.apart
        if is_apart and (runs.partners.is_identity or compare_output(runs, value, tested, reference).is_beyond):
            return _compared(runs, port, tested, self.segments, OTHER_THAN_SEGMENTS)
        return _compared(runs, port, tested, reference)

    def _doubt(self, value: str) -> str:
        """Why the reference says nothing of an output, whatever the tested runtime does; empty if it does."""
        reference, first = self.runs.reference, self.expected.first
        if value not in first.values:
            return f"{reference.name}: {first.message or NO_OUTPUT}"
        if self.decided and not reference.is_deployed:  # It was run on the branches that the tested runtime takes.
            return f"{reference.name}: it decides otherwise on {named(self.decided)}"
        return ""

    def _doubt_of_values(self, value: str) -> str:
        """Why the values of the reference are not those to compare with; empty if they are."""
        reference, expected = self.runs.reference, self.expected
        if value in expected.others or expected.failure:
            return f"{reference.name}: {expected.message}"
        return reference.doubt(expected.first.values[value], self.actual.first.values[value])


def _notes(runs: Runs, actual: Repeated, expected: Repeated) -> Iterator[str]:
    for runner, repeated in ((runs.tested, actual), (runs.reference, expected)):
        yield from (f"{runner.name}: {note}" for note in (repeated.first.note, repeated.note) if note)


def _with_elements(outputs: Sequence[TracedOutput]) -> tuple[TracedOutput, ...]:
    """The outputs, of which none was compared where none has an element."""
    if outputs and all(output.status in WITHIN and output.total == 0 for output in outputs):
        return tuple(replace(output, status="not_compared", message=_ALL_EMPTY) for output in outputs)
    return tuple(outputs)


def _decided(runs: Runs, segments: tuple[Values, Values]) -> list[TracedOutput]:
    """What decides on a branch or a round, where the reference decides otherwise, or it is not known."""
    outputs = []
    for port in runs.model.graph.outputs:
        if port.value in runs.model.deciding and all(port.value in values for values in segments):
            outputs.append(replace(_compared(runs, port, *segments), message=_DECIDES))
        elif port.value in runs.model.deciding:
            outputs.append(TracedOutput(port.name, "not_compared", message=f"{_DECIDES}, and not both computed it"))
    return [each for each in outputs if each.status != "equal"]


def _untied(
    runs: Runs, tested: Values, reference: Values, apart: Collection[str], untied: Callable[[], Values]
) -> Values:
    """The outputs of the reference that rounds ties by itself, of those that agree with these only."""
    wrong = [
        value
        for value in tested.keys() & reference.keys()
        if value in apart or compare_output(runs, value, tested, reference).is_beyond
    ]
    arrays = untied() if wrong else {}
    return {
        value: arrays[value]
        for value in wrong
        if value in arrays and not compare_output(runs, value, tested, arrays).is_beyond
    }


def _compared(runs: Runs, port: Port, actual: Values, expected: Values, message: str = "") -> TracedOutput:
    difference, array = compare_output(runs, port.value, actual, expected), expected[port.value]
    declared, actual_type = port.value_type.element_type, of_numpy(actual[port.value].dtype)
    if declared is not None and actual_type is not declared:
        message = f"it is {actual_type}, and the model declares {declared}"
        return TracedOutput(port.name, "differs", message=message, cause=OTHER_TYPE)
    if not message and not difference.is_beyond and _is_only_nan(array):
        return TracedOutput(port.name, "not_compared", message="every element is NaN in both, which shows nothing")
    return TracedOutput(
        port.name,
        "differs" if message else difference.status,
        difference.error,
        relative_error(difference.error, array),
        "; ".join(filter(None, (message, difference.explanation))),
        difference.differing,
        difference.beyond,
        array.size,
    )


def _other_type(runs: Runs, port: Port, other: Port | None) -> str:
    """How the type that a caller gets of an IR 10 differs from that of the other model; empty if it does not."""
    if other is None or port.inner_type is other.inner_type:
        return ""
    types = _caller_type(runs.model, port), _caller_type(runs.reference.model, other)
    kinds = {"float" if one.kind == "float" else one for one in types if one is not None}
    return f"it is {types[0]}, and {types[1]} in the other model" if len(kinds) > 1 else ""


def _caller_type(model: TracedModel, port: Port) -> ElementType | None:
    return port.type.element_type or model.type_of(port.value).element_type


def _is_only_nan(array: np.ndarray) -> bool:
    return array.size > 0 and is_float(array.dtype) and bool(np.isnan(array.astype(np.float64)).all())


def compare_output(
    runs: Runs, value: str, actual: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> Difference:
    """The difference of an output."""
    rounded_to = runs.partners.rounded_to(value)
    return measure(value, actual[value], expected[value], runs.tolerances, is_output=True, rounded_to=rounded_to)


def _leaves_segments(runs: Runs, value: str, whole: Values, segments: Values, others: Values) -> bool:
    """Whether the whole model gives another output than its segments, on which both runtimes agree."""
    if not all(value in values for values in (whole, segments, others)):
        return False
    is_beyond = compare_output(runs, value, whole, segments).is_beyond
    return is_beyond and not compare_output(runs, value, segments, others).is_beyond


def _of_parts(runs: Runs, nodes: Mapping[int, TracedNode], values: Collection[str]) -> set[str]:
    """The values that nodes make, all of which the tested runtime ran."""
    failed, produced = {one for one, result in nodes.items() if result.has_failed}, runs.model.producer.keys()
    return {value for value in values if value in produced and failed.isdisjoint(nodes_of(runs.model, value))}


def _far(
    runs: Runs, values: Collection[str], tested: Values, reference: Values, segments: Values, others: Values
) -> Iterator[Tolerance]:
    for value in sorted(values):
        if all(value in arrays for arrays in (reference, segments, others)):
            parts, whole = compare_output(runs, value, segments, others), compare_output(runs, value, tested, reference)
            if parts.is_beyond and parts.error is not None and (whole.error or 0.0) > _FAR * parts.error:
                yield Tolerance(rtol=0.0, atol=_FAR * parts.error, pattern=value)


def _reason(runs: Runs, port: Port, other: Port | None) -> str:
    """Why an output cannot be compared; empty if it can."""
    if other is None:
        return "the other model has no such output"
    for model, value in ((runs.model, port.value), (runs.reference.model, other.value)):
        if not model.is_tensor(value):
            return "it is not a tensor of numbers"
        random = sorted(model.random.intersection(nodes_of(model, value)))
        if random:
            return f"it depends on random values: {model.nodes[random[0]].schema.name} {model.nodes[random[0]].label!r}"
    return ""


def judge_of(
    runs: Runs,
    right: Values,
    differing: Collection[str],
    start: Callable[[str], AbstractContextManager[Host]],
) -> Judge:
    """What runs the tested model as a whole with another specification.

    Args:
        runs: the runs of the trace.
        right: the right outputs by value, all of which are compared.
        differing: those that differ in the trace, all of which a right run has within the tolerance.
        start: starts the process of a specification.
    """
    ports = {port.value: port for port in runs.model.graph.outputs if port.value in right}

    def judge(specification: str) -> Trial:
        try:
            with start(specification) as host:
                runner = replace(runs.tested, host=host, name=specification)
                result = run_whole_repeatedly(replace(runs, tested=runner), runner, runs.feeds, list(ports))
                outcome = result.first
                if outcome.message or result.message or not outcome.values.keys() >= ports.keys():
                    return Trial(specification, "disagree")
                outputs = {value: _compared(runs, port, outcome.values, right) for value, port in ports.items()}
        except EltwiseError:  # As of an option that this version does not have.
            return Trial(specification, "not_established")
        error = largest(output.relative for output in outputs.values() if output.differing)
        if any(output.status == "differs" for output in outputs.values()):
            return Trial(specification, "disagree", error)
        within = {value for value, output in outputs.items() if output.status in WITHIN}
        return Trial(specification, "agree" if differing and within >= {*differing} else "not_established", error)

    return judge
