"""Checkpoints of some hundred tensors: what was planted is named, in both orders, in few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

import eltwise
import eltwise.comparison.naming
from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.low_rank import LARGEST_RANK
from eltwise.comparison.matching import is_telling
from eltwise.comparison.naming import Renamer, renaming_of
from eltwise.comparison.report import ComparisonReport
from eltwise.comparison.tensor_report import cosine
from eltwise.core.exit_codes import ExitCode
from support.checkpoints import CHANGES, LARGEST_STEP, RANK, RENAMED, Arrays, merged, renamed, transformer, tuned

Cli = Callable[..., tuple[int, str, str]]


def both_orders(a: Arrays, b: Arrays) -> tuple[ComparisonReport, ComparisonReport]:
    return eltwise.compare(a, b), eltwise.compare(b, a)


@pytest.mark.parametrize("cause", CHANGES)
def test_what_was_planted_is_named_in_both_orders(cause: str, seed: int) -> None:
    change, allowed = CHANGES[cause]
    rng = np.random.default_rng([seed, len(cause)])
    a = transformer(rng, layers=4)
    b = change(a, rng)
    reports = both_orders(a, b)
    forward, backward = ({(one.name, one.other_name): one for one in report} for report in reports)
    assert {key[::-1] for key in backward} == set(forward)
    assert not reports[0].missing
    assert not reports[1].extra
    for key, one in forward.items():
        other = backward[key[::-1]]
        assert (one.status, one.cause, one.differing) == (other.status, other.cause, other.differing), key
        assert one.cause in allowed or not one.cause, (key, one.explanation)
    assert cause in {one.cause for one in forward.values()}
    for report in reports:
        assert report.summary in str(report)
        assert len(str(report).splitlines()) < 60
        if not report.is_good:
            with pytest.raises(AssertionError) as caught:
                report.assert_within()
            assert len(str(caught.value).splitlines()) <= 25


def test_a_tuned_checkpoint_is_a_headline_and_a_line_for_each_pattern(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = transformer(rng)
    report = eltwise.compare(a, tuned(a, rng))
    assert len(report) == 290
    patterns = {each.pattern: each for each in report.patterns}
    assert {each.pattern for each in report.patterns if each.is_frozen} == {
        *("model.embed_tokens.weight", "model.norm.weight"),
        *(f"model.layers.*.{norm}.{kind}" for norm in ("norm1", "norm2") for kind in ("weight", "bias")),
    }
    assert all(each.largest_step <= LARGEST_STEP * 1.001 for each in patterns.values() if not each.is_frozen)
    text = str(report)
    assert "no step larger than 3e-05" in text
    assert "frozen: model.embed_tokens.weight" in text
    assert re.search(r"^model\.layers\.\*\.attn\.q\.weight +24 +(9\d\.\d+|100) % ", text, re.MULTILINE)
    assert text.count("different (") == 3
    assert report.to_text("all").count("different (") == 8 * 24
    assert report.to_text("summary") == "\n".join(text.splitlines()[:3])
    within = eltwise.compare(a, tuned(a, rng), atol=1e-4)
    assert str(within).splitlines() == [f"{within.summary}: atol=0.0001, no step larger than 3e-05"]


def test_the_command_prints_as_much_as_is_asked_for(seed: int, tmp_path: Path, cli: Cli) -> None:
    rng = np.random.default_rng(seed)
    a = transformer(rng, layers=3)
    b = renamed(tuned(a, rng), rng)
    for name, arrays in (("a", a), ("b", b)):
        save_file(arrays, tmp_path / f"{name}.safetensors")
    files = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    report = eltwise.compare(*files)
    for option, detail in (((), "worst"), (("--summary",), "summary"), (("--all",), "all")):
        assert cli("compare", *files, *option) == (1, f"{report.to_text(detail)}\n", "")
    code, out, err = cli("compare", *files, "--order", files[0])
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_the_figures_of_a_pattern_are_those_of_its_tensors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = transformer(rng, layers=3)
    b = tuned(a, rng)
    for each in eltwise.compare(a, b).patterns:
        names = [name for name in a if eltwise.comparison.naming.pattern_of(name) == each.pattern]
        x, y = (np.concatenate([side[name].ravel().astype(np.float64) for name in names]) for side in (a, b))
        assert (len(each.members), each.total, each.moved) == (len(names), x.size, int((x != y).sum()))
        if each.moved:
            assert each.relative_norm == pytest.approx(np.linalg.norm(y - x) / np.linalg.norm(x), rel=1e-9)
            assert 1 - each.cosine == pytest.approx(1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y), abs=1e-12)
            assert each.largest_step == pytest.approx(np.abs(y - x).max(), rel=1e-6)


@pytest.mark.parametrize("sign", [-1, 1, 0])
def test_a_cosine_lies_between_its_limits(sign: int, seed: int) -> None:
    """Also of tensors that are opposite but for rounding."""
    rng = np.random.default_rng(seed)
    for size in range(1, 100):
        a = rng.standard_normal(size)
        b = a * sign * rng.random()
        result = cosine(float(np.square(one).sum()) for one in (a, b, b - a))
        assert (result is None) == (sign == 0)
        assert result is None or (-1 <= result <= 1 and result == pytest.approx(sign))


@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-9])
def test_a_cosine_that_is_not_1_is_not_shown_as_1(size: float, seed: int) -> None:
    """Nor is one shown as less that is 1 but for the rounding of norms."""
    rng = np.random.default_rng(seed)
    for count in (2, 100, 100_000):
        a, step = rng.standard_normal((2, count))
        step -= a * (a @ step) / (a @ a)  # Orthogonal, so that the tangent is known.
        step *= size * np.linalg.norm(a) / np.linalg.norm(step)
        (pattern,) = eltwise.compare({"x": a}, {"x": a + step}).patterns
        assert pattern.cosine_gap == pytest.approx(size**2 / 2, rel=0.01)
        assert pattern.cells[4].startswith(f"1 - {size**2 / 2:.0e}"[:5] if size < 1e-4 else "0.9999995")
        (pattern,) = eltwise.compare({"x": a}, {"x": a * (1 + size)}).patterns
        assert pattern.cells[4] == "1"


def test_tensors_that_moved_and_were_renamed_follow_the_rule_of_the_others(seed: int) -> None:
    """Also constant ones, whose content tells nothing."""
    rng = np.random.default_rng(seed)
    a = transformer(rng, layers=12)
    moved = tuned(a, rng) | {
        name: rng.standard_normal(array.shape).astype("f4") for name, array in a.items() if ".k." in name
    }
    report = eltwise.compare(a, renamed(moved, rng))
    assert (report.missing, report.extra) == ((), ())
    assert report.renamings == ((RENAMED, 12 * 12),)
    assert all(one.other_name == one.name.replace("model.layers.", "transformer.h.") for one in report)
    assert f"renamed: {RENAMED} (144 tensors)" in str(report)


def test_a_tensor_that_one_side_has_once_for_two_names_is_not_missing(seed: int) -> None:
    w, v = np.random.default_rng(seed).standard_normal((2, 30, 20)).astype(np.float32)
    for a, b in (({"e": w, "head": w, "v": v}, {"e": w, "v": v}), ({"e": w, "head": w, "v": v}, {"v": v, "node": w})):
        for report in both_orders(a, b):
            assert report.is_good
            assert {one.cause for one in report} <= {"shared", "renamed", ""}
            assert "shared" in {one.cause for one in report}
    assert not eltwise.compare({"e": w, "head": v}, {"e": w}).is_good


def test_a_change_of_low_rank_says_more_than_a_rounding_of_most_elements() -> None:
    """An adapter of which half of the rows are 0, merged and stored as bfloat16, of which an element was damaged."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((256, 320)).astype(np.float32)
    change = (rng.standard_normal((256, 4)) * (np.arange(256) % 2)[:, None]) @ rng.standard_normal((4, 320))
    b = (a + change).astype(ml_dtypes.bfloat16)
    b[3, 5] = 17
    assert compare_arrays(a, b).explanation_details == {"rank": 4, "besides": [[3, 5]]}


@settings(max_examples=30)
@given(
    st.integers(1, 12), st.sampled_from([np.float32, np.float64, np.float16, ml_dtypes.bfloat16]), st.integers(0, 99)
)
def test_a_change_of_low_rank_is_found_and_a_near_miss_is_not(rank: int, kind: Any, number: int) -> None:
    rng = np.random.default_rng([rank, number])
    shape = tuple(rng.integers(6 * rank + 20, 200, 2).tolist())
    a = (rng.standard_normal(shape) / 20).astype(kind)
    change = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1])) / 50
    b = (a.astype(np.float64) + change).astype(kind)
    result = compare_arrays(a, b)
    assert (result.cause, result.explanation_details) == ("low_rank", {"rank": rank})
    b[-1, -1] += kind(1)
    near = compare_arrays(a, b)
    besides = [[size - 1 for size in shape]]
    assert (near.cause, near.explanation_details) == ("low_rank", {"rank": rank, "besides": besides})
    b[rng.random(shape) < 0.1] += kind(1)
    assert compare_arrays(a, b).cause != "low_rank"
    full = (a.astype(np.float64) + rng.standard_normal(shape) / 50).astype(kind)
    assert compare_arrays(a, full).cause == "unexplained"
    assert rank < LARGEST_RANK


def test_steps_of_training_and_other_rows_are_neither_noise_nor_of_low_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for kind in (np.float32, ml_dtypes.bfloat16):
        a = (rng.standard_normal((96, 128)) / 20).astype(kind)
        trained = (a + rng.uniform(-1e-2, 1e-2, a.shape)).astype(kind)
        rows = a.copy()
        rows[3:9] = rng.standard_normal((6, 128)).astype(kind)
        for b in (trained, rows, rng.permutation(a, axis=0) + a, -a[::-1] * a):
            for x, y in ((a, b), (b, a)):
                assert compare_arrays(x, y.astype(kind)).cause not in ("noise", "low_rank")


@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_what_is_of_low_rank_itself_is_no_change_of_something_smaller(kind: Any, seed: int) -> None:
    """Next to a ramp of float8, weights of 0.02 are less than its rounding: they may be any."""
    rng = np.random.default_rng(seed)
    small = rng.standard_normal((64, 64)) * 2e-2 * float(ml_dtypes.finfo(kind).eps)
    ramp = np.linspace(0, 1, 64 * 64).reshape(64, 64)
    for a, b in ((small, ramp), (ramp, small)):
        assert compare_arrays(a.astype(kind), b.astype(kind)).cause != "low_rank"


def test_an_infinity_is_no_matrix_of_low_rank(seed: int) -> None:
    """LAPACK did not come back from one."""
    a = np.random.default_rng(seed).standard_normal((40, 40)).astype(np.float32)
    for value in (np.inf, np.nan):
        b = a * a
        b[5, 7] = value
        assert compare_arrays(a, b).cause == compare_arrays(b, a).cause == "unexplained"


def test_the_order_is_that_of_the_network(seed: int, tmp_path: Path) -> None:
    """Names there may be others: content tells."""
    w = dict(zip("abc", np.random.default_rng(seed).standard_normal((3, 9, 9)).astype(np.float32), strict=True))
    nodes = [helper.make_node("Add", ["x", "b"], ["1"]), helper.make_node("Add", ["1", "onnx::c"], ["2"])]
    nodes += [helper.make_node("Add", ["2", "a"], ["y"])]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (9, 9)) for name in "xy"]
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(w[name]), f"onnx::{name}" if name == "c" else name) for name in w
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(proto, tmp_path / "m.onnx")
    a = w | {"other": w["a"] * 2}
    for order in (proto, tmp_path / "m.onnx", eltwise.load(proto)):
        assert [one.name for one in eltwise.compare(a, a, order=order)] == ["b", "c", "a", "other"]
    assert [one.name for one in eltwise.compare(a, a)] == list(a)


@given(st.lists(st.integers(0, 40), min_size=2, max_size=2), st.sampled_from(["attn.q.weight", "mlp/w", "b"]))
def test_a_rule_gives_the_name_that_it_was_taken_from(numbers: list[int], rest: str) -> None:
    begins = ["model.layers.{}", "h.{}.x.{}", "blk.{}", "", "encoder", "layers/{}/{}"]
    for one in begins:
        for other in begins:
            if one.count("{}") != other.count("{}"):
                continue
            first, second, third = (
                (f"{begin.format(*pair)}.{rest}").lstrip(".")
                for begin, pair in ((one, numbers), (other, numbers), (one, (7, 8)))
            )
            names = list(Renamer([(first, second)]).names_of(third))
            assert f"{other.format(7, 8)}.{rest}".lstrip(".") in names or first == second, (first, second, names)
            assert first == second or "->" in str(renaming_of(first, second))


@pytest.mark.filterwarnings("ignore")  # The exporter warns of itself.
def test_a_checkpoint_of_torch_is_in_its_onnx_export(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    head = torch.nn.Linear(32, 50)
    model = torch.nn.Sequential(torch.nn.Embedding(50, 32), layer, head)
    head.weight = model[0].weight
    inputs = (torch.randint(0, 50, (1, 8)),)
    path = tmp_path / "m.onnx"
    torch.onnx.export(model, inputs, str(path), dynamo=False, training=torch.onnx.TrainingMode.TRAINING)
    torch.save(model.state_dict(), tmp_path / "m.pth")
    report = eltwise.compare(tmp_path / "m.pth", path)
    assert not report.missing
    assert {one.cause for one in report} <= {"", "transposed", "renamed", "shared"}
    assert sum(one.cause == "transposed" for one in report) >= 3


def test_merged_adapters_name_their_rank_in_the_headline_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = transformer(rng, layers=5)
    table = {each.pattern: each.cause for each in eltwise.compare(a, merged(a, rng)).patterns}
    assert table["model.layers.*.attn.q.weight"] == f"low_rank {RANK}"
    assert table["model.layers.*.attn.k.weight"] == "frozen"


RENAMINGS: dict[str, Callable[[str], str]] = {
    "beginning": lambda name: name.replace("model.layers", "transformer.h"),
    "prefix": lambda name: f"module.{name}",
    "ending": lambda name: name.removesuffix(".weight").removesuffix(".bias") + ".w" * name.endswith("weight"),
    "separator": lambda name: name.replace(".", "/"),
    "modules": lambda name: name.replace(".q.", ".q_proj.").replace(".k.", ".k_proj."),
}
"""Rules by which exporters rename: for all tensors at once, or one for each module of a layer."""


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("rule", RENAMINGS)
def test_tensors_that_are_exchanged_under_new_names_differ_as_under_the_old_ones(
    rule: str, kind: type, seed: int
) -> None:
    """A model that was renamed by a rule is loaded by it, whatever tensors have the same content."""
    rng = np.random.default_rng(seed)
    for layers in (3, 12):
        a = transformer(rng, layers=layers)
        layer = f"model.layers.{rng.integers(layers)}."
        (first, second), *_others = (
            (one, other)
            for one in a
            for other in a
            if one < other and one.startswith(layer) and other.startswith(layer) and a[one].shape == a[other].shape
        )
        exchanged = a | {first: a[second], second: a[first]}
        expected = {first, second}
        for rename in (lambda name: name, RENAMINGS[rule]):
            b = {rename(name): array.astype(kind) for name, array in exchanged.items()}
            report = eltwise.compare(a, b)
            assert (report.missing, report.extra) == ((), ())
            assert {one.name: one.other_name for one in report} == {name: rename(name) for name in a}
            assert {one.name for one in report if (one.relative_norm or 0) > 0.1} == expected, str(report)
            if kind is np.float32:
                assert {one.cause for one in report if one.status != "equal"} == {"stale_copy"}


@pytest.mark.parametrize("rule", RENAMINGS)
@pytest.mark.parametrize("layers", [3, 4, 7])
def test_layers_that_are_exchanged_under_new_names_differ(rule: str, layers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, rename = transformer(rng, layers=layers), RENAMINGS[rule]
    first, second = (f".layers.{number}." for number in rng.permutation(layers)[:2])
    partner = {name: name.replace(first, second) if first in name else name.replace(second, first) for name in a}
    report = eltwise.compare(a, {rename(name): a[other] for name, other in partner.items()})
    assert {one.name: one.other_name for one in report} == {name: rename(name) for name in a}
    differing = {name for name, other in partner.items() if a[name].tobytes() != a[other].tobytes()}
    assert {one.name for one in report if one.status != "equal"} == differing


@pytest.mark.parametrize("rule", sorted(RENAMINGS.keys() - {"modules"}))  # Which leaves names as they are.
@pytest.mark.parametrize("layers", [2, 4])
def test_whether_all_layers_are_exchanged_under_new_names_is_not_established(rule: str, layers: int, seed: int) -> None:
    """No tensor keeps its number: the order may be another one, or be written otherwise. Numbers that move are none."""
    a, rename = transformer(np.random.default_rng(seed), layers=layers), RENAMINGS[rule]
    tensors = {name: array for name, array in a.items() if ".layers." in name and is_telling(array.reshape(-1))}

    def numbered(number: Callable[[int], int]) -> Arrays:
        return {
            rename(re.sub(r"\.layers\.(\d+)\.", lambda match: f".layers.{number(int(match[1]))}.", name)): array
            for name, array in tensors.items()
        }

    for last in (layers - 1, layers + 20):  # The same numbers, and others.
        report = eltwise.compare(tensors, numbered(lambda number, last=last: last - number))  # type: ignore[misc]
        assert (report.exit_code, report.is_good) == (ExitCode.NOT_ESTABLISHED, False)
        assert "whether they are exchanged is not established" in report.summary
        with pytest.raises(AssertionError, match="exchanged by content: "):
            report.assert_within()
        shown = (str(report), report.to_text("summary"), report.to_html(), report.to_json())
        assert all(report.exchanged[0] in text.partition("exchanged")[2] for text in shown)
        assert json.loads(report.to_json())["exchanged"] == list(report.exchanged)
    assert eltwise.compare(tensors, numbered(lambda number: number + 1)).is_good


@pytest.mark.parametrize(
    ("renaming", "code"),
    [
        ({"l.1": "h.1", "l.2": "h.0"}, ExitCode.NOT_ESTABLISHED),
        ({"l.2": "h.1", "l.10": "h.0"}, ExitCode.NOT_ESTABLISHED),
        ({"l.2": "h.0", "l.10": "h.1"}, ExitCode.GOOD),
        ({"a.q": "b.k", "a.k": "b.q"}, ExitCode.NOT_ESTABLISHED),
        ({"a.norm1": "b.norm2", "a.norm2": "b.norm3"}, ExitCode.GOOD),
        ({"l.0.e.1": "e.1.l.0", "l.0.e.2": "e.2.l.0", "l.1.e.1": "e.1.l.1", "l.1.e.2": "e.2.l.1"}, ExitCode.GOOD),
        ({"l.0.e.1": "l.1.f.2", "l.0.e.2": "l.1.f.1"}, ExitCode.NOT_ESTABLISHED),
        ({f"l.{'9' * 5000}": "h.1", f"l.{'9' * 5001}": "h.2"}, ExitCode.GOOD),
    ],
)
def test_new_names_that_exchange_old_ones_are_not_established(
    renaming: dict[str, str], code: ExitCode, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = {name: rng.standard_normal(40).astype(np.float32) for name in renaming}
    report = eltwise.compare(a, {renaming[name]: array for name, array in a.items()})
    assert report.exit_code == code, str(report)
