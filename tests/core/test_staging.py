"""The folders that files are written in: nothing of them stays where the making is interrupted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from eltwise.core.staging import Staging


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="the folder is not opened here")
@pytest.mark.parametrize("call", ["mkdir", "lstat", "open", "fstat"])
def test_an_interrupt_leaves_no_folder(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may come in any call, also in the one that has just made the folder."""
    real, calls = getattr(os, call), [0]

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            Staging.made(str(tmp_path / "a.npy"))
    finally:
        monkeypatch.undo()
    assert calls == [1]
    assert list(tmp_path.iterdir()) == []
