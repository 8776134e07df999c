"""Everything that makes an ONNX message no valid model; nothing is changed and no weights are read.

What a text forbids and runtimes still load with one meaning is no problem here: nodes in another order than that of
their values, wrong declared shapes of results, missing names and texts, domains that are not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onnx import FunctionProto, ModelProto, NodeProto

from eltwise.core.errors import EltwiseError, GraphError, UnsupportedError
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.header import default_domain, newest_opset, read_origin
from eltwise.formats.onnx.nodes import label_of
from eltwise.passes.onnx_problems.nodes import Contexts, node_problems
from eltwise.passes.onnx_problems.tensors import tensor_problems
from eltwise.passes.onnx_problems.types import check_node_types, in_family, inference_problems, input_problems
from eltwise.passes.onnx_problems.wiring import wiring_problems
from eltwise.passes.onnx_versions.inferring import with_types
from eltwise.passes.onnx_versions.names import bodies_in
from eltwise.passes.onnx_versions.schemas import find_schema, function_opset, is_own, versioned_name
from eltwise.passes.onnx_versions.scopes import Scope, all_scopes


def find_problems(model: ModelProto, folder: Path | None = None) -> list[EltwiseError]:
    """Find every problem of a model.

    Args:
        model: the model.
        folder: the folder that its file is in, for the places of external data; None where it is not known.

    Returns:
        What is wrong: how values are named and made, the tensors' data, then the nodes, one problem of types each.

    Raises:
        EltwiseError: where the model does not say what it is: its versions or its graph are missing.
    """
    opset = read_origin(model).opset
    problems = wiring_problems(model.graph)
    for function in model.functions:
        problems += [*wiring_problems(function), *_of_imports(function)]
    problems += _of_calls(model)
    problems += [*input_problems(model.graph), *tensor_problems(model, ExternalData(folder))]
    called = frozenset((default_domain(function.domain), function.name) for function in model.functions)
    checker = Contexts(model.ir_version)
    judged = []
    for scope in all_scopes(model, with_types(model, opset)):
        here = opset_of(scope, opset)
        if here is not None and 1 <= here <= newest_opset():
            judged += [(node, here, scope) for node in scope.body.node if _is_judged(node, called)]
    for node, here, scope in judged:
        found = list(node_problems(node, here, checker[here])) or list(_of_types(node, here, scope))
        problems += [_placed(error, node, here) for error in found]
    if not problems and not any(domain == "" for domain, _name in called):
        scopes = {id(node): scope for node, _here, scope in judged}
        for node, words in inference_problems(model, opset).values():
            if id(node) in scopes:
                problems.append(_placed(in_family(node, words, opset, scopes[id(node)]), node, opset))
    return problems


def _of_imports(function: FunctionProto) -> Iterator[EltwiseError]:
    opset, newest = function_opset(function), newest_opset()
    if opset is not None and not 1 <= opset <= newest:
        words = f"the opset of the function {function.name!r} is not known here"
        yield UnsupportedError(words, got=str(opset), allowed=f"1 to {newest}")


def _of_calls(model: ModelProto) -> list[EltwiseError]:
    """Functions that call themselves, be it through others."""
    functions = {(default_domain(function.domain), function.name): function for function in model.functions}
    calls = {
        name: {(default_domain(node.domain), node.op_type) for body in bodies_in(function) for node in body.node}
        & functions.keys()
        for name, function in functions.items()
    }
    problems: list[EltwiseError] = []
    while free := [name for name, called in calls.items() if not called & calls.keys()]:
        for name in free:
            del calls[name]
    for _domain, name in calls:
        problems.append(GraphError("a function that calls itself has no end", operand=f"the function {name!r}"))
    return problems


def _of_types(node: NodeProto, opset: int, scope: Scope) -> Iterator[EltwiseError]:
    if find_schema(node.op_type, opset) is None:
        return  # A runtime's own operator.
    try:
        check_node_types(node, opset, scope)
    except EltwiseError as error:
        yield error


def _is_judged(node: NodeProto, called: frozenset[tuple[str, str]]) -> bool:
    return is_own(node) and ("", node.op_type) not in called


def opset_of(scope: Scope, opset: int) -> int | None:
    """The opset of ONNX's own operators in a graph; a function has its own, or none."""
    body = scope.outermost.body
    return function_opset(body) if isinstance(body, FunctionProto) else opset


def _placed(error: EltwiseError, node: NodeProto, opset: int) -> EltwiseError:
    return error.located(operator=versioned_name(node.op_type, opset), node=label_of(node))
