"""The parts that pages are made of, read as a browser would read them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.report.base import MOST_LISTED, document, fold, items, section, table
from eltwise.report.pictures import Bar, bars
from support import conformance_results

WORDS = st.text(st.characters(codec="ascii", exclude_categories=("Cc", "Zs")), min_size=1, max_size=8)


class Elements(HTMLParser):
    """The elements of some HTML in the order of their ends, each with its attributes and the text in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ended: list[tuple[str, dict[str, str | None], str]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("input", "link", "meta"):
            self._open.append((tag, dict(attrs), []))

    def handle_data(self, data: str) -> None:
        for _tag, _attributes, texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        name, attributes, texts = self._open.pop()
        assert name == tag
        self.ended.append((tag, attributes, "".join(texts)))

    def of(self, *tags: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for tag, attributes, text in self.ended if tag in tags]


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[WORDS] * width), min_size=2, max_size=5)))
def test_a_table_with_names_has_one_over_each_column_and_in_each_cell(rows: list[tuple[str, ...]]) -> None:
    names, *others = rows
    shown = Elements(table(others, names, ["kind"] * len(others)))
    assert [text for _none, text in shown.of("th")] == [*names]
    assert len(shown.of("thead")) == 1
    assert [attributes for attributes, _text in shown.of("table")] == [{"class": "wide"}]
    cells = [(attributes["data-name"], text) for attributes, text in shown.of("td")]
    assert cells == [pair for row in others for pair in zip(names, row, strict=True)]
    records = [attributes for attributes, _text in shown.of("tr") if attributes]
    assert records == [{"class": "record", "data-kind": "kind"}] * len(others)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[WORDS] * width), max_size=5)))
def test_a_table_without_names_has_the_name_of_each_row_in_its_first_cell(rows: list[tuple[str, ...]]) -> None:
    shown = Elements(table(rows))
    assert shown.of("thead") == []
    assert [attributes for attributes, _text in shown.of("table")] == [{}]
    assert [text for _none, text in shown.of("th")] == [row[0] for row in rows]
    assert shown.of("td") == [({}, cell) for row in rows for cell in row[1:]]


@given(st.integers(MOST_LISTED - 2, MOST_LISTED + 3))
def test_a_long_list_ends_with_how_many_are_left_out(count: int) -> None:
    for html, tag in ((items(range(count)), "li"), (table((number,) for number in range(count)), "tr")):
        shown = Elements(html)
        assert len(shown.of(tag)) == min(count, MOST_LISTED)
        left = [text for _attributes, text in shown.of("p")]
        assert left == ([f"... and {count - MOST_LISTED} more"] if count > MOST_LISTED else [])


@given(WORDS, st.booleans())
def test_a_part_has_only_the_attributes_that_it_was_made_with(name: str, is_open: bool) -> None:
    opened = {"open": None} if is_open else {}
    for made, attributes in (
        (fold("s", "c", is_open=is_open), {}),
        (fold("s", "c", is_open=is_open, name=name), {"id": name}),
        (fold("s", "c", is_open=is_open, kind="kind"), {"class": "record", "data-kind": "kind"}),
        (section("s", 1, "c", is_open=is_open), {}),
    ):
        ((actual, text),) = Elements(made).of("details")
        assert actual == attributes | opened
        assert text.startswith("s")
        assert text.endswith("c")


@pytest.mark.parametrize("count", [1, 2, 8, 64, 300])
@pytest.mark.parametrize("width", [250, 1000])
def test_bars_stand_on_one_line_with_their_labels_and_none_covers_another(count: int, width: int) -> None:
    heights = [(number % 11) / 10 for number in range(count)]
    labelled = [Bar(height, "", str(number)) for number, height in enumerate(heights)]
    shown = Elements(bars(labelled, "caption", width=width))
    drawn = [{name: float(number or 0) for name, number in each.items()} for each, _title in shown.of("rect")]
    assert [each["height"] for each in drawn] == [round(90 * height, 1) for height in heights if height]
    assert all(abs(each["y"] + each["height"] - 90) < 0.11 for each in drawn)
    begins = [each["x"] for each in drawn]
    assert all(each["x"] + each["width"] < end + 0.11 for each, end in zip(drawn, [*begins[1:], width], strict=False))
    assert all(each["width"] > 0 for each in drawn)
    step = width / max(count, 8)
    for number, (attributes, label) in enumerate(shown.of("text")):
        is_at_the_right = number * step > 0.8 * width
        begin = f"{(number + is_at_the_right) * step:.1f}"
        assert (label, attributes["x"]) == (str(number), begin)
        assert attributes.get("text-anchor") == ("end" if is_at_the_right else None)


def test_what_was_found_and_the_matrix_are_open_and_each_test_is_closed() -> None:
    elements = Elements(document(*conformance_results.results().page_content()))
    shown = [text for attributes, text in elements.of("details") if "open" in attributes]
    assert [text[:6] for text in shown] == ["Findin", "Matrix"]
