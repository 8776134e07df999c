"""Pictures in pages: bars as SVG, and grids of colours as PNG, each without any address outside the page."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.report.base import text

_HEIGHT, _LABELS = 90, 14
_LEAST_BARS, _MOST_LISTED = 8, 70
_COLOUR = (214, 69, 27)
"""Is told apart from white and from near black alike."""


@dataclass(frozen=True)
class Bar:
    """A bar of a diagram.

    Attributes:
        height: from 0 to 1.
        title: what it stands for.
        label: what is written below it.
        kind: its class, for a colour of its own.
    """

    height: float
    title: str
    label: str = ""
    kind: str = ""


def bars(shown: Sequence[Bar], caption: str, *, width: int = 340) -> str:
    """Draw bars beside each other, with their titles for those who point at them or do not see them.

    >>> bars([Bar(1, "a: 5"), Bar(0, "b: 0")], "values").count("<rect")
    1
    """
    step = width / max(len(shown), _LEAST_BARS)
    parts = [f'<path d="M0 {_HEIGHT}.5h{width}"/>']
    for number, bar in enumerate(shown):
        x, height = f'x="{number * step:.1f}"', _HEIGHT * bar.height
        if height:
            size = f'y="{_HEIGHT - height:.1f}" width="{max(step - 1.5, 0.5):.1f}" height="{height:.1f}"'
            kind = f'class="{bar.kind}" ' if bar.kind else ""
            parts.append(f"<rect {kind}{x} {size}><title>{text(bar.title)}</title></rect>")
        if bar.label:
            anchor = f'x="{(number + 1) * step:.1f}" text-anchor="end"' if number * step > 0.8 * width else x
            parts.append(f'<text {anchor} y="{_HEIGHT + 11}">{text(bar.label)}</text>')
    box = f"0 0 {width} {_HEIGHT + (_LABELS if any(bar.label for bar in shown) else 1)}"
    description = text("; ".join([caption, *(bar.title for bar in shown if bar.height)][:_MOST_LISTED]))
    drawn = f'<svg class="bars" viewBox="{box}" role="img" aria-label="{description}">{"".join(parts)}</svg>'
    return f'{drawn}<p class="caption">{text(caption)}</p>'


def grid_url(levels: np.ndarray) -> str:
    """Draw a grid, each cell a pixel, as an address that holds the picture.

    Args:
        levels: how strong each cell is, from 0 to 1; NaN for one that stays empty.
    """
    alpha = np.where(np.isnan(levels), 0, np.round(70 + 185 * np.nan_to_num(levels))).astype(np.uint8)
    pixels = np.empty((*levels.shape, 4), np.uint8)
    pixels[..., :3], pixels[..., 3] = _COLOUR, alpha
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    size = struct.pack(">IIBBBBB", levels.shape[1], levels.shape[0], 8, 6, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, content) for kind, content in parts)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
