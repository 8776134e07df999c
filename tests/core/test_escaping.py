"""Values for terminals: nothing in them that is not printable, and JSON of the same value."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

import eltwise
from eltwise.core.escaping import LONGEST_LINE, as_lines, escape_lines, escaped, on_one_line, shortened, to_json

EVERY = "".join(map(chr, range(sys.maxunicode + 1)))
SPEAKING = "\x00\x07\b\t\r\x1b\x7f\x85\x90\x9b\x9c\x9d\x9f\u061c\u200b\u200e\u200f\u2028\u2029\ud800\udc9b\udfff\ufeff"
SPEAKING += "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))) + "\U000e0001\U000e0041"


def test_nothing_is_left_that_is_not_printable() -> None:
    assert escaped(EVERY).isprintable()
    assert escape_lines(EVERY).replace("\n", "", 1).isprintable()
    assert to_json(EVERY).isprintable()


@pytest.mark.parametrize("longest", range(7, 30))
def test_a_text_that_is_too_long_has_its_beginning_and_its_end(longest: int) -> None:
    for size in (longest - 1, longest, longest + 1, 3 * longest):
        text = "".join(chr(ord("A") + number) for number in range(size))
        start, dots, end = shortened(text, longest).partition("...")
        assert len(start + dots + end) == min(size, longest)
        assert (start + end == text) if size <= longest else (text.startswith(start) and text.endswith(end) and end)
    assert len(on_one_line("a" * 10**6)) == LONGEST_LINE


@pytest.mark.parametrize("sign", [*SPEAKING, "\n"], ids=ascii)
def test_what_speaks_to_a_terminal_is_escaped(sign: str) -> None:
    assert on_one_line(f"a{sign}b") == f"a{repr(sign)[1:-1]}b"
    assert as_lines([f"a{sign}b", "c"]) == f"a{repr(sign)[1:-1]}b\nc"
    assert sign not in to_json({f"a{sign}": [sign]})


def test_json_has_the_same_value() -> None:
    scalars = [*EVERY[:0xD800], *EVERY[0xE000:]]
    value = {"every": "".join(scalars), "half\udc9b": ["\ud800", 1.5, None, True], "é": "ü"}
    assert json.loads(to_json(value)) == json.loads(to_json(value, indent=2)) == value
    assert to_json({"é": "日本"}) == '{"é": "日本"}'


def test_no_text_is_cut_without_a_sign() -> None:
    """Where a hundred and more are left of something, it is a text, and ``shortened`` leaves dots."""
    cuts = [
        f"{path}:{node.lineno}"
        for path in Path(eltwise.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Slice) and isinstance(node.upper, ast.Constant) and int(node.upper.value) >= 100
    ]
    assert cuts == []
