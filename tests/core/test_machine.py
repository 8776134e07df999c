"""What depends on the machine, on machines that this one is not."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from eltwise.core import machine
from eltwise.kernels.pool import largest_idle_bytes


def test_a_system_that_does_not_say_which_processors_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert machine.processors() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert machine.processors() == 1


def test_the_memory_that_waits_is_bounded_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for pages, bound in ((1 << 30, 1 << 30), (1 << 10, (1 << 10) * 512)):
        sizes = {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": 4096}
        monkeypatch.setattr(os, "sysconf_names", sizes, raising=False)
        monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
        assert largest_idle_bytes() == bound
    monkeypatch.delattr(os, "sysconf_names", raising=False)
    assert machine.memory_bytes() is None
    assert largest_idle_bytes() == 1 << 28


def test_caches_that_are_not_described_have_a_common_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.cache_bytes.cache_clear()
    monkeypatch.setattr(machine, "_CACHES", f"{tmp_path}/index{{}}/size")
    assert machine.cache_bytes() == 32 << 20
    machine.cache_bytes.cache_clear()
    for index, size in enumerate(("48K", "2M", "none")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert machine.cache_bytes() == 2 << 20
    machine.cache_bytes.cache_clear()


def test_which_processors_are_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, expected in (("x86_64", True), ("AMD64", True), ("aarch64", False), ("", False)):
        monkeypatch.setattr(platform, "machine", lambda name=name: name)
        assert machine.is_x86() is expected
