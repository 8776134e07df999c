"""A whole ONNX model in another opset: everything is decided first, then done, or nothing is.

What is no node of ONNX's own domain, or means the same in both opsets, stays as it was byte for byte: metadata, names,
texts, functions, other domains, external data and fields that are not known here.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from pathlib import Path

from onnx import FunctionProto, ModelProto

from eltwise.core.errors import AttributeValueError, UnsupportedError, raise_all
from eltwise.formats.onnx.header import default_domain, newest_opset, read_origin
from eltwise.formats.onnx.messages import check_text
from eltwise.formats.onnx.nodes import label_of
from eltwise.passes.onnx_problems.finding import find_problems
from eltwise.passes.onnx_versions.inferring import with_types
from eltwise.passes.onnx_versions.names import Names
from eltwise.passes.onnx_versions.planning import Plan, needs_conversion, plan_body
from eltwise.passes.onnx_versions.rewriting import (
    Rewrite,
    Target,
    add_initializers,
    remove_unread,
    replace_nodes,
    reshape_initializers,
    versioned_names,
)
from eltwise.passes.onnx_versions.schemas import function_opset, versioned_name
from eltwise.passes.onnx_versions.scopes import Scope, all_scopes
from eltwise.passes.report import Change, Report


def convert_model(model: ModelProto, opset: int, folder: Path | None = None) -> Report:
    """Convert a model to another opset of ONNX's own operators, in place; it is as it was where that fails.

    Args:
        model: the model.
        opset: the opset, from 1 to the newest that is known.
        folder: the folder of the model's file, for the places of external data; None where it is not known.

    Raises:
        EltwiseError: with everything that makes it no valid model, else with every reason of every node that cannot
            be converted.
    """
    opset = check_opset(opset)
    check_text(model)
    origin = read_origin(model)
    raise_all(find_problems(model, folder))
    before, after = f"ONNX opset {origin.opset}", f"ONNX opset {opset}"
    if origin.opset == opset:
        return Report(before, after, unchanged=True)
    if any(info.initialization.node or info.algorithm.node for info in model.training_info):
        raise UnsupportedError("a model with graphs for training is not converted")
    names = Names(model)
    plans = _plans(model, origin.opset, opset, names)
    raise_all([problem for plan in plans for problem in plan.problems])
    changes = [change for plan in plans for change in _changes(plan)]
    assumptions = [words for plan in plans for rewrite in _ordered(plan) for words in rewrite.assumptions]
    for plan in reversed(plans):
        _carry_out(plan, names, model.ir_version)
    _stamp(model, opset)
    return Report(before, after, tuple(changes), assumptions=tuple(dict.fromkeys(assumptions)))


def check_opset(opset: object) -> int:
    """Refuse what is no opset that is known here; any kind of integer will do, NumPy's too.

    Raises:
        AttributeValueError: naming the opsets that are.
    """
    with suppress(TypeError):
        number = operator.index(opset)  # type: ignore[arg-type]
        if not isinstance(opset, bool) and 1 <= number <= newest_opset():
            return number
    raise AttributeValueError("there is no such opset", got=repr(opset), allowed=f"1 to {newest_opset()}")


def _plans(model: ModelProto, source: int, opset: int, names: Names) -> list[Plan]:
    called = frozenset((default_domain(function.domain), function.name) for function in model.functions)
    plans = []
    for scope in all_scopes(model, with_types(model, source)):
        target = _target_of(scope, source, opset)
        if target is not None:
            plans.append(plan_body(scope, target, names, called))
    return plans


def _target_of(scope: Scope, source: int, opset: int) -> Target | None:
    """The opsets between which a body is converted; a function's own, and none where its nodes are the same in both."""
    body = scope.outermost.body
    if not isinstance(body, FunctionProto):
        return Target(source, opset)
    own = function_opset(body)
    if own is None or own == opset or not needs_conversion(body, Target(own, opset)):
        return None
    return Target(own, opset)


def _ordered(plan: Plan) -> list[Rewrite]:
    return [plan.rewrites[index] for index in sorted(plan.rewrites)]


def _changes(plan: Plan) -> list[Change]:
    """Describe the nodes that are others now, in their order."""
    changes = []
    for index in sorted(plan.rewrites):
        node, rewrite = plan.scope.body.node[index], plan.rewrites[index]
        if not rewrite.reason:
            continue
        before = versioned_name(node.op_type, plan.target.source)
        after = versioned_names(rewrite.nodes, plan.target.opset)
        changes.append(Change(label_of(node), before, after, rewrite.reason))
    return changes


def _carry_out(plan: Plan, names: Names, file_version: int) -> None:
    scope = plan.scope
    for rewrite in plan.rewrites.values():
        reshape_initializers(scope, rewrite.reshaped)
        add_initializers(scope, rewrite.tensors, file_version)
    replace_nodes(scope.body, plan.rewrites, names)
    for rewrite in plan.rewrites.values():
        remove_unread(scope, rewrite.absorbed, names)
    if isinstance(scope.body, FunctionProto):
        for entry in scope.body.opset_import:
            if not default_domain(entry.domain):
                entry.version = plan.target.opset


def _stamp(model: ModelProto, opset: int) -> None:
    """Write the opset; a model too old to say it gets the first version of the format that can."""
    for entry in model.opset_import:
        if not default_domain(entry.domain):
            entry.version = opset
            return
    model.ir_version = max(model.ir_version, 3)
    model.opset_import.add(domain="", version=opset)
