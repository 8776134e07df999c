"""Tolerances of outputs that follow from the same graph in float64 and its number of nodes.

An output of floats may differ from one runtime, version or processor to the next by what comes of the rounding of each
node. Its bound is ``4 * (E + sqrt(N) * u * M)``:

- E is the largest difference of the recorded output from that of the same graph in float64 on the same inputs. It
  includes what the conditioning of this model on these inputs makes of its rounding errors, in one order of evaluation.
- N is the number of nodes that run, those of bodies once a round, and u the unit roundoff of the least precise float
  type in the model. Independent rounding errors of N steps add up to ``sqrt(N) * u`` of the largest value M; the term
  stands in where E is small by chance, as it may be of few elements.
- Of the 4, one is for the recorded output, and three for the other one, whose error is another draw of the same kind.

It is an estimate, not a proof: a proven bound grows with the product of all weights and says nothing of a deep network.
None follows for an output behind a node with steps, such as QuantizeLinear: the smallest difference may become a step.
Such a node may lie in a body or a function. Nor does one follow where the output is wrong, or was not all computed in
float64: then E is no rounding error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from eltwise.comparison.tensor_report import number
from eltwise.comparison.tolerance import Tolerance, Tolerances
from eltwise.core.errors import UnsupportedError
from eltwise.formats.onnx.inference import infer_types
from eltwise.formats.onnx.inlining import with_inlined
from eltwise.ir.graph import Graph, Node
from eltwise.model import Model
from eltwise.ops.schema import ElementwiseSchema
from eltwise.runtimes import Host
from eltwise.testing.behind_steps import behind_steps
from eltwise.tracing.difference import largest_number
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.model import read_model
from eltwise.tracing.opened import opened
from eltwise.tracing.references import FLOAT64, runtime_for
from eltwise.tracing.runner import Values, is_float
from eltwise.tracing.trace import LIMIT, trace

FACTOR = 4
FORMULA = f"{FACTOR} * (error + sqrt(nodes) * unit_roundoff * largest_value)"

Bounds = tuple[Tolerances, dict[str, str]]
"""Tolerances, and what the metadata of a golden says of where they come from."""

_GIVE_ONE = "give one, such as tolerance='rtol=1e-3'"


def bounds_of(model: Model, runtime: str, inputs: Values, outputs: Values) -> Bounds:
    """Derive the tolerances of a model's outputs.

    Returns:
        A tolerance for each output, and the terms of the formula for each of floats.

    Raises:
        UnsupportedError: where none follows for an output of floats.
    """
    floats = [name for name, array in outputs.items() if is_float(array.dtype)]
    if not floats:
        return derived(outputs, {}, {}, 0, 0.0)
    if model.graph.origin.domain != "ai.onnx":
        reason = "OpenVINO computes float64 in float32, so that an IR has no wider run"
        raise not_derived(reason, f"output {floats[0]!r}")
    feeds = InputRequest.of(model.graph, inputs, 0).draw().feeds
    graph = with_inlined(model.graph, {})[0] if model.graph.functions else model.graph
    behind = behind_steps(read_model(graph, feeds))
    ports = {port.name: port.value for port in graph.outputs}
    for name in floats:
        if ports[name] in behind:
            reason = f"it depends on {behind[ports[name]]}, which rounds or compares floats"
            raise not_derived(reason, f"output {name!r}")
    report = trace(model, runtime=runtime, against=FLOAT64, inputs=inputs, switches=False)
    if node := next((one for one in report.in_other_type if not isinstance(one.schema, ElementwiseSchema)), None):
        name = model.analysis.name or model.graph.name
        raise not_derived(f"no runtime computes {node.schema.name} {node.label!r} in it", name)
    wrong = next((output for output in report.outputs if output.status == "differs" and output.name in floats), None)
    if wrong is not None:
        reason = f"it differs beyond the tolerance of a trace, by {number(wrong.error)} at most"
        raise not_derived(reason, f"output {wrong.name!r}")
    errors = {output.name: output.error for output in report.outputs}
    reasons = {output.name: output.message for output in report.outputs}
    count, unit_roundoff = _nodes_that_run(graph, runtime, feeds)
    return derived(outputs, errors, reasons, count, unit_roundoff)


def derived(
    outputs: Values,
    errors: Mapping[str, float | None],
    reasons: Mapping[str, str],
    nodes: int,
    unit_roundoff: float,
) -> Bounds:
    """Derive the tolerances of outputs from their errors; all but floats must be equal.

    Args:
        outputs: by name.
        errors: of those of floats: the largest difference from float64, or None where it is not known.
        reasons: why it is not.
        nodes: how many nodes there are.
        unit_roundoff: of the least precise float type.

    Raises:
        UnsupportedError: for an output of floats whose error is not known, or not finite.
    """
    tolerances, terms = list[Tolerance](), list[dict[str, object]]()
    for name, array in outputs.items():
        if not is_float(array.dtype):
            tolerances.append(Tolerance(ulp=0, pattern=name))
            continue
        error = errors[name]
        if error is None or not math.isfinite(error):
            reason = reasons.get(name, "").removeprefix(f"{FLOAT64}: ") or "the results are not finite"
            raise not_derived(reason, f"output {name!r}")
        largest = largest_number(array)
        bound = FACTOR * (error + math.sqrt(nodes) * unit_roundoff * largest)
        tolerances.append(Tolerance(atol=float(f"{bound:.2e}"), pattern=name))
        of_model = {"nodes": nodes, "unit_roundoff": unit_roundoff}
        terms.append({"output": name, "error": error, **of_model, "largest_value": largest})
    return tuple(tolerances), {"bounds": json.dumps({"formula": FORMULA, "outputs": terms})} if terms else {}


def not_derived(reason: str, operand: str) -> UnsupportedError:
    """The error of an output without a tolerance."""
    return UnsupportedError(f"no tolerance follows from float64: {reason}", operand=operand, hint=_GIVE_ONE)


def _nodes_that_run(graph: Graph, runtime: str, feeds: Values) -> tuple[int, float]:
    """How many nodes run, and the unit roundoff of the float type of the fewest digits among their values."""
    with Host(runtime_for(runtime, graph.origin.domain), LIMIT, shares_memory=True) as host:
        result = opened(graph, host, feeds)
    model = read_model(result.graph, feeds)
    types = [*model.types.values(), *(one for known in infer_types(result.graph).values() for one in known.values())]
    digits = [each.element_type.digits for each in types if each.element_type and each.element_type.kind == "float"]
    count = sum(_count_in(node, result.longer.get(node.outputs[0], 1)) for node in model.nodes)
    return count, math.ldexp(1.0, -min(digits))


def _count_in(node: Node, rounds: int) -> int:
    """How many nodes run for a node: itself, or those in its bodies, of two branches those of the larger one."""
    return rounds * max((sum(_count_in(one, 1) for one in body.nodes) for _name, body in node.graphs), default=1)
