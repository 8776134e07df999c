"""Element-wise operators of ONNX and OpenVINO: every version, type and broadcast, bit for bit.

    >>> import eltwise, numpy
    >>> eltwise.subtract(numpy.float32([1, 2, 3]), numpy.float32([3, 2, 1]))
    array([-2.,  0.,  2.], dtype=float32)

``add``, ``divide``, ``less`` and the like are functions on arrays; ``operator`` gives a specific operator version.
``reduce`` and ``mean_squared_difference`` reduce their results exactly.
``load`` reads a model from an ONNX or OpenVINO file, ``convert`` converts it to another opset or format, ``check``
reports what a runtime computes differently, and ``repair`` rewrites the model so that it does not. ``compare`` says
which of two sets of tensors differ, where, by how much, and why; ``trace`` says which node of a model is the first
that two runtimes compute differently, and ``conform`` tests runtimes operator by operator. ``delta`` and ``restore``
store a checkpoint as its difference from another. ``testing`` has assertions for tests, and ``backend`` is the backend
interface of ONNX. Every error that a caller can cause is an ``EltwiseError``; ``errors`` has its kinds.
"""

from __future__ import annotations

import importlib

from eltwise.version import VERSION

__version__ = VERSION

__all__ = [
    "EltwiseError",
    "Model",
    "Operator",
    "__version__",
    "absolute",
    "add",
    "backend",
    "check",
    "compare",
    "conform",
    "convert",
    "delta",
    "divide",
    "equal",
    "errors",
    "get_num_threads",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "load",
    "max_absolute_difference",
    "maximum",
    "mean_absolute_difference",
    "mean_squared_difference",
    "memory_pool",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "operator",
    "operators",
    "record",
    "reduce",
    "repair",
    "restore",
    "save",
    "set_num_threads",
    "squared_difference",
    "subtract",
    "testing",
    "trace",
]


_LATE = {
    "EltwiseError": "eltwise.core.errors",
    "Operator": "eltwise.engine.api",
    "operator": "eltwise.engine.api",
    "operators": "eltwise.engine.api",
    "memory_pool": "eltwise.kernels.pool",
    "get_num_threads": "eltwise.kernels.threads",
    "set_num_threads": "eltwise.kernels.threads",
    "Model": "eltwise.model",
    "load": "eltwise.model",
    "save": "eltwise.model",
    "convert": "eltwise.conversion",
    "check": "eltwise.targets.check",
    "compare": "eltwise.comparison.compare",
    "conform": "eltwise.report.conform",
    "record": "eltwise.tracing.record",
    "repair": "eltwise.targets.repair",
    "delta": "eltwise.scale.deltas",
    "restore": "eltwise.scale.deltas",
    "trace": "eltwise.tracing.trace",
    "reduce": "eltwise.engine.reduce",
    "max_absolute_difference": "eltwise.engine.reduce",
    "mean_absolute_difference": "eltwise.engine.reduce",
    "mean_squared_difference": "eltwise.engine.reduce",
}
"""What is imported at its first use: arrays need no models, and the help of the command line needs neither."""


_MODULES = ("backend", "errors", "testing")

_FUNCTIONS = "eltwise.engine.functions"
"""Where all other names are."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"eltwise.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'eltwise' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LATE.get(name, _FUNCTIONS)), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
