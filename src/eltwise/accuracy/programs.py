"""What a runtime is given to compute one function: a model of one node, or the call of a library."""

from __future__ import annotations

import re
from functools import cache

from eltwise.conversion import convert
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import of_sizes
from eltwise.formats.onnx.header import least_ir_version
from eltwise.formats.onnx.nodes import since_versions
from eltwise.formats.onnx.schemas import in_opset
from eltwise.formats.onnx.writer import write_onnx
from eltwise.formats.openvino.writer import write_openvino
from eltwise.ir.graph import Foreign, ForeignSchema, Graph, Node, Origin, Port
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import Domain
from eltwise.oracle.real_functions import FUNCTIONS
from eltwise.runtimes import Call, Model, Program
from eltwise.runtimes.registry import Runtime

_MODES = {"Gelu(tanh)": {"approximate": "tanh"}}

_OPENVINO = {"HSigmoid": "HSigmoid-5"}
"""The functions that ONNX does not have, and their operator versions."""

ORACLE_NAMES = {
    {"gelu_tanh": "Gelu(tanh)", "hsigmoid": "HSigmoid"}.get(name, name.title().replace("_", "")): name
    for name in FUNCTIONS
}
"""The oracle's names of real functions by those of the operators; Gelu's second mode has a name of its own."""

_OPSET = 17
"""The opset of the models; later for functions that came later."""

_IR_VERSION = 11

_NUMPY = {
    **dict.fromkeys(("Cos", "Cosh", "Exp", "Log", "Reciprocal", "Sin", "Sinh", "Sqrt", "Tan", "Tanh")),
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
}
_TORCH = {
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Erf", "Exp", "Log")),
    **dict.fromkeys(("Reciprocal", "Sigmoid", "Sin", "Sinh", "Sqrt", "Tan", "Tanh")),
    "Elu": "nn.functional.elu",
    "Gelu": "nn.functional.gelu",
    "HardSwish": "nn.functional.hardswish",
    "Mish": "nn.functional.mish",
    "Softsign": "nn.functional.softsign",
    "Swish": "nn.functional.silu",
}
_NAMES = {"numpy": _NUMPY, "jax": _NUMPY, "cupy": _NUMPY, "torch": _TORCH}
"""By the packages of libraries their functions that are those of ONNX with its defaults.

Those without a name have ONNX's in lower case. PyTorch's softplus is left out, which is the identity beyond 20, and its
hard sigmoid, which has another slope.
"""


def program_of(runtime: Runtime, function: str, element_type: ElementType, count: int) -> Program | None:
    """What computes a function of ``count`` elements; None where a runtime is no candidate for it."""
    if runtime.loads_models:
        domain: Domain = "openvino" if function in _OPENVINO or "ai.onnx" not in runtime.domains else "ai.onnx"
        return _model(function, domain, element_type, count) if domain in runtime.domains else None
    names = next((_NAMES[package] for package in runtime.packages if package in _NAMES), {})
    if function not in names:
        return None
    return Call(function, ((names[function] or function.lower(), (0,)),))


@cache
def _model(function: str, domain: Domain, element_type: ElementType, count: int) -> Model | None:
    """A model of one node; None where OpenVINO has no operator that is a function of ONNX."""
    if function in _OPENVINO:
        origin = Origin("openvino", _IR_VERSION)
        node = Node("y", registry.find(_OPENVINO[function]).bind({}), ("x",), ("y",))
    else:
        name = re.sub(r"\(.*", "", function)
        opset = max(_OPSET, since_versions(name)[-1])
        origin = Origin("ai.onnx", least_ir_version(opset), opset)
        foreign = Node("", Foreign(ForeignSchema("ai.onnx", name)), ("x",), ("y",))
        node = in_opset(foreign, opset, attributes=_MODES.get(function, {}))
    tensor = TensorType(element_type, of_sizes((count,)))
    graph = Graph(
        name="function",
        origin=origin,
        inputs=(Port("x", tensor, "x"),),
        outputs=(Port("y", tensor, "y"),),
        nodes=(node,),
        input_order=("x",),
    )
    if origin.domain == domain:
        return Model(*write_openvino(graph)) if domain == "openvino" else Model(write_onnx(graph))
    try:
        return Model(*write_openvino(convert(write_onnx(graph), "openvino", ir_version=_IR_VERSION)[0].graph))
    except EltwiseError:
        return None
