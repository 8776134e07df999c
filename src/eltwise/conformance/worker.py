"""The process of one runtime: it reads questions from its input and writes an answer for each case to its output.

Run as ``python -m eltwise.conformance.worker ADAPTER NAME``. What the runtime itself prints goes to the standard error;
the frames use descriptors that it does not know.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import BinaryIO

from eltwise.conformance import floating_point, wire
from eltwise.conformance.answers import Answer, words_of
from eltwise.conformance.runtimes.asking import Runtime, answers
from eltwise.conformance.wire import Message, receive, send

_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


def main() -> None:
    """Make the runtime, say that it is ready, and answer until the input ends."""
    adapter, name = sys.argv[1:]
    end_with_the_parent()
    incoming, outgoing = own_streams()
    warnings.simplefilter("ignore")
    try:
        runtime = _made(adapter, name)
        send(outgoing, Message({"ready": runtime.version()}))
    except Exception as error:  # noqa: BLE001 - told to the referee, which makes its sentence of it
        send(outgoing, Message({"failed": words_of(error)}))
        return
    while (message := receive(incoming)) is not None:
        _answer(runtime, message, outgoing)


def end_with_the_parent() -> None:
    """Let the system end this process when the one that asks is gone, whatever this one is doing then."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take the standard input and output for the frames; what prints from now on prints to the standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")


def _made(adapter: str, name: str) -> Runtime:
    module, _colon, kind = adapter.partition(":")
    make = getattr(importlib.import_module(module), kind)
    runtime: Runtime = make(name) if module.endswith(".callables") else make()
    return runtime


def _answer(runtime: Runtime, message: Message, outgoing: BinaryIO) -> None:
    for answer in answers(runtime, *wire.asked(message)):
        changed = floating_point.changes()
        if changed and not floating_point.restore():
            changed += ", and it could not be restored"
        send(outgoing, _frame(answer, changed))


def _frame(answer: Answer, changed: str) -> Message:
    arrays = () if answer.array is None else (answer.array,)
    return Message({"kind": answer.kind, "words": answer.words, "mode": changed}, arrays)


if __name__ == "__main__":
    main()
