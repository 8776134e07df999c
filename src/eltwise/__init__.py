"""Element-wise subtraction of ONNX and OpenVINO models: every version, type and broadcast, bit for bit.

    >>> import eltwise, numpy
    >>> eltwise.subtract(numpy.float32([1, 2, 3]), numpy.float32([3, 2, 1]))
    array([-2.,  0.,  2.], dtype=float32)

``operator`` gives any row of the catalog, ``load`` a model from an ONNX or OpenVINO file, ``convert`` carries one to
another opset or format, ``check`` and ``repair`` say and mend what a runtime does with one, ``backend`` is ONNX's
backend interface. Everything that a caller can cause to go wrong is an ``EltwiseError``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eltwise.core.errors import EltwiseError
from eltwise.engine.api import FUNCTIONS, Operator, operator, public_function
from eltwise.kernels.pool import memory_pool
from eltwise.kernels.threads import set_num_threads
from eltwise.model import Model, load, save
from eltwise.version import VERSION

if TYPE_CHECKING:
    from eltwise.passes.entry import convert
    from eltwise.targets.check import check
    from eltwise.targets.repair import repair

__version__ = VERSION

globals().update({name: public_function(name) for name in FUNCTIONS})

__all__ = [
    "EltwiseError",
    "Model",
    "Operator",
    "__version__",
    "backend",
    "check",
    "convert",
    "load",
    "memory_pool",
    "operator",
    "repair",
    "save",
    "set_num_threads",
    "squared_difference",
    "subtract",
]


def __getattr__(name: str) -> object:
    """Import at its first use what needs onnx or is not for every call."""
    if name == "backend":
        return importlib.import_module("eltwise.backend")
    if name == "convert":
        return importlib.import_module("eltwise.passes.entry").convert
    if name == "check":
        return importlib.import_module("eltwise.targets.check").check
    if name == "repair":
        return importlib.import_module("eltwise.targets.repair").repair
    raise AttributeError(f"module 'eltwise' has no attribute {name!r}")
