"""CRC-32C, the checksum of blocks and deltas."""

from __future__ import annotations

from typing import Any


def crc32c(data: Any, before: int = 0) -> int:
    """The CRC-32C of bytes, which continues that of those before.

    Args:
        data: what has a contiguous buffer, such as bytes or an array in C order.
        before: the CRC-32C of the bytes that precede.
    """
    import google_crc32c  # It takes as long to load as many a command takes.

    return int(google_crc32c.extend(before, data))
