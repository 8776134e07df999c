"""Tolerances of outputs that follow from the same graph in float64 and its number of nodes.

An output of floats may differ from one runtime, version or processor to the next by what comes of the rounding of each
node. Its bound is ``4 * (E + sqrt(N) * u * M)``:

- E is the largest difference of the recorded output from that of the same graph in float64 on the same inputs. It
  includes what the conditioning of this model on these inputs makes of its rounding errors, in one order of evaluation.
- N is the number of nodes and u the unit roundoff of the least precise float type in the model. Independent rounding
  errors of N steps add up to ``sqrt(N) * u`` of the largest value M; the term stands in where E is small by chance, as
  it may be of few elements.
- Of the 4, one is for the recorded output, and three for the other one, whose error is another draw of the same kind.

It is an estimate, not a proof: a proven bound grows with the product of all weights and says nothing of a deep network.
None follows for an output behind a node with steps, such as QuantizeLinear: the smallest difference may become a step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

from eltwise.comparison.tolerance import Tolerance, Tolerances
from eltwise.core.errors import UnsupportedError
from eltwise.model import Model
from eltwise.tracing.difference import largest_number
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.model import TracedModel, read_model
from eltwise.tracing.references import FLOAT64
from eltwise.tracing.runner import Values, is_float
from eltwise.tracing.steps import has_steps
from eltwise.tracing.trace import trace

FACTOR = 4
FORMULA = f"{FACTOR} * (error + sqrt(nodes) * unit_roundoff * largest_value)"

Bounds = tuple[Tolerances, dict[str, str]]
"""Tolerances, and what the metadata of a golden says of where they come from."""

_OF_SHAPES = ("Shape", "Size", "ShapeOf")
_GIVE_ONE = "give one, such as tolerance='rtol=1e-3'"


def bounds_of(model: Model, runtime: str, inputs: Values, outputs: Values) -> Bounds:
    """Derive the tolerances of a model's outputs.

    Args:
        model: the model.
        runtime: the specification of the runtime that gave the outputs.
        inputs: by name.
        outputs: by name.

    Returns:
        A tolerance for each output, and the terms of the formula for each of floats.

    Raises:
        UnsupportedError: where none follows for an output of floats.
    """
    floats = [name for name, array in outputs.items() if is_float(array.dtype)]
    if not floats:
        return derived(outputs, {}, {}, 0, 0.0)
    feeds = InputRequest.of(model.graph, inputs, 0).draw().feeds
    traced = read_model(model.graph, feeds)
    ports = {port.name: port.value for port in model.graph.outputs}
    behind = _behind_steps(traced)
    for name in floats:
        if ports[name] in behind:
            node = behind[ports[name]]
            raise not_derived(f"it depends on {node}, which rounds or compares floats", f"output {name!r}")
    report = trace(model, runtime=runtime, against=FLOAT64, inputs=inputs, switches=False)
    errors = {output.name: output.error for output in report.outputs}
    reasons = {output.name: output.message for output in report.outputs}
    return derived(outputs, errors, reasons, len(traced.nodes), _unit_roundoff(traced))


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
            raise not_derived(reasons.get(name) or "the results are not finite", f"output {name!r}")
        largest = largest_number(array)
        bound = FACTOR * (error + math.sqrt(nodes) * unit_roundoff * largest)
        tolerances.append(Tolerance(atol=float(f"{bound:.2e}"), pattern=name))
        of_model = {"nodes": nodes, "unit_roundoff": unit_roundoff}
        terms.append({"output": name, "error": error, **of_model, "largest_value": largest})
    return tuple(tolerances), {"bounds": json.dumps({"formula": FORMULA, "outputs": terms})} if terms else {}


def not_derived(reason: str, operand: str) -> UnsupportedError:
    """The error of an output without a tolerance."""
    return UnsupportedError(f"no tolerance follows from float64: {reason}", operand=operand, hint=_GIVE_ONE)


def _kinds(model: TracedModel, names: Iterable[str]) -> list[str]:
    """The kinds of the element types of values, as far as they are known."""
    types = (model.type_of(name).element_type for name in names)
    return [element_type.kind for element_type in types if element_type is not None]


def _behind_steps(model: TracedModel) -> dict[str, str]:
    """The values that depend on a node that rounds or compares floats, each with the first such node."""
    behind: dict[str, str] = {}
    for number, node in enumerate(model.nodes):
        kinds = [_kinds(model, names[number]) for names in (model.reads, model.made)]
        first = next((behind[name] for name in model.reads[number] if name in behind), None)
        if first is None and has_steps(node.schema.name, *kinds) and node.schema.name not in _OF_SHAPES:
            first = f"{node.schema.name} {node.label!r}"
        if first is not None:
            behind |= dict.fromkeys(model.made[number], first)
    return behind


def _unit_roundoff(model: TracedModel) -> float:
    """That of the float type of the fewest digits in a model."""
    types = [known.element_type for known in model.types.values()]
    return math.ldexp(1.0, -min(each.digits for each in types if each is not None and each.kind == "float"))
