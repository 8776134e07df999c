"""Commands that are called in the process of a test run the runtimes there, too."""

from __future__ import annotations

import pytest

from support.local_hosts import HOSTING, use_local_hosts


@pytest.fixture
def local_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands run runtimes in this process."""
    use_local_hosts(monkeypatch, *HOSTING)
