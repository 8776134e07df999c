"""Paths and URLs of zarr stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FORMATS = {"zarr.json": 3, ".zarray": 2, ".zgroup": 2}
"""The files that describe an array or a group, with the version of zarr's format."""


def is_store(path: Path) -> bool:
    """Whether a folder is a zarr array or group."""
    return any((path / mark).is_file() for mark in FORMATS)


def is_url(text: str) -> bool:
    """Whether a text names a store that fsspec opens."""
    return "://" in text


def local(text: str) -> str:
    """A path as such, also where it is written as a URL.

    >>> local("file:///data/a.zarr"), local("local:///data/a.zarr"), local("s3://bucket/a.zarr")
    ('/data/a.zarr', '/data/a.zarr', 's3://bucket/a.zarr')
    """
    return text.removeprefix("file://").removeprefix("local://")


def is_in_memory(text: str) -> bool:
    """Whether a URL is of fsspec's file system in memory, which ends with the process.

    >>> is_in_memory("memory://a.zarr"), is_in_memory("simplecache::memory://a.zarr"), is_in_memory("memory.zarr")
    (True, True, False)
    """
    return is_url(text) and "memory" in opened_anew(text)


def opened_anew(url: str) -> dict[str, Any]:
    """Options of fsspec with which each file system of a URL is opened anew.

    One that is used again remembers what it has listed, and ``simplecache`` and its like what the files held then, in a
    worker of a cluster from one job to the next.

    >>> opened_anew("simplecache::s3://bucket/a.zarr")
    {'simplecache': {'skip_instance_cache': True}, 's3': {'skip_instance_cache': True}}
    """
    return {each.partition("://")[0]: {"skip_instance_cache": True} for each in url.split("::")}
