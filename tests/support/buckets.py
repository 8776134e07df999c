"""A file system behind URLs that lasts as long as the tests: it stands for one in the cloud."""

from __future__ import annotations

from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

BUCKET = "bucket://eltwise-tests"


class Buckets(MemoryFileSystem):  # type: ignore[misc]
    """Files by names such as ``bucket://a/b``, in memory of its own."""

    protocol = "bucket"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(super()._strip_protocol(str(path).removeprefix("bucket://")))


fsspec.register_implementation("bucket", Buckets)
