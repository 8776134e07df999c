"""Findings for CI: SARIF as its specification requires it, Markdown that shows names as they are, and the commands."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.comparison.value_hypotheses import narrowings
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import EltwiseError, counted
from eltwise.core.escaping import on_one_line
from eltwise.faults.families import FAMILIES
from eltwise.report.annotations import Annotation, markdown, sarif
from eltwise.tracing.precision import CAUSES
from support.sarif import SARIF
from support.schemas import problems

Cli = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@dataclass(frozen=True)
class Report:
    """A report with findings."""

    found: Sequence[Annotation]
    is_good: bool = False
    summary: str = "2 findings"
    text: str = ""

    def __str__(self) -> str:
        return self.text

    def annotations(self) -> Sequence[Annotation]:
        return self.found


ANNOTATIONS = st.builds(
    Annotation,
    st.sampled_from(["saturation", "not_established", "changed", "fused", "overflow", "ShapeError"]),
    st.sampled_from(["error", "warning", "note"]),
    st.text(max_size=30),
    st.text(max_size=9),
)


def written(report: object, model: Path = Path("models/net.onnx")) -> dict[str, Any]:
    document = json.loads(sarif(report, model, "eltwise check"))
    assert problems(document, SARIF) == []
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert all(rule["shortDescription"]["text"] != rule["id"] for rule in rules)
    return run


@given(st.lists(ANNOTATIONS, max_size=5))
def test_sarif_is_as_its_specification_requires(found: list[Annotation]) -> None:
    run = written(Report(found))
    assert len(run["results"]) == len(found)
    fingerprints = {each["partialFingerprints"]["eltwiseNode/v1"] for each in run["results"]}
    assert len(fingerprints) == len({(each.rule, each.node) for each in found})
    for result, each in zip(run["results"], found, strict=True):
        nodes = [node["name"] for node in result["locations"][0].get("logicalLocations", [])]
        assert nodes == ([on_one_line(each.node)] if each.node else [])


def kinds(kind: type[EltwiseError] = EltwiseError) -> Iterator[type[EltwiseError]]:
    yield kind
    yield from chain.from_iterable(map(kinds, kind.__subclasses__()))


@pytest.mark.parametrize("kind", [*kinds()], ids=lambda kind: kind.__name__)
def test_the_sentence_of_an_error_is_that_of_its_kind(kind: type[EltwiseError]) -> None:
    document = json.loads(
        sarif(Report([Annotation(kind.__name__, "error", "text")]), Path("net.onnx"), "eltwise check")
    )
    (rule,) = document["runs"][0]["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == on_one_line(kind.__doc__ or "")


@pytest.mark.parametrize("element_type", TYPES, ids=str)
def test_every_rounding_that_is_a_cause_has_a_sentence(element_type: ElementType) -> None:
    causes = CAUSES | {hypothesis.cause for _digits, hypothesis in narrowings(element_type)}
    written(Report([Annotation(cause, "error", "text") for cause in sorted(causes)]))


def published_schema() -> Any:
    """The validator of the schema that OASIS publishes, whose licence does not let it lie here."""
    path = os.environ.get("ELTWISE_SARIF_SCHEMA")
    if not path:
        pytest.skip("ELTWISE_SARIF_SCHEMA names no copy of sarif-schema-2.1.0.json")
    jsonschema: Any = pytest.importorskip("jsonschema")
    return jsonschema.Draft4Validator(json.loads(Path(path).read_text(encoding="utf-8")))


@given(st.lists(ANNOTATIONS, max_size=5), st.sampled_from(["net.onnx", "a b/ä%#?.onnx", "a:b.onnx", "../net\n.onnx"]))
def test_sarif_fulfils_the_published_schema(found: list[Annotation], name: str) -> None:
    validator = published_schema()
    document = json.loads(sarif(Report(found), Path(name), "eltwise check"))
    assert list(validator.iter_errors(document)) == []
    for path in (("version",), ("runs", 0, "tool"), ("runs", 0, "tool", "driver", "name")):
        damaged = json.loads(json.dumps(document))
        parent = damaged
        for step in path[:-1]:
            parent = parent[step]
        del parent[path[-1]]
        assert list(validator.iter_errors(damaged)) != []


@given(st.lists(ANNOTATIONS, min_size=1, max_size=10), st.sampled_from((1, 7, 51)))
def test_markdown_has_a_line_for_each_finding_whatever_its_names_are(some: list[Annotation], times: int) -> None:
    found = some * times
    text = markdown(Report(found), Path("net|`<b>.onnx"), "check")
    rows = [line for line in text.split("\n") if line.startswith(("| error |", "| warning |", "| note |"))]
    assert len(rows) == min(len(found), 50)
    assert all(row.count("|") == 5 for row in rows)
    nodes = [row.split("|")[2].strip() for row in rows]
    assert all(shown == "the model" for shown, each in zip(nodes, found, strict=False) if not each.node)
    assert all(shown != "the model" for shown, each in zip(nodes, found, strict=False) if each.node)
    left = len(found) - len(rows)
    assert re.findall("^and (.*) more$", text, re.MULTILINE) == ([counted(left, "finding")] if left else [])
    assert "<b>" not in text
    assert text.endswith("</details>\n\n")


def test_paths_are_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for model, uri in ((tmp_path / "a b" / "net.onnx", "a%20b/net.onnx"), (Path("net.onnx"), "net.onnx")):
        (result,) = written(Report([Annotation("saturation", "error", "text", "node")]), model)["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    (result,) = written(Report([Annotation("saturation", "error", "text", "node")]), Path("../a b/net.onnx"))["results"]
    outside = {"uri": (tmp_path.parent.resolve() / "a b" / "net.onnx").as_uri()}
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == outside


def test_a_long_name_does_not_fill_the_page_of_a_job() -> None:
    found = [Annotation("saturation", "error", "<" * 100_000, "|" * 100_000)] * 60
    assert len(markdown(Report(found), Path("net.onnx"), "check")) < 1 << 20  # What GitHub takes.


@pytest.mark.parametrize(("pattern", "most"), [("<pre>(.*)</pre>", 100_000), (r"\| fused \| (.*) \|$", 500)])
def test_a_text_is_whole_up_to_a_length_and_shows_both_ends_beyond(pattern: str, most: int) -> None:
    for length in (most - 1, most, most + 1, 9 * most):
        long = f"a{'b' * (length - 2)}z"
        report = Report([Annotation("fused", "error", long, "node")], text=long)
        (shown,) = re.findall(pattern, markdown(report, Path("net.onnx"), "check"), re.MULTILINE)
        assert (shown[0], shown[-1], len(shown)) == ("a", "z", min(length, most))
        assert (shown == long) == (length <= most)


def test_a_summary_is_added_to_a_file_whatever_is_in_it(cli: Cli, tmp_path: Path) -> None:
    """Behind an empty line, since the HTML before it goes on up to one; a link is refused."""
    summary, link, model = tmp_path / "summary.md", tmp_path / "link.md", EXAMPLES / "networks" / "motion.onnx"
    summary.write_bytes(b"\xffbefore")
    os.link(summary, tmp_path / "opened.md")
    for _time in range(2):
        assert cli("check", model, "--markdown", summary)[0] == 0
    first, second, third = summary.read_bytes().split(b"\n\n### ")
    assert (first, second.rstrip() + b"\n") == (b"\xffbefore", third)
    assert (tmp_path / "opened.md").read_bytes() == summary.read_bytes()  # It is the same file.
    link.symlink_to(summary)
    code, _out, err = cli("check", model, "--markdown", link)
    assert (code, "this is a link, not a file; name the file itself" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "rules"),
    [
        pytest.param(
            ("check", "motion.onnx", "--target", "openvino", "--input", "frame=frame.npy"),
            1,
            {"wider_between_nodes"},
            marks=pytest.mark.slow,
        ),
        (("check", "motion.onnx", "--target", "openvino", "--no-run", "--severity", "refused"), 3, {"not_established"}),
        (("check", "motion.onnx"), 0, set()),
        pytest.param(
            ("trace", "motion.onnx", "--runtime", "openvino", "--against", "float64"),
            1,
            {"saturation"},
            marks=pytest.mark.slow,
        ),
        (("trace", "motion.onnx", "--runtime", "onnxruntime", "--against", "float64"), 0, set()),
    ],
    ids=["check", "check without a run", "problems", "trace", "trace that agrees"],
)
@pytest.mark.usefixtures("local_hosts")
def test_commands_write_both(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, rules: set[str]
) -> None:
    monkeypatch.chdir(EXAMPLES / "networks")
    files = "--sarif", tmp_path / "a.sarif", "--markdown", tmp_path / "summary"
    assert cli(*arguments, *files)[0] == cli(*arguments, *files)[0] == code
    document = json.loads((tmp_path / "a.sarif").read_text())
    assert problems(document, SARIF) == []
    (run,) = document["runs"]
    assert {each["ruleId"] for each in run["results"]} == rules <= FAMILIES.keys() | {"not_established"}
    assert {*map(_uri, run["results"])} <= {"motion.onnx"}
    assert (tmp_path / "summary").read_text().count("### ") == 2


def _uri(result: dict[str, Any]) -> object:
    return result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize("option", ["--sarif", "--markdown"])
@pytest.mark.parametrize("name", ["net.onnx", "weights.bin", "no/folder.sarif"])
def test_a_file_that_is_no_report_stays_as_it_is(cli: Cli, tmp_path: Path, option: str, name: str) -> None:
    model = tmp_path / "net.onnx"
    model.write_bytes((EXAMPLES / "networks" / "motion.onnx").read_bytes())
    (tmp_path / "weights.bin").write_bytes(b"\0\1")
    code, _out, err = cli("check", model, option, tmp_path / name)
    assert (code, "eltwise: " in err) == (2, True)
    assert (tmp_path / "weights.bin").read_bytes() == b"\0\1"
    assert model.read_bytes() == (EXAMPLES / "networks" / "motion.onnx").read_bytes()
