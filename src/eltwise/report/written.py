"""A report that has a page of its own, which notebooks show, too."""

from __future__ import annotations

import os
from pathlib import Path

from eltwise.core.border import public
from eltwise.formats import files
from eltwise.formats.reports import BaseReport, RecordT
from eltwise.report.base import document, part


class Written(BaseReport[RecordT]):
    """A report with a page."""

    def page_content(self) -> tuple[str, str]:
        """The title of its page, as text, and the content, as HTML."""
        raise NotImplementedError

    @public
    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as one page that needs nothing else, written to a file if one is named."""
        title, content = self.page_content()
        text = document(title, f"<main>\n{content}\n</main>", scripts=("filter.js",))
        if path is not None:
            files.write_text(Path(path), text)
        return text

    def _repr_html_(self) -> str:
        """For notebooks."""
        return part(self.page_content()[1])
