"""Findings for CI: as SARIF 2.1.0, which code hosts show beside a change, and as a summary in Markdown.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0, and what GitHub's code scanning requires of it.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal, Protocol
from urllib.parse import quote

from eltwise.core.errors import EltwiseError, counted
from eltwise.core.escaping import escape_lines, on_one_line, shortened, to_json
from eltwise.faults.families import FAMILIES
from eltwise.report.markdown import literal, markdown_table
from eltwise.version import VERSION

Level = Literal["error", "warning", "note"]

NOT_ESTABLISHED = "not_established"
_RULES = {
    NOT_ESTABLISHED: "whether the model computes the same could not be established",
    "changed": "the other model has another node or constant in its place",
    "overflow": "results leave the range of the narrower of two float types",
    "unstated": "results differ that no specification states",
    "fused": "nodes that are right one by one are wrong where a runtime computes them together",
}
"""Rules beside the families of faults."""

_MOST_ROWS = 50
_MOST_CHARACTERS, _LONGEST_CELL = 100_000, 500


@dataclass(frozen=True)
class Annotation:
    """A finding on a node or a model.

    Attributes:
        rule: the slug of a family of faults, or that of an error.
        level: how severe it is.
        message: a sentence.
        node: the name of the node; empty for the model.
    """

    rule: str
    level: Level
    message: str
    node: str = ""


class Annotated(Protocol):
    """A report that has findings for CI."""

    @property
    def is_good(self) -> bool:
        """Whether there is nothing to be done about it."""

    @property
    def summary(self) -> str:
        """The result in a line."""

    def annotations(self) -> Sequence[Annotation]:
        """Its findings."""


def of_error(error: EltwiseError) -> Annotation:
    """A problem of a model."""
    return Annotation(type(error).__name__, "error", str(error), error.node)


def sarif(report: Annotated, model: Path, command: str) -> str:
    """The findings of a report as SARIF.

    Args:
        report: the report.
        model: the file that it is about; its path is relative to the working folder, if it is in there.
        command: names the run, so that those of several models and runtimes do not replace each other.
    """
    annotations, name = report.annotations(), _relative(model)
    artifact = {"uri": name, "uriBaseId": "%SRCROOT%"}
    if PurePosixPath(name).parts[:1] in (("..",), ("/",)):  # SARIF has no steps out of a folder.
        artifact = {"uri": Path(os.path.realpath(model)).as_uri()}
    rules = list(dict.fromkeys(annotation.rule for annotation in annotations))
    described = [{"id": rule, "shortDescription": {"text": _text(_sentence(rule))}} for rule in rules]
    driver = {"name": "eltwise", "semanticVersion": VERSION, "rules": described}
    results = [_result(annotation, rules.index(annotation.rule), name, artifact) for annotation in annotations]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{command}/{name}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
    return to_json({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _sentence(slug: str) -> str:
    sentence = FAMILIES.get(slug) or _RULES.get(slug)
    return sentence or next((kind.__doc__ or slug for kind in _kinds(EltwiseError) if kind.__name__ == slug), slug)


def _kinds(kind: type[EltwiseError]) -> list[type[EltwiseError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


def _result(annotation: Annotation, index: int, name: str, artifact: dict[str, str]) -> dict[str, object]:
    physical = {"artifactLocation": artifact, "region": {"startLine": 1}}
    location: dict[str, object] = {"physicalLocation": physical}
    if annotation.node:
        location["logicalLocations"] = [{"name": on_one_line(annotation.node), "kind": "member"}]
    identity = hashlib.sha256(json.dumps([name, annotation.rule, annotation.node]).encode()).hexdigest()
    return {
        "ruleId": annotation.rule,
        "ruleIndex": index,
        "level": annotation.level,
        "message": {"text": _text(annotation.message)},
        "locations": [location],
        "partialFingerprints": {"eltwiseNode/v1": identity[:32]},
    }


def _relative(model: Path) -> str:
    """The path from the working folder, as a relative reference; of another drive the whole path."""
    path = os.path.relpath(model) if PurePath(model).drive == Path.cwd().drive else f"/{model}"
    return quote(os.fsencode(Path(path).as_posix()))


def _text(text: str) -> str:
    """A text without placeholders and links of SARIF."""
    return on_one_line(text).replace("{", "{{").replace("}", "}}").replace("](", "] (")


def markdown(report: Annotated, model: Path, command: str) -> str:
    """The findings of a report as Markdown, for the page of a CI job."""
    annotations = report.annotations()
    lines = [f"### {'✅' if report.is_good else '❌'} {_cell(command)}: {_cell(model.name)}", "", _cell(report.summary)]
    if annotations:
        shown = annotations[:_MOST_ROWS]
        cells = ((each.level, each.node or "the model", each.rule, each.message) for each in shown)
        lines += ["", *markdown_table(("", "node", "finding", ""), (tuple(map(_cell, row)) for row in cells))]
        if len(annotations) > _MOST_ROWS:
            lines += ["", f"and {counted(len(annotations) - _MOST_ROWS, 'finding')} more"]
    text = html.escape(shortened(escape_lines(str(report)), _MOST_CHARACTERS), quote=False)
    lines += ["", "<details><summary>Report</summary>", "", f"<pre>{text}</pre>", "", "</details>", "", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A text that Markdown shows as it is, if it is not too long for a page."""
    return literal(shortened(text, _LONGEST_CELL))
