"""Whether a node's types are allowed in the opset that it goes to."""

from __future__ import annotations

from onnx import NodeProto

from eltwise.core.errors import ElementTypeError
from eltwise.passes.onnx_versions.names import Names
from eltwise.passes.onnx_versions.schemas import allowed_types, find_schema, type_variables, versioned_name
from eltwise.passes.onnx_versions.scopes import Scope, type_text


def check_types(node: NodeProto, opset: int, scope: Scope, names: Names, source: int | None = None) -> None:
    """Refuse a node whose operands or results have types that its operator does not allow in an opset.

    Args:
        node: the node, of an operator that the opset has.
        opset: the opset.
        scope: what is known of its values.
        names: the names in the model; the type of a result that nothing reads need not be known.
        source: the opset that it comes from. An unknown type of a value that was there before is refused where not
            every type that was allowed there is allowed here; None lets it pass.

    Raises:
        ElementTypeError: naming the operand, its type and the types that are allowed.
    """
    check_operands(node, opset, scope, source)
    for index, name in enumerate(node.output):
        is_needed = not names.is_unread(name) or type_text(scope.type_of(name))
        if is_needed:
            _check(node, opset, scope, source, index, name, of_output=True)


def check_operands(node: NodeProto, opset: int, scope: Scope, source: int | None = None) -> None:
    """Refuse a node whose operands have types that its operator does not allow in an opset, as ``check_types`` does."""
    bound: dict[str, tuple[str, str]] = {}
    variables = type_variables(node.op_type, opset)
    for index, name in enumerate(node.input):
        found = _check(node, opset, scope, source, index, name, of_output=False)
        if not found or index >= len(variables) or not _is_variable(node, opset, index):
            continue
        first, first_type = bound.setdefault(variables[index], (name, found))
        if first_type != found:
            raise ElementTypeError(
                f"operands {first!r} and {name!r} have different types",
                operator=versioned_name(node.op_type, opset),
                got=f"{first_type} and {found}",
                allowed="one type for both",
            )


def _is_variable(node: NodeProto, opset: int, index: int) -> bool:
    """Whether an operand's type is a variable that others share, and not one of a list that may differ in types."""
    schema = find_schema(node.op_type, opset)
    assert schema is not None
    return index + 1 < len(schema.inputs) or bool(schema.inputs[-1].is_homogeneous)


def _check(
    node: NodeProto, opset: int, scope: Scope, source: int | None, index: int, name: str, of_output: bool
) -> str:
    if not name:
        return ""
    allowed = allowed_types(node.op_type, opset, index, of_output)
    found = type_text(scope.type_of(name))
    place = {
        "operator": versioned_name(node.op_type, opset),
        "operand": f"{'result' if of_output else 'operand'} {name!r}",
        "allowed": ", ".join(sorted(allowed)),
    }
    if found and found not in allowed:
        raise ElementTypeError("the type is not allowed in this version", got=found, **place)
    is_new = scope.owner(name) is None
    if (
        not found
        and not is_new
        and source is not None
        and not allowed_types(node.op_type, source, index, of_output) <= allowed
    ):
        raise ElementTypeError(
            "the type is not known, and not every type is allowed in this version",
            hint="declare it in the model",
            **place,
        )
    return found
