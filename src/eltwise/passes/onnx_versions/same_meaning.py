"""Operators whose new versions only took more types: their nodes say the same in both, as far as the types go.

onnx's converter has no way down over most of these steps, and loses what it does not know on the way up.
Source: the schemas of both versions and their texts, compared.
"""

from __future__ import annotations

from onnx import NodeProto

from eltwise.passes.onnx_versions.schemas import find_schema, since_versions

_REDUCTIONS = tuple(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
)
_MOVES = ("Constant", "Flatten", "Identity", "If", "Loop", "Reshape", "Scan", "Shape", "Size")
_MOVES_WITH_AXES = (*_MOVES, "ConstantOfShape", "Squeeze", "Transpose", "Unsqueeze")

_ONLY_TYPES: dict[int, frozenset[str]] = {
    version: frozenset(names.split())
    for version, names in {
        6: "Abs Ceil Clip Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log Max Mean Min Neg PRelu "
        "Reciprocal Relu Selu Sigmoid Sqrt Sum Tanh",
        9: "Cast Constant Flatten Gemm MatMul PRelu",
        11: "Constant",
        12: "ArgMax ArgMin Clip Constant Max MaxPool Min ReduceMax ReduceMin",
        13: "Abs ArgMax ArgMin Cast Ceil Clip Concat Constant DepthToSpace Dropout Erf Exp Expand Flatten Floor Gather "
        "GatherElements GatherND Gemm Identity If IsNaN LRN Log Loop MatMul Max Mean MeanVarianceNormalization Min Neg "
        "NonZero Pad Reciprocal Relu Reshape ScatterElements ScatterND Shape Sigmoid Sign Size Slice SpaceToDepth Sqrt "
        "Sum Tanh Tile Transpose " + " ".join(_REDUCTIONS),
        14: "CumSum Identity Relu Reshape",
        15: "BatchNormalization Shape",
        16: "Identity If LeakyRelu Loop PRelu Scan Where",
        19: "Constant Identity If Loop Reshape Scan Shape Size",
        20: "ConstantOfShape IsInf IsNaN",
        21: " ".join((*_MOVES_WITH_AXES, "Cast")),
        22: "Acos Acosh Asin Asinh Atan Atanh Conv ConvTranspose Cos Cosh Dropout Elu GlobalAveragePool GlobalMaxPool "
        "HardSigmoid HardSwish InstanceNormalization Mish Round Selu Sin Sinh Softplus Softsign Tan ThresholdedRelu",
        23: " ".join((*_MOVES_WITH_AXES, "Cast")),
        24: " ".join((*_MOVES_WITH_AXES, "TopK")),
        25: " ".join((*_MOVES_WITH_AXES, "Cast")),
    }.items()
}
"""By opset, the operators whose version of that opset differs from the one before by the types that it allows, and by
attributes that are new or gone, whose absence means in both what the version without them does."""

NEGATIVE_AXES = frozenset(
    ("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Hardmax", "LogSoftmax", "Softmax", "Split", "Squeeze")
) | {"Unsqueeze", "ReduceSum", *_REDUCTIONS}
"""The operators that differ in opset 11 by the axes below zero that it allows."""


def nearest_same(node: NodeProto, source: int, target: int) -> int:
    """The opset nearest to the target in which a node means the same as in the source, if its types are allowed."""
    versions = [version for version in since_versions(node.op_type) if min(source, target) < version]
    steps = [version for version in versions if version <= max(source, target)]
    reached = source
    for version in steps if source < target else reversed(steps):
        beyond = version if source < target else version - 1
        if not _says_the_same(node, version) or not _attributes_fit(node, reached, beyond):
            return reached
        reached = beyond
    return target


def next_change(op_type: str, source: int, target: int) -> int:
    """The first opset on the way to the target in which an operator has another version; the target if it has none."""
    versions = since_versions(op_type)
    if source < target:
        return min((version for version in versions if source < version <= target), default=target)
    return max((version - 1 for version in versions if target < version <= source), default=target)


def _says_the_same(node: NodeProto, version: int) -> bool:
    """Whether a node says the same before and in the version of its operator that came with an opset."""
    if version == 11 and node.op_type in NEGATIVE_AXES:
        axes = [found for found in node.attribute if found.name in ("axis", "axes")]
        return all(axis >= 0 for found in axes for axis in (found.i, *found.ints))
    return node.op_type in _ONLY_TYPES.get(version, ())


def _attributes_fit(node: NodeProto, source: int, target: int) -> bool:
    """Whether the target has a node's attributes, and those that are not given mean the same there."""
    old, new = find_schema(node.op_type, source), find_schema(node.op_type, target)
    if old is None or new is None:
        return False
    given = {attribute.name for attribute in node.attribute}
    if not given <= set(new.attributes):
        return False
    defaults = (
        (old.attributes[name].default_value, new.attributes[name].default_value)
        for name in set(old.attributes) & set(new.attributes) - given
    )
    return all(before == after for before, after in defaults)
