"""The benchmarks without their times: workloads, arrays, libraries that agree, and results that are not exact."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import functions
from benchmarks.limit import memory_limit
from benchmarks.measure import LIMIT, OWN, Row, measure
from benchmarks.peers import PEERS, Contestant, Refusal, adapter_of, installed, own
from benchmarks.picture import picture
from benchmarks.run import BENCHMARKS
from benchmarks.size_picture import size_picture
from benchmarks.tables import markdown
from benchmarks.tensors import Tensors, difference, expected_result, make_tensors, remark
from benchmarks.timing import in_turns, ratio
from benchmarks.workloads import SIZES, Workload, workloads
from eltwise.accuracy.programs import ORACLE_NAMES
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, ElementType

ROOT = Path(__file__).parents[2]
SMALL = Workload("small", FLOAT32, ((40, 30), (30,)))


def shrunk(workload: Workload) -> Workload:
    return replace(workload, shapes=tuple(tuple(min(size, 3) for size in shape) for shape in workload.shapes))


@pytest.mark.parametrize("group", {workload.group: None for workload in workloads(quick=False)})
def test_eltwise_is_exact_on_every_workload(group: str, seed: int) -> None:
    for workload in (each for each in workloads(quick=False) if each.group == group):
        small = shrunk(workload)
        tensors = make_tensors(small, seed)
        contestant = own(small, tensors, 2)
        tensors.poison()
        result = contestant.fetch(contestant.run())
        assert remark(small, result, expected_result(small, tensors), 1e-14) == "", workload


def test_a_wrong_reduction_is_found(seed: int) -> None:
    workload = next(each for each in workloads(quick=False) if each.is_reduction and each.axes == (0,))
    tensors = make_tensors(workload, seed)
    expected = expected_result(workload, tensors)
    wrong = expected.copy()
    wrong[3] *= 1 + 1e-9
    assert remark(workload, expected, expected, 1e-12) == ""
    assert remark(workload, wrong, expected, 1e-12) == "a result is off by 1e-09 of it"
    assert remark(workload, wrong[:1], expected, 1) == "got [1], expected [25]"


def test_workloads_are_distinct_and_fit_into_memory() -> None:
    rows = workloads(quick=False)
    assert len({(str(row), row.function, row.element_type, row.group) for row in rows}) == len(rows)
    assert all(row.bytes_moved < 3 << 30 for row in rows)
    assert Workload("outer", INT8, ((5, 1), (1, 7))).bytes_moved == 5 + 7 + 35


@pytest.mark.parametrize("order", ["contiguous", "transposed", "sliced"])
def test_arrays_are_the_same_for_a_seed(order: str, seed: int) -> None:
    workload = replace(SMALL, shapes=((40, 30), (40, 30)), order=order, element_type=BFLOAT16)  # type: ignore[arg-type]
    first, again = make_tensors(workload, seed), make_tensors(workload, seed)
    assert [array.tobytes() for array in first.operands] == [array.tobytes() for array in again.operands]
    assert first.operands[0].shape == (40, 30)
    assert first.are_contiguous == (order == "contiguous")


def test_one_wrong_bit_is_found(seed: int) -> None:
    tensors = make_tensors(SMALL, seed)
    right = expected_result(SMALL, tensors)
    wrong = right.copy()
    wrong.view(np.uint32)[3, 4] ^= 1
    assert difference(right, right) == ""
    assert difference(wrong, right).startswith("1 of 1,200 elements differ, first at index 94: got")
    assert "expected float32[40, 30]" in difference(right.reshape(30, 40), right)
    assert difference(np.array([-0.0], np.float32), np.array([0.0], np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PEERS if name != OWN])
def test_a_library_agrees_or_refuses(name: str, seed: int) -> None:
    if name not in installed():
        pytest.skip(f"{name} is not installed")
    timed = set()
    for template in workloads(quick=True):
        for element_type in (FLOAT32, FLOAT16):
            if template.element_type is not FLOAT32 or (element_type is FLOAT16 and template.function != "subtract"):
                continue  # Runtimes may keep float16 intermediates in float32.
            if (name, element_type) == ("numexpr", FLOAT16) or (name, template.function) == ("openvino", "divide"):
                continue  # numexpr promotes float16, and OpenVINO multiplies by the reciprocal.
            workload = replace(shrunk(template), element_type=element_type)
            tensors = make_tensors(workload, seed)
            try:
                contestant = PEERS[name](workload, tensors, 2)
            except Refusal:
                continue
            tensors.poison()
            assert difference(contestant.fetch(contestant.run()), expected_result(workload, tensors)) == "", workload
            timed.add((workload.function, workload.call))
    assert {("subtract", "out"), ("squared_difference", "out"), ("subtract", "allocate"), ("nested", "model")} <= timed


def test_who_differs_or_refuses_is_not_timed() -> None:
    def wrong(_workload: Workload, tensors: Tensors, _threads: int) -> Contestant:
        return Contestant("wrong", lambda: np.subtract(tensors.operands[1], tensors.operands[0]))

    def unable(_workload: Workload, _tensors: Tensors, _threads: int) -> Contestant:
        raise Refusal("no kernel")

    row = measure(SMALL, {OWN: own, "wrong": wrong, "unable": unable, "numpy": PEERS["numpy"]}, 1, 3, 0)
    assert set(row.seconds) == {OWN, "numpy"}
    assert row.best_peer == "numpy"
    assert row.remarks["wrong"].startswith("differs: ")
    assert row.remarks["unable"] == "refused: no kernel"


@pytest.mark.parametrize("right_runs", [0, 5])
def test_an_inexact_result_of_eltwise_has_no_times(right_runs: int) -> None:
    def planted(_workload: Workload, tensors: Tensors, _threads: int) -> Contestant:
        runs = iter(range(1_000_000))

        def run() -> np.ndarray:
            np.subtract(*tensors.operands, out=tensors.out)  # type: ignore[call-overload]
            if next(runs) >= right_runs:
                tensors.out.view(np.uint32)[7, 7] ^= 1
            return tensors.out

        return Contestant(OWN, run)

    row = measure(SMALL, {OWN: planted}, 1, 3, 0)
    assert "1 of 1,200 elements differ" in row.remarks[OWN]
    assert row.seconds == {}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_memory_limit_writes_the_whole_result(threads: int, seed: int) -> None:
    tensors = make_tensors(Workload("row", FLOAT32, ((64, 256), (256,))), seed)
    tensors.poison()
    memory_limit(tensors, threads)()
    a, out = (array.reshape(-1).view(np.uint32) for array in (tensors.operands[0], tensors.out))
    assert np.array_equal(out, a ^ (np.arange(out.size, dtype=np.uint32) // 16 * 64))


def test_the_picture_over_size_has_one_line_a_library() -> None:
    rows = [
        Row(workload, {OWN: 1e-7 * number, "numpy": 2e-7 * number, "a<b": 3e-7}, {"numpy": 2.0, "a<b": 3.0})
        for number, workload in enumerate(SIZES, start=1)
    ]
    drawn = size_picture(list(reversed(rows)))
    root = ElementTree.fromstring(drawn)  # noqa: S314 - made here
    lines = [path for path in root.iter("{http://www.w3.org/2000/svg}path") if "L" in path.get("d", "")]
    assert [len(path.get("d", "").split("L")) for path in lines] == [len(SIZES)] * 3
    assert "a&lt;b" in drawn
    with pytest.raises(ValueError, match="no workload"):
        size_picture([])


def test_the_picture_shows_the_rows_that_have_a_limit() -> None:
    row = Row(SMALL, {OWN: 1.0, "numpy": 2.0}, {"numpy": 2.0, LIMIT: 0.9})
    drawn = picture([row, Row(SMALL, {OWN: 1.0}, {})])
    assert drawn.count('<rect class="own"') == 2  # One row and the legend.
    assert "numpy" in drawn


@pytest.mark.slow
def test_the_command_prints_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", "operators", "--quick", "--json", "--only", "16 elements"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    report = json.loads(done.stdout)
    assert {row["workload"] for row in report["rows"]} == {"16 elements"}
    assert all(row["ratios"]["numpy"] > 0 for row in report["rows"])


def test_the_tables_name_the_rows_below_their_goal() -> None:
    times = {"fast": 1.0, "slow": 0.4}
    rows = [
        Row(replace(SIZES[3], element_type=kind), {OWN: 2.0, "numpy": 2 * times[name]}, {"numpy": times[name]})
        for name, kind in (("fast", FLOAT32), ("slow", FLOAT16))
    ]
    text = markdown([*rows, Row(SMALL, {OWN: 1.0}, {})])
    assert "| middle | never slower than the best other library | 2 | 0.63 | 10,000, same shape, allocated" in text
    assert "of float16 0.40" in text
    assert "| same shape | float16 | new | 0.40 |" in text
    large = Row(SIZES[-1], {OWN: 1.0, "numpy": 3.0}, {"numpy": 3.0, LIMIT: 0.9})
    assert "| 30,000,000 elements | a - b | float32 | 1e+06 | numpy | 3e+06 | 3.00 | 0.90 |" in markdown([large])


@pytest.mark.parametrize("element_type", [FLOAT32, BFLOAT16, FLOAT64], ids=str)
def test_a_function_is_timed_beside_numpy_where_it_is_the_same(
    element_type: ElementType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "installed", lambda: {"numpy": PEERS["numpy"]})
    for name in ORACLE_NAMES:
        x = functions.arguments_of(name, element_type, 40)
        names = [each.name for each in functions.contestants_of(name, element_type, x, 1)]
        assert names == [OWN, "numpy"] if name in ("Exp", "Acosh", "Tanh") else names[0] == OWN
    x = functions.arguments_of("Exp", element_type, 40)
    narrow = SimpleNamespace(exp=lambda x: np.exp(x.astype(np.float16)).astype(x.dtype))
    monkeypatch.setattr(adapter_of("numpy", 1), "library", narrow)
    assert len(functions.contestants_of("Exp", element_type, x, 1)) == 1 + (element_type is BFLOAT16)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603


def test_the_list_names_every_benchmark() -> None:
    with_main = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def main(" in path.read_text()} - {"run"}
    assert with_main == set(BENCHMARKS)
    assert all(f"  {name} " in run().stdout for name in BENCHMARKS)
    assert run("nothing").returncode == 2


def test_rows_that_changed_are_named_and_a_slower_one_fails(tmp_path: Path) -> None:
    def result(ratios: dict[str, float]) -> str:
        rows = [
            {"workload": name, "type": "float32", "best_peer": "numpy", "ratios": {"numpy": share}}
            for name, share in ratios.items()
        ]
        return json.dumps({"commit": f"c{len(ratios)}", "rows": rows})

    (tmp_path / "old.json").write_text(result({"slower": 2.0, "same": 1.0, "faster": 1.0}))
    (tmp_path / "new.json").write_text(result({"slower": 1.0, "same": 1.05, "faster": 1.5, "new": 3.0}))
    done = run("changes", str(tmp_path / "old.json"), str(tmp_path / "new.json"))
    lines = ["c3 -> c4", "  -50%  slower of float32", "  +50%  faster of float32"]
    assert (done.returncode, done.stdout.splitlines()) == (1, lines)
    same = run("changes", str(tmp_path / "old.json"), str(tmp_path / "old.json"))
    assert (same.returncode, same.stdout) == (0, "c3 -> c3\nno change\n")


def test_turns_are_warmed_up_and_ratios_are_of_times_in_the_same_round() -> None:
    calls: list[str] = []
    samples = in_turns({name: partial(calls.append, name) for name in "ab"}, 3)
    assert ("".join(calls), [len(samples[name]) for name in "ab"]) == ("abababab", [3, 3])
    assert ratio([2.0, 9.0, 1.0], [1.0, 3.0, 2.0]) == 2.0
