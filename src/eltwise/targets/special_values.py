"""Element-wise nodes on special values: each runs alone on the runtime, beside what eltwise computes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType, of_numpy
from eltwise.core.errors import EltwiseError, UnsupportedError, ValueRangeError, counted, named
from eltwise.core.shapes import Shape, count_beside_zeros
from eltwise.engine.undefined import as_stated
from eltwise.ir.graph import Node, Tensor
from eltwise.ir.scopes import all_graphs
from eltwise.model import Model
from eltwise.ops.data_movement import MAKING_SIZES
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle.hard_values import hard_values, ordinary
from eltwise.runtimes import Host, Runtime
from eltwise.targets.report import SPECIAL, Finding, TargetReport
from eltwise.targets.rules import Severity
from eltwise.tracing.fitting import fitting_feeds
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.isolated import exact_results
from eltwise.tracing.model import TracedModel, read_model
from eltwise.tracing.opened import opened
from eltwise.tracing.runner import Runner
from eltwise.tracing.trace import LIMIT

_ELEMENTS = 1 << 11
"""So many elements of each operand are tried; of one whose size is the model's, in so many runs at most."""

_MOST_RUNS = 64
_MOST_KINDS = 64
_LARGEST = 1 << 20
"""An operand with more elements is not tried, which only constants can ask for."""

_FAR = 0.5
"""Finite floats that differ by more than this part of the exact one are other values, unless both are small beside 1 or
the operands; random inputs show the rest."""


def with_special_values(
    report: TargetReport, runtime: Runtime, model: Model, seed: int, arrays: Mapping[str, np.ndarray]
) -> TargetReport:
    """Run one element-wise node of each kind alone on zeros, limits, infinities and NaN, and compare the results.

    The report gets a finding for each kind that differs, and what was tried.

    Nodes are of one kind if their operators, attributes, types and constants are the same. Subnormal floats are left
    out, and how precise a float is does not count: random inputs through the whole model show that. Of branches those
    are tried that the inputs take.
    """
    nodes = (node for body in all_graphs(model.graph) for node in body.nodes)
    if not (_elementwise(nodes) or model.graph.functions):
        return report
    findings, tried, others = list[Finding](), 0, list[str]()
    with Host(runtime, LIMIT) as host:
        try:
            request = InputRequest.of(model.graph, arrays, seed)
            graph, feeds = request.graph, fitting_feeds([host], request).feeds
            result = opened(graph, host, feeds)
            models = [read_model(result.graph, feeds)]
            if result.longer:  # Of loops that are not followed the nodes of one round are tried, too.
                result = opened(graph, host, feeds, shortens=True)
                models.append(read_model(result.graph, feeds))
        except EltwiseError as error:
            return replace(report, special=f"special values were not tried: {error}")
        kinds: dict[object, tuple[TracedModel, int]] = {}
        for traced in models:
            kinds = _kinds(traced) | kinds
        for traced, number in list(kinds.values())[:_MOST_KINDS]:
            node = traced.nodes[number]
            try:
                finding = _try(host, traced, number, seed)
            except EltwiseError as error:
                others.append(f"{node.schema.name} {node.label!r} ({error.problem})")
                continue
            tried += 1
            findings += [] if finding is None else [finding]
    others += [traced.nodes[number].label for traced, number in list(kinds.values())[_MOST_KINDS:]]
    in_bodies = _elementwise((*result.not_run, *result.not_opened))
    others += [f"{one.schema.name} {one.label!r} (in a body)" for one in in_bodies]
    if not kinds and not others:
        return report
    kinds_tried = counted(tried, "kind")
    summary = f"special values (zeros, limits, infinities, NaN): {kinds_tried} of element-wise nodes tried alone"
    summary += f", {len(findings)} different" if tried else ""
    summary += f"; not tried: {named(others)}" if others else ""
    return replace(report, findings=(*report.findings, *findings), special=summary)


def _elementwise(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if isinstance(node.schema, ElementwiseSchema)]


def _kinds(traced: TracedModel) -> dict[object, tuple[TracedModel, int]]:
    """The first node of each kind, by its number in the model.

    What reads only constants, sizes of tensors and what is computed of these has the same operands on all inputs of
    these sizes, and is given no others.
    """
    kinds: dict[object, tuple[TracedModel, int]] = {}
    settled = set[str]()
    for number, node in enumerate(traced.nodes):
        if settled.issuperset(traced.reads[number]) and number not in traced.random:
            settled.update(node.outputs)
            continue
        if node.schema.name in MAKING_SIZES:
            settled.update(node.outputs)
        if isinstance(node.schema, ElementwiseSchema):
            operands = tuple(_described(traced, value) for value in node.inputs)
            kinds.setdefault((node.bound, operands), (traced, number))
    return kinds


def _described(traced: TracedModel, value: str) -> object:
    """What nodes of one kind have in common of an operand."""
    tensor = traced.constant(value)
    if isinstance(tensor, Tensor) and tensor.size == 1 and not tensor.is_external:
        return tensor.array.tobytes(), str(tensor.type)
    known = traced.type_of(value)
    return known.element_type, known.shape.rank, tensor is None


def _try(host: Host, traced: TracedModel, number: int, seed: int) -> Finding | None:
    """Run a node alone; what differs there, if anything does.

    Raises:
        EltwiseError: where the runtime or eltwise does not run it, or its operands are not known or too large.
    """
    node, generator, differences = traced.nodes[number], np.random.default_rng(seed), list[_Difference]()
    types, runner = _types(traced, number), Runner("", host, traced)
    smallest = min(prod(shape) for _type, shape in types.values())
    divides = isinstance(node.schema, ElementwiseSchema) and node.schema.expression().divides
    for _run in range(min(_MOST_RUNS, -(-_ELEMENTS // max(1, smallest)))):
        values = {value: _values(known, shape, generator) for value, (known, shape) in types.items()}
        if divides:  # A runtime may end its process where integers are divided by 0.
            values = _with_positive(values, node.inputs[-1])
        try:
            submodel = traced.submodel([number], values)
            results, unstated = exact_results(submodel)
        except ValueRangeError:  # As for exponents of integers.
            values = _with_positive(values, node.inputs[-1])
            submodel = traced.submodel([number], values)
            results, unstated = exact_results(submodel)
        outcome, (output,) = runner.run([number], values), submodel.outputs
        if output not in outcome.values:
            raise UnsupportedError(outcome.message or "it gives no result")
        exact = results[output]
        actual = as_stated(outcome.values[output], exact, unstated.get(output))
        differences += _differences(actual, exact, _elementwise_operands(node, values))
    if not differences:
        return None
    return _finding(node, min(differences, key=lambda one: one.size), next(iter(types.values()))[0])


def _types(traced: TracedModel, number: int) -> dict[str, tuple[ElementType, tuple[int, ...]]]:
    """The type and the shape of each operand: one of many elements, where none has sizes that it must have."""
    node, types = traced.nodes[number], dict[str, tuple[ElementType, Shape]]()
    for value in traced.reads[number]:
        known = traced.type_of(value)
        if known.element_type is None or not known.element_type.runs:
            raise UnsupportedError("the type of an operand is not known", operand=repr(value))
        types[value] = known.element_type, known.shape
    constants = [traced.constant(value) for value in node.inputs if value and value not in types]
    sizes = [one.shape for one in constants if isinstance(one, Tensor) and one.size != 1]
    ranks = {shape.rank for _type, shape in types.values()}
    is_free = not sizes and len(ranks) == 1 and ranks != {0}
    if not sizes and not is_free and not all(shape.is_known for _type, shape in types.values()):
        sizes = [shape.sizes() for _type, shape in types.values() if shape.is_known and prod(shape.sizes()) > 1]
    # Sizes that inference does not know are those of constants, or of the other operands.
    try:
        one_size = np.broadcast_shapes(*sizes) if sizes else (_ELEMENTS, *[1] * ((next(iter(ranks)) or 1) - 1))
    except ValueError:
        raise UnsupportedError("its operands have no common shape", got=" and ".join(map(str, sizes))) from None
    shapes = {
        value: (element_type, one_size if is_free or not shape.is_known else shape.sizes())
        for value, (element_type, shape) in types.items()
    }
    if max(count_beside_zeros(shape) for _type, shape in shapes.values()) > _LARGEST:
        raise UnsupportedError("an operand is too large")
    return shapes


def _with_positive(values: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The values, with 1 for what is less of one of them if that has integers."""
    return {
        value: np.maximum(array, array.dtype.type(1)) if value == name and of_numpy(array.dtype).is_integer else array
        for value, array in values.items()
    }


def _values(element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Each special value as often as the others, in any order."""
    pool = np.array([False, True]) if element_type is BOOL else _pool(element_type)
    return np.asarray(generator.permutation(np.resize(pool, prod(shape)))).reshape(shape)


@cache
def _pool(element_type: ElementType) -> np.ndarray:
    """Hard values without subnormal numbers, of which runtimes may make zeros, and ordinary ones."""
    pool = np.concatenate([hard_values(element_type), ordinary(element_type, 32, 0)])
    if element_type.is_integer:
        return pool
    with np.errstate(all="ignore"):
        wide = np.abs(pool.astype(np.float64))
    return np.asarray(pool[~((wide > 0) & (wide < element_type.least_normal))])


def _elementwise_operands(node: Node, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The operands that a result depends on, each once; of one that is read for its type only no number does."""
    read = (name for index, name in enumerate(node.inputs) if index != node.bound.type_only)
    return [values[name] for name in dict.fromkeys(read) if name in values]


@dataclass(frozen=True)
class _Difference:
    """An element that differs: the operands, and both results."""

    operands: tuple[float, ...]
    actual: float
    exact: float

    @property
    def size(self) -> tuple[float, ...]:
        """The larger, the worse as an example."""
        return tuple(math.inf if math.isnan(one) else abs(float(one)) for one in self.operands)


def _differences(actual: np.ndarray, exact: np.ndarray, operands: Sequence[np.ndarray]) -> Iterator[_Difference]:
    """The elements whose results are other values."""
    if actual.dtype != exact.dtype or actual.shape != exact.shape:
        raise UnsupportedError("the result has another type or shape", got=f"{actual.dtype}{list(actual.shape)}")
    flat = [np.broadcast_to(array, exact.shape).reshape(-1) for array in operands]
    indices = np.flatnonzero(_is_other(actual.reshape(-1), exact.reshape(-1), flat))
    for index in indices.tolist():
        operands_there = tuple(array[index].item() for array in flat)
        yield _Difference(operands_there, actual.reshape(-1)[index].item(), exact.reshape(-1)[index].item())


def _is_other(actual: np.ndarray, exact: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Which elements are other values, not only less precise: an overflow may set in a little earlier."""
    element_type = of_numpy(exact.dtype)
    if element_type.kind != "float":
        return np.asarray(actual != exact)
    with np.errstate(all="ignore"):
        got, right = actual.astype(np.float64), exact.astype(np.float64)
        finite = [np.nan_to_num(np.abs(array.astype(np.float64)), posinf=0.0) for array in operands]
        noise = 2.0 ** (1 - element_type.digits) * np.max([np.ones_like(right), *finite], axis=0)
        rounded = np.where(np.isinf(got) & np.isfinite(right), np.copysign(element_type.largest_finite, got), got)
        far = np.abs(rounded - right) > _FAR * np.abs(right) + noise
        same = (got == right) | (np.isnan(got) & np.isnan(right))
        one_is_special = ~(np.isfinite(rounded) & np.isfinite(right))
    return np.asarray(~same & (one_is_special | far))


def _finding(node: Node, example: _Difference, element_type: ElementType) -> Finding:
    is_float = isinstance(example.exact, float)
    has_nan = math.isnan(example.actual) or math.isnan(example.exact)
    severity: Severity = "sign of zero or NaN" if has_nan else "precision"
    return Finding(
        node.label,
        node.schema.versioned_name,
        str(element_type),
        severity=severity if is_float else "wrong values",
        kind=SPECIAL,
        message=f"{', '.join(map(str, example.operands))} gives {example.actual} for {example.exact}",
        helps="seen when the node was run alone",
        is_seen=True,
    )
