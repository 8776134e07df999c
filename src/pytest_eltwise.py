"""The pytest plugin of eltwise: the fixture ``golden`` and its options.

It lies beside the package, so that a session that does not use the fixture imports nothing of eltwise.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from eltwise.testing.golden import Golden


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("eltwise", "golden results of eltwise")
    group.addoption("--eltwise-update", action="store_true", help="write the goldens of the tests that are run")
    group.addoption("--eltwise-report", metavar="DIR", help="write a report of each golden that differs to this folder")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Golden results of this test: ``golden.check("logits", array)``, ``golden.check("net", "net.onnx", inputs)``."""
    from eltwise.configuration import read_configuration
    from eltwise.testing.golden import Golden

    config = request.config
    report = config.getoption("--eltwise-report")
    return Golden(
        folder=request.path.parent / "goldens" / request.path.stem,
        test=_test(request.path, request.node.nodeid, config.invocation_params.dir),
        root=config.invocation_params.dir,
        configuration=read_configuration(config.rootpath),
        reports=Path(config.invocation_params.dir, report, _below(config.rootpath, request.path)) if report else None,
        written=_written(request) if config.getoption("--eltwise-update") else None,
    )


def _written(request: pytest.FixtureRequest) -> Path:
    """The folder of the goldens that this session has written, one for all workers of pytest-xdist."""
    folder: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    return (folder.parent if hasattr(request.config, "workerinput") else folder) / "eltwise-goldens"


def _below(root: Path, path: Path) -> Path:
    """The folder of a test below a root: files of one name in two folders are two."""
    return path.parent.relative_to(root if path.is_relative_to(root) else path.anchor)


def _test(path: Path, name: str, folder: Path) -> str:
    """What pytest calls a test in a folder; its own name is for pytest's root folder."""
    try:
        file = os.path.relpath(path, folder)
    except ValueError:  # Windows has no way from one drive to another.
        file = str(path)
    return f"{Path(file).as_posix()}::{name.partition('::')[2]}"
