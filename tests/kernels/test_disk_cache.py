"""The kernel cache on disk: object code is verified when it is read, and only the user's own files are."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eltwise.kernels import disk_cache, image, jit, linking


def test_object_code_is_verified_when_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_CACHE", str(tmp_path / "cache"))
    key = b"text, target"
    assert disk_cache.load(key) is None
    disk_cache.store(key, b"object code")
    assert disk_cache.load(key) == b"object code"
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert disk_cache.load(key) is None
    file.write_bytes(b"")
    assert disk_cache.load(key) is None
    disk_cache.store(key, b"object code")
    monkeypatch.setattr(disk_cache, "name_of", lambda _key: file.name)  # Two keys that share a name.
    assert disk_cache.load(b"text, other") is None
    assert disk_cache.load(key[:-1]) is None


def test_the_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(disk_cache, "LARGEST_FOLDER", 5 * 4096)
    monkeypatch.setattr(disk_cache, "WRITES_UNTIL_PRUNED", 1)
    for number in range(8):
        key = f"{number}".encode()
        disk_cache.store(key, bytes(200))
        os.utime(tmp_path / disk_cache.name_of(key), (number, number))
    disk_cache.store(b"last", bytes(200))
    left = {file.name for file in tmp_path.iterdir()}
    assert disk_cache.name_of(b"last") in left
    assert disk_cache.name_of(b"0") not in left
    assert len(left) == 5


def test_files_that_another_process_removes_while_old_ones_are_searched(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "WRITES_UNTIL_PRUNED", 1)
    for number in range(4):
        (kept / f"{number}.object").symlink_to(kept / "nothing")  # Listed, and gone when it is looked at.
    disk_cache.store(b"last", b"object code")
    gc.collect()  # Nothing is left open: warnings are errors.
    assert disk_cache.load(b"last") == b"object code"


def test_a_cache_that_is_off_or_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_CACHE", "off")
    disk_cache.store(b"key", b"code")
    assert disk_cache.load(b"key") is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ELTWISE_CACHE", str(tmp_path / "file" / "below"))
    disk_cache.store(b"key", b"code")
    assert disk_cache.load(b"key") is None


def warned() -> pytest.WarningsRecorder:
    return pytest.warns(RuntimeWarning, match="the kernel cache is not used")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which something is kept."""
    folder = tmp_path / "above" / "cache"
    monkeypatch.setenv("ELTWISE_CACHE", str(folder))
    disk_cache.store(b"key", b"object code")
    assert disk_cache.load(b"key") == b"object code"
    return folder


needs_owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system does not tell whose a file is")


@needs_owners
def test_the_cache_is_the_users_alone(kept: Path) -> None:
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in kept.iterdir()] == [0o600]


@needs_owners
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702, 0o720])
def test_a_cache_that_others_may_write_is_not_used_and_said_once(kept: Path, mode: int) -> None:
    kept.chmod(mode)
    with warned() as said:
        assert disk_cache.load(b"key") is None
        disk_cache.store(b"other", b"object code")
        assert disk_cache.load(b"key") is None
    assert len(said) == 1
    assert [file.name for file in kept.iterdir()] == [disk_cache.name_of(b"key")]
    kept.chmod(0o755)
    assert disk_cache.load(b"key") == b"object code"


@needs_owners
@pytest.mark.parametrize(("mode", "is_used"), [(0o777, False), (0o1777, True), (0o755, True), (0o707, False)])
def test_a_folder_above_that_others_may_write_keeps_no_cache(kept: Path, mode: int, is_used: bool) -> None:
    kept.parent.chmod(mode)
    with contextlib.nullcontext() if is_used else warned():
        assert (disk_cache.load(b"key") is not None) == is_used


@needs_owners
def test_a_cache_of_somebody_else_is_not_used(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: kept.stat().st_uid + 1)
    with warned():
        assert disk_cache.load(b"key") is None


@needs_owners
def test_no_link_is_followed_into_or_in_the_cache(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept / disk_cache.name_of(b"link")).symlink_to(kept / disk_cache.name_of(b"key"))
    assert disk_cache.load(b"link") is None
    (kept.parent / "link").symlink_to(kept)
    monkeypatch.setenv("ELTWISE_CACHE", str(kept.parent / "link"))
    with warned():
        assert disk_cache.load(b"key") is None


@needs_owners
@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_a_file_that_others_may_write_is_not_read(kept: Path, mode: int) -> None:
    (kept / disk_cache.name_of(b"key")).chmod(mode)
    assert disk_cache.load(b"key") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(kept: Path) -> None:
    os.mkfifo(kept / disk_cache.name_of(b"pipe"), mode=0o600)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(disk_cache.load, b"pipe")
        try:
            assert loading.result(timeout=5) is None
        finally:  # The other end of the pipe lets a waiting reader go on.
            with contextlib.suppress(OSError):
                os.close(os.open(kept / disk_cache.name_of(b"pipe"), os.O_WRONLY | os.O_NONBLOCK))


def test_without_owners_the_folder_is_trusted(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.chmod(0o777)
    monkeypatch.delattr(os, "getuid", raising=False)
    monkeypatch.delattr(os, "O_NOFOLLOW", raising=False)
    assert disk_cache.load(b"key") == b"object code"


def test_a_call_warns_of_a_cache_that_others_may_write(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    code = """
import numpy, eltwise
for count in (1, 2):
    print((eltwise.subtract(numpy.ones(1 << 20, numpy.int32), numpy.ones((), numpy.int32)) == 0).all())
    print((eltwise.subtract(numpy.ones(1 << 20, numpy.int16), numpy.ones((), numpy.int16)) == 0).all())
"""
    environment = os.environ | {"ELTWISE_CACHE": str(tmp_path / "cache"), "ELTWISE_KERNELS": "compiled"}
    command = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    assert done.stdout.split() == ["True"] * 4
    assert done.stderr.count("RuntimeWarning") == 1
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_second_process_reads_what_the_first_compiled(tmp_path: Path) -> None:
    code = """
import numpy, eltwise, sys
a = numpy.arange(1 << 20, dtype=numpy.float32)
print(int((eltwise.subtract(a, 1) == a - 1).all()), "llvmlite.binding" in sys.modules)
"""
    environment = os.environ | {"ELTWISE_CACHE": str(tmp_path)}
    for compiles in (True, not image.can_be_mapped()):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.split() == ["1", str(compiles)]
        assert len(list(tmp_path.iterdir())) == 3  # The processor's description, the kernel and what shares its work.


def test_a_file_under_another_name_is_not_used(kept: Path) -> None:
    (file,) = kept.iterdir()
    file.rename(kept / file.name.replace("key", "other"))
    assert disk_cache.load(b"other") is None


def test_the_key_changes_with_the_sources_that_decide_the_code() -> None:
    sources = [Path(str(module.__file__)).read_bytes() for module in (jit, linking)]
    assert hashlib.sha256(b"".join(sources).replace(b"\r\n", b"\n")).hexdigest()[:16] == disk_cache.COMPILER


def test_code_of_other_sources_is_not_used(tmp_path: Path) -> None:
    code = """
import numpy, eltwise, sys
from eltwise.kernels import disk_cache
disk_cache.COMPILER = sys.argv[1]
a = numpy.arange(1 << 20, dtype=numpy.float32)
print(int((eltwise.subtract(a, 1) == a - 1).all()), "llvmlite.binding" in sys.modules)
"""
    environment = os.environ | {"ELTWISE_CACHE": str(tmp_path)}
    for sources in ("before", "after"):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code, sources], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.split() == ["1", "True"]


def test_the_tests_have_a_cache_of_their_own() -> None:
    folder = disk_cache.folder()
    assert folder is None or Path(folder) != Path.home() / ".cache" / "eltwise"
