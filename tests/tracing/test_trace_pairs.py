"""Generated pairs of models with and without one planted fault: only the planted node is ever blamed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import eltwise
from eltwise.conversion import model_of
from eltwise.core.dtypes import FLOAT16
from eltwise.formats.onnx.float_types import in_float_type
from eltwise.model import read
from eltwise.runtimes import Runtime, registry
from eltwise.tracing.report import TraceReport
from support.local_hosts import use_local_hosts
from support.model_pairs import REWRITES, SHAPE, constants_of, generate, plant, with_rounded_constants
from support.openvino_core import openvino_core
from support.traced_models import parsed, with_constant_nodes


@pytest.fixture(autouse=True, scope="module")
def _local() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_local_hosts(patch)
        yield


LARGEST_FLOAT16 = 65504
FAULTS = ("none", "in the first", "in the second")


def trace(seed: int, fault: str, rewrites: list[int], swapped: bool, segment: int) -> tuple[TraceReport, str]:
    """Trace a generated model and itself, rewritten, and name the node with the fault."""
    rng = random.Random(seed)  # noqa: S311 - models, not secrets
    first = second = generate(rng, rng.randrange(3, 14))
    changed, planted = plant(first, rng)
    if fault == "in the first":
        first = changed
    elif fault == "in the second":
        second = changed
    for number in rewrites:
        second = REWRITES[number](second, rng)
    pair = (second, first) if swapped else (first, second)
    inputs = {"x": np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)}
    return eltwise.trace(*pair, runtime="onnxruntime", against="onnxruntime", inputs=inputs, segment=segment), planted


@pytest.mark.usefixtures("no_joint_faults")
@settings(deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    fault=st.sampled_from(FAULTS),
    rewrites=st.lists(st.integers(0, len(REWRITES) - 1), unique=True, max_size=3),
    swapped=st.booleans(),
    segment=st.sampled_from((1, 300, 1 << 26)),
)
def test_only_the_planted_node_is_blamed(
    seed: int, fault: str, rewrites: list[int], swapped: bool, segment: int
) -> None:
    report, planted = trace(seed, fault, rewrites, swapped, segment)
    blamed = [node.name for node in report.nodes if node.blame in ("own", "in_graph", "fused", "changed")]
    if fault == "none":
        assert blamed == []
        assert report.is_good
    else:
        assert all(planted in re.split(r"\+", name) for name in blamed)
        assert report.first_name in (None, *blamed)


@pytest.mark.usefixtures("no_joint_faults")
@settings(deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    count=st.integers(1, 6),
    swapped=st.booleans(),
    form=st.sampled_from(("initializers", "nodes", "rounded")),
    segment=st.sampled_from((1, 1 << 26)),
)
def test_constants_that_differ_are_named_in_both_orders(
    seed: int, count: int, swapped: bool, form: str, segment: int
) -> None:
    """Whichever of them differ: where the outputs do, the first node that is named reads one of these."""
    rng = random.Random(seed)  # noqa: S311 - models, not secrets
    model = generate(rng, rng.randrange(3, 14))
    direct = [node for node in model.graph.node if not node.output[0].startswith("k")]
    names = sorted(constants_of(model).keys() & {name for node in direct for name in node.input})
    chosen = set(rng.sample(names, min(count, len(names))))
    other = onnx.ModelProto.FromString(model.SerializeToString())
    if form == "rounded":
        other = with_rounded_constants(other, chosen)
    for tensor in other.graph.initializer:
        if tensor.name in chosen:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), tensor.name))
    pair = (model, with_constant_nodes(other) if form == "nodes" else other)
    inputs = {"x": np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)}
    report = eltwise.trace(
        *(pair[::-1] if swapped else pair), runtime="onnxruntime", against="onnxruntime", inputs=inputs, segment=segment
    )
    readers = {node.name for node in direct if chosen & set(node.input)} | {f"cast {name}" for name in chosen}
    blamed = {node.name for node in report.nodes if node.blame in ("own", "in_graph", "fused", "changed")}
    names_of = chosen | {f"{name} half" for name in chosen}
    assert blamed <= readers
    node = report.first_node
    if node is None:
        assert report.is_good, str(report)
        notes = [note for note in report.notes if "another constant in the other model" in note]
        assert len(notes) == bool(chosen), str(report)
        assert all(any(f"{name!r} of " in note for name in names_of) for note in notes)
        return
    assert node.blame == "changed"
    assert any(f"{name!r}" in node.message for name in names_of)
    assert form != "rounded" or "rounded to float16" in node.message


@pytest.mark.parametrize("kinds", ["onnx half", "half onnx", "full half", "half full"])
def test_no_runtime_is_blamed_for_weights_that_a_file_rounds(kinds: str, tmp_path: Path) -> None:
    """OpenVINO saves the weights of an IR in float16 unless it is asked not to."""
    weights = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 3, 3, 3), np.float32), "w")
    model = parsed("""
        g (float[1,3,9,9] x) => (float[1,8,7,7] y) { c = Conv (x, w)  y = Relu (c) }
    """)
    model.graph.initializer.append(weights)
    onnx.save(model, tmp_path / "onnx.onnx")
    for kind in ("half", "full"):
        loaded = openvino_core().read_model(tmp_path / "onnx.onnx")
        openvino.save_model(loaded, tmp_path / f"{kind}.xml", compress_to_fp16=kind == "half")
    paths = [tmp_path / f"{kind}.{'onnx' if kind == 'onnx' else 'xml'}" for kind in kinds.split()]
    runtimes = ["onnxruntime" if kind == "onnx" else "openvino:precision=f32" for kind in kinds.split()]
    report = eltwise.trace(
        *paths, runtime=runtimes[0], against=runtimes[1], tolerance="rtol=1e-6, atol=1e-6", switches=False
    )
    assert report.verdict == "disagree"
    assert {node.blame for node in report.nodes} <= {None, "changed", "inherited"}, str(report)
    node = report.first_node
    assert node is not None, str(report)
    assert "rounded to float16" in node.message


@settings(deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    scale=st.sampled_from((1.0, 40.0, 2000.0)),
    segment=st.sampled_from((1, 300, 1 << 26)),
)
def test_what_leaves_float16_is_named_in_both_orders(seed: int, scale: float, segment: int) -> None:
    """A model and itself in float16: whichever is tested, only the first node whose results overflow is to blame."""
    rng = random.Random(seed)  # noqa: S311 - models, not secrets
    model = generate(rng, rng.randrange(3, 14))
    narrow = model_of(in_float_type(read(model).graph, FLOAT16)).proto()
    x = (scale * np.random.default_rng(seed).standard_normal(SHAPE)).astype(np.float16)
    names = [node.output[0] for node in model.graph.node]
    for one in (model, narrow):
        one.graph.output.extend(
            onnx.ValueInfoProto(name=n) for n in names if n not in {v.name for v in one.graph.output}
        )
    with np.errstate(all="ignore"):
        arrays = ReferenceEvaluator(model).run(names, {"x": x.astype(np.float32)})
    largest = [float(np.abs(array).max()) for array in arrays]
    assume(not any(6e4 < one < 7e4 for one in largest))
    lost = [one > LARGEST_FLOAT16 for one in largest]
    for first, second, dtype in ((narrow, model, np.float16), (model, narrow, np.float32)):
        inputs = {"x": x.astype(dtype)}
        report = eltwise.trace(
            first, second, runtime="onnxruntime", against="onnxruntime", inputs=inputs, segment=segment
        )
        blamed = [node for node in report.nodes if node.is_wrong_itself]
        assert {node.cause for node in blamed} <= {"overflow"}, str(report)
        if any(lost):
            assert report.verdict == "disagree"
            assert report.first_name == model.graph.node[lost.index(True)].name, str(report)


@pytest.mark.usefixtures("no_joint_faults")
@pytest.mark.parametrize("rewrite", range(len(REWRITES)), ids=[rewrite.__name__ for rewrite in REWRITES])
def test_most_planted_nodes_are_found(rewrite: int) -> None:
    """Of the faults that change an output. The others are said not to be told apart from their neighbours."""
    reports = [trace(seed, "in the first", [rewrite], False, 1 << 26)[0] for seed in range(40)]
    observed = [report for report in reports if not report.is_good]
    assert len(observed) > 20
    assert sum(report.first_name is not None for report in observed) / len(observed) > 0.75
    assert all(report.first_name or "wrong alone" in str(report) for report in observed)
    differ_alone = [any(node.alone is not None and node.alone.is_beyond for node in each.nodes) for each in observed]
    assert not any(
        "no node is wrong alone" in str(each) for each, one in zip(observed, differ_alone, strict=True) if one
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_only_the_planted_node_is_blamed_in_a_converted_model(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between ONNX and the IR that OpenVINO makes of it, which names the node of an output after that."""
    float32 = Runtime("openvino", "support.openvino_float32:OpenVinoFloat32", ("openvino",), ("openvino",))
    monkeypatch.setitem(registry.BY_NAME, "openvino", float32)
    rng = random.Random(seed)  # noqa: S311 - models, not secrets
    model = generate(rng, rng.randrange(3, 14))
    changed, planted = plant(model, rng)
    fault = FAULTS[seed % 3]
    rewritten = REWRITES[seed % len(REWRITES)](model if fault != "in the second" else changed, rng)
    onnx.save(rewritten, tmp_path / "model.onnx")
    ir = tmp_path / "model.xml"
    openvino_model = openvino_core().read_model(tmp_path / "model.onnx")
    openvino.save_model(openvino_model, ir, compress_to_fp16=False)
    pair = [("onnxruntime", changed if fault == "in the first" else model), ("openvino", ir)]
    (runtime, first), (against, second) = pair if seed % 2 else reversed(pair)
    inputs = {"x": np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)}
    report = eltwise.trace(first, second, runtime=runtime, against=against, inputs=inputs)
    blamed = [node.name for node in report.nodes if node.blame in ("own", "in_graph", "fused", "changed")]
    if fault == "none":
        assert (blamed, report.is_good) == ([], True)
    output = f"v{planted.rpartition('_')[2]}"
    assert all(planted in re.split(r"\+", name) or name == output for name in blamed)
