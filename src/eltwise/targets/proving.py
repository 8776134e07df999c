"""A model run on a target itself, on hard values, and compared bit for bit with what it means."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from eltwise import runtimes
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.openvino.writer import write_openvino
from eltwise.model import Model
from eltwise.passes.report import Comparison
from eltwise.passes.verify import VerificationError, equal_elements, runs_of
from eltwise.runtimes import Host, wire
from eltwise.runtimes import Model as Program
from eltwise.targets.examining import Examined
from eltwise.targets.table import RUNTIMES, Target

if TYPE_CHECKING:
    from collections.abc import Callable

_LIMIT = 300.0
"""How many seconds one run may take."""


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
    with Host(runtimes.find(_runtime_of(there, target)), _LIMIT) as host:
        program, runs, elements, refusal = Program(data, weights), 0, 0, ""
        for found in runs_of(model):
            if isinstance(found, str):
                refusal = refusal or found
                continue
            answer = host.run(program, list(found.feeds.values()))
            if answer.kind != "result":
                raise RefusedThereError(f"{target} does not run the model: {answer.words}")
            arrays = [np.empty(0) if array is None else array for array in answer.arrays]
            runs, elements = runs + 1, elements + equal_elements(found, arrays, target)
    return Comparison(runs, elements) if runs else Comparison(0, 0, refusal)


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
