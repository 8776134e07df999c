"""What every page has in common: one skeleton, one style, one script, one way to escape.

A page asks the network for nothing. The style is in ``assets/base.css``; all rules are nested below the class
``eltwise``, so that it serves a part of a notebook and leaves the rest of it alone.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files as package_files
from string import Template

from eltwise.core.escaping import on_one_line
from eltwise.formats.reports import BaseReport, RecordT

MOST_LISTED = 5000
"""So many lines of a list or a table are shown."""

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body class="eltwise">
<main>
$content
</main>
<script>$script</script>
</body>
</html>
""")


def document(title: str, content: str) -> str:
    """Make a page of its title, as text, and what it holds, as HTML."""
    style, script = _style(), asset("filter.js")
    return _PAGE.substitute(
        policy=f"default-src 'none'; style-src 'sha256-{_hash(style)}'; script-src 'sha256-{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        title=text(title),
        style=style,
        content=content,
        script=script,
    )


def part(content: str) -> str:
    """Make a part of another page, such as a notebook, with its style."""
    return f'<div class="eltwise"><style>{_style()}</style>{content}</div>'


def asset(name: str) -> str:
    """Read a file of this package."""
    return (package_files("eltwise.report") / "assets" / name).read_text(encoding="utf-8")


def _style() -> str:
    return f".eltwise {{\n{asset('base.css')}}}\n"


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


class Html(str):
    """A text whose markup is meant."""

    __slots__ = ()


def text(value: object) -> str:
    r"""A text as HTML in which nothing is markup but that of ``Html``, on one line.

    >>> text("<b>\t")
    '&lt;b&gt;\\t'
    """
    return value if isinstance(value, Html) else escape(on_one_line(str(value)))


def head(title: str, sentences: Iterable[str], known: Iterable[tuple[str, object]]) -> str:
    """The heading of a page, what was found, and a line of facts."""
    lines = "".join(f'<p class="lead">{text(sentence)}.</p>\n' for sentence in sentences)
    shown = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in known)
    return f'<h1>{text(title)}</h1>\n{lines}<dl class="facts">{shown}</dl>'


def table(rows: Iterable[Iterable[object]], columns: Iterable[str] = (), kinds: Iterable[str] = ()) -> str:
    """A table of texts; without names of columns the first cell of a row is its name.

    Args:
        rows: the texts of each row.
        columns: their names; in a narrow window each text has its name beside it.
        kinds: for records, which a filter may hide: the kind of each row.
    """
    shown, names, classes = list(rows), list(columns), iter(kinds)
    top = "".join(f"<th>{text(name)}</th>" for name in names)
    above = f"<thead><tr>{top}</tr></thead>" if names else ""
    lines = (_row(row, names, next(classes, "")) for row in shown[:MOST_LISTED])
    wide = ' class="wide"' if names else ""
    return f"<table{wide}>{above}<tbody>{''.join(lines)}</tbody></table>{more(len(shown))}"


def _row(row: Iterable[object], names: Sequence[str], kind: str) -> str:
    cells = list(map(text, row))
    if names:
        shown = "".join(f'<td data-name="{text(name)}">{cell}</td>' for name, cell in zip(names, cells, strict=True))
    else:
        shown = f"<th>{cells[0]}</th>{''.join(f'<td>{cell}</td>' for cell in cells[1:])}"
    return f'<tr class="record" data-kind="{kind}">{shown}</tr>' if kind else f"<tr>{shown}</tr>"


def filters(kinds: Mapping[str, str]) -> str:
    """A field and a choice that leave those records that have a text and a kind; without a script they are hidden.

    Args:
        kinds: those of the records, with what the choice calls them.
    """
    chosen = "".join(f'<option value="{text(kind)}">{text(name)}</option>' for kind, name in kinds.items())
    return (
        '<div class="filters" hidden><input type="search" aria-label="text" placeholder="filter by text">'
        f'<select aria-label="kind"><option value="">all</option>{chosen}</select><output class="soft"></output></div>'
    )


def items(texts: Iterable[object]) -> str:
    """A list of texts."""
    shown = list(texts)
    return f"<ul>{''.join(f'<li>{text(one)}</li>' for one in shown[:MOST_LISTED])}</ul>{more(len(shown))}"


def more(count: int) -> str:
    """How many of so many are not shown."""
    left = count - MOST_LISTED
    return f'<p class="soft">... and {left:,} more</p>' if left > 0 else ""


def fold(summary: str, content: str, *, is_open: bool = False, kind: str = "", name: str = "") -> str:
    """A part that opens and closes.

    Args:
        summary: what is always shown, as HTML.
        content: the rest, as HTML.
        is_open: whether it is open at first.
        kind: of a record, which a filter may hide.
        name: what an address calls it.
    """
    named = f' id="{text(name)}"' if name else ""
    record = f' class="record" data-kind="{kind}"' if kind else ""
    opened = " open" if is_open else ""
    return f'<details{named}{record}{opened}><summary>{summary}</summary><div class="inside">{content}</div></details>'


def section(title: str, count: int, content: str, *, is_open: bool = False) -> str:
    """A part of a page that opens and closes, with the number of its records.

    Args:
        title: as text.
        count: how many records it has.
        content: the records, as HTML.
        is_open: whether it is open at first.
    """
    return fold(f"<b>{text(title)}</b> {count:,}", f"<div>{content}</div>", is_open=is_open)


class Written(BaseReport[RecordT]):
    """A report with a page."""

    def page_content(self) -> tuple[str, str]:
        """The title of its page, as text, and the content, as HTML."""
        raise NotImplementedError

    def _page(self) -> str:
        return document(*self.page_content())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return part(self.page_content()[1])
