"""Runtimes without processes of their own: for tests that trace hundreds of models of a few nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, Self

import numpy as np
import pytest

from eltwise.runtimes import Answer, Model, Runtime
from eltwise.runtimes.program import message_of
from eltwise.runtimes.specification import Settings, arguments
from eltwise.runtimes.worker import make_adapter


class LocalHost(nullcontext[Any]):
    """Stands for ``runtimes.Host``."""

    def __init__(self, runtime: Runtime, _limit: float = 0.0, **_options: Any) -> None:
        self.runtime = runtime
        self._adapter = _adapter(runtime.adapter, runtime.name, runtime.settings)

    def __enter__(self) -> Self:
        return self

    def version(self) -> str:
        return str(self._adapter.version())

    def run(self, program: Model, inputs: Sequence[np.ndarray], **_options: Any) -> Answer:
        try:
            loaded = self._adapter.load(program.data, program.weights)
            results = loaded.arrays(loaded.bind(list(inputs))())
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its refusal
            return Answer("refused", message=message_of(error))
        return Answer("result", tuple(np.array(one) if isinstance(one, np.ndarray) else None for one in results))


@cache
def _adapter(adapter: str, name: str, settings: Settings) -> Any:
    return make_adapter(adapter, name, **arguments(settings))


def use_local_hosts(patch: pytest.MonkeyPatch) -> None:
    """Let traces run their runtimes in this process."""
    patch.setattr("eltwise.tracing.trace.Host", LocalHost)
