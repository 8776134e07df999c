"""The results as one HTML page: a matrix and findings, which a script draws from data in the page.

The results go into it as JSON in which no tag can start or end, and the script sets every text as text.
"""

from __future__ import annotations

import json
from dataclasses import replace
from string import Template

from eltwise.conformance.results import OUTCOMES, Results, TestResult
from eltwise.core.fields import plain
from eltwise.report import legend
from eltwise.report.base import asset, document
from eltwise.report.findings import findings

_SCRIPTS = ("records.js", "matrix.js", "opened.js", "page.js")


def page(results: Results, source: str = "results.json") -> str:
    """Make the page of some results; ``source`` names the results file in the commands that it shows."""
    content = Template(asset("conformance.html")).substitute(results=_embedded(_content(results, source)))
    return document("eltwise conformance", content, sheets=("conformance.css",), scripts=_SCRIPTS)


def _embedded(value: object) -> str:
    """JSON for a script element: without ``<`` no tag and no comment can start or end in it.

    >>> "<" in _embedded("</script>")
    False
    """
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def _content(results: Results, source: str) -> dict[str, object]:
    """Everything that the page's script reads."""
    indices = {test.key: index for index, test in enumerate(results.tests)}
    return {
        "summary": legend.summary(results),
        "facts": legend.facts(results),
        "source": source,
        "outcomes": [
            {"name": name, "mark": legend.SIGNS[name].mark, "meaning": legend.SIGNS[name].meaning} for name in OUTCOMES
        ],
        "runtimes": list(legend.runtimes_of(results.tests)),
        "ops": legend.operators_of(results.tests),
        "dtypes": legend.types_of(results.tests),
        "tests": [_shown(test) for test in results.tests],
        "findings": [
            {
                "outcome": finding.outcome,
                "title": finding.title,
                "sentences": finding.sentences,
                "tests": [indices[test.key] for test in finding.tests],
                "example": indices[finding.example.key],
            }
            for finding in findings(results)
        ],
    }


def _shown(test: TestResult) -> dict[str, object]:
    """A test result without the bits of its case, of which the page shows only the call."""
    fields = plain(replace(test, failing=None))
    call = legend.call_of(test)
    return {**fields, "explanation": test.explanation, **({"call": call} if call else {})}
