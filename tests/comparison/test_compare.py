"""Two sets compared: matching, the report, the command line, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

import eltwise
from eltwise.comparison.arrays import _compared, compare_arrays, compare_tensors
from eltwise.comparison.hypotheses import ComparisonSettings
from eltwise.comparison.report import ComparisonReport
from eltwise.comparison.tolerance import parse_tolerances, tolerance_of
from eltwise.core.dtypes import FLOAT64, TYPES, ElementType
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.ir.tensors import InMemory, Tensor, of_array
from support.difference_cases import spoiled
from support.peak import PEAK_KIB

Cli = Callable[..., tuple[int, str, str]]
RNG = np.random.default_rng(5)
W = RNG.standard_normal((8, 12)).astype(np.float32)
HALF, BYTES = W.astype(np.float16), (np.arange(600) * 37 % 251).astype(np.uint8)
V = RNG.standard_normal((8, 12)).astype(np.float32)
KEYS = {
    *("name", "other_name", "status", "dtype", "other_dtype", "shape", "differing", "total", "beyond_tolerance"),
    *("max_abs", "max_rel", "max_ulp", "nan_mismatches", "first", "worst", "cause", "cause_share", "explanation"),
    "explanation_details",
}


def only(report: ComparisonReport) -> object:
    (found,) = report.tensors
    return found


def test_what_is_no_number_has_no_size() -> None:
    """A difference of 0 would say that nothing differs; a summary of one tensor says how much does."""
    a, numbers = np.float32([1, 2, 3, np.inf]), np.float32([1, 2, 3.5, np.inf])
    cases = {
        "1 NaN mismatch": np.float32([1, np.nan, 3, np.inf]),
        "max abs inf, max rel inf, max ULP 1,056,964,608, 1 infinity mismatch": np.float32([1, 2, 3, 4]),
        "relative norm 0.1336, max abs 0.5, max rel 0.1667, max ULP 2,097,152": numbers,
    }
    for text, b in cases.items():
        report = eltwise.compare(a, b)
        separator = ", " if "NaN" in text else "; "
        lines = ["1 tensor compared: 1 different", f"A / B: 1 of 4 differs{separator}{text}"]
        assert report.to_text("summary").splitlines() == lines
        assert (report[0].max_abs is None, report[0].norms is None) == ("NaN" in text, "mismatch" in text)


def test_equal_sets_are_equal() -> None:
    report = eltwise.compare({"w": W}, {"w": W.copy()})
    assert report.is_good
    assert report["w"].status == "equal"
    assert report["w"].cause == ""
    assert str(report) == "1 tensor compared: 1 equal"


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs], ids=str)
def test_equal_tensors_of_every_type_differ_by_nothing(element_type: ElementType) -> None:
    array = np.array([0, 1, 1, 0]).astype(element_type.storage)
    report = eltwise.compare({"w": array}, {"w": array.copy()})["w"]
    assert (report.status, report.differing, report.max_abs) == ("equal", 0, 0)
    assert type(report.max_abs) is (float if element_type.kind == "float" else int)


def test_tensors_are_matched_by_name_then_by_content() -> None:
    report = eltwise.compare(
        {"w": W, "old": V, "gone": W[:2], "z": np.zeros(3)}, {"w": W, "new": V, "more": W[:, :2], "z": np.zeros(3)}
    )
    assert [(each.name, each.other_name, each.status, each.cause) for each in report.tensors] == [
        ("w", "w", "equal", ""),
        ("old", "new", "equal", "renamed"),
        ("z", "z", "equal", ""),
    ]
    assert (report.missing, report.extra) == (("gone",), ("more",))
    assert not report.is_good


def test_the_other_arrays_are_compared_where_one_is_none() -> None:
    report = eltwise.compare({"w": W, "words": np.array([None])}, {"w": W, "words": V})
    assert [each.name for each in report.tensors] == ["w"]
    assert "A: tensor 'words'" in report.unreadable[0]
    assert not report.is_good


@pytest.mark.parametrize("key", [np.str_("a.b"), np.int64(1), np.bool_(True), np.float64(0.5)])
def test_a_key_that_numpy_made_is_no_other_one(key: np.generic) -> None:
    for inner, numpy_inner in (({key.item(): W}, {key: W}), ({"x": {key.item(): W}}, {"x": {key: W}})):
        assert str(eltwise.compare(inner, numpy_inner)) == "1 tensor compared: 1 equal"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([W], {0: W}),
        ({0: W}, {"0": W}),
        ({"a.b": W}, {"a": {"b": W}}),
        ({"a": [W, W]}, {"a": {0: W, 1: W}}),
        ({"a": [[W]]}, {"a": [{"0": W}]}),
    ],
)
def test_containers_of_other_forms_differ_where_their_tensors_have_the_same_names(one: object, other: object) -> None:
    for a, b in ((one, other), (other, one)):
        report = eltwise.compare(a, b)
        assert not report.is_good
        assert "containers: different" in str(report)
        assert eltwise.compare(a, a).is_good
    assert eltwise.compare({"a": [W, (W, W)]}, {"a": (W, [W, W])}).is_good
    assert eltwise.compare({"a.b": W, "c": [W + 1]}, {"x.b": W, "z": [W + 1]}).is_good  # They are renamed.
    assert eltwise.compare({0: W, 1: [V], "b": (V,)}, {"b": [V], 1: (V,), 0: W}).is_good


def test_texts_and_numbers_of_one_name_differ() -> None:
    sides = {"w": W, "words": np.array(["a"])}, {"w": W, "words": V}
    for (one, other), side in ((sides, "B"), (sides[::-1], "A")):
        report = eltwise.compare(one, other)
        different = [str(each) for each in report.others if each.status == "differs"]
        assert different == [f"words: different (values): {side} has numbers instead of it"]
        assert (report.missing, report.extra, report.unreadable, report.is_good) == ((), (), (), False)


@pytest.mark.parametrize("to", ["onnx", "openvino", "proto"])
def test_models_in_memory_are_compared(to: str, tmp_path: Path) -> None:
    def made(w: np.ndarray, external: bool) -> object:
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, W.shape) for name in "xy"]
        nodes = [helper.make_node("Sub", ["x", "w"], ["y"])]
        graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(w, "w")])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        if to == "proto":
            return proto
        path = tmp_path / f"{external}.onnx"
        onnx.save(proto, path, save_as_external_data=external, size_threshold=0, location="data")
        model = eltwise.load(path)
        return model if to == "onnx" else eltwise.convert(model, to="openvino")[0]

    report = eltwise.compare(made(W, True), made(-W, False))
    assert [(each.name, each.cause) for each in report.tensors] == [("w", "negated")]
    assert eltwise.compare(made(W, True), {"w": W}).is_good


def test_another_shape_is_said_where_types_have_no_common_one() -> None:
    found = compare_arrays(np.zeros((2, 3), np.int64), np.zeros((3, 2, 1), np.float32))
    assert found.explanation.endswith("so values are not compared; the shape is [3, 2, 1] instead of [2, 3]")


@pytest.mark.parametrize("other", [V, W[0], W.astype(np.int8), np.zeros((0, 3), np.float64), {"only": V}])
def test_a_tensor_without_a_name_is_compared_with_the_only_other_one(other: object, tmp_path: Path) -> None:
    """However little they have in common, in memory and in files."""
    np.save(tmp_path / "w.npy", W)
    for one in (W, tmp_path / "w.npy"):
        for report in (eltwise.compare(one, other), eltwise.compare(other, one)):
            assert (len(report.tensors), report.missing, report.extra) == (1, (), ())


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("has_name", [False, True])
def test_tensors_of_other_names_and_contents_are_partners_only_where_no_other_is_possible(
    has_name: bool, count: int
) -> None:
    one = {"old": W} if has_name else W
    several = {f"new_{number}": np.random.default_rng(number).random((5, 3)) for number in range(count)}
    for report in (eltwise.compare(one, several), eltwise.compare(several, one)):
        is_paired = not has_name and count == 1
        assert len(report.tensors) == is_paired
        assert sorted((len(report.missing), len(report.extra))) == ([0, 0] if is_paired else [1, count])


def test_a_renamed_tensor_that_changed_a_little_is_found() -> None:
    report = eltwise.compare({"old": W}, {"new": W.astype(ml_dtypes.bfloat16).astype(np.float32), "x": V})
    assert report["old"].other_name == "new"
    assert report["old"].cause == "bfloat16_rounding"
    assert report["old"].explanation == "it is called 'new' in B; B is A rounded to bfloat16"


def test_a_renamed_tensor_with_another_dimension_of_1_is_found() -> None:
    report = eltwise.compare({"bias": W[0], "x": V}, {"node_7": W[:1].astype(np.float16), "x": V})
    assert (report["bias"].other_name, report["bias"].cause) == ("node_7", "reshaped")
    assert report["bias"].explanation.endswith("as shape [1, 12] instead of [12]")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 1)])
def test_a_renamed_tensor_without_elements_is_found(shape: tuple[int, ...]) -> None:
    """By its type and shape; one of another type or shape is another tensor."""
    empty = np.zeros(shape, np.float32)
    report = eltwise.compare({"old": empty, "x": V}, {"new": empty, "x": V})
    assert (report["old"].other_name, report["old"].cause, report["old"].status) == ("new", "renamed", "equal")
    assert not report.missing
    assert not report.extra
    for other in (empty.astype(np.int8), np.zeros((*shape, 5), np.float32)):
        report = eltwise.compare({"old": empty, "x": V}, {"new": other, "x": V})
        assert [len(report.missing), len(report.extra)] == [1, 1]


@pytest.mark.parametrize("number", range(8))
def test_a_tensor_that_equals_another_name_is_said(number: int, seed: int) -> None:
    rng = np.random.default_rng([seed, number])
    shape = tuple(rng.integers(5, 40, rng.integers(2, 4)))
    a = {f"t{one}": rng.standard_normal(shape).astype(np.float32) for one in range(6)}
    a |= {"zeros": np.zeros(shape, np.float32), "ones": np.ones(shape, np.float32)}
    one, other = (f"t{chosen}" for chosen in rng.choice(6, 2, replace=False))
    report = eltwise.compare(a, a | {one: a[other]})
    assert [(each.name, each.cause) for each in report.tensors if each.cause] == [(one, "stale_copy")]
    assert report[one].explanation_details == {"tensor": other}
    near = eltwise.compare(a, a | {one: spoiled(a[other], rng)})[one]
    assert (near.cause, 0.5 < near.cause_share < 1) == ("stale_copy", True)


@pytest.mark.parametrize("number", range(4))
def test_a_near_miss_of_a_renamed_tensor_is_no_renamed_one(number: int, seed: int) -> None:
    rng = np.random.default_rng([seed, number])
    w = rng.standard_normal((40, 30)).astype(np.float32)
    assert eltwise.compare({"old": w, "v": V}, {"new": w, "v": V})["old"].cause == "renamed"
    near = eltwise.compare({"old": w, "v": V}, {"new": spoiled(w, rng), "v": V})["old"]
    assert (near.other_name, near.status, near.cause) == ("new", "differs", "unexplained")


@pytest.mark.parametrize(
    ("a", "b", "status", "cause"),
    [
        (W, W.astype(np.float64), "differs", "other_type"),
        (W, W.astype(ml_dtypes.bfloat16), "differs", "bfloat16_rounding"),
        (HALF, HALF.astype(ml_dtypes.bfloat16).astype(np.float16), "differs", "bfloat16_rounding"),
        (BYTES, -BYTES, "differs", "negated"),
        (W, W[:4], "differs", "padded"),
        (W, W[:3], "differs", "other_shape"),
        (np.arange(8), np.arange(8).astype(np.float32), "differs", "other_type"),
        (np.array([1, 2], np.uint64), np.array([1, 2], np.int64), "differs", "other_type"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "equal", ""),
        (np.float32(1), np.float32(2), "differs", "unexplained"),
        (np.array([True, False]), np.array([True, True]), "differs", "unexplained"),
    ],
)
def test_other_types_and_shapes_are_findings(a: np.ndarray, b: np.ndarray, status: str, cause: str) -> None:
    found = compare_arrays(np.asarray(a), np.asarray(b))
    assert (found.status, found.cause) == (status, cause)


@pytest.mark.parametrize(("a", "b"), [*product([(0,), (0, 3), (3,), (2, 3)], repeat=2)])
def test_that_neither_has_elements_is_said_where_it_is_so(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    found = compare_arrays(np.arange(prod(a), dtype=np.float32).reshape(a), np.zeros(b, np.float32))
    assert ("neither has elements" in found.explanation) == (a != b and not prod(a) and not prod(b))


def test_another_type_is_within_a_tolerance() -> None:
    found = compare_arrays(W, W.astype(ml_dtypes.bfloat16), tolerance="rtol=1e-2")
    assert found.status == "within_tolerance"


def test_the_places_have_values_and_bits() -> None:
    b = W.copy()
    b[2, 3], b[5, 1] = 100, np.nan
    found = compare_arrays(W, b)
    assert found.first is not None
    assert found.worst is not None
    assert found.first.index == (2, 3)
    assert (found.first.a, found.first.b, found.first.b_bits) == (float(W[2, 3]), 100.0, "0x42c80000")
    assert found.worst.index == (5, 1)
    assert (found.nan_mismatches, found.differing) == (1, 2)
    assert found.where == "at [2, 3], [5, 1]"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((slice(None), 2, slice(None)), "index 2 of axis 1, which has 10: every element there"),
        ((slice(None), slice(None), [0, 11]), "the edges of axis 2 (0, 11): every element there"),
        ((slice(3, 5), slice(2, 6)), "indices 3 to 4 of axis 0, which has 9 and indices 2 to 5 of axis 1"),
        ((slice(None), slice(None), slice(1, None, 3)), "every 3rd index of axis 2 from 1 on: every element there"),
        ((slice(None),), "everywhere"),
    ],
)
@pytest.mark.parametrize("shape", [(9, 10, 12), (9, 10, 12, 700)])
def test_where_differences_lie(change: tuple[object, ...], words: str, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    b = a.copy()
    b[change] += np.random.default_rng(2).random(b[change].shape).astype(np.float32) + 1  # type: ignore[index]
    assert words in compare_arrays(a, b).where


def test_a_run_in_memory_is_said() -> None:
    b = W.copy()
    b.reshape(-1)[10:25] += V.reshape(-1)[10:25]
    assert compare_arrays(W, b).where == "one run of 15 elements in memory, from element 10 on"


def test_the_json_has_the_promised_keys(tmp_path: Path) -> None:
    eltwise.compare(
        {"w": W, "i": np.array([1, np.inf], np.float32)}, {"w": -W, "i": np.array([1, 2], np.float32)}
    ).to_json(tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert {"tensors", "missing", "extra"} <= set(found)
    assert set(found["tensors"][0]) >= KEYS
    assert set(found["tensors"][0]["first"]) == {"index", "a", "b", "a_bits", "b_bits"}
    assert found["tensors"][0]["cause"] == "negated"
    assert found["tensors"][1]["max_abs"] == "inf"


def test_arrays_of_other_libraries_are_taken() -> None:
    torch = pytest.importorskip("torch")
    state = {"w": torch.tensor(W), "h": torch.tensor(W, dtype=torch.bfloat16)}
    report = eltwise.compare(state, {"w": W, "h": W.astype(ml_dtypes.bfloat16)})
    assert [each.status for each in report.tensors] == ["equal", "equal"]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ({}, {"x": W}, "A: there are no tensors to compare"),
        ({"x": [{1, 2}]}, {"x": W}, "not an array"),
        ("none.npy", W, "none.npy: there is no such file"),
        (W, object(), "not an array"),
    ],
)
def test_bad_input_is_one_sentence(a: object, b: object, words: str) -> None:
    with pytest.raises(EltwiseError, match=words) as caught:
        eltwise.compare(a, b)
    assert "\n" not in str(caught.value)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_file({"w": W, "v": V}, "a.safetensors")
    save_file({"w": W.astype(ml_dtypes.bfloat16).astype(np.float32), "v": V}, "b.safetensors")
    return tmp_path


@pytest.mark.usefixtures("files")
def test_the_command_writes_all_that_is_asked_for(cli: Cli) -> None:
    code, out, err = cli("compare", "a.safetensors", "b.safetensors", "--json", "r.json", "--html", "r.html")
    assert (code, err) == (1, "written to r.json\nwritten to r.html\n")
    assert "B is A rounded to bfloat16" in out
    assert json.loads(Path("r.json").read_text())["tensors"][1]["cause"] == "bfloat16_rounding"
    assert "B is A rounded to bfloat16" in Path("r.html").read_text()
    assert cli("compare", "a.safetensors", "a.safetensors")[:2] == (0, "2 tensors compared: 2 equal\n")
    code, out, _err = cli("compare", "a.safetensors", "b.safetensors", "--tolerance", "rtol=1e-2", "--json", "-")
    assert (code, json.loads(out)["tensors"][1]["status"]) == (0, "within_tolerance")
    code, out, _err = cli("compare", "a.safetensors", "b.safetensors", "--html", "-")
    assert (code, out.rstrip("\n")) == (1, Path("r.html").read_text().rstrip("\n"))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a.safetensors", "none.npz"), "none.npz: there is no such file"),
        (("a.safetensors", "b.safetensors", "--tolerance", "ulp<1"), "not a tolerance"),
        (("a.safetensors", "b.safetensors", "--tolerance", "vv: ulp<=1"), "there is no tensor 'vv'"),
        (("a.safetensors", "b.safetensors", "--json", "no/r.json"), "the output's folder does not exist"),
        (("a.safetensors", "b.safetensors", "--html", "a.safetensors"), "the output would replace an input"),
        (("a.safetensors", "a.safetensors", "--html", "b.safetensors"), "this file exists and is no report"),
        (("a.safetensors", "b.safetensors", "--html", "r", "--json", "r"), "two outputs have one name"),
        (("a.safetensors", "b.safetensors", "--type", "float99"), "there is no element type"),
        (("a.safetensors", "b.safetensors", "--html", "-", "--json", "-"), "several outputs are for stdout"),
    ],
)
def test_the_command_refuses_bad_input(arguments: tuple[str, ...], words: str, cli: Cli) -> None:
    code, out, err = cli("compare", *arguments)
    assert (code, bool(out)) == (2, arguments[-2:] == ("--json", "-"))  # Errors are JSON where the report would be.
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("files")
def test_what_cannot_be_read_on_the_way_is_said_and_the_rest_compared(cli: Cli) -> None:
    np.savez_compressed("a.npz", w=W, v=np.random.default_rng(0).random(5000))
    content = bytearray(Path("a.npz").read_bytes())
    content[len(content) * 3 // 4] ^= 255
    Path("bad.npz").write_bytes(content)
    code, out, err = cli("compare", "a.npz", "bad.npz")
    assert code == 2
    assert "1 equal, 1 unreadable" in out
    assert "the archive cannot be unpacked" in err


def test_a_bad_file_in_a_folder_is_a_finding_of_its_own(tmp_path: Path, cli: Cli) -> None:
    for side in "ab":
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "w.npy", W + (side == "b"))
        (tmp_path / side / "empty.npy").touch()
        (tmp_path / side / "cut.npz").write_bytes(b"PK\3\4junk")
    (tmp_path / "b" / "empty.npy").unlink()
    code, out, err = cli("compare", str(tmp_path / "a"), str(tmp_path / "b"), "--tolerance", "empty: ulp<=1")
    assert code == 2
    assert out.startswith("1 tensor compared: 1 different, 3 unreadable\nw: different (offset)\n")
    assert ["the file is empty" in err, "not a readable .npz file" in err, err.count("\n")] == [True, True, 3]


def test_a_bad_member_leaves_the_others_readable(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=W, v=V)
    content = (tmp_path / "a.npz").read_bytes()
    place = content.rindex(b"NUMPY")
    (tmp_path / "b.npz").write_bytes(content[:place] + b"NUMPX" + content[place + 5 :])
    report = eltwise.compare(tmp_path / "a.npz", tmp_path / "b.npz")
    assert [(each.name, each.status) for each in report.tensors] == [("w", "equal")]
    assert (len(report.unreadable), report.missing, report.extra) == (1, (), ())


class Failing(InMemory):
    """An array whose second half cannot be read, or of which nothing can after the first time."""

    def __init__(self, array: np.ndarray, is_cut: bool) -> None:
        super().__init__(array)
        self.is_cut, self.times = is_cut, list[int]()

    def read(self, start: int, stop: int) -> np.ndarray:
        self.times.append(start)
        if stop > self.array.size // 2 if self.is_cut else len(self.times) > 1:
            raise FileFormatError("the file ended while it was read")
        return super().read(start, stop)


def failing(b: np.ndarray, is_cut: bool) -> tuple[Tensor, Tensor]:
    return of_array("x", np.abs(b)), Tensor(Failing(b, is_cut), FLOAT64, "x")


def test_what_was_found_before_a_file_turned_bad_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eltwise.comparison.pairs._CHUNK_BYTES_IN_MEMORY", 1 << 23)
    b = np.where(np.arange(1 << 22) == 7, -2.0, 1.0)
    with pytest.raises(FileFormatError, match="of the 2,097,152 elements before it 1 differ"):
        compare_tensors(*failing(b, is_cut=True), ComparisonSettings())


def test_figures_are_kept_when_a_file_turns_bad_while_causes_are_looked_for() -> None:
    found = compare_tensors(*failing(np.arange(1 << 22) / -7, is_cut=False), ComparisonSettings())
    assert (found.differing, found.cause) == (1 << 22, "unexplained")
    assert "the file ended while it was read" in found.explanation


def test_names_with_control_characters_are_escaped(tmp_path: Path) -> None:
    save_file({"w\nx": W, "e\x1b[31m": V}, tmp_path / "a.safetensors")
    save_file({"w\nx": -W, "f\r": V[:2]}, tmp_path / "b.safetensors")
    report = eltwise.compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert not set(str(report)) & set("\x1b\r")
    assert "\nw\\nx: different (negated)\n" in str(report)
    assert str(report).endswith("missing in B: e\\x1b[31m\nextra in B: f\\r")
    assert not set(report.to_html()) & set("\x1b\r")


@pytest.mark.parametrize(("b", "mean"), [(2, None), (np.inf, 0.5)])
def test_a_mean_is_that_of_finite_differences(b: float, mean: float | None) -> None:
    found = compare_arrays(
        np.array([1, np.inf, 3, 1], np.float32), np.array([3 if mean else 1, b, 3, np.inf if mean else 1], np.float32)
    )
    assert (found.max_abs, found.max_rel, found.mean_abs) == (np.inf, np.inf, mean and 2 / 3)


@pytest.mark.slow
def test_many_small_tensors_cost_no_more_each_than_few(seed: int) -> None:
    """One in eight differs, so that what is done for each set is not hidden by the search for causes."""
    rng = np.random.default_rng(seed)
    a = {f"t{number}": rng.standard_normal(64) for number in range(4000)}
    b = {name: rng.standard_normal(64) if number % 8 == 0 else a[name] for number, name in enumerate(a)}
    seconds = []
    for count in (500, 4000):
        start = time.process_time()
        few = [dict(list(side.items())[:count]) for side in (a, b)]
        assert len(eltwise.compare(*few).tensors) == count
        seconds.append((time.process_time() - start) / count)
    assert seconds[1] < 3 * seconds[0]
    assert seconds[1] < 0.002


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded(tmp_path: Path) -> None:
    """Two files of 512 MiB each in less than 400 MiB, of which Python and the libraries take some 150."""
    size = 1 << 27
    for name in "ab":
        with (tmp_path / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (size,)})
            for start in range(0, size, 1 << 22):
                part = np.random.default_rng(start).random(1 << 22, np.float32)
                part[7] += name == "b"
                part.tofile(file)
    code = f"import eltwise; r = eltwise.compare('{tmp_path}/a.npy', '{tmp_path}/b.npy'); "
    code += f"print(r.tensors[0].differing, {PEAK_KIB})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    differing, kilobytes = map(int, done.stdout.split())
    assert differing == size >> 22
    assert kilobytes < 400 << 10


@pytest.mark.parametrize("element_type", [one for one in TYPES if one.numpy is not None], ids=str)
@pytest.mark.parametrize("tolerance", [None, "ulp<=1"])
def test_the_report_on_no_elements_is_that_of_every_other_tensor(
    element_type: ElementType, tolerance: str | None
) -> None:
    chosen = tolerance_of(parse_tolerances(tolerance), "w")
    for shape in ((0,), (2, 0, 3)):
        tensor = of_array("w", np.zeros(shape, element_type.storage))
        report = compare_tensors(tensor, tensor, ComparisonSettings(chosen))
        assert report == _compared(tensor, tensor, ComparisonSettings(chosen))
        assert report.status == "equal"


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_the_norm_of_integers_that_float64_rounds_is_exact(dtype: type) -> None:
    a = np.array([2**53 + 1, 2**62, 3], dtype)
    b = np.array([2**53, 2**62 + 2, 3], dtype)
    report = eltwise.compare(a, b)[0]
    assert report.relative_norm == pytest.approx(5**0.5 / 2**62, rel=1e-5)


EVERYWHERE = """<ir_version: 9, opset_import: ["" : 17, "mine" : 1]>
g (bool c, float[1] x, int64[1] n) => (float[1] z)
<float[1] top = {1}, float[2] unread = {1, 2}> {
    node = Constant<value = float[1] {3}>()
    filled = ConstantOfShape<value = float[1] {4}>(n)
    chosen = If(c) <
        then_branch = t () => (float[1] a) <float[1] inner = {5}> { a = Add(x, inner) },
        else_branch = e () => (float[1] b) {
            deep = Constant<value = float[1] {6}>()
            b = If(c) <
                then_branch = tt () => (float[1] p) { p = Constant<value = float[1] {7}>() },
                else_branch = ee () => (float[1] q) { q = mine.f(deep) }
            >
        }
    >
    z = Sum(chosen, node, filled, top)
}
<domain: "mine", opset_import: ["" : 17]>
f (u) => (v) { k = Constant<value = float[1] {8}>()  v = Mul(u, k) }
"""


def _tensors_in(message: Message) -> Iterator[onnx.TensorProto]:
    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        for inner in (value if field.is_repeated else [value]) if field.message_type else []:
            yield from _tensors_in(inner)


def test_no_tensor_of_a_model_is_left_out_wherever_it_lies() -> None:
    """In branches, in branches of these, in functions, and in attributes."""
    right = onnx.parser.parse_model(EVERYWHERE)
    count = len(list(_tensors_in(right)))
    assert count == 8
    for number in range(count):
        wrong = onnx.ModelProto.FromString(right.SerializeToString())
        tensor = list(_tensors_in(wrong))[number]
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) + 1, tensor.name))
        report = eltwise.compare(right, wrong)
        assert (len(report), [one.status for one in report].count("differs")) == (count, 1), str(report)
        assert not report.is_good


@pytest.mark.parametrize(
    "other",
    [
        {"step": 4, "lr": 0.1, "name": "a", "empty": [], "none": None, "w": W},
        {"step": 3, "lr": 0.2, "name": "a", "empty": [], "none": None, "w": W},
        {"step": 3, "lr": 0.1, "name": b"a", "empty": [], "none": None, "w": W},
        {"step": 3, "lr": 0.1, "name": "a", "empty": {}, "none": None, "w": W},
        {"step": 3, "lr": 0.1, "name": "a", "none": None, "w": W},
        {"step": 3, "lr": 0.1, "name": "a", "empty": [], "none": "None", "w": W},
        {"step": 3, "lr": 0.1, "name": "a", "empty": [], "none": None, "w": W, "x": 1j},
    ],
)
def test_each_leaf_of_a_container_counts(other: dict[str, object]) -> None:
    """As each of a file of PyTorch does: numbers, texts, None and empty containers."""
    one = {"step": 3, "lr": 0.1, "name": "a", "empty": [], "none": None, "w": W}
    assert eltwise.compare(one, dict(one)).is_good
    for sides in ((one, other), (other, one)):
        assert not eltwise.compare(*sides).is_good
