"""Checked fields: values are read as they were written, and whatever else a file holds is one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.conformance.expected_failures import expected_text, read_expected
from eltwise.conformance.report import ConformanceReport, read_results
from eltwise.core.errors import EltwiseError
from eltwise.core.fields import Check, Form, Natural, from_json, from_toml, plain, read, toml_text
from eltwise.scale.checksum import crc32c
from eltwise.scale.delta_file import FOOTER, MAGIC, VERSION, Delta, DeltaTensor, open_delta
from eltwise.targets.rules import Rule, RuleSet, read_rules, runtimes_in, write_rules
from support import conformance_results


@dataclass(frozen=True)
class Inner:
    count: Natural
    name: str = "none"


@dataclass(frozen=True)
class Outer:
    items: tuple[Inner, ...]
    by_name: Mapping[str, Inner | None]
    level: Literal["low", "high"]
    flags: frozenset[str] = frozenset()
    attribute: int | str | tuple[int, ...] = 0
    bits: Annotated[int, Form(str, lambda text: int(text, 16), hex)] = 0
    even: Annotated[int, Check(lambda number: number % 2 == 0, "an even number")] = 0
    share: float | None = None


inners = st.builds(Inner, st.integers(0), st.text())
outers = st.builds(
    Outer,
    st.lists(inners).map(tuple),
    st.dictionaries(st.text(), inners | st.none()),
    st.sampled_from(["low", "high"]),
    st.frozensets(st.text()),
    st.integers() | st.text() | st.lists(st.integers()).map(tuple),
    st.integers(0),
    st.integers().map(lambda number: 2 * number),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)


@given(outers)
def test_what_is_written_is_read_as_the_same_value(value: Outer) -> None:
    assert read(Outer, json.loads(json.dumps(plain(value)))) == value
    assert from_json(Outer, json.dumps(plain(value)).encode(), "f") == value


@given(st.text() | st.integers(-(2**63), 2**63 - 1) | st.booleans())
def test_every_scalar_is_read_from_toml_as_it_was_written(value: object) -> None:
    assert from_toml(Mapping[str, object], f"a = {toml_text(value)}".encode(), "f") == {"a": value}  # type: ignore[type-abstract]


GOOD: dict[str, Any] = {"items": [{"count": 1}, {"count": 2}], "by_name": {"x": {"count": 3}}, "level": "low"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"items": [{"count": 1}, {"count": -1}]}, "f: items[1].count: this value cannot be read, got -1; allowed: an"),
        ({"items": [{"count": True}]}, "f: items[0].count: this value cannot be read, got True"),
        ({"items": [{}]}, "f: items[0].count: this value cannot be read, got nothing"),
        ({"items": {}}, "f: items: this value cannot be read, got an object; allowed: a list"),
        ({"items": [[]]}, "f: items[0]: this value cannot be read, got a list; allowed: an object"),
        ({"by_name": {"x": {"counts": 3}}}, "f: by_name.x: there is no field 'counts'; allowed: count, name; did you"),
        ({"level": "middle"}, "f: level: this value cannot be read, got 'middle'; allowed: one of low, high"),
        ({"level": ["low"]}, "f: level: this value cannot be read, got a list; allowed: one of low, high"),
        ({"even": 3}, "f: even: this value cannot be read, got 3; allowed: an even number"),
        ({"attribute": [1, "2"]}, "f: attribute[1]: this value cannot be read, got '2'; allowed: an integer"),
        ({"more": 1}, "f: there is no field 'more'"),
    ],
)
def test_an_error_names_the_file_the_path_and_what_is_allowed(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EltwiseError) as caught:
        from_json(Outer, json.dumps({**GOOD, **change}).encode(), "f")
    assert str(caught.value).startswith(sentence)


def results_data() -> bytes:
    results = conformance_results.results()
    return replace(results, tests=tuple(test for test in results.tests if test.example)[:2]).to_json().encode()


def expected_data() -> bytes:
    tests = tuple(test for test in conformance_results.results().tests if test.outcome != "ok")
    return expected_text(ConformanceReport(tests[:3])).encode()


def rules_data(path: Path) -> bytes:
    rule = Rule("wrong values", "saturation", {"op": frozenset({"Sub"}), "type": frozenset({"int8"})}, "a message")
    measured = frozenset({("Sub-14", "int8", "numpy")})
    write_rules(path, RuleSet("somewhere", "1", "machine", "2026-11-22", (8,), (14,), measured, (rule,)))
    return path.read_bytes()


def delta_data() -> bytes:
    tensor = DeltaTensor("x", "U8", (0,), 0, "added", 1, len(MAGIC), (), 0)
    header = json.dumps({"x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}).encode()
    return Delta((tensor,), ("y",), header).encoded()[: -FOOTER.size]


def read_delta(path: Path) -> None:
    text = path.read_bytes()
    path.write_bytes(MAGIC + text + FOOTER.pack(crc32c(text), VERSION, len(text), MAGIC))
    _delta, file = open_delta(path)
    file.bytes_at(0, 1)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Callable[[Path], object], bytes]]:
    return {
        "results.json": (read_results, results_data()),
        "expected.toml": (read_expected, expected_data()),
        "rules.toml": (
            lambda path: [read_rules(path, name) for name in runtimes_in(path)],
            rules_data(tmp_path_factory.mktemp("rules") / "rules.toml"),
        ),
        "delta.eltd": (read_delta, delta_data()),
    }


HOSTILE = [
    *(b"NaN", b"nan", b"1e999", b"-1", b"0.5", b"true", b"null", b"9" * 5000, b"18446744073709551616", b"1979-05-27"),
    *(b'"\\ud800"', b"\xff\xfe", b"\0", b'"' + b"x" * 5000 + b'"', b"[" * 100_000, b'{"a":' * 100_000, b"{a=" * 50_000),
    *(b"[]", b"{}", b"[[[]]]", b'{"a": 1, "a": 1}', b'"\x1b]0;PWN\x07"', '"\u202e"'.encode()),
]
NAMES = ["results.json", "expected.toml", "rules.toml", "delta.eltd"]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_read(
    name: str, readers: dict[str, tuple[Callable[[Path], object], bytes]], tmp_path: Path
) -> None:
    reader, data = readers[name]
    path = tmp_path / name
    path.write_bytes(data)
    reader(path)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_whatever_a_file_holds_is_read_or_refused_in_one_sentence_that_names_it(
    name: str, readers: dict[str, tuple[Callable[[Path], object], bytes]], data: st.DataObject, tmp_path_factory: Any
) -> None:
    """A stretch of a good file is replaced by something hostile, anywhere; or all of it."""
    reader, good = readers[name]
    path = tmp_path_factory.getbasetemp() / name
    start = data.draw(st.integers(0, len(good)))
    stop = data.draw(st.one_of(st.integers(start, min(len(good), start + 12)), st.just(len(good))))
    replacement = data.draw(st.sampled_from(HOSTILE) | st.binary(max_size=8))
    path.write_bytes(good[:start] + replacement + good[stop:])
    try:
        reader(path)
    except EltwiseError as error:
        sentence = str(error)
        assert sentence.startswith(str(path))
        assert sentence.isprintable()
        assert len(sentence) < len(str(path)) + 2000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value[:12]))
def test_each_hostile_value_in_place_of_a_file_is_refused(
    name: str, value: bytes, readers: dict[str, tuple[Callable[[Path], object], bytes]], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(value)
    with pytest.raises(EltwiseError) as caught:
        readers[name][0](path)
    assert str(caught.value).startswith(str(path))
