"""The file of known differences: what it does not name is reported, and so is what it names and no longer is so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import referee_results
from eltwise.conformance.known_file import write_known
from eltwise.conformance.results import Results
from eltwise.conformance.strict import check
from eltwise.core.errors import EltwiseError, FileFormatError

SATURATING = f"""
[[known]]
cells = ["saturating/*/*int8/*/[!b]*", "saturating/*/*int8/*/b-constant"]
verdict = "differs"
explanation = "{referee_results.SATURATES}"
reason = "8-bit results are clamped."
link = "https://example.org/1"
"""
OTHERS = """
[[known]]
cells = "./mine.py:run/*/bfloat16/*/*"
verdict = "refused"
reason = "There is no kernel."
link = "https://example.org/2"

[[known]]
cells = "fragile/Sub-[16]/*/legacy/dynamic"
verdict = "hung"
reason = "It waits."
link = "https://example.org/3"

[[known]]
cells = ["fragile/Sub-[16]/*/legacy/[!d]*"]
verdict = "crashed"
reason = "It falls."
link = "https://example.org/4"

[[known]]
cells = ["fragile/Sub-[16]/*/none/*"]
verdict = "accepted"
reason = "It takes everything."
link = "https://example.org/5"
"""


@pytest.fixture
def results() -> Results:
    return referee_results.results()


def written(tmp_path: Path, text: str) -> Path:
    place = tmp_path / "known.toml"
    place.write_text(text, encoding="utf-8")
    return place


def test_a_file_that_says_everything_leaves_nothing_to_report(results: Results, tmp_path: Path) -> None:
    assert check(results, written(tmp_path, SATURATING + OTHERS)) == []


def test_every_cell_that_no_entry_names_is_new(results: Results, tmp_path: Path) -> None:
    found = check(results, written(tmp_path, OTHERS))
    assert {surprise.cell.runtime for surprise in found} == {"saturating"}
    assert {surprise.kind for surprise in found} == {"new"}
    assert len(found) == sum(cell.verdict != "ok" for cell in results.cells if cell.runtime == "saturating")
    everything = check(results, written(tmp_path, ""))
    assert len(everything) == sum(cell.verdict != "ok" for cell in results.cells)


def test_an_entry_that_no_longer_differs_is_stale(results: Results, tmp_path: Path) -> None:
    mended = tuple(
        replace(cell, verdict="ok", explanation="") if cell.key == "saturating/Sub-14/int8/numpy/static" else cell
        for cell in results.cells
    )
    (surprise,) = check(replace(results, cells=mended), written(tmp_path, SATURATING + OTHERS))
    assert surprise.kind == "stale"
    assert surprise.text == (
        f"saturating/Sub-14/int8/numpy/static is right now; the file says differs: {referee_results.SATURATES} "
        "(8-bit results are clamped. https://example.org/1)"
    )


@pytest.mark.parametrize("change", [{"verdict": "crashed"}, {"explanation": "unexplained"}])
def test_a_cell_that_goes_wrong_in_another_way_is_reported(
    change: dict[str, str], results: Results, tmp_path: Path
) -> None:
    changed = tuple(
        replace(cell, **change) if cell.key == "saturating/Sub-14/int8/numpy/static" else cell  # type: ignore[arg-type]
        for cell in results.cells
    )
    (surprise,) = check(replace(results, cells=changed), written(tmp_path, SATURATING + OTHERS))
    assert (surprise.kind, surprise.cell.key) == ("stale", "saturating/Sub-14/int8/numpy/static")


def test_entries_about_cells_that_were_not_asked_are_passed_over(results: Results, tmp_path: Path) -> None:
    exact = tuple(cell for cell in results.cells if cell.runtime == "exact")
    assert check(replace(results, cells=exact), written(tmp_path, SATURATING + OTHERS)) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("known = 3", "field 'known' cannot be read, got 3"),
        ("[[know]]", "there is no table 'know'"),
        ("[[known]\n", "this is no TOML"),
        (SATURATING.replace("reason", "raison"), "there is no field 'raison'"),
        (SATURATING.replace("8-bit results are clamped.", " "), "entry 0: field 'reason' cannot be read"),
        (SATURATING.replace('link = "https://example.org/1"', ""), "field 'link' cannot be read, got nothing"),
        (SATURATING.replace('"differs"', '"ok"'), "allowed: one of refused, accepted, differs, hung, crashed"),
        (SATURATING.replace("saturating/*/*int8/*/b-constant", "saturating"), "RUNTIME/OPERATOR/TYPE/BROADCAST/PATH"),
        (SATURATING.replace('"differs"', "1979-05-27"), "field 'verdict' cannot be read, got date"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(text: str, sentence: str, results: Results, tmp_path: Path) -> None:
    with pytest.raises(EltwiseError, match=r"known\.toml") as caught:
        check(results, written(tmp_path, text))
    assert sentence in str(caught.value)


def test_a_missing_file_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="there is no such file"):
        check(results, tmp_path / "none.toml")


def test_the_first_file_names_what_is_not_right_and_nothing_else(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    write_known(results, path)
    assert check(results, path) == []
    wrong = [cell for cell in results.cells if cell.verdict != "ok"]
    assert len(wrong) > 100
    assert sum("/" in line for line in path.read_text().splitlines()) < len(wrong)
    # Each cell for itself: what becomes right is stale, what becomes wrong is new.
    for number in range(0, len(results.cells), 397):
        cells = list(results.cells)
        right = cells[number].verdict == "ok"
        changed = replace(cells[number], verdict="differs" if right else "ok", explanation="otherwise" if right else "")
        cells[number] = changed
        assert {(one.kind, one.cell) for one in check(Results(tuple(cells)), path)} == {
            ("new" if right else "stale", changed)
        }


def test_the_first_file_takes_any_name_and_any_words(results: Results, tmp_path: Path) -> None:
    strange = './m[1]*?"\\.py:run'
    said = "\x00\x1f\x7f\u2028'''\"\"\"\\ \N{GRINNING FACE} \ud800"
    cells = tuple(
        replace(cell, runtime=strange, message=said, verdict="refused", explanation="") for cell in results.cells[:3]
    )
    path = tmp_path / "known.toml"
    write_known(Results(cells), path)
    assert check(Results(cells), path) == []
    assert len(check(Results((replace(cells[0], runtime="./m1x.py:run"),)), path)) == 1
