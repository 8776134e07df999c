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

_MODULES = ("backend", "errors", "testing")

_NAMES = {
    "core.errors": "EltwiseError",
    "engine.api": "Operator operator operators",
    "kernels.pool": "memory_pool",
    "kernels.threads": "get_num_threads set_num_threads",
    "model": "Model load save",
    "conversion": "convert",
    "targets.check": "check",
    "comparison.compare": "compare",
    "conformance.conform": "conform",
    "tracing.record": "record",
    "targets.repair": "repair",
    "scale.deltas": "delta restore",
    "tracing.trace": "trace",
    "engine.reduce": "max_absolute_difference mean_absolute_difference mean_squared_difference reduce",
    "engine.functions": "absolute add divide equal greater greater_equal less less_equal maximum minimum multiply"
    " negative not_equal squared_difference subtract",
}
_MODULE_OF = {name: f"eltwise.{module}" for module, names in _NAMES.items() for name in names.split()}
"""What is imported at its first use: arrays need no models, and the help of the command line needs neither."""

__all__ = ["__version__", *_MODULES, *_MODULE_OF]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"eltwise.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'eltwise' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
