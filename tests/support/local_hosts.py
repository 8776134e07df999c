"""Runtimes without processes of their own: for tests of what is found, in which a process would cost the most time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pytest

from eltwise.runtimes import Answer, Host, Model, Runtime
from eltwise.runtimes.program import Program, message_of
from eltwise.runtimes.specification import Settings, arguments
from eltwise.runtimes.worker import make_adapter

HOSTING = (
    *("eltwise.accuracy.measure", "eltwise.tracing.record", "eltwise.tracing.trace"),
    *("eltwise.targets.float16", "eltwise.targets.measure", "eltwise.targets.run", "eltwise.targets.special_values"),
    *("eltwise.testing.bounds", "eltwise.testing.models"),
)
"""The modules that run models on runtimes; conformance also runs calls, and ends processes itself."""


class LocalHost(ExitStack):
    """Stands for ``runtimes.Host``; what ends or hangs its process has one, and a runtime that runs calls.

    Where memory is to be shared, the arrays of an answer are there until the next run.
    """

    def __init__(self, runtime: Runtime, limit: float = 30.0, **options: Any) -> None:
        super().__init__()
        self.runtime = runtime
        self._shares_memory = bool(options.get("shares_memory"))
        self._shared = list[np.ndarray]()
        self._last: tuple[_Content, Any] | None = None
        self._process = partial(Host, runtime, limit, **options)
        self._host = self.enter_context(self._process()) if self.needs_process(runtime) else None

    @staticmethod
    def needs_process(runtime: Runtime) -> bool:
        return runtime.adapter.rpartition(":")[2] in ("Dying", "Hanging", "HangingAsAWhole", "NotStarting")

    def version(self) -> str:
        return self._host.version() if self._host else str(_adapter_of(self.runtime).version())

    def run(self, program: Program, inputs: Sequence[np.ndarray], *, only_load: bool = False, **options: Any) -> Answer:
        if not self._host and not isinstance(program, Model):
            self._host = self.enter_context(self._process())
        if self._host:
            return self._host.run(program, inputs, only_load=only_load, **options)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # As in the process of a runtime.
                loaded = self._loaded(program)
                results = [] if only_load else loaded.arrays(loaded.bind(list(inputs))())
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its refusal
            return Answer("refused", message=message_of(error, getattr(program, "path", "")))
        finally:
            self._overwrite()
        arrays = tuple(np.array(one) if isinstance(one, np.ndarray) else None for one in results)
        self._shared += [one for one in arrays if self._shares_memory and one is not None and not one.dtype.hasobject]
        return Answer("result", arrays)

    def restart(self) -> None:
        if self._host:
            self._host.restart()

    def _loaded(self, program: Model) -> Any:
        """The last model stays loaded, as in the process of a runtime."""
        content = _Content(program.data, program.weights, bool(program.path), program.path)
        if self._last is None or self._last[0] != content:
            self._last = None
            load = _session if _keeps_nothing(self.runtime) else _new_session
            self._last = content, load(_adapter_of(self.runtime), content)
        return self._last[1]

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        with self._host.limited(seconds) if self._host else nullcontext():
            yield

    def _overwrite(self) -> None:
        for array in self._shared:
            array.reshape(-1).view(np.uint8)[...] ^= 0x5A
        self._shared.clear()


def _keeps_nothing(runtime: Runtime) -> bool:
    """Whether its sessions keep nothing of a run; planted runtimes may."""
    return runtime.adapter == "eltwise.runtimes.onnxruntime:OnnxRuntime"


@dataclass(frozen=True)
class _Content:
    """What is loaded: two files of one content are one model."""

    data: bytes
    weights: bytes
    is_file: bool
    path: str = field(compare=False)


def _new_session(adapter: Any, content: _Content) -> Any:
    return adapter.load(content.data, content.weights, content.path)


_session = lru_cache(maxsize=256)(_new_session)
"""Three of five models are loaded again."""


def _adapter_of(runtime: Runtime) -> Any:
    return _adapter(runtime.adapter, runtime.name, runtime.settings, "onnxruntime" in runtime.packages)


@cache
def _adapter(adapter: str, name: str, settings: Settings, is_onnxruntime: bool) -> Any:
    """A session without threads of its own: to start and join them takes longer than a model of a few nodes."""
    defaults = {"threads": 1} if is_onnxruntime else {}
    return make_adapter(adapter, name, **defaults | arguments(settings))


def use_local_hosts(patch: pytest.MonkeyPatch) -> None:
    """Let all that runs models, but for conformance, run the runtimes in this process."""
    for module in HOSTING:
        patch.setattr(f"{module}.Host", LocalHost)
