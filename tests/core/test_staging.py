"""The folders that files are written in: nothing of them stays where the making is interrupted."""

from __future__ import annotations

import os
import sys
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


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no such processes")
def test_an_interrupt_before_the_folder_is_known_leaves_none(tmp_path: Path) -> None:
    """A signal may come when the folder is made and nothing refers to it yet; a forked process removes none."""

    def interrupted(frame: Any, event: str, _argument: object) -> None:
        if event == "return" and frame.f_code is Staging.made.__func__.__code__:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            Staging.made(str(tmp_path / "a.npy"))
    finally:
        sys.setprofile(before)
    assert list(tmp_path.iterdir()) == []
    staging = Staging.made(str(tmp_path / "a.npy"))
    child = os.fork()
    if not child:
        del staging
        os._exit(0)
    os.waitpid(child, 0)
    assert [path.name for path in tmp_path.iterdir()] == [Path(staging.path).name]
    staging.remove()
    assert list(tmp_path.iterdir()) == []
