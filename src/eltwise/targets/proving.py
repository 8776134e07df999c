"""A model run on a target itself, on hard values, and compared bit for bit with what it means."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from eltwise.conformance import runtimes, wire
from eltwise.conformance.process import environment_of
from eltwise.conformance.runtimes import Runtime
from eltwise.conformance.wire import Message
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.openvino.writer import write_openvino
from eltwise.model import Model
from eltwise.passes.report import Comparison
from eltwise.passes.verify import Run, VerificationError, equal_elements, runs_of
from eltwise.targets.examining import Examined
from eltwise.targets.table import RUNTIMES, Target

if TYPE_CHECKING:
    from collections.abc import Callable

_LIMIT = 300.0
"""How many seconds all runs together may take there."""


class RefusedThereError(VerificationError):
    """A model that the target does not load or run."""


def proved(before: Callable[[], Model], there: Examined, target: Target) -> Comparison:
    """Run a model here and what is to be the same on a target, and compare the bits; any NaN equals any NaN.

    Args:
        before: gives the model that is right, which may raise where it cannot be run here.
        there: what is run on the target.
        target: ``onnxruntime`` or ``openvino``.

    Returns:
        What was compared, or why nothing could be.

    Raises:
        VerificationError: where an output differs, or the target refuses the model.
    """
    if find_spec(target) is None:
        return Comparison(0, 0, f"{target} is not installed here")
    try:
        data, weights = _bytes_of(there)  # First, since it refuses what is too large to be read for this.
        model = before()
    except EltwiseError as error:
        return Comparison(0, 0, str(error))
    with tempfile.TemporaryFile() as asking, tempfile.TemporaryFile() as answering:
        asked, answered = cast(BinaryIO, asking), cast(BinaryIO, answering)
        arrays = tuple(np.frombuffer(part, np.uint8) for part in (data, weights))
        wire.send(asked, Message({"dialect": there.dialect}, arrays))
        runs, refusal = _written(model, asked)
        if not runs:
            return Comparison(0, 0, refusal)
        ended = _run(runtimes.find(_runtime_of(there, target)), asked, answered)
        # What was fed is drawn once more, so that not all runs are in memory at a time.
        elements = sum(_compared(found, answered, target, ended) for found in runs_of(model) if isinstance(found, Run))
    return Comparison(runs, elements)


def _runtime_of(there: Examined, target: Target) -> str:
    name = RUNTIMES[target].get(there.dialect)
    if name is None:
        raise UnsupportedError(f"{target} reads ONNX only", where=there.where, got="an IR")
    return name


def _bytes_of(there: Examined) -> tuple[bytes, bytes]:
    if there.proto is not None:
        from eltwise.passes.onnx_versions.inlined import inlined

        return inlined(there.proto, there.folder, wire.LARGEST), b""
    assert there.graph is not None
    if there.unread:
        raise there.unread[0]
    size = sum(tensor.array.nbytes for _name, tensor in there.graph.constants)
    if size > wire.LARGEST:
        allowed = f"{wire.LARGEST} bytes"
        raise UnsupportedError("the model is too large to be handed over", got=f"{size} bytes", allowed=allowed)
    return write_openvino(there.graph)


def _written(model: Model, asked: BinaryIO) -> tuple[int, str]:
    """Write what is fed in each run; gives how many runs there are, and why not more."""
    runs, refusal = 0, ""
    for found in runs_of(model):
        if isinstance(found, str):
            refusal = refusal or found
            continue
        wire.send(asked, Message({"inputs": list(found.feeds)}, tuple(found.feeds.values())))
        runs += 1
    return runs, refusal


def _run(runtime: Runtime, asked: BinaryIO, answered: BinaryIO) -> str:
    """Let a process of its own run what is asked; how it ended where that was not well."""
    asked.seek(0)
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, with a module of ours
            [sys.executable, "-P", "-m", "eltwise.targets.running", runtime.adapter],
            stdin=asked,
            stdout=answered,
            stderr=subprocess.DEVNULL,
            env=environment_of(runtime),
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it gave no answer within {_LIMIT:g} seconds"
    finally:
        answered.seek(0)
    return f"its process ended with exit code {done.returncode}" if done.returncode else "it gave too few answers"


def _compared(run: Run, answered: BinaryIO, target: str, ended: str) -> int:
    message = wire.receive(answered)
    words = ended if message is None else message.fields.get("refused")
    if message is None or words is not None:
        raise RefusedThereError(f"{target} does not run the model: {words}")
    return equal_elements(run, message.arrays, target)
