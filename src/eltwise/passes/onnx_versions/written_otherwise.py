"""Operators that say the same in other words since an early opset, where onnx's converter has no way.

Source: the schemas of Cast-1 and Cast-6, of Pad-1 and Pad-2.
"""

from __future__ import annotations

from onnx import AttributeProto, NodeProto, TensorProto

from eltwise.core.errors import AttributeValueError

CHANGED = {"Cast": 6, "Pad": 2}
"""The opset in which each of them was first written as it is now."""


def in_new_words(node: NodeProto) -> NodeProto:
    """Write a node as the opset in ``CHANGED`` has it.

    Raises:
        AttributeValueError: for a Cast to no element type.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if node.op_type == "Cast" and attribute.name == "to":
            name = attribute.s.decode(errors="replace")
            if name.upper() not in set(TensorProto.DataType.keys()):
                raise AttributeValueError(
                    "there is no such element type", operand="attribute to", got=repr(name), allowed="FLOAT, INT32, ..."
                )
            attribute.ClearField("s")
            attribute.type, attribute.i = AttributeProto.INT, TensorProto.DataType.Value(name.upper())
        if node.op_type == "Pad" and attribute.name == "paddings":
            attribute.name = "pads"
    return copy


def in_old_words(node: NodeProto) -> NodeProto:
    """Write a node as the opsets before the one in ``CHANGED`` have it.

    Raises:
        AttributeValueError: for a Cast to no element type.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if node.op_type == "Cast" and attribute.name == "to":
            if attribute.i not in set(TensorProto.DataType.values()):
                raise AttributeValueError(
                    "there is no such element type", operand="attribute to", got=str(attribute.i), allowed="1 to 16"
                )
            name = TensorProto.DataType.Name(attribute.i)
            attribute.ClearField("i")
            attribute.type, attribute.s = AttributeProto.STRING, name.encode()
        if node.op_type == "Pad" and attribute.name == "pads":
            attribute.name = "paddings"
    return copy
