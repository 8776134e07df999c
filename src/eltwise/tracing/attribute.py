"""Which nodes make an error of their own: each suspect is run alone, on what the reference reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, named
from eltwise.engine.undefined import as_stated
from eltwise.faults.record import Operation
from eltwise.ops.schema import ElementwiseSchema
from eltwise.tracing.counterparts import counterpart
from eltwise.tracing.difference import (
    OVERFLOW,
    UNSTATED,
    Difference,
    explained,
    measure,
    signal_to_noise,
    with_overflow,
    with_unstated,
    worst_value,
)
from eltwise.tracing.fused import find_group, nodes_before, together
from eltwise.tracing.isolated import Isolated, exact_results, isolated_of
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Runs
from eltwise.tracing.precision import CAUSES, LEAST_SHARE, ROUNDINGS, Rounding, of_operands, of_rounded_operands
from eltwise.tracing.records import TracedNode
from eltwise.tracing.runner import Outcome, Values, copied
from eltwise.tracing.saturated import of_saturated_pairs
from eltwise.tracing.steps import Steps

_PRODUCTS = ("MatMul", "Gemm")
"""In the names of operators of which a runtime may make operands integers."""

_MOST_HELD = 16
"""So many nodes that give another result alone are held with their inputs and results."""

_MOST_IN_GRAPH = 4
"""For so many nodes of a segment that are right alone those are sought with which they are wrong together."""

_LEAST_OF_ERROR = 0.5
"""Nodes that are wrong together by a smaller part of the error in the model are wrong in another way."""

_MOST_SOUGHT = 16
"""For so many nodes of an operator every kind of cause is tried, and for the others that of the last one."""


class Attribution:
    """Finds the nodes that make an error of their own: each suspect is run alone, on what the reference reads.

    A node is wrong itself if it gives another result alone, on the inputs of the reference, and its value has to be
    that of the reference: the reference has the same node, or the exact result.

    Attributes:
        isolated: the first nodes that give another result alone, by number.
    """

    def __init__(self, runs: Runs, steps: Steps) -> None:
        self.isolated: dict[int, Isolated] = {}
        self._runs, self._steps = runs, steps
        self._sought = Counter[str]()
        self._roundings: dict[str, Sequence[Rounding]] = {}

    def attribute(self, results: Sequence[TracedNode], values: Values, computed: Values) -> None:
        """Say of the nodes of a segment that are beyond the tolerance which are wrong themselves.

        Args:
            results: the results of the nodes, to which ``blame``, ``alone`` and ``message`` are added.
            values: the reference's, by the names and in the types of the tested model.
            computed: the same in the types of the reference.
        """
        runs = self._runs
        suspects = [result for result in results if result.is_beyond]
        for result in suspects:
            if result.number in self._steps.right:
                result.blame = "inherited"
        suspects = [result for result in suspects if result.blame is None]
        owns = _own_differences(runs, suspects, values, computed)
        for result in suspects:
            _set_blame(runs, result, owns.get(result.number), runs.model.ancestors([result.number], values))
        chosen = [result for result in suspects if result.blame == "own"]
        in_graph = [result for result in suspects if result.blame == "in_graph"][:_MOST_IN_GRAPH]
        numbers = {*runs.model.ancestors((result.number for result in chosen), values)}
        numbers = numbers.union(*(nodes_before(runs.model, result.number, values) for result in in_graph))
        needed = {*runs.model.read_by(numbers), *runs.model.made_by(numbers)}
        values = {name: array.copy() for name, array in values.items() if name in needed}
        for result in chosen:
            self._isolate(result, values)
        for result in in_graph:
            self._find_group(result, values)

    def _isolate(self, result: TracedNode, values: Values) -> None:
        """Run a node as a model of its own, and look for the cause of its error."""
        record = _isolate(self._runs, result.number, values)
        if record is not None:
            _set_blame(self._runs, result, record.difference, record.numbers)
            if result.blame != "own":
                return
            record = self._with_cause(_with_exact(self._runs, record))
            result.alone = record.difference
            result.own_snr = signal_to_noise(record.actual, record.expected)
            if len(self.isolated) < _MOST_HELD:
                self.isolated[result.number] = record
        if doubt := _doubt(self._runs, record, result):
            result.blame, result.message = "not_isolated", doubt
        elif record is None or record.difference.cause is None:
            result.message = "its cause was not looked for"

    def _find_group(self, result: TracedNode, values: Values) -> None:
        """Look for those before a node with which it is wrong in a model of their own, and for the cause of that."""
        group = find_group(self._runs.tested, result.number, values, self._runs.tolerances)
        if group is None or (group.difference.error or 0) < _LEAST_OF_ERROR * (result.error_out or 0):
            return
        difference = of_products(self._runs, group, group.difference)
        result.blame, result.message = "fused", together(self._runs.model, group.numbers)
        result.out, result.value = difference, group.value
        self.isolated[result.number] = replace(group, difference=difference)

    def _with_cause(self, isolated: Isolated) -> Isolated:
        """The same with the cause: that of other nodes of its operator, or one of all kinds."""
        difference = with_unstated(isolated.difference, isolated.actual, isolated.expected, isolated.unstated)
        if difference.cause in (OVERFLOW, UNSTATED):
            return replace(isolated, difference=difference, right=None)
        operator = self._runs.model.nodes[isolated.numbers[-1]].schema.name
        if operator in self._roundings:
            difference = of_rounding(self._runs, isolated, difference, self._roundings[operator])
        if difference.share == 0 and self._sought[operator] < _MOST_SOUGHT:
            self._sought[operator] += 1
            difference = _of_values(self._runs, isolated)
            if difference.share < 1:
                wide, inputs = self._runs.reference.float_type, isolated.submodel.inputs.values()
                expected = isolated.expected if wide is None else isolated.expected.astype(wide.storage)
                difference = with_overflow(difference, isolated.actual, expected, inputs)
            if difference.share < 1 and difference.cause != OVERFLOW:
                difference = of_products(self._runs, isolated, difference)
        if difference.cause in CAUSES:
            self._roundings[operator] = [one for one in ROUNDINGS if one.cause == difference.cause]
        is_of_one_type = self._runs.partners.is_of_one_type(isolated.value)
        return replace(isolated, difference=difference, right=isolated.right if is_of_one_type else None)


def _doubt(runs: Runs, isolated: Isolated | None, result: TracedNode) -> str:
    """Why a node that gives another result than the other model is not to blame; empty where it is.

    Its value has to be that of the reference if that has the same node, or the exact result. The attributes of two
    formats cannot be compared: there a runtime that rounds operands shows that they are the same.
    """
    other = counterpart(runs.partners, result.number)
    is_rounding = isolated is not None and isolated.difference.cause in CAUSES
    if not other.change or (other.is_same and is_rounding):
        return ""
    if isolated is not None and isolated.exact is not None and oracle.same_bits(isolated.expected, isolated.exact):
        return ""
    if len(other.nodes) < 2 and not result.inputs_agree:
        return "what it reads differs too, and the other model has no node that is the same"
    return other.change


def _set_blame(runs: Runs, result: TracedNode, difference: Difference | None, numbers: Sequence[int]) -> None:
    """Say what a node that is beyond the tolerance was found to be, when it was run alone or with others."""
    result.alone, result.message = difference, ""
    if difference is None:
        result.blame = "not_isolated"
    elif not difference.is_beyond:
        result.blame = "in_graph" if result.inputs_equal and len(numbers) == 1 else "inherited"
    else:
        result.blame = "own" if len(numbers) == 1 else "not_isolated"
    if result.blame == "not_isolated":
        others = [runs.model.nodes[number].label for number in numbers if number != result.number]
        result.message = f"not told apart from {named(others[::-1])}" if others else "it could not be run alone"


def _own_differences(
    runs: Runs, results: Sequence[TracedNode], values: Values, computed: Values
) -> dict[int, Difference]:
    """The differences that nodes make themselves, each on what the reference reads, by their numbers."""
    actual = _run_alone(runs, [result.number for result in results], values) if results else {}
    owns = {}
    for result in results:
        worst = worst_value(runs.model.made[result.number], actual, computed, runs.tolerances)
        if worst is not None:
            owns[result.number], value = worst
            result.own_snr = signal_to_noise(actual[value], computed[value])
    return owns


def _run_alone(runs: Runs, numbers: Sequence[int], values: Values) -> Values:
    """The values of nodes that read nothing of each other; where a runtime refuses them together, one by one.

    Where the reference does not have what a node reads, the nodes that make it are run as well.
    """
    outputs = [value for value in runs.model.made_by(numbers) if value in values]
    outcome = runs.tested.run(runs.model.ancestors(numbers, values), values, outputs, isolated=True)
    if not outcome.message:
        return outcome.values
    if len(numbers) == 1:
        return {}
    middle = len(numbers) // 2
    first = copied(_run_alone(runs, numbers[:middle], values))
    return first | _run_alone(runs, numbers[middle:], values)


def _isolate(runs: Runs, number: int, values: Values) -> Isolated | None:
    """Run a node as a model of its own, with those that make what the reference does not have, and its partner."""
    group = runs.model.ancestors([number], values)
    outputs = [value for value in runs.model.made[number] if value in values]
    outcome = runs.tested.run(group, values, outputs, isolated=True)
    expected = {} if outcome.message else values | _run_partner(runs, group, values, outputs)
    return isolated_of(group, outcome, outputs, expected, runs.tolerances)


def _run_partner(runs: Runs, numbers: Sequence[int], values: Values, outputs: Sequence[str]) -> Values:
    """What the nodes of the reference that have the place of some nodes make of the same inputs; nothing if refused."""
    region, inputs = _partner_inputs(runs, numbers, values)
    partners = {value: runs.partners.values[value] for value in outputs if value in runs.partners.values}
    producer = runs.reference.model.producer
    names = [partner for partner in partners.values() if partner in producer]
    outcome = runs.reference.run(region, inputs, names, isolated=True) if names else Outcome()
    return copied({value: outcome.values[one] for value, one in partners.items() if one in outcome.values})


def _partner_inputs(runs: Runs, numbers: Sequence[int], values: Mapping[str, np.ndarray]) -> tuple[list[int], Values]:
    """The nodes of the reference in the place of some nodes, and the values of what those read, by its names."""
    partners = runs.partners.values
    read = [value for value in runs.model.read_by(numbers) if value in partners and value in values]
    return runs.partners.region(numbers), runs.reference.typed({partners[value]: values[value] for value in read})


def _with_exact(runs: Runs, isolated: Isolated) -> Isolated:
    """The same with the exact result, if eltwise computes the node."""
    if runs.model.nodes[isolated.numbers[-1]].is_foreign:
        return isolated
    try:
        results, unstated = exact_results(isolated.submodel)
    except EltwiseError:
        return isolated
    exact = results[isolated.value]
    pairs = ((runs.tested.name, isolated.actual), (runs.reference.name, isolated.expected))
    right = tuple(name for name, array in pairs if oracle.same_bits(array, exact))
    unknown = unstated.get(isolated.value)
    stated = as_stated(isolated.actual, exact, unknown)
    is_wrong = measure(isolated.value, stated, exact, runs.tolerances).is_beyond
    return replace(isolated, right=right, exact=exact, unstated=unknown, is_wrong=is_wrong)


def _of_values(runs: Runs, isolated: Isolated) -> Difference:
    """The own difference with its cause: of the result that is wrong, if the exact one tells which that is."""
    expected, actual = isolated.expected, isolated.actual
    operation, operands = None, list[np.ndarray]()
    if isolated.exact is not None:
        expected = isolated.exact
        actual = isolated.expected if isolated.right == (runs.tested.name,) else isolated.actual
        operation, operands = _operation(runs.model, isolated, expected.shape)
        expected, actual, *operands = _of_stated(isolated.unstated, [expected, actual, *operands])
    return explained(isolated.difference, actual, expected, operation, operands)


def _of_stated(unstated: np.ndarray | None, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The exact result, another one, and operands, with a stated element in place of each that is not stated."""
    expected, actual, *_operands = arrays
    if unstated is None or unstated.all() or {array.shape for array in arrays} != {unstated.shape}:
        return arrays
    stated = np.flatnonzero(~unstated)
    is_right = (actual == expected).reshape(-1)[stated]
    indices = np.where(unstated.reshape(-1), stated[np.argmax(is_right)], np.arange(unstated.size))
    return [array.reshape(-1)[indices].reshape(unstated.shape) for array in arrays]


def of_products(runs: Runs, isolated: Isolated, difference: Difference) -> Difference:
    """The difference explained by operands that a runtime rounds, or by sums of two products that one saturates."""
    names = (runs.tested.name, runs.reference.name)
    return of_saturated_pairs(of_rounding(runs, isolated, difference), runs.model, isolated, names)


def of_rounding(
    runs: Runs, isolated: Isolated, difference: Difference, roundings: Sequence[Rounding] = ROUNDINGS
) -> Difference:
    """The difference explained by operands that one of the runtimes rounds.

    Those of products alone become int8, which a reference may do itself in the types of the tested model.
    """
    tested, reference, value = runs.tested, runs.reference, runs.partners.values.get(isolated.value, isolated.value)
    region, inputs = _partner_inputs(runs, isolated.numbers, isolated.submodel.inputs)
    name, narrow = runs.model.nodes[isolated.numbers[-1]].schema.name, reference.predictor or reference
    is_product = any(product in name for product in _PRODUCTS)
    floats = [one for one in roundings if one.group is None]
    integers = [one for one in roundings if one.group is not None and is_product]
    for some, runner in ((floats, narrow), (integers, reference)):
        predict = partial(of_operands, runner, region, runner.typed(inputs), value)
        difference = of_rounded_operands(difference, predict, isolated.actual, tested.name, some)
        if difference.share >= LEAST_SHARE:
            return difference
    if reference.float_type is not None:  # A wider one rounds none.
        return difference
    predict = partial(of_operands, tested, isolated.numbers, isolated.submodel.inputs, isolated.value)
    return of_rounded_operands(difference, predict, isolated.expected, reference.name, [*floats, *integers])


def _operation(
    model: TracedModel, isolated: Isolated, shape: tuple[int, ...]
) -> tuple[Operation | None, list[np.ndarray]]:
    """What a node computes, with its operands in the shape of the result; nothing where that is not so simple."""
    node = model.nodes[isolated.numbers[-1]]
    arrays = {name: model.array_of(name, isolated.submodel.inputs) for name in filter(None, node.inputs)}
    if not isinstance(node.schema, ElementwiseSchema) or any(array is None for array in arrays.values()):
        return None, []
    try:
        inputs = [arrays.get(name) for name in node.inputs]  # One that is left out has no name.
        computation, read = node.bound.computation_of(inputs, lambda operand: of_numpy(operand.dtype))
        types = [of_numpy(operand.dtype) for operand in read]
        element_type = computation.check_types(tuple(types))
        expanded = [np.broadcast_to(operand, shape) for operand in read]
    except (EltwiseError, ValueError):  # Another rule than NumPy's.
        return None, []
    return None if element_type is None else Operation(computation.typed(element_type, types), element_type), expanded
