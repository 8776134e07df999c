"""A report that has a page of its own, which notebooks show, too."""

from __future__ import annotations

from eltwise.formats.reports import BaseReport, RecordT
from eltwise.report.base import document, part


class Written(BaseReport[RecordT]):
    """A report with a page."""

    def page_content(self) -> tuple[str, str]:
        """The title of its page, as text, and the content, as HTML."""
        raise NotImplementedError

    def _page(self) -> str:
        title, content = self.page_content()
        return document(title, f"<main>\n{content}\n</main>", scripts=("filter.js",))

    def _repr_html_(self) -> str:
        """For notebooks."""
        return part(self.page_content()[1])
