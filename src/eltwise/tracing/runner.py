"""A model and the process of the runtime that runs it: some of its nodes as a model of their own, or all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ChangedInputError, EltwiseError
from eltwise.ir.graph import Graph, Node
from eltwise.runtimes import Answer, Host
from eltwise.tracing.inexact import inexact_results, sums_integers
from eltwise.tracing.model import Submodel, TracedModel
from eltwise.tracing.model_program import as_file

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        values: by name; those of a host that shares memory are overwritten by its next run.
        message: why there are none: a refusal, a crash or a timeout; empty if it ran.
        lost: values that are no arrays.
        submodel: what ran.
        note: what ran instead of the file, and why; empty if nothing did.
        has_ended: whether the process ended, or gave no answer in time, which no other file makes good.
    """

    values: Values = field(default_factory=dict)
    message: str = ""
    lost: tuple[str, ...] = ()
    submodel: Submodel | None = None
    note: str = ""
    has_ended: bool = False


@dataclass(eq=False)
class Runner:
    """A model in a runtime.

    Attributes:
        name: the name of the runtime, or of the reference.
        host: its process.
        model: the model.
        is_exact: whether it is eltwise, which is not asked about operators that it does not have.
        is_deployed: whether its results are those of the whole model; those of a reference that a caller cannot
            deploy, exact or float64, are computed node by node.
        float_type: the type of a float for which the model does not say one; None if it stays as it is.
        fallbacks: what runs a single node that this one refuses, in this order.
        predictor: what computes in the types of the tested model; None for this one.
        fallback_nodes: the nodes that a fallback ran in another type, each with its name.
        fallback_operators: the operators that a fallback ran, of which the next node is run alone at once.
        unmatched: values that are there from the start, and are matched by their contents.
        missing: why a value of the tested model is compared with nothing.
    """

    name: str
    host: Host
    model: TracedModel
    is_exact: bool = False
    is_deployed: bool = True
    float_type: ElementType | None = None
    fallbacks: tuple[Runner, ...] = ()
    predictor: Runner | None = None
    fallback_nodes: list[tuple[Node, str]] = field(default_factory=list)
    fallback_operators: set[tuple[str, ...]] = field(default_factory=set)
    unmatched: Mapping[str, np.ndarray] = field(default_factory=dict)
    missing: str = "not in the other model"

    needs_inputs: ClassVar[bool] = True
    """Whether nodes can be run only where what they read is there."""

    def doubt(self, _result: np.ndarray, _other: np.ndarray) -> str:
        """Why a difference of its result from another one shows nothing; empty if it does."""
        return ""

    def refusal_of(self, numbers: Iterable[int]) -> str:
        """Why some nodes are not given to the runtime; empty if they are."""
        foreign = [node.schema.name for node in map(self.model.nodes.__getitem__, numbers) if node.is_foreign]
        return f"eltwise does not compute {foreign[0]}" if self.is_exact and foreign else ""

    def runs_alone(self, number: int) -> bool:
        """Whether a node is not run with others, since a fallback may have to run it."""
        is_of_fallback = self.model.nodes[number].operator in self.fallback_operators
        return is_of_fallback or bool(self._refusal_of_sums((number,)))

    def _refusal_of_sums(self, numbers: Iterable[int]) -> str:
        """Why some nodes are left to fallbacks; empty if they are not."""
        is_left = bool(self.fallbacks) and any(sums_integers(self.model, number) for number in numbers)
        return "integers are computed by another runtime" if is_left else ""

    def typed(self, values: Mapping[str, np.ndarray]) -> Values:
        """The values with floats in the types that the model has for them."""
        return {name: self._in_type(name, array) for name, array in values.items()}

    def run(
        self,
        numbers: Iterable[int],
        values: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None = None,
        *,
        isolated: bool = False,
        replaced: Mapping[str, np.ndarray] | None = None,
    ) -> Outcome:
        """Run some nodes on values; the arguments are those of ``TracedModel.submodel``."""
        chosen = list(numbers)
        refusal = self.refusal_of(chosen) or self._refusal_of_sums(chosen)
        options: dict[str, Any] = {"isolated": isolated, "replaced": replaced}
        outcome = Outcome(message=refusal) if refusal else self._run(chosen, values, outputs, options)
        if self.float_type is not None and outcome.submodel is not None:  # It stands for what is right.
            first, then = (outcome.values, values) if isolated else (values, outcome.values)
            operands = {**first, **then, **(replaced or {})}
            contradiction = self.model.contradiction(outcome.submodel.inputs, outcome.values)
            contradiction = contradiction or inexact_results(self.model, chosen, operands, outcome.values)
            outcome = Outcome(message=contradiction) if contradiction else outcome
        for runner in self.fallbacks if outcome.message and len(chosen) == 1 else ():
            node = runner.model.nodes[chosen[0]]
            inputs = {name: values[name] for name in runner.model.reads[chosen[0]] if name in values}
            options["replaced"] = None if replaced is None else runner.typed(replaced)
            outcome = runner.run(chosen, runner.typed(inputs), outputs, **options)
            if not outcome.message:
                self.fallback_operators.add(node.operator)
                if runner.model is not self.model:
                    self.fallback_nodes.append((node, runner.name))
                return replace(outcome, values=self.typed(outcome.values))
        return outcome

    def run_file(self, feeds: Mapping[str, np.ndarray], outputs: Collection[str]) -> Outcome:
        """Run the whole model as its file has it, with the sizes that it leaves open; the values are some outputs."""
        graph = self.model.file or self.model.graph
        names = tuple(dict.fromkeys(port.value for port in graph.outputs))
        inputs = file_inputs(graph, feeds)
        with ExitStack() as stack:
            try:
                program = stack.enter_context(as_file(graph))
            except ChangedInputError:
                raise
            except EltwiseError as error:
                return Outcome(message=str(error))
            outcome = _outcome(self.host.run(program, tuple(inputs.values())), Submodel(program, inputs, names))
        inner = {port.value: port.inner_type.storage for port in graph.outputs if port.inner_type}
        values = {name: array for name, array in outcome.values.items() if name in outputs}
        values |= {name: values[name].astype(storage) for name, storage in inner.items() if name in values}
        return replace(outcome, values=values)

    def _run(
        self,
        numbers: Sequence[int],
        values: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None,
        options: Mapping[str, Any],
    ) -> Outcome:
        """Run nodes; where that is refused, with short lists as constants, and then without the inputs' sizes.

        One node for which there are fallbacks is tried as it is only.
        """
        outcome, names = Outcome(), list[str]()
        tries: tuple[dict[str, bool], ...] = ({}, {"fixes_sizes": True}, {"keeps_sizes": False})
        for sizes in tries[:1] if self.fallbacks and len(numbers) == 1 else tries:
            try:
                submodel = self.model.submodel(numbers, values, outputs, **{**options, **sizes})
            except EltwiseError as error:
                return Outcome(message=str(error))
            if not submodel.outputs:  # As of a node that makes strings: a runtime may refuse to give out nothing.
                return Outcome()
            if "fixes_sizes" in sizes and list(submodel.inputs) == names:
                continue
            names = list(submodel.inputs)
            answer = self.host.run(submodel.program, tuple(submodel.inputs.values()), results=submodel.output_types)
            latest = _outcome(answer, submodel)
            if not latest.message or not outcome.message:
                outcome = latest
            if answer.kind != "refused":
                break
        return outcome

    def _in_type(self, name: str, array: np.ndarray) -> np.ndarray:
        if not is_float(array.dtype):
            return array
        element_type = self.model.type_of(name).element_type or self.float_type
        if element_type is None or element_type.kind != "float":
            return array
        return cast_float(array, element_type.storage)


def file_inputs(graph: Graph, feeds: Mapping[str, np.ndarray]) -> Values:
    """The inputs of a model in the types that its file takes, which in an IR 10 are not those of its values."""
    return {
        port.value: feeds[port.value].astype(port.type.element_type.storage)
        if port.inner_type and port.type.element_type
        else feeds[port.value]
        for port in graph.inputs
    }


def _outcome(answer: Answer, submodel: Submodel) -> Outcome:
    if answer.kind != "result":
        return Outcome(message=f"{answer.kind}: {answer.message}", has_ended=answer.kind != "refused")
    if len(answer.arrays) != len(submodel.outputs):
        return Outcome(message=f"gave {len(answer.arrays)} values instead of {len(submodel.outputs)}")
    pairs = list(zip(submodel.outputs, answer.arrays, strict=True))
    lost = tuple(name for name, array in pairs if array is None)
    return Outcome({name: array for name, array in pairs if array is not None}, "", lost, submodel)


def copied(values: Values) -> Values:
    """Copies of arrays that the next run of a host would overwrite."""
    return {name: array.copy() for name, array in values.items()}


def is_float(dtype: np.dtype[np.generic]) -> bool:
    """Whether a type is a float, bfloat16 too."""
    return of_numpy(dtype).kind == "float"


def cast_float(array: np.ndarray, dtype: np.dtype[np.generic]) -> np.ndarray:
    """The array in another float type, rounded once.

    What is finite and too large becomes the largest number of that type, not infinite: an infinite result of the type
    is beyond any tolerance of it.
    """
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        result = cast(array, of_numpy(array.dtype), of_numpy(dtype), saturate=False)
        is_too_large = np.isfinite(array) & ~np.isfinite(result)
        if is_too_large.any():
            limit = of_numpy(dtype).largest_finite
            result[is_too_large] = np.where(array[is_too_large] > 0, limit, -limit).astype(dtype)
    return result


def in_type_of(array: np.ndarray, other: np.ndarray) -> np.ndarray:
    """An array; if both are floats, in the type of the other one."""
    return cast_float(array, other.dtype) if is_float(array.dtype) and is_float(other.dtype) else array


def in_narrower_type(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays, of two float types both in that of fewer digits."""
    if one.dtype == other.dtype or not (is_float(one.dtype) and is_float(other.dtype)):
        return one, other
    dtype = min((one.dtype, other.dtype), key=lambda dtype: of_numpy(dtype).digits)
    return cast_float(one, dtype), cast_float(other, dtype)
