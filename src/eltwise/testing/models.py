"""``assert_same_model``: two models compute the same on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from eltwise.comparison.tolerance import ToleranceLike, Tolerances, parse_tolerances
from eltwise.conversion import model_of
from eltwise.core.border import check_seed, public
from eltwise.core.errors import GraphError, UnsupportedError
from eltwise.ir.graph import Graph
from eltwise.ir.scopes import all_graphs
from eltwise.model import Model, read
from eltwise.ops.data_movement import MAKING_SIZES
from eltwise.ops.schema import Domain
from eltwise.runtimes import Host, find
from eltwise.testing.sides import check_sides
from eltwise.tracing.inputs import check_inputs, with_replaced
from eltwise.tracing.model import read_model
from eltwise.tracing.opened import opened
from eltwise.tracing.record import record_whole
from eltwise.tracing.recording import Recording
from eltwise.tracing.references import runtime_for
from eltwise.tracing.runner import Values
from eltwise.tracing.trace import LIMIT
from eltwise.verification import runs_of

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

__tracebackhide__ = True  # In pytest the line of the test is shown, not those of this module.

RUNTIMES: dict[Domain, str] = {"ai.onnx": "onnxruntime", "openvino": "openvino"}
"""What runs models of a format that eltwise does not run."""

_MOST_RUNS = 8


def runtime_of(model: Model, preferred: Iterable[str] = ()) -> str:
    """The runtime that runs a model: the first preferred one of its format, or eltwise if it has all operators."""
    domain = model.graph.origin.domain
    for name in preferred:
        if domain in find(name, only_models=True, domain=domain).domains:
            return name
    return RUNTIMES[domain] if model.problems else "eltwise"


@public
def assert_same_model(
    actual: Source | Model,
    expected: Source | Model,
    *,
    inputs: Mapping[str, object] | None = None,
    tolerance: ToleranceLike = None,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: int | None = None,
    runtime: str = "",
    seed: int = 0,
    err_msg: str = "",
) -> None:
    """Fail unless two models give the same outputs on the same inputs.

    Models of which eltwise runs every operator are run here; others in onnxruntime or OpenVINO, each in a process.

    Args:
        actual: what ``load`` takes, or a loaded model.
        expected: the model that it should compute the same as.
        inputs: arrays by the names of inputs. Without any, models that eltwise runs get hard values, such as infinities
            and the limits of types, and random ones several times; others get random ones once, or until both branches
            of each If were taken, also of those in functions, branches and loops. Optional inputs of both keep their
            values, and are drawn in further runs.
        tolerance: what is forgiven, as for ``assert_close``; without any, every bit counts.
        rtol: the largest relative difference.
        atol: the largest absolute one.
        ulp: the largest distance in units of the last place.
        runtime: the specification of the runtime that runs both.
        seed: of the inputs that are drawn.
        err_msg: the first lines of the message.

    Raises:
        AssertionError: where outputs differ.
        EltwiseError: for models that cannot be read or run, or give other outputs in every run, for inputs that do
            not fit them, and where no inputs that were drawn took a branch.

    >>> assert_same_model("examples/models/sub6_axis1.onnx", "examples/models/sub6_axis1.onnx")
    """
    check_seed(seed)
    tolerances = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
    models = read(actual), read(expected)
    names = [{port.name for port in model.inputs} for model in models]
    if names[0] != names[1]:
        got, allowed = (", ".join(sorted(each)) for each in names)
        raise GraphError("the models have other inputs", got=got, allowed=allowed)
    is_run_here = not runtime and {runtime_of(model) for model in models} == {"eltwise"}
    runs = _runs_here(*models, inputs, seed) if is_run_here else _runs_there(models, inputs, runtime, seed)
    for results, outputs, again in runs:
        try:
            check_sides(results, outputs, tolerances, err_msg=err_msg)
        except AssertionError:
            _check_repeatable(again(), outputs, tolerances)
            raise


Again = Callable[[], Values]
"""Runs the expected model once more on the same inputs."""


def _runs_here(
    actual: Model, expected: Model, inputs: Mapping[str, object] | None, seed: int
) -> Iterator[tuple[Values, Values, Again]]:
    """The outputs of both, run after run; every run of eltwise gives the same."""
    if inputs is not None:
        feeds = _narrower(actual, expected).random_inputs(seed) | check_inputs(expected.graph, inputs)
        outputs = expected.run(feeds)
        yield actual.run(feeds), outputs, lambda: outputs
        return
    count, refusal = 0, ""
    for one, other in _pairs(actual, expected):
        drawn = _narrower(one, other)
        for run in runs_of(drawn, seed, _MOST_RUNS):
            if isinstance(run, str):
                refusal = refusal or run
                continue
            count += 1
            outputs = run.expected if drawn is other else other.run(run.feeds)
            yield one.run(run.feeds), outputs, lambda outputs=outputs: outputs  # type: ignore[misc]
    if not count:
        raise GraphError(f"no inputs could be drawn for the model: {refusal}", hint="give inputs")


def _runs_there(
    models: tuple[Model, Model], inputs: Mapping[str, object] | None, runtime: str, seed: int
) -> Iterator[tuple[Values, Values, Again]]:
    """The outputs of both in a runtime."""
    actual, expected = models

    def recorded(model: Model, feeds: Mapping[str, object] | None, number: int = 0) -> Recording:
        return record_whole(model, runtime or RUNTIMES[model.graph.origin.domain], feeds, seed + number)

    def run(one: Model, other: Model, number: int = 0) -> tuple[Values, tuple[Values, Values, Again]]:
        drawn = _narrower(one, other)
        first = recorded(drawn, inputs, number)
        second = recorded(other if drawn is one else one, first.inputs)
        actual_run, expected_run = (first, second) if drawn is one else (second, first)
        return first.inputs, (actual_run.values, expected_run.values, lambda: recorded(other, first.inputs).values)

    if inputs is not None:
        yield run(actual, expected)[1]
        return
    for one, other in _pairs(actual, expected):
        reached = set[tuple[int, str, bool]]()
        for number in range(_MOST_RUNS):
            feeds, outputs = run(one, other, number)
            yield outputs
            reached |= {
                (side, *each) for side, model in enumerate((one, other)) for each in _branches_on(model, runtime, feeds)
            }
            if not (missing := [name for side, name, holds in reached if (side, name, not holds) not in reached]):
                break
        else:
            problem = f"only one branch of an If was taken on {_MOST_RUNS} sets of inputs that were drawn"
            raise UnsupportedError(problem, operand=f"value {min(missing)!r}", hint="give inputs, once for each branch")


def _branches_on(model: Model, runtime: str, feeds: Values) -> Iterator[tuple[str, bool]]:
    """The branch of each If that was taken, by the first output; of those on which an input of the model decides.

    Where the model states the sizes of all inputs, what is computed of sizes is no input.
    """
    graph = model.graph
    if graph.origin.domain != "ai.onnx" or not _has_if(all_graphs(graph)):
        return
    specification = runtime_for(runtime or RUNTIMES[graph.origin.domain], graph.origin.domain)
    with Host(specification, LIMIT, shares_memory=True) as host:
        result = opened(graph, host, feeds)
    traced = read_model(result.graph, feeds)
    has_sizes = all(port.type.shape.is_known for port in graph.inputs)
    changing = set(feeds)
    for node, operands in zip(traced.nodes, traced.reads, strict=True):
        if changing.isdisjoint(operands) or (has_sizes and node.schema.name in MAKING_SIZES):
            continue
        changing.update(node.outputs)
        if _has_if(chain.from_iterable(all_graphs(body) for _name, body in node.graphs)):
            problem = f"an If in this {node.schema.name} cannot be followed, so that a branch may never have been taken"
            raise UnsupportedError(problem, operand=f"node {node.label!r}", hint="give inputs, once for each branch")
    yield from ((output, holds) for output, (value, holds) in result.conditions.items() if value in changing)


def _has_if(graphs: Iterable[Graph]) -> bool:
    return any(node.schema.name == "If" for graph in graphs for node in graph.nodes)


def _pairs(actual: Model, expected: Model) -> list[tuple[Model, Model]]:
    """The two models, and the two whose optional inputs are inputs like others, if they have such inputs."""
    names = _replaceable(actual, expected)
    replaced = [(_with_inputs(actual, names), _with_inputs(expected, names))] if names else []
    return [(actual, expected), *replaced]


def _narrower(actual: Model, expected: Model) -> Model:
    """The model whose inputs have fewer open sizes: what is drawn for it fits the other one, too, if anything does."""

    def open_sizes(model: Model) -> float:
        dimensions = [port.type.shape.dimensions for port in model.inputs]
        return sum(inf if each is None else sum(not size.is_known for size in each) for each in dimensions)

    return min(expected, actual, key=open_sizes)


def _replaceable(actual: Model, expected: Model) -> set[str]:
    """The optional inputs of both, which a caller may replace."""
    if any(model.graph.origin.lists_constants_as_inputs for model in (actual, expected)):
        return set()
    one, other = ({port.name for port in model.optional_inputs} for model in (actual, expected))
    return one & other


def _with_inputs(model: Model, names: set[str]) -> Model:
    """A model whose optional inputs of these names are inputs like others."""
    return model_of(with_replaced(model.graph, names))


def _check_repeatable(again: Values, outputs: Values, tolerances: Tolerances) -> None:
    """Refuse a model of which two runs differ, since no other one can give the same.

    Raises:
        UnsupportedError: for such a model.
    """
    try:
        check_sides(again, outputs, tolerances)
    except AssertionError:
        hint = "give what is random as an input"
        raise UnsupportedError(
            "two runs of the model on the same inputs differ", operand="expected", hint=hint
        ) from None
