"""The benchmark, all but its times: workloads, tensors, peers that agree, refusals, and the memory limit."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from eltwise.bench import limit, peers
from eltwise.bench.contestants import OWN, Peer, Ready, Refusal, own_contestants
from eltwise.bench.limit import LIMIT, limit_contestant, phases
from eltwise.bench.measuring import Settings, measure_row
from eltwise.bench.tensors import ALIGNMENT, Tensors, make_tensors, numpy_result, objection, oracle_objection
from eltwise.bench.workloads import ANY_PEER, OWN_OUT, TWELVE_TYPES, Target, Workload, workloads
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, UINT8

SHORT = Settings(rounds=3, seconds=0.0)
SMALL = Workload("a-b", FLOAT32, ((40, 30), (30,)), targets=(Target(ANY_PEER, 1.15),), least_share=0.8)


def small_like(workload: Workload) -> Workload:
    """The same workload with at most three elements a dimension."""
    return replace(workload, shapes=tuple(tuple(min(size, 3) for size in shape) for shape in workload.shapes))


@pytest.mark.parametrize("quick", [True, False])
def test_the_workloads_are_those_of_the_table(quick: bool) -> None:
    rows = workloads(quick)
    assert len(TWELVE_TYPES) == 12
    same = [row for row in rows if row.name == "a-b"]
    assert {row.element_type for row in same} == set(TWELVE_TYPES)
    assert all(16e6 <= prod(row.result_shape) <= 68e6 for row in same)
    assert {row.formula for row in rows} == {"subtract", "squared_difference", "nested"}
    assert {row.call for row in rows} == {"out", "allocate", "model"}
    assert {row.layout for row in rows} == {"plain", "transposed", "sliced"}
    assert all(row.moved_bytes < 3 * 2**30 for row in rows)
    assert len({(row.name, row.element_type) for row in rows}) == len(rows)


def test_bytes_are_each_operand_once_and_the_result() -> None:
    workload = Workload("outer", UINT8, ((5, 1), (1, 7)))
    assert workload.result_shape == (5, 7)
    assert workload.moved_bytes == 5 + 7 + 35


@pytest.mark.parametrize("workload", [*workloads(quick=False)], ids=lambda row: f"{row.name} {row.element_type}")
def test_own_calls_give_the_exact_result(workload: Workload, seed: int) -> None:
    small = small_like(workload)
    tensors = make_tensors(small, seed)
    expected = numpy_result(small.formula, tensors.operands)
    assert oracle_objection(small.formula, tensors.operands, expected, seed) == ""
    for own in own_contestants(small, tensors):
        tensors.spoil_out()
        assert objection(own.fetch(own.run()), expected) == ""


@pytest.mark.parametrize("layout", ["plain", "transposed", "sliced"])
def test_tensors_are_aligned_finite_and_the_same_for_a_seed(layout: str, seed: int) -> None:
    workload = replace(SMALL, shapes=((40, 30), (40, 30)), layout=layout, element_type=BFLOAT16)
    first, again = make_tensors(workload, seed), make_tensors(workload, seed)
    for array, other in zip(first.operands, again.operands, strict=True):
        assert array.shape == (40, 30)
        assert array.ctypes.data % ALIGNMENT == 0
        assert np.isfinite(array.astype(np.float32)).all()
        assert array.tobytes() == other.tobytes()
    assert first.out.ctypes.data % ALIGNMENT == 0
    assert first.are_contiguous == (layout == "plain")


def test_the_judgement_finds_one_wrong_bit(seed: int) -> None:
    tensors = make_tensors(SMALL, seed)
    right = numpy_result("subtract", tensors.operands)
    wrong = right.copy()
    wrong.view(np.uint32)[3, 4] ^= 1
    assert objection(right, right) == ""
    assert objection(wrong, right).startswith("1 of 1,200 elements differ, first at 94: got")
    assert "expected float32[40, 30]" in objection(right.reshape(30, 40), right)
    assert "got float64" in objection(right.astype(np.float64), right)
    swapped = np.asarray(tensors.operands[1] - tensors.operands[0])
    assert "differ from the oracle" in oracle_objection("subtract", tensors.operands, swapped, seed)
    assert "differ from the oracle" in oracle_objection("squared_difference", tensors.operands, right, seed)


def test_minus_zero_is_another_result() -> None:
    assert objection(np.float32([-0.0]), np.float32([0.0]))


def agreed(peer: Peer) -> list[Workload]:
    """What a peer must do exactly or refuse: the measurement itself finds where peers are known to differ."""
    types = [FLOAT32, FLOAT16, BFLOAT16, INT8]
    if peer.name == "openvino":
        types.remove(INT8)  # Its CPU plugin saturates or widens 8-bit types.
    templates = [row for row in workloads(quick=True) if row.element_type is FLOAT32]
    # Runtimes keep the difference of half-precision numbers in float32 for the next step, and round only once.
    return [
        replace(small_like(row), element_type=element_type)
        for row in templates
        for element_type in types
        if row.formula == "subtract" or element_type in (FLOAT32, INT8)
    ]


@pytest.mark.parametrize("peer", peers.ALL, ids=lambda peer: peer.name)
def test_a_peer_agrees_or_refuses(peer: Peer, seed: int) -> None:
    if peer.name in peers.missing():
        pytest.skip(f"{peer.name} is not installed")
    assert peer.version()[0].isdigit()
    done = set()
    for workload in agreed(peer):
        tensors = make_tensors(workload, seed)
        expected = numpy_result(workload.formula, tensors.operands)
        try:
            ready = peer.prepare(workload, tensors, 2)
        except Refusal:
            continue
        tensors.spoil_out()
        assert objection(ready.fetch(ready.run()), expected) == "", workload
        done.add((workload.element_type, workload.formula, workload.call))
    formulas_and_calls = {("subtract", "out"), ("squared_difference", "out"), ("subtract", "allocate")}
    assert {(FLOAT32, *pair) for pair in {*formulas_and_calls, ("nested", "model")}} <= done


def test_a_row_is_measured_with_whoever_takes_it() -> None:
    row = measure_row(SMALL, peers.installed(), SHORT)
    assert not row.refusal
    assert {OWN, "numpy", "onnxruntime"} <= set(row.seconds)
    assert set(row.ratios) == set(row.seconds) - {OWN}
    assert row.best_peer not in ("", OWN, OWN_OUT)
    assert row.in_cache
    assert row.share is None


def test_a_peer_that_differs_or_refuses_is_quoted_without_a_time() -> None:
    class Wrong:
        name = "wrong"

        def version(self) -> str:
            return "1"

        def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
            return Ready("wrong", lambda: np.subtract(tensors.operands[1], tensors.operands[0]), np.asarray)

    class Unable(Wrong):
        name = "unable"

        def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
            raise Refusal("cannot")

    row = measure_row(SMALL, [Wrong(), Unable()], SHORT)
    assert set(row.seconds) == {OWN}
    assert row.remarks["wrong"].startswith("differs: ")
    assert row.remarks["unable"] == "refused: cannot"


@pytest.mark.parametrize("runs_right", [0, 5])
def test_a_wrong_result_of_this_project_is_refused(runs_right: int) -> None:
    """Wrong from the start, and wrong only once the rounds have begun."""

    def planted(_workload: Workload, tensors: Tensors) -> tuple[Ready, ...]:
        runs = 0

        def run() -> np.ndarray:
            nonlocal runs
            runs += 1
            np.subtract(*tensors.operands, out=tensors.out)
            if runs > runs_right:
                tensors.out.view(np.uint32)[7, 7] ^= 1
            return tensors.out

        return (Ready(OWN, run, np.asarray),)

    row = measure_row(SMALL, peers.installed()[:1], SHORT, planted)
    assert "1 of 1,200 elements differ" in row.refusal
    assert row.seconds == {}
    assert row.own_seconds is None
    assert row.misses == ("not exact",)


def test_a_result_that_is_not_written_is_refused() -> None:
    def lazy(_workload: Workload, tensors: Tensors) -> tuple[Ready, ...]:
        return (Ready(OWN, lambda: tensors.out, np.asarray),)

    assert measure_row(SMALL, [], SHORT, lazy).refusal


@pytest.mark.parametrize(("reads", "written"), [([4096, 4096], 4096), ([8192, 512], 8192), ([256, 0], 4096), ([], 512)])
def test_the_limit_moves_the_bytes_of_the_workload(reads: list[int], written: int) -> None:
    found = phases(reads, written)
    assert [begin for begin, _end, _count in found[1:]] == [end for _begin, end, _count in found[:-1]]
    assert found[0][0] == 0
    assert found[-1][1] == written
    assert sum((end - begin) * count for begin, end, count in found) == sum(reads)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_limit_writes_the_whole_result(threads: int, seed: int) -> None:
    workload = Workload("row", FLOAT32, ((64, 256), (256,)))
    tensors = make_tensors(workload, seed)
    tensors.spoil_out()
    limit_contestant(workload, tensors, threads).run()
    a, b, out = (array.reshape(-1).view(np.uint32) for array in (*tensors.operands, tensors.out))
    lanes = limit.jit.target().vector_bytes // 4
    index = np.arange(out.size, dtype=np.uint64)
    spread = np.uint64(limit._SPREAD) * (index % np.uint64(lanes) + np.uint64(1)) % np.uint64(2**31)
    varied = (index // np.uint64(lanes) * np.uint64(4 * lanes)).astype(np.uint32) ^ spread.astype(np.uint32)
    assert np.array_equal(out[:256], a[:256] ^ b ^ varied[:256])
    assert np.array_equal(out[256:], a[256:] ^ varied[256:])
    assert np.unique(varied).size > out.size // 2


def test_without_llvmlite_there_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(limit.jit, "target", missing)
    monkeypatch.setattr("eltwise.bench.measuring.cache_bytes", lambda: 16)
    row = measure_row(SMALL, [], SHORT)
    assert LIMIT not in row.seconds
    assert row.limit_seconds is None
    assert row.share is None
