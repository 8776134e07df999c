"""What all tests share: one seed, printed, and Hypothesis settings that give the same examples every time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

SEED = int(os.environ.get("ELTWISE_SEED", "20261121"))

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("eltwise", deadline=None, derandomize=True)
settings.load_profile("eltwise")


def pytest_report_header() -> str:
    return f"eltwise: random data is drawn with ELTWISE_SEED={SEED}"


@pytest.fixture
def seed() -> int:
    return SEED
