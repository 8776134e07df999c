"""Axes below zero, which opset 11 brought, counted from the start as before: exact where the rank is known.

Source: the texts of the operators before opset 11 and since.
"""

from __future__ import annotations

from onnx import NodeProto

from eltwise.core.errors import UnsupportedError
from eltwise.passes.onnx_versions.same_meaning import NEGATIVE_AXES
from eltwise.passes.onnx_versions.scopes import Scope

FIRST_NEGATIVE = 11
_NAMES = ("axis", "axes")


def counts_from_the_end(node: NodeProto) -> bool:
    """Whether a node has axes below zero, and is of an operator whose axes are those of its first operand or result."""
    axes = (found for found in node.attribute if found.name in _NAMES)
    return node.op_type in NEGATIVE_AXES and any(axis < 0 for found in axes for axis in (found.i, *found.ints))


def counted_from_the_start(node: NodeProto, scope: Scope) -> NodeProto:
    """Copy a node with its axes counted from the start.

    Raises:
        UnsupportedError: where the rank is not known.
    """
    rank = scope.shape(node.input[0]).rank
    copy = NodeProto()
    copy.CopyFrom(node)
    for found in (found for found in copy.attribute if found.name in _NAMES):
        if rank is None:
            raise UnsupportedError(
                f"axes below zero are allowed since opset {FIRST_NEGATIVE} only, and counting them needs the rank",
                operand=f"operand {node.input[0]!r}",
                got="a value of unknown rank",
                hint="declare its shape in the model; symbols will do",
            )
        counted = rank + (len(found.ints) if node.op_type == "Unsqueeze" else 0)
        if found.ints:
            found.ints[:] = [axis + counted if axis < 0 else axis for axis in found.ints]
        elif found.i < 0:
            found.i += counted
    return copy
