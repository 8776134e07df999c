"""What every report can do: be written as JSON or as a page, and show itself in a notebook."""

from __future__ import annotations

import math
from pathlib import Path

from eltwise.core.escaping import to_json
from eltwise.formats import files
from eltwise.report.base import document, part


class Written:
    """A report with fields and a page."""

    def fields(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        raise NotImplementedError

    def page_content(self) -> tuple[str, str]:
        """The title of its page, as text, and the content, as HTML."""
        raise NotImplementedError

    def to_json(self, path: Path | str | None = None) -> str:
        """The report as JSON, written to a file if one is named; what is not finite is a text such as ``"inf"``."""
        text = to_json(_finite(self.fields()), indent=2)
        if path is not None:
            files.write_text(Path(path), f"{text}\n")
        return text

    def to_html(self, path: Path | str | None = None) -> str:
        """The report as one page that needs nothing else, written to a file if one is named."""
        title, content = self.page_content()
        text = document(title, f"<main>\n{content}\n</main>")
        if path is not None:
            files.write_text(Path(path), text)
        return text

    def _repr_html_(self) -> str:
        """For notebooks."""
        return part(self.page_content()[1])


def _finite(value: object) -> object:
    """The same value with texts for what JSON has no number of.

    >>> _finite({"a": [1.5, float("inf")]})
    {'a': [1.5, 'inf']}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
