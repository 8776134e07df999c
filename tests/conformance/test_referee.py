"""The referee is proved able to fail: planted runtimes, each in its own process, get their verdict and its cause."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from eltwise.conformance import runtimes
from eltwise.conformance.cells import Cell
from eltwise.conformance.process import Process
from eltwise.conformance.questions import Subject, groups, subjects
from eltwise.conformance.referee import Selection, Settings, judge_all
from eltwise.conformance.results import Results, results_text
from eltwise.conformance.results_reader import read_results
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError

PLANTED = str(Path(__file__).parents[1] / "planted.py")


def quiet(_done: int, _count: int, _text: str) -> None:
    """Hear of the progress and say nothing."""


def judged(
    function: str, op: str = "Sub-14", type_: str = "uint8", rule: str = "", limit: float = 20.0, paths: str = ""
) -> list[Cell]:
    runtime = runtimes.find(function if function in runtimes.BY_NAME else f"{PLANTED}:{function}")
    rules, chosen = (rule,) if rule else (), tuple(paths.split())
    selection = Selection((runtime,), (op,), (type_,), rules, chosen)
    outcome = judge_all(selection, Settings("quick", 0, limit, 1), quiet)
    assert outcome.not_started == {}
    assert not outcome.results.interrupted
    return list(outcome.results.cells)


def one(function: str, op: str = "Sub-14", type_: str = "uint8", rule: str = "", limit: float = 20.0) -> Cell:
    (cell,) = judged(function, op, type_, rule, limit)
    assert cell.path == "call"
    return cell


@pytest.mark.parametrize(
    ("function", "op", "type_", "rule", "explanation"),
    [
        ("saturating", "Sub-14", "uint8", "", "saturation"),
        ("saturating", "Subtract-1", "int8", "none", "saturation"),
        ("computing_in_float32", "Sub-7", "float64", "", "float32 arithmetic"),
        ("ignoring_axis", "Sub-6", "int32", "", "axis ignored"),
        ("ignoring_axis", "Subtract-1", "float32", "pdpd", "axis ignored"),
        ("flushing_subnormals", "Sub-14", "bfloat16", "", "subnormal results flushed"),
        ("flushing_subnormals", "Mul-14", "float32", "", "subnormal results flushed"),
        ("adding_no_zeros", "Add-14", "float32", "", "zeros not added"),
        ("flushing_before_rounding", "Mul-14", "float32", "", "subnormal results flushed before rounding"),
        ("swapping_operands", "Sub-14", "int32", "", "operands swapped"),
        ("losing_the_sign_of_zero", "Sub-14", "float16", "", "sign of zero lost"),
        ("rounding_once", "SquaredDifference-1", "float16", "numpy", "float32 arithmetic"),
    ],
)
def test_a_known_deviation_is_named(function: str, op: str, type_: str, rule: str, explanation: str) -> None:
    cell = one(function, op, type_, rule)
    assert cell.verdict == "differs"
    assert explanation in cell.explanation
    assert "unexplained" not in cell.explanation
    assert 0 < cell.wrong < cell.total
    assert cell.example is not None
    assert cell.example.expected != cell.example.got
    assert cell.version.startswith("1.2 (file ")


def test_one_wrong_pair_of_one_type_is_found_shown_alone_and_not_explained_away() -> None:
    cell = one("off_by_one_at_one_pair")
    assert (cell.verdict, cell.explanation) == ("differs", "unexplained")
    assert cell.example is not None
    assert (cell.example.a.value, cell.example.b.value) == ("200", "13")
    assert (cell.example.expected, cell.example.got) != (None, None)
    assert cell.case is not None
    assert cell.case.a.shape == cell.case.b.shape == (1,)
    assert one("off_by_one_at_one_pair", type_="int8").verdict == "ok"


@pytest.mark.parametrize(
    ("function", "op", "type_", "explanation"),
    [
        ("widening", "Sub-7", "float16", "wrong type"),
        ("giving_lists", "Sub-7", "float32", "wrong type"),
        ("losing_a_dimension", "Sub-7", "float32", "wrong shape"),
    ],
)
def test_right_values_in_the_wrong_type_or_shape_differ(function: str, op: str, type_: str, explanation: str) -> None:
    cell = one(function, op, type_)
    assert (cell.verdict, cell.explanation) == ("differs", explanation)
    assert cell.wrong > 0


def test_a_refusal_is_told_in_the_runtimes_own_words() -> None:
    cell = one("raising")
    assert (cell.verdict, cell.explanation) == ("refused", "")
    assert "there is no kernel for this" in cell.message
    assert cell.wrong == cell.total > 10
    assert cell.case is not None


def test_what_works_in_part_says_how_much() -> None:
    cell = one("refusing_scalars", type_="float32")
    assert cell.verdict == "refused"
    assert 0 < cell.wrong < cell.total
    assert "no scalars here" in cell.message
    assert "ok" in cell.message


def test_what_must_be_refused_is_found_where_it_is_taken() -> None:
    cell = one("taking_any_shape", "Sub-7", "float32")
    assert (cell.verdict, cell.explanation) == ("accepted", "")
    assert cell.example is None or cell.example.expected is None
    assert 0 < cell.wrong == cell.total
    cell = one("broadcasting_without_leave", "Sub-6", "float32")
    assert cell.verdict in ("accepted", "differs")


@pytest.mark.parametrize(
    ("function", "words"), [("leaving", "exit code 3: out of order"), ("reading_nothing", "SIGSEGV")]
)
def test_a_crash_is_a_verdict_and_the_run_goes_on(function: str, words: str) -> None:
    cells = judged(function, "Subtract-1", "uint4")
    assert [cell.broadcast for cell in cells] == ["none", "numpy", "pdpd"]
    for cell in cells:
        if function == "leaving" and cell.broadcast == "none" and cell.verdict != "crashed":
            continue
        assert cell.verdict == "crashed"
        assert words in cell.message
        assert cell.wrong <= cell.total
        assert "not asked" in cell.message


def test_a_crash_on_every_call_has_a_case_that_is_small_enough_to_keep() -> None:
    (cell,) = judged("reading_nothing", "Sub-14", "float32")
    assert cell.verdict == "crashed"
    assert cell.case is not None
    assert cell.case.a.shape == (1,)
    assert "in one model" not in cell.message


def test_what_a_runtime_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "child"
    monkeypatch.setenv("PLANTED_CHILD", str(said))
    assert one("computing_beside_a_child").verdict == "ok"
    deadline = time.monotonic() + 10
    while _is_running(int(said.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(int(said.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="this system does not tell children of their parent's end")
def test_a_runtime_ends_when_the_referee_is_killed() -> None:
    code = (
        "from eltwise.conformance import runtimes; from eltwise.conformance.process import Process\n"
        f"process = Process(runtimes.find({f'{PLANTED}:exact'!r}), 20.0); process.version()\n"
        "print(process._running.pid, flush=True); input()"
    )
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as referee:
        assert referee.stdout is not None
        number = int(referee.stdout.readline())
        assert _is_running(number)
        referee.kill()
    deadline = time.monotonic() + 10
    while _is_running(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(number)


def _is_running(number: int) -> bool:
    """Whether a process lives; one that has ended and waits to be asked for its exit code does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_words_that_are_no_text_are_told_all_the_same() -> None:
    cell = one("raising_foreign_words")
    assert cell.verdict == "refused"
    assert "caf\\udce9" in cell.message
    results_text(Results((cell,))).encode()


def test_another_file_is_another_version(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "from __future__ import annotations\nfrom dataclasses import KW_ONLY, dataclass\n"
    text += "@dataclass\nclass Options:\n    _: KW_ONLY\n    scale: int = 1\n"
    text += "def run(op, a, b, **attributes):\n    return a - b * Options().scale\n"
    file.write_text(text)
    selection = Selection((runtimes.find(f"{file}:run"),), ("Sub-7",), ("int32",), (), ("call",))
    known = judge_all(selection, Settings("quick", processes=1), quiet).results
    assert known.cells[0].verdict == "accepted"  # It broadcasts and subtracts whatever it gets.
    assert judge_all(selection, Settings("quick", processes=1), quiet, known).results.cells == known.cells
    file.write_text(text.replace("= 1", "= 2"))
    with pytest.raises(FileFormatError, match="another version of"):
        judge_all(selection, Settings("quick", processes=1), quiet, known)


def test_a_crash_that_comes_later_is_blamed_on_what_caused_it() -> None:
    cells = judged("breaking_its_memory", "Subtract-1", "uint4")
    assert [(cell.broadcast, cell.verdict) for cell in cells] == [("none", "ok"), ("numpy", "crashed"), ("pdpd", "ok")]
    (cell,) = (cell for cell in cells if cell.verdict == "crashed")
    assert (cell.wrong, cell.case is not None) == (1, True)
    assert cell.case is not None
    assert (cell.case.a.shape, cell.case.b.shape) == ((2, 0, 3), (1, 1, 3))
    assert "it answered, and then the process ended with SIGABRT" in cell.message
    assert "not asked" not in cell.message


def test_a_hang_is_a_verdict_and_the_run_goes_on() -> None:
    cells = judged("hanging", "Subtract-1", "uint4", limit=0.5)
    by_rule = {cell.broadcast: cell for cell in cells}
    assert by_rule["numpy"].verdict == "hung"
    assert "within 0.5 seconds" in by_rule["numpy"].message
    assert by_rule["numpy"].case is not None
    assert by_rule["numpy"].case.a.shape == (3, 3)
    assert by_rule["none"].verdict == "ok"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the mode is set by number")
def test_a_changed_floating_point_mode_is_found_after_right_values() -> None:
    cell = one("rounding_up_afterwards", "Sub-7", "int32")
    assert (cell.verdict, cell.explanation) == ("differs", "changed floating-point mode")
    assert "rounded up" in cell.message
    assert "of" in cell.message


@pytest.mark.parametrize("function", ["exact", "printing", "writing_into_operands"])
def test_a_right_runtime_is_right(function: str) -> None:
    cell = one(function, "Sub-6", "int32")
    assert cell.verdict == "ok", cell
    assert cell.wrong == 0
    assert cell.total > 20
    assert cell.example is None


@pytest.mark.parametrize("name", ["eltwise", "eltwise-numpy"])
def test_eltwise_is_a_runtime_like_every_other(name: str) -> None:
    cells = judged(name, "Subtract-1", "float16", "pdpd")
    assert {cell.path for cell in cells} == set(runtimes.BY_NAME[name].paths)
    assert [cell for cell in cells if cell.verdict != "ok"] == []


def test_a_runtime_that_cannot_be_started_is_said() -> None:
    for function in ("no_such_function", "no_function"):
        runtime = runtimes.find(f"{PLANTED}:{function}")
        outcome = judge_all(Selection((runtime,), ("Sub-7",), ("int32",)), Settings("quick"), quiet)
        assert outcome.results.cells == ()
        assert f"there is no function '{function}'" in outcome.not_started[runtime.name]


def test_names_are_known_or_refused_with_the_nearest() -> None:
    with pytest.raises(EltwiseError, match="did you mean 'onnxruntime'"):
        runtimes.find("onnxruntim")
    with pytest.raises(FileFormatError, match="there is no such file"):
        runtimes.find("./no_such_file.py:run")
    missing = runtimes.Runtime("x", "x:X", ("no_such_package",))
    assert not missing.is_installed


def test_a_run_goes_on_from_what_is_known(tmp_path: Path) -> None:
    runtime = runtimes.find(f"{PLANTED}:exact")
    settings = Settings("quick", 3, processes=1)
    first = judge_all(Selection((runtime,), ("Sub-7",), ("int32",)), settings, quiet).results
    file = tmp_path / "results.json"
    file.write_text(results_text(first), encoding="utf-8")
    asked: list[str] = []
    known = read_results(file)
    more = Selection((runtime,), ("Sub-7",), ("int32", "int64"))
    second = judge_all(more, settings, lambda _done, _count, text: asked.append(text), known).results
    assert [text.split("/")[-3] for text in asked] == ["int64"]
    assert [cell.dtype for cell in second.cells] == ["int32", "int64"]
    with pytest.raises(FileFormatError, match="another seed"):
        judge_all(more, Settings("quick", 4), quiet, known)
    with pytest.raises(FileFormatError, match="another extent"):
        judge_all(more, Settings("thorough", 3), quiet, known)
    older = json.loads(file.read_text(encoding="utf-8"))
    older["cells"][0]["version"] = "0.9"
    file.write_text(json.dumps(older), encoding="utf-8")
    with pytest.raises(FileFormatError, match="another version"):
        judge_all(more, settings, quiet, read_results(file))


def test_an_interrupt_keeps_what_is_there() -> None:
    runtime = runtimes.find(f"{PLANTED}:exact")
    selection = Selection((runtime,), ("Sub-7", "Sub-14"))

    def interrupt(done: int, _count: int, _text: str) -> None:
        if done == 3:
            os.kill(os.getpid(), 2)

    results = judge_all(selection, Settings("quick", processes=1), interrupt).results
    assert results.interrupted
    assert 3 <= len(results.cells) < len(list(selection.jobs()))
    assert {cell.verdict for cell in results.cells} == {"ok"}


def test_the_same_seed_asks_the_same() -> None:
    subject = next(subject for subject in subjects() if str(subject) == "Sub-6/float32/legacy")
    one, other = (bits_of_groups(subject, seed) for seed in (1, 2))
    groups.cache_clear()
    assert bits_of_groups(subject, 1) == one
    assert one != other


def bits_of_groups(subject: Subject, seed: int) -> list[bytes]:
    made = groups(subject, "static", "quick", seed, True)
    return [array.tobytes() for group in made for case in group for array in (case.a, case.b)]


def test_every_subject_is_asked_what_works_and_what_must_be_refused() -> None:
    for subject in subjects():
        if subject.element_type.name != "float32":
            continue
        cases = [case for group in groups(subject, "static", "quick", 0, True) for case in group]
        shapes = {(case.a.shape, case.b.shape) for case in cases if case.works}
        assert len(shapes) >= (3 if subject.rule == "none" else 9), subject
        assert max(case.a.ndim for case in cases) >= 12
        assert any(case.a.dtype != case.b.dtype for case in cases)
        foreign = [case for case in cases if set(dict(case.attributes)) - set(subject.schema.attribute_names)]
        assert foreign or subject.schema.domain == "openvino" or subject.schema.version == 1, subject


def test_a_process_is_replaced_after_it_ended() -> None:
    subject = next(subject for subject in subjects() if str(subject) == "Sub-7/int32/numpy")
    case = groups(subject, "call", "quick", 0, False)[0][0]
    with Process(runtimes.find(f"{PLANTED}:reading_nothing"), 20.0) as process:
        for _time in range(2):
            (answer,) = process.ask("call", [[case]])
            assert answer.kind == "crashed"
    with Process(runtimes.Runtime("x", "no_such_module:X"), 20.0) as process, pytest.raises(UnsupportedError):
        process.version()


def test_frames_that_are_no_frames_are_refused() -> None:
    from eltwise.conformance import wire

    message = wire.Message({"kind": "result"}, (np.arange(6, dtype=np.int16).reshape(2, 3),))
    data = wire.encode(message)
    head, body = wire.lengths(data[:8])
    again = wire.decode(data[8 : 8 + head], data[8 + head :])
    assert again.fields == message.fields
    assert np.array_equal(again.arrays[0], message.arrays[0])
    assert len(data) == 8 + head + body
    for head_bytes, body_bytes in (
        (b"{}", b""),
        (b"[]", b""),
        (b"nonsense", b""),
        (b'{"arrays": [{"dtype": "int16", "shape": [3]}]}', b"1234"),
        (b'{"arrays": [{"dtype": "int16", "shape": [-1]}]}', b"1234"),
        (b'{"arrays": [{"dtype": "string", "shape": [1]}]}', b"1234"),
        (b'{"arrays": [{"dtype": "int99", "shape": [1]}]}', b"1234"),
    ):
        with pytest.raises(FileFormatError):
            wire.decode(head_bytes, body_bytes)
    with pytest.raises(FileFormatError):
        wire.lengths(b"\xff" * 8)
