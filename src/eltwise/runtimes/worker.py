"""The process of one runtime: it reads requests from its input and writes a reply for each to its output.

Run as ``python -m eltwise.runtimes.worker ADAPTER NAME``. What the runtime prints goes to standard error;
the frames use descriptors that it does not know.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

from eltwise.core.dtypes import TYPES
from eltwise.runtimes import float_mode
from eltwise.runtimes.answers import message_of
from eltwise.runtimes.program import Loaded
from eltwise.runtimes.wire import Message, receive, send

_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""

_KNOWN = {each.storage for each in TYPES if each.runs}


def main() -> None:
    """Make the adapter, say that it is ready, and serve requests until the input ends."""
    _end_with_the_parent()
    incoming, outgoing = _own_streams()
    warnings.simplefilter("ignore")
    try:
        adapter = make_adapter(*sys.argv[1:])
        send(outgoing, Message({"ready": adapter.version()}))
    except Exception as error:  # noqa: BLE001 - reported to the host
        send(outgoing, Message({"failed": message_of(error)}))
        return
    programs = _Programs(adapter)
    while (message := receive(incoming)) is not None:
        try:
            reply = programs.reply(message)
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its refusal
            reply = Message({"kind": "refused", "words": message_of(error)})
        changed = float_mode.changes()
        if changed and not float_mode.restore():
            changed += ", and it could not be restored"
        send(outgoing, Message({**reply.fields, "mode": changed}, reply.arrays))


def make_adapter(adapter: str, name: str) -> Any:
    """Import an adapter, named ``MODULE:CLASS``, and make one; that of a Python file reads the file in its name."""
    module, _colon, kind = adapter.partition(":")
    make = getattr(importlib.import_module(module), kind)
    return make(name) if name.rpartition(":")[0].endswith(".py") else make()


class _Programs:
    """Loads and runs programs; the last one stays loaded for the next request."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self._last: tuple[object, Loaded] | None = None

    def reply(self, message: Message) -> Message:
        """Serve one request."""
        fields, arrays = message.fields, message.arrays
        if "op" in fields:
            loaded = self._compiled(fields)
        else:
            loaded, arrays = self._loaded(arrays[0].tobytes(), arrays[1].tobytes()), arrays[2:]
        return _described([] if fields["only_load"] else loaded.arrays(loaded.bind(arrays)()))

    def _compiled(self, fields: dict[str, Any]) -> Loaded:
        steps = [(name, tuple(values)) for name, values in fields["steps"]]
        attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in fields["attributes"]}
        compiled: Loaded = self._adapter.compile(fields["op"], steps, attributes)
        return compiled

    def _loaded(self, data: bytes, weights: bytes) -> Loaded:
        if self._last is None or self._last[0] != (data, weights):
            self._last = None
            self._last = (data, weights), self._adapter.load(data, weights)
        return self._last[1]


def _described(results: Sequence[object]) -> Message:
    """A reply with the results as they are: nothing is converted, and what is not an array is described."""
    odd = [words for words in map(_problem, results) if words]
    present = [not _problem(result) for result in results]
    arrays = tuple(np.asarray(result) for result, is_array in zip(results, present, strict=True) if is_array)
    return Message({"kind": "result", "words": "; ".join(dict.fromkeys(odd)), "present": present}, arrays)


def _problem(result: object) -> str:
    if not isinstance(result, np.ndarray | np.generic):
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


if __name__ == "__main__":
    main()
