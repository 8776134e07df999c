"""OpenVINO's core, one in a process.

Two cores that are deleted in the order in which they were made leave the thread with a signal stack that is no longer
mapped: the next signal, such as Ctrl-C, ends the process.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def openvino_core() -> Any:
    import openvino

    return openvino.Core()
