"""The search for a switch: the same on every ladder and every fault, in few runs; and what cannot be run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

import eltwise
from eltwise.runtimes.specification import split
from eltwise.tracing.switches import LADDERS, Switches, Trial, find_switches
from support.local_hosts import use_local_hosts
from support.traced_models import named, parsed

LEVELS = ("disabled", "basic", "extended", "layout", "all")
OPTIMIZERS = LADDERS["onnxruntime"][0].parts
NOT_QUANTIZED = "openvino:config.DYNAMIC_QUANTIZATION_GROUP_SIZE=0,precision=f32"
VERSIONS = tuple(f"1.{number}.0" for number in range(12))


def search(wrong_from: str, culprits: set[str], unavailable: str = "", specification: str = "onnxruntime") -> Switches:
    """Search a runtime that is wrong from a level on unless some optimizers are disabled."""

    def judge(text: str) -> Trial:
        settings = dict(split(text).settings)
        level = settings.get("optimization", "all")
        if level == unavailable:
            return Trial(text, "not_established")
        is_off = bool(culprits) and culprits <= set(settings.get("disabled_optimizers", "").split("+"))
        is_wrong = LEVELS.index(level) >= LEVELS.index(wrong_from) and not is_off
        return Trial(text, "disagree" if is_wrong else "agree")

    return find_switches(specification, judge)


@given(
    st.sampled_from(LEVELS), st.sets(st.sampled_from(OPTIMIZERS), max_size=3), st.sampled_from(("", "layout", "basic"))
)
def test_the_highest_level_that_is_right_and_the_optimizers_are_found(
    wrong_from: str, culprits: set[str], unavailable: str
) -> None:
    found = search(wrong_from, culprits, unavailable)
    names = [trial.name for trial in found.remedies]
    assert all(trial.verdict == "agree" for trial in found.remedies)
    if wrong_from == "disabled":
        assert (names, str(found)) == ([], "optimization=disabled does not help")
        return
    available = [level for level in LEVELS if level != unavailable]
    right = [level for level in available if LEVELS.index(level) < LEVELS.index(wrong_from)][-1]
    first = available[available.index(right) + 1]
    parts = [f"right with optimization={right}", f"wrong with optimization={first}"]
    off = [name for name in OPTIMIZERS if name in culprits]
    assert names[0] == f"onnxruntime:optimization={right}"
    assert str(found).startswith("; ".join(parts))
    assert names[1:] == ([f"onnxruntime:disabled_optimizers={'+'.join(sorted(off))}"] if off else [])
    assert str(found).endswith(f"right with {', '.join(off)} disabled" if off else parts[-1])
    assert len(found.trials) <= 5 + 1 + 8 * (len(culprits) + 1) * bool(culprits)


@given(st.integers(1, len(VERSIONS) - 1), st.booleans(), st.sets(st.sampled_from(VERSIONS[1:-1]), max_size=4))
def test_the_version_that_changed_is_found(change: int, is_mended: bool, missing: set[str]) -> None:
    def judge(text: str) -> Trial:
        version = split(text).version
        if not version or version in missing:
            return Trial(text, "not_established")
        return Trial(text, "agree" if (VERSIONS.index(version) >= change) == is_mended else "disagree")

    found = find_switches("planted:threads=1", judge, VERSIONS)
    older = [one for one in VERSIONS[:change] if one not in missing][-1]
    newer = next(one for one in VERSIONS[change:] if one not in missing)
    states = ("wrong", "right") if is_mended else ("right", "wrong")
    assert str(found) == f"{states[0]} with planted {older}, {states[1]} from {newer} on"
    assert [trial.name for trial in found.remedies] == [f"planted=={newer if is_mended else older}:threads=1"]


@pytest.mark.parametrize(
    ("specification", "tried"),
    [
        ("onnxruntime:optimization=disabled", []),
        ("onnxruntime==1.20.1:optimization=basic,threads=1", ["onnxruntime==1.20.1:optimization=disabled,threads=1"]),
        ("onnxruntime", ["onnxruntime:optimization=disabled"]),
        ("openvino:precision=bf16", [NOT_QUANTIZED, "openvino:precision=f32"]),
        ("openvino", [NOT_QUANTIZED, "openvino:precision=f32"]),
        ("openvino:precision=f32", [NOT_QUANTIZED]),
        (NOT_QUANTIZED, []),
        ("onnx-reference", []),
    ],
)
def test_other_options_and_the_version_stay(specification: str, tried: list[str]) -> None:
    found = find_switches(specification, lambda text: Trial(text, "disagree"))
    assert [trial.name for trial in found.trials] == tried


@pytest.mark.parametrize(
    "right", [{"openvino:precision=f32"}, {NOT_QUANTIZED}, {NOT_QUANTIZED, "openvino:precision=f32"}]
)
def test_the_step_that_is_right_and_changes_least_is_found(right: set[str]) -> None:
    """A reference that quantizes activations by itself makes only the step in the middle right."""
    found = find_switches("openvino", lambda text: Trial(text, "agree" if text in right else "disagree"))
    expected = "openvino:precision=f32" if "openvino:precision=f32" in right else NOT_QUANTIZED
    assert [trial.name for trial in found.remedies] == [expected]
    above = "wrong without" if expected != NOT_QUANTIZED else "wrong with precision=f32"
    assert str(found) == f"right with {expected.removeprefix('openvino:')}; {above}"


@pytest.mark.parametrize("option", LADDERS["onnxruntime"][0].of_bytes)
@pytest.mark.parametrize("with_fewer", [True, False])
def test_an_option_may_make_products_of_bytes_right(option: tuple[str, str], with_fewer: bool) -> None:
    """And is named first, as it changes less than fewer optimizations."""
    with_option = f"onnxruntime:{option[0]}={option[1]},threads=1"

    def judge(text: str) -> Trial:
        is_fewer = "optimization=disabled" in text or "optimization=basic" in text
        return Trial(text, "agree" if text == with_option or (with_fewer and is_fewer) else "disagree")

    found = find_switches("onnxruntime:threads=1", judge, has_bytes=True)
    fewer = ["onnxruntime:optimization=basic,threads=1"] if with_fewer else []
    assert [trial.name for trial in found.remedies] == [with_option, *fewer]
    assert f"right with {option[0]}={option[1]}" in found.sentences
    assert not any(option[0] in trial.name for trial in find_switches("onnxruntime:threads=1", judge).trials)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("runtime", "sentence"),
    [
        ("WrongWithOpenSizes", "optimization=disabled does not help"),
        ("WrongUnlessBasic", "right with optimization=basic; wrong with optimization=extended"),
    ],
)
def test_switches_are_judged_on_the_file_as_it_is(runtime: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sizes fixed the first of these runtimes is right at every level."""
    use_local_hosts(monkeypatch)
    monkeypatch.setitem(LADDERS, runtime, LADDERS["onnxruntime"])  # type: ignore[arg-type]
    model = named(parsed("g (float[N, 4] x) => (float[N, 4] z) { t = Tanh(x) n = Neg(t) z = Relu(n) }"))
    report = eltwise.trace(model, runtime=runtime, against="float64")
    assert (report.verdict, str(report.switches)) == ("disagree", sentence), str(report)


CONSTANT_OUTPUTS = {
    "only a constant": ("", "z = Constant<value_floats = [1.0, 2.0]>()", "float[2] z"),
    "a constant beside a node": ("", "z = Constant<value_floats = [1.0, 2.0]>() w = Neg(x)", "float[2] z, float[2] w"),
    "an initializer beside a node": ("<float[2] z = {1, 2}>", "w = Neg(x)", "float[2] z, float[2] w"),
    "an input beside a node": ("", "w = Neg(x)", "float[2] x, float[2] w"),
}


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("kind", CONSTANT_OUTPUTS)
def test_no_switch_is_right_whose_run_has_other_outputs(
    kind: str, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No switch of a runtime changes what no node computes."""
    use_local_hosts(monkeypatch)
    head, body, outputs = CONSTANT_OUTPUTS[kind]
    model = parsed(f"g (float[2] x) => ({outputs}) {head} {{ {body} }}")
    other = parsed(f"g (float[2] x) => ({outputs}) {head} {{ {body} }}".replace("1.0, 2.0", "1.0, 3.0"))
    for tensor in other.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(np.float32([1, 3]), tensor.name))
    if "input" in kind:
        other = parsed("g (float[2] x) => (float[2] y, float[2] w) { y = Exp(x) w = Neg(x) }")
    report = eltwise.trace(model, other, runtime=runtime, against="onnxruntime")
    assert report.verdict == "disagree"
    assert report.switches is not None
    expected = ((), 2 if runtime == "openvino" else 1)
    assert (report.switches.remedies, len(report.switches.trials)) == expected, str(report.switches)
    assert all(trial.verdict == "disagree" for trial in report.switches.trials)
