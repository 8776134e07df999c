from __future__ import annotations

from pathlib import Path

import pytest

from eltwise.testing.golden import Golden
from support.goldens import golden_in


@pytest.fixture
def golden(tmp_path: Path) -> Golden:
    return golden_in(tmp_path)
