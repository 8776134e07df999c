from __future__ import annotations

from pathlib import Path

import pytest

from eltwise.testing.golden import Golden
from support.goldens import golden_in
from support.local_hosts import use_local_hosts


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Golden:
    """A golden whose models run in this process; the plugin's own, of which there are tests as well, start others."""
    use_local_hosts(monkeypatch)
    return golden_in(tmp_path)
