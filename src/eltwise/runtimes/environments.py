"""Environments of other versions of runtimes, made with venv and pip where one is first asked for.

They lie in the user's cache folder, which ``ELTWISE_CACHE`` names, and may be removed at any time. Each is made beside
its place and renamed, and made again where a file of it is missing.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

from eltwise.core.errors import AttributeValueError, UnsupportedError
from eltwise.core.escaping import shortened
from eltwise.core.progress import Progress, no_progress
from eltwise.core.staging import ENDING, Staging
from eltwise.kernels.disk_cache import folder as cache_folder
from eltwise.runtimes.processes import kill
from eltwise.runtimes.registry import Runtime

_NEEDED = ("ml_dtypes>=0.5",)
"""What the worker's process needs beside the runtime."""

_FIRST_WITH_NUMPY_2 = {"onnxruntime": (1, 19), "onnx": (1, 17), "torch": (2, 3), "numexpr": (2, 10)}
"""Older versions do not say that they need an older NumPy."""

_ABANDONED = 86400
"""After so many seconds what another process left unfinished is removed."""

_MOST_VERSIONS = 12
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
_lock = threading.Lock()


def interpreter(runtime: Runtime, progress: Progress = no_progress) -> str:
    """The interpreter that has a runtime, in the version that is asked for; its environment is made if need be.

    Raises:
        UnsupportedError: if it cannot be made; nothing is left behind.
    """
    if not runtime.version:
        return str(Path(runtime.python).absolute()) if runtime.python else sys.executable
    package, version = runtime.packages[0], runtime.version
    cache = cache_folder()
    if cache is None:
        hint = "set ELTWISE_CACHE to a folder that only you may write"
        raise UnsupportedError(f"there is no cache folder for an environment of {package} {version}", hint=hint)
    target = Path(cache) / "environments" / f"{package}-{version}-{sys.implementation.cache_tag}"
    with _lock:  # One thread makes it; of several processes the first that is ready renames its own.
        if not _is_whole(target, package):
            progress(0, 1, f"making an environment of {package} {version}")
            try:
                _make(target, package, version)
            except OSError as error:
                reason = error.strerror or str(error)
                raise UnsupportedError(
                    f"the environment of {package} {version} cannot be made: {reason}", where=str(target.parent)
                ) from None
            progress(1, 1, "")
    return str(_python_of(target))


def versions_between(package: str, text: str) -> tuple[str, ...]:
    """The versions of a package that have wheels for this Python, from a range or a list, the oldest first.

    Args:
        package: its name.
        text: ``LOW..HIGH``, such as ``1.20.1..1.24``, or ``1.20.1,1.24.4``.

    Raises:
        AttributeValueError: for another form.
        UnsupportedError: if the index cannot be reached, or has fewer than two such versions.
    """
    low, dots, high = text.partition("..")
    if not all(_VERSION.fullmatch(version) for version in ((low, high) if dots else text.split(","))):
        allowed = "LOW..HIGH, such as 1.20.1..1.24, or VERSION,VERSION"
        raise AttributeValueError("not a range of versions", got=repr(text), allowed=allowed)
    if not dots:
        return tuple(text.split(","))
    command = [sys.executable, "-m", "pip", "index", "versions", "--disable-pip-version-check", "--retries=2", package]
    _code, output, _errors = _call(command)
    listed = next((line for line in output.splitlines() if line.startswith("Available versions: ")), "")
    if not listed:
        hint = "connect to the network, or list them: --versions VERSION,VERSION"
        raise UnsupportedError(f"the package index does not tell the versions of {package}", hint=hint)
    versions = sorted(filter(_VERSION.fullmatch, re.split(r"[ ,]+", listed.partition(":")[2])), key=_numbers)
    ends = _numbers(low), _numbers(high)
    inside = tuple(one for one in versions if ends[0] <= _numbers(one) and _numbers(one)[: len(ends[1])] <= ends[1])
    if len(inside) < 2:
        shown = ", ".join(versions[-_MOST_VERSIONS:])
        raise UnsupportedError(f"there are fewer than two versions of {package} in {text}", allowed=shown)
    return inside


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _python_of(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _is_whole(environment: Path, package: str) -> bool:
    """Whether its interpreter is there, and every file that was installed with it."""
    if not _python_of(environment).exists():
        return False
    paths = [str(path) for path in environment.glob("[Ll]ib/**/site-packages")]
    installed = list(distributions(path=paths))
    names = {(each.metadata["Name"] or "").lower() for each in installed}
    # Their ``files`` leave out what is missing, since Python 3.12.
    records = [(each, csv.reader((each.read_text("RECORD") or "").splitlines())) for each in installed]
    return package in names and all(
        Path(str(each.locate_file(row[0]))).exists() for each, rows in records for row in rows if row
    )


def _make(target: Path, package: str, version: str) -> None:
    """Make an environment beside its place and rename it, unless another process was faster."""
    target.parent.mkdir(exist_ok=True)
    for path in target.parent.glob(f".*{ENDING}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                shutil.rmtree(path)
    staging = Staging.made(str(target))
    try:
        new = Path(staging.of("environment"))
        _run([sys.executable, "-m", "venv", str(new)], package, version)
        install = ["install", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--retries=2"]
        requirements = [f"{package}=={version}", *_NEEDED, *_numpy_for(package, version)]
        _run([str(_python_of(new)), "-I", "-m", "pip", *install, *requirements], package, version)
        if not _is_whole(target, package):
            with suppress(FileNotFoundError):  # What is broken is removed with the rest of this folder.
                target.replace(staging.of("broken"))
            staging.publish("environment", str(target))
    finally:
        staging.remove()


def _numpy_for(package: str, version: str) -> tuple[str, ...]:
    number = tuple(map(int, re.findall(r"\d+", version)[:2]))
    return ("numpy<2",) if number < _FIRST_WITH_NUMPY_2.get(package, ()) else ()


def _call(command: Sequence[str]) -> tuple[int, str, str]:
    """Run venv or pip to its end; the exit code, and what it printed to stdout and stderr.

    An interrupt ends those that it has started, too, which would go on writing.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True)  # noqa: S603 - venv or pip
    try:
        output, errors = process.communicate()
    except BaseException:
        kill(process)
        process.communicate()
        raise
    return process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")


def _run(command: Sequence[str], package: str, version: str) -> None:
    """Run a command that makes an environment.

    Raises:
        UnsupportedError: if it fails, in a sentence made of what it printed.
    """
    code, output, errors = _call(command)
    if not code:
        return
    what, other = f"{package} {version}", f"name an interpreter that has it: {package}@path/to/python"
    lines = [line.strip() for line in f"{output}\n{errors}".splitlines() if line.strip()]
    offered = next((line for line in lines if f"{package}=={version} (from versions:" in line), "")
    versions = offered.rpartition("(from versions:")[2].rstrip(") ").split(",")
    if offered and versions == [" none"] and any("Retrying (" in line for line in lines):
        message = f"{what} is not installed here, and the package index cannot be reached"
        raise UnsupportedError(message, hint=f"connect to the network, or {other}")
    if offered:
        python = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        allowed = ",".join(versions[-_MOST_VERSIONS:]).strip()
        message = f"there is no wheel of {what} for {python} on this system"
        raise UnsupportedError(message, allowed=allowed, hint=f"choose one of these, or {other}")
    refusals = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = (refusals or lines[-1:] or [f"exit code {code}"])[0]
    raise UnsupportedError(f"the environment of {what} cannot be made: {shortened(reason, 300)}", hint=other)
