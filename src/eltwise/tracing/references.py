"""What a run is compared with: another runtime, the exact results, or the same graph in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eltwise import runtimes
from eltwise.core.dtypes import FLOAT32
from eltwise.core.dtypes import FLOAT64 as FLOAT64_TYPE
from eltwise.core.errors import GraphError, UnsupportedError, named
from eltwise.formats import registry
from eltwise.formats.onnx.float_types import in_float_type
from eltwise.formats.submodels import of_file
from eltwise.ir.graph import Graph
from eltwise.ir.types import TensorType
from eltwise.model import Model, read
from eltwise.ops.schema import Domain
from eltwise.passes.explicit_pads import with_explicit_pads
from eltwise.runtimes import Host, Runtime
from eltwise.runtimes.registry import adapter_of
from eltwise.runtimes.specification import Specification
from eltwise.tracing.confirmed import ConfirmedRunner
from eltwise.tracing.inputs import reference_feeds, with_replaced
from eltwise.tracing.model import read_model
from eltwise.tracing.model_program import largest_share, weights_of
from eltwise.tracing.runner import Runner
from eltwise.tracing.switches import LADDERS

if TYPE_CHECKING:
    import numpy as np

    from eltwise.comparison.tolerance import Tolerances
    from eltwise.formats.registry import Source

EXACT = "exact"
"""The name of the reference that is eltwise."""

FLOAT64 = "float64"
"""The name of the reference that computes the same graph in float64."""

REFERENCES = {EXACT: "eltwise", FLOAT64: "onnxruntime"}
_COPIES = 8
"""So often the weights in float64 may be in memory where one node reads all of them."""

SLOW = "onnx-reference"
"""The runtime that computes in float64 what the faster one does not have in it."""

_OTHER = Specification("openvino", LADDERS["openvino"][0].steps[0])
"""The runtime that confirms what only one other computes, with the options that change a model least."""


def runtime_for(name: str, domain: Domain) -> Runtime:
    """The runtime of a name that reads models of a format."""
    if name in REFERENCES:
        return runtimes.find(REFERENCES[name])
    runtime = runtimes.find(name, only_models=True, domain=domain)
    if not runtime.loads_models:
        raise UnsupportedError(f"the runtime {name!r} does not run models", hint="choose one that loads model files")
    if domain not in runtime.domains:
        format_name = registry.of_domain(domain).name
        hint = "convert the model first: eltwise convert"
        raise UnsupportedError(f"the runtime {name!r} does not read {format_name} models", hint=hint)
    return runtime


def second_model(
    graph: Graph, other: Source | Model | None, runtime: str, against: str, names: Sequence[str] = ()
) -> Graph:
    """The model that the reference runs: the tested one unless another is given, or the tested one in float64.

    Args:
        graph: the tested model.
        other: the other model, if there is one.
        runtime: the specification of the tested run.
        against: that of the reference.
        names: the inputs that replace constants of the tested model.

    Raises:
        GraphError: where the other model does not have them.
    """
    if runtime == FLOAT64:
        raise UnsupportedError("float64 is a reference, not a runtime that is tested", hint="name it with against")
    if against != FLOAT64:
        if other is None:
            return graph
        second = with_replaced(of_file(read(other, reads_weights=False).graph), names)
        if lost := [name for name in names if name not in {port.name for port in second.inputs}]:
            raise GraphError("the other model has no such input", operand=f"input {named(lost)}", hint="leave it out")
        return second
    if other is not None:
        raise UnsupportedError("the reference float64 is the first model in another type", hint="give one model")
    return in_float64(graph)


def in_float64(graph: Graph) -> Graph:
    """The model in float64, whose weights are in memory.

    Raises:
        UnsupportedError: where they take too much of it, and for OpenVINO IR, as ``in_float_type`` does.
    """
    size, allowed = weights_of(graph, FLOAT64_TYPE), largest_share(_COPIES)
    if size > allowed:
        problem, hint = "the weights take too much memory in float64", "compare it with another runtime instead"
        raise UnsupportedError(problem, got=f"{size} bytes", allowed=f"{allowed} bytes", hint=hint)
    return in_float_type(graph, FLOAT64_TYPE)


def stand_ins() -> tuple[str, ...]:
    """What may compute a node that the runtime of float64 does not have in it: in float64, exactly, or in its own type.

    The last one, if it is installed, confirms what the runtime of float64 gives in its own type.
    """
    other = adapter_of(_OTHER.name, "ai.onnx")
    return (SLOW, EXACT, *((str(_OTHER),) if other is not None and other.is_installed else ()))


def reference_runner(
    tested: Runner,
    second: Graph,
    against: str,
    hosts: Sequence[Host],
    feeds: dict[str, np.ndarray],
    tolerances: Tolerances,
) -> tuple[Runner, dict[str, np.ndarray]]:
    """The reference, and its inputs by value.

    Args:
        tested: the tested runtime and its model.
        second: the model that the reference runs.
        against: its name.
        hosts: the process of the tested runtime, that of the reference, and those of ``stand_ins``.
        feeds: the inputs of the tested model, by value.
        tolerances: what does not count as a difference.
    """
    model, values = tested.model, feeds
    if second is not model.graph:
        values = reference_feeds(second, feeds, model.graph)
        model = read_model(second, values)
    if against != FLOAT64:
        is_exact = against == EXACT
        return Runner(against, hosts[1], model, is_exact=is_exact, is_deployed=not is_exact), values
    # Inference knows operators that give float32 whatever they read, as DequantizeLinear; here they do not.
    widened = {name: _widened(declared) for name, declared in model.types.items()}
    model = replace(model, graph=with_explicit_pads(model.graph, model.sizes_of), types=widened)
    slower = Runner(SLOW, hosts[2], model, float_type=FLOAT64_TYPE)
    exact = Runner(REFERENCES[EXACT], hosts[3], tested.model, is_exact=True)
    narrow = Runner(REFERENCES[FLOAT64], hosts[1], tested.model, float_type=FLOAT32)
    fallbacks: tuple[Runner, ...] = (slower, exact, narrow)
    if hosts[4:] or _is_tested(tested.host.runtime):
        others = tuple(Runner(_OTHER.name, host, tested.model, float_type=FLOAT32) for host in hosts[4:])
        names = " and ".join(runner.name for runner in (narrow, *others))
        confirmed = ConfirmedRunner(
            names, hosts[1], tested.model, float_type=FLOAT32, others=others, tolerances=tolerances
        )
        fallbacks = (slower, exact, confirmed)
    runner = Runner(
        against, hosts[1], model, is_deployed=False, float_type=FLOAT64_TYPE, fallbacks=fallbacks, predictor=narrow
    )
    return runner, values


def _is_tested(runtime: Runtime) -> bool:
    """Whether the runtime that stands for float64 is the tested one, perhaps another version of it."""
    return not set(runtime.packages).isdisjoint(runtimes.find(REFERENCES[FLOAT64]).packages)


def _widened(declared: TensorType) -> TensorType:
    is_narrow = declared.element_type is not None and declared.element_type.kind == "float"
    return declared._replace(element_type=FLOAT64_TYPE) if is_narrow else declared
