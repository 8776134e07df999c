"""The planted runtimes, known by the names of their classes."""

from __future__ import annotations

import pytest

from eltwise.runtimes import Runtime, registry
from eltwise.runtimes.specification import ONNXRUNTIME
from support import planted_runtimes
from support.conversions import FOLDERS


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the planted runtimes known."""
    for name, kind in vars(planted_runtimes).items():
        if isinstance(kind, type) and kind.__module__ == planted_runtimes.__name__:
            runtime = Runtime(
                name,
                f"support.planted_runtimes:{name}",
                ("onnxruntime",),
                ("ai.onnx",),
                environment={"PYTHONPATH": FOLDERS},
                options=ONNXRUNTIME,
            )
            monkeypatch.setitem(registry.BY_NAME, name, runtime)
