"""Runtimes other than the caller: one adapter each, run in processes of their own, found by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eltwise.runtimes.host import Host, StoppedError
    from eltwise.runtimes.program import Answer, Call, Model, Program
    from eltwise.runtimes.registry import RUNTIMES, Runtime, find, installed

__all__ = ["RUNTIMES", "Answer", "Call", "Host", "Model", "Program", "Runtime", "StoppedError", "find", "installed"]

_NAMES = {
    "host": "Host StoppedError",
    "program": "Answer Call Model Program",
    "registry": "RUNTIMES Runtime find installed",
}
_MODULE_OF = {name: f"eltwise.runtimes.{module}" for module, names in _NAMES.items() for name in names.split()}
"""What is imported at its first use: the process of a runtime needs none of it, and many are started."""


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'eltwise.runtimes' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value
