"""Goldens of a test that is somewhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from eltwise.configuration import Configuration
from eltwise.testing.golden import Golden


def golden_in(folder: Path) -> Golden:
    """The fixture as a test in a folder gets it."""
    return Golden(folder / "goldens" / "test_net", "test_net.py::test", folder, Configuration(), None, None)


def updated(golden: Golden) -> Golden:
    """The same with ``--eltwise-update``."""
    return replace(golden, written=Path(mkdtemp(dir=golden.root)))
