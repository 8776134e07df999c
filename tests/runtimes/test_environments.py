"""Other versions of runtimes get environments of their own, whole or not at all; no network is needed here."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from eltwise import runtimes
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.runtimes import Host
from eltwise.runtimes.environments import interpreter, versions_between
from support.waiting import wait_for

pytestmark = pytest.mark.slow


def wheel(folder: Path, name: str, version: str, code: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}/__init__.py", code)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of environments, with an index that has two small packages in the place of the real ones."""
    for name, version in (("onnxruntime", "98.7"), ("ml_dtypes", "0.99")):
        wheel(tmp_path, name, version, f"__version__ = {version!r}\n")
    for name, value in (("PIP_CONFIG_FILE", "/dev/null"), ("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path))):
        monkeypatch.setenv(name, value)
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("ELTWISE_CACHE", str(cache))
    return cache / "environments"


def test_an_environment_is_made_once_and_again_where_it_is_broken(environments: Path) -> None:
    runtime, steps = runtimes.find("onnxruntime==98.7"), list[str]()
    for is_made in (True, False, True):
        python = interpreter(runtime, lambda _done, _count, text: steps.append(text))
        assert steps == (["making an environment of onnxruntime 98.7", ""] if is_made else [])
        code = "import onnxruntime; print(onnxruntime.__version__, onnxruntime.__file__)"
        version, file = subprocess.run(  # noqa: S603
            [python, "-I", "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
        assert version == "98.7"
        assert len(list(environments.iterdir())) == 1
        if not is_made:
            Path(file).unlink()
        steps.clear()


def test_what_cannot_be_made_is_said_in_a_sentence_and_leaves_nothing(
    environments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Host(runtimes.find("onnxruntime==1.2.3")) as host:
        message = (
            r"^there is no wheel of onnxruntime 1\.2\.3 for Python [\d.]+ on this system; allowed: 98\.7; .*python$"
        )
        with pytest.raises(UnsupportedError, match=message):
            host.version()
        assert not list(environments.iterdir())
    for name, value in (("PIP_NO_INDEX", "0"), ("PIP_INDEX_URL", "http://127.0.0.1:9"), ("PIP_FIND_LINKS", "")):
        monkeypatch.setenv(name, value)
    with pytest.raises(UnsupportedError, match=r"the package index cannot be reached; connect to the network, or name"):
        interpreter(runtimes.find("onnxruntime==98.7"))
    assert not list(environments.iterdir())
    monkeypatch.setenv("ELTWISE_CACHE", "off")
    with pytest.raises(UnsupportedError, match="no cache folder for an environment of onnxruntime"):
        interpreter(runtimes.find("onnxruntime==98.7"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_leaves_nothing(number: int, environments: Path) -> None:
    """Also what venv and pip have started is ended, and does not go on writing."""
    code = "from eltwise import runtimes; from eltwise.runtimes.environments import interpreter; "
    code += "import signal; signal.signal(signal.SIGTERM, signal.default_int_handler); "
    command = [sys.executable, "-c", f"{code}interpreter(runtimes.find('onnxruntime==98.7'))"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    wait_for(lambda: bool(list(environments.glob(".*/environment/bin/python"))))
    time.sleep(0.5)  # Until venv has started pip.
    process.send_signal(number)
    assert process.wait(600) != 0
    assert not list(environments.iterdir())


def test_an_interpreter_is_used_as_it_is(tmp_path: Path) -> None:
    """It sees this package and nothing else that is installed beside it."""
    with Host(runtimes.find(f"onnx-reference@{sys.executable}")) as host, Host(runtimes.find("onnx-reference")) as same:
        assert host.version() == same.version()
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 'eltwise needs Python 3.11 or newer there, and this is 3.8' >&2; exit 1\n")
    old.chmod(0o755)
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)  # noqa: S603
    for python, reason in ((old, "this is 3.8"), (bare / "bin" / "python", "No module named 'numpy'")):
        message = (
            f"cannot be started: .*{re.escape(reason)}; install what it needs: .* -m pip install -U numpy ml_dtypes"
        )
        with Host(runtimes.find(f"onnx-reference@{python}")) as host, pytest.raises(UnsupportedError, match=message):
            host.version()


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("1.2..1.4", ("1.2.0", "1.3.1", "1.4.0", "1.4.9")),
        ("1.2.1..1.3.1", ()),
        ("1.2,1.10", ("1.2", "1.10")),
        ("x..2", None),
    ],
)
def test_the_versions_of_a_range_are_those_of_the_index(
    environments: Path, tmp_path: Path, text: str, versions: tuple[str, ...] | None
) -> None:
    del environments
    for version in ("1.10.0", "1.2.0", "1.3.1", "1.4.0", "1.4.9", "1.5.0rc1"):
        wheel(tmp_path, "package", version, "")
    if versions:
        assert versions_between("package", text) == versions
        return
    with pytest.raises(EltwiseError, match="fewer than two versions" if versions == () else "not a range of versions"):
        versions_between("package", text)


def test_an_index_that_cannot_be_reached_is_said(environments: Path) -> None:
    del environments
    with pytest.raises(UnsupportedError, match="does not tell the versions of nothing; connect to the network"):
        versions_between("nothing", "1..2")
