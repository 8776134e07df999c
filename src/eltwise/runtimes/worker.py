"""The process of one runtime: it reads requests from its input and writes a reply for each to its output.

Its arguments are ``ADAPTER NAME ARGUMENTS [MEMORY]``, where ARGUMENTS are those of the adapter as JSON. It may run in
an interpreter that has NumPy, ml_dtypes and the runtime only. What the runtime prints goes to standard error; the
frames use descriptors that it does not know.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import signal
import sys
import warnings
import zlib
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any, BinaryIO

import numpy as np

from eltwise.core.dtypes import BY_NAME, TYPES
from eltwise.runtimes.memory import ALIGNMENT, SharedMemory
from eltwise.runtimes.program import Loaded, message_of
from eltwise.runtimes.wire import Message, receive, send

_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""

_DEFAULT_ENVIRONMENT = ctypes.c_void_p(-1)
"""``FE_DFL_ENV`` of the GNU C library: the mode that a program starts in."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a disk for temporary files reports, which says nothing of the runtime."""

_KNOWN = {each.storage for each in TYPES if each.runs}


def main() -> None:
    """Make the adapter, say that it is ready, and serve requests until the input ends."""
    _end_with_the_parent()
    incoming, outgoing = _own_streams()
    warnings.simplefilter("ignore")
    try:
        memory = SharedMemory(sys.argv[4]) if len(sys.argv) > 4 else None
        adapter = make_adapter(*sys.argv[1:3], **json.loads(sys.argv[3]))
        send(outgoing, Message({"ready": adapter.version()}))
    except Exception as error:  # noqa: BLE001 - reported to the host
        send(outgoing, Message({"failed": message_of(error)}))
        return
    programs = _Programs(adapter, memory)
    while (message := receive(incoming, memory)) is not None:
        try:
            reply = programs.reply(message)
        except Exception as error:  # noqa: BLE001 - whatever else a runtime raises is its refusal
            is_full = isinstance(error, OSError) and error.errno in _FULL
            reason = message_of(error, str(message.fields.get("path", "")))
            reply = Message({"kind": "untried" if is_full else "refused", "message": reason})
        changed = changed_mode()
        if changed and not restore_mode():
            changed += ", and it could not be restored"
        send(outgoing, Message({**reply.fields, "mode": changed}, reply.arrays), memory)
        if memory is not None:
            memory.clear()


def make_adapter(adapter: str, name: str, **arguments: object) -> Any:
    """Import an adapter, named ``MODULE:CLASS``, and make one; that of a Python file reads the file in its name."""
    module, _colon, kind = adapter.partition(":")
    make = getattr(importlib.import_module(module), kind)
    return make(name) if name.rpartition(":")[0].endswith(".py") else make(**arguments)


class _Programs:
    """Loads and runs programs; the last one stays loaded for the next request."""

    def __init__(self, adapter: Any, memory: SharedMemory | None = None) -> None:
        self._adapter = adapter
        self._memory = memory
        self._last: tuple[object, Loaded] | None = None

    def reply(self, message: Message) -> Message:
        """Serve one request."""
        fields, arrays = message.fields, message.arrays
        if "op" in fields:
            loaded = self._compiled(fields)
        else:
            loaded, arrays = self._loaded(arrays[0].tobytes(), arrays[1].tobytes(), str(fields["path"])), arrays[2:]
        if fields["only_load"]:
            return _described([])
        results, before = fields.get("results"), list(map(_checksum, arrays))
        filled = self._filled(loaded, arrays, results) if isinstance(results, list) else []
        reply = _described(filled or loaded.arrays(loaded.bind(arrays)()))
        for number, (array, checksum) in enumerate(zip(arrays, before, strict=True), 1):
            if _checksum(array) != checksum:
                problem = f"it wrote to its input {number}"
                return Message({"kind": "refused", "message": problem, "writes_inputs": True})
        return reply

    def _filled(self, loaded: Loaded, arrays: Sequence[np.ndarray], results: Sequence[Any]) -> list[np.ndarray]:
        """Let a runtime write its results into shared memory; nothing where it cannot."""
        if self._memory is None:
            return []
        types = [(BY_NAME[name].storage, tuple(shape)) for name, shape in results]
        self._memory.reserve(sum(prod(shape) * dtype.itemsize + ALIGNMENT for dtype, shape in types))
        results = [self._memory.new(dtype, shape) for dtype, shape in types]
        try:
            loaded.bind(arrays, results)()
        except Exception:  # noqa: BLE001 - the run without them says what is wrong
            return []
        return results

    def _compiled(self, fields: dict[str, Any]) -> Loaded:
        steps = [(name, tuple(values)) for name, values in fields["steps"]]
        attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in fields["attributes"]}
        compiled: Loaded = self._adapter.compile(fields["op"], steps, attributes)
        return compiled

    def _loaded(self, data: bytes, weights: bytes, path: str) -> Loaded:
        content = data, weights, bool(path) if data else path  # Two files of one content are one model.
        if self._last is None or self._last[0] != content:
            self._last = None
            self._last = content, self._adapter.load(data, weights, path)
        return self._last[1]


def _described(results: Sequence[object]) -> Message:
    """A reply with the results as they are: nothing is converted, and what is not an array is described."""
    odd = [reason for reason in map(_problem, results) if reason]
    present = [not _problem(result) for result in results]
    arrays = tuple(np.asarray(result) for result, is_array in zip(results, present, strict=True) if is_array)
    return Message({"kind": "result", "message": "; ".join(dict.fromkeys(odd)), "present": present}, arrays)


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _problem(result: Any) -> str:
    if not isinstance(result, np.generic) and type(result) not in (np.ndarray, np.memmap):  # Which may have masks.
        return f"gave a {type(result).__name__} instead of a NumPy array"
    return "" if result.dtype.newbyteorder("=") in _KNOWN else f"gave an array of {result.dtype}"


def _end_with_the_parent() -> None:
    """Let the system end this process when its parent is gone."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output; what is printed from now on goes to standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")


def changed_mode() -> str:
    """Say how the floating-point mode of this thread differs from the default, seen by its arithmetic; empty if not.

    Subnormal numbers are kept and results rounded to nearest by default.
    """
    changed = []
    if _flushes(np.float32) or _flushes(np.float64):
        changed.append("subnormal numbers are flushed to zero")
    rounding = _rounding(np.float64(2.0**-53)) or _rounding(np.float32(2.0**-24))
    if rounding:
        changed.append(f"results are rounded {rounding}")
    return " and ".join(changed)


def restore_mode() -> bool:
    """Go back to the default floating-point mode; whether that worked."""
    from ctypes.util import find_library  # It loads much, and few runtimes change the mode.

    try:
        ctypes.CDLL(find_library("m")).fesetenv(_DEFAULT_ENVIRONMENT)
    except (OSError, AttributeError):
        return False
    return not changed_mode()


def _flushes(kind: type[np.floating]) -> bool:
    """Whether a subnormal operand, or a subnormal result, counts as zero."""
    least = np.frombuffer(b"\x01".ljust(np.dtype(kind).itemsize, b"\0") * 4, kind)
    return not (least * kind(1)).all()


def _rounding(half_step: np.floating) -> str:
    """How sums are rounded where not to nearest; ``half_step`` is half the distance from 1 to the next number."""
    kind = type(half_step)
    one, little = np.full(4, kind(1)), np.full(4, half_step * kind(0.5))
    much = np.full(4, half_step * kind(1.5))
    up, down = bool((one + little > one).any()), bool((-one - little < -one).any())
    if up or down:
        return "away from zero" if up and down else "up" if up else "down"
    return "toward zero" if bool((one + much == one).any()) else ""
