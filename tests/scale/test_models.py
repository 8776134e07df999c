"""Models on files in blocks: the same bits as in memory, or a sentence that says why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import zarr
from hypothesis import event, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper
from safetensors.numpy import load_file, save_file

import eltwise
from eltwise.core.blocks import Grid
from eltwise.core.errors import EltwiseError, UnsupportedError, ValueRangeError
from eltwise.engine.runner import Runner
from eltwise.formats import registry as formats
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.tensors import of_array
from eltwise.oracle import same_bits
from eltwise.scale.block_graphs import block_call
from eltwise.scale.blocks import BlockCall
from eltwise.scale.jobs import JobOutcome, Resources
from eltwise.scale.models import run_files
from support.onnx_models import model, node, value
from support.openvino_models import binary
from support.random_graphs import graphs
from support.stores import read, store, unfinished

Operands = dict[str, np.ndarray]
Cli = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("domain", ["ai.onnx", "openvino"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_blocks_of_random_graphs(domain: str, data: st.DataObject) -> None:
    graph, feeds = data.draw(graphs(domain))
    outputs = infer_graph(graph).outputs
    try:
        expected = Runner(graph, outputs).run(feeds)
    except ValueRangeError:
        return
    inputs = {port.value: of_array(port.name, feeds[port.name]) for port in graph.inputs}
    for port in outputs:
        try:
            call = block_call(graph, port, inputs)
        except UnsupportedError:
            assert any(each.schema.behaviour in ("reshape", "squeeze", "unsqueeze") for each in graph.nodes)
            event("not element-wise")
            continue
        event("element-wise")
        step = tuple(data.draw(st.integers(1, max(size, 1))) for size in call.shape)
        assert in_blocks(call, step).tobytes() == expected[port.name].tobytes()


def in_blocks(call: BlockCall, step: tuple[int, ...]) -> np.ndarray:
    found = np.empty(call.shape, call.result_type.storage)
    grid = Grid(call.shape, step)
    for cut in (grid[number] for number in range(len(grid))):
        found[cut] = call.compute(call.read(cut))
    return found


@pytest.fixture
def operands(seed: int) -> Operands:
    draw = np.random.default_rng(seed)
    return {"a": draw.standard_normal((6, 8, 10), np.float32), "b": draw.standard_normal(8, np.float32)}


@pytest.fixture
def network(operands: Operands, tmp_path: Path) -> Path:
    """``z`` and ``q`` are element-wise, ``r`` is not; stores of the inputs beside."""
    weight = numpy_helper.from_array(operands["b"].reshape(8, 1) + 1, "weight")
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    flat = numpy_helper.from_array(np.array([-1], np.int64), "flat")
    nodes = [
        node("Unsqueeze", ["b", "axis"], ["column"]),
        node("Sub", ["a", "column"], ["difference"], "minus"),
        node("Mul", ["difference", "weight"], ["scaled"]),
        node("Cast", ["scaled"], ["wide"], to=TensorProto.DOUBLE),
        node("Add", ["wide", "wide"], ["z"]),
        node("Max", ["difference", "a"], ["q"]),
        node("Reshape", ["q", "flat"], ["r"], "flatten"),
    ]
    outputs = [value("z", None, TensorProto.DOUBLE), value("q", None), value("r", None)]
    made = model(nodes, [value("a", ["n", 8, 10]), value("b", [8])], outputs, 14, 8, [weight, axis, flat])
    onnx.save(made, tmp_path / "m.onnx")
    store(tmp_path / "a.zarr", operands["a"], chunks=(2, 3, 4))
    store(tmp_path / "b.zarr", operands["b"], chunks=(5,))
    np.save(tmp_path / "b.npy", operands["b"])
    return tmp_path


def test_the_command(cli: Cli, network: Path, operands: Operands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(network)
    expected = eltwise.load("m.onnx").run(operands)
    command = ("run", "m.onnx", "-i", "a=a.zarr", "--input", "1=b.npy", "-o", "z=z.zarr", "-o", "r=r.npy")
    assert cli(*command) == (0, "", "")
    assert all(read(Path(path)).tobytes() == expected[path[0]].tobytes() for path in ("z.zarr", "r.npy"))
    assert cli(*command) == (0, "", "z.zarr is complete already\n")
    command = ("run", "m.onnx", "-i", "a=a.zarr", "-i", "b=b.npy", "-o", "z=2.zarr", "-o", "q=q.npy")
    reads: list[Path] = []
    read_model = formats.read
    monkeypatch.setattr(
        formats, "read", lambda path, *rest, **options: reads.append(path) or read_model(path, *rest, **options)
    )
    found = json.loads(cli(*command, "--json")[1])["outputs"]
    assert ({name: each["blocks"] for name, each in found.items()}, len(reads)) == ({"z": 27, "q": 1}, 1)
    assert read(Path("q.npy")).tobytes() == expected["q"].tobytes()
    assert zarr.open_array("2.zarr", mode="r").chunks == (2, 3, 4)
    assert cli(*command) == (0, "", "2.zarr is complete already\n")
    assert cli("run", "m.onnx", "-i", "a=a.zarr", "-i", "b=b.npy") == (
        *(2, ""),
        "eltwise: --output: the result of files like these is not printed; name a file with --output\n",
    )


@pytest.mark.parametrize("output", ["r.npy", "r.zarr"])
def test_what_is_not_elementwise_runs_as_a_whole_where_it_fits(network: Path, operands: Operands, output: str) -> None:
    expected = eltwise.load(network / "m.onnx").run(operands)["r"]
    inputs = {"a": str(network / "a.zarr"), "b": str(network / "b.zarr")}
    target = network / output
    with pytest.raises(EltwiseError) as refused:
        run_files(str(network / "m.onnx"), inputs, {"r": str(target)}, Resources(memory=1900))
    assert str(refused.value) == (
        f"{network / 'm.onnx'}: Reshape-14 node 'flatten', operands data 'q' and shape 'flat': this moves elements, so"
        " that the model cannot run block by block; such a model needs its inputs in memory: --memory 1MiB"
    )
    assert not target.exists()
    run_files(str(network / "m.onnx"), inputs, {"r": str(target)}, Resources())
    assert read(target).tobytes() == expected.tobytes()


def test_a_model_that_changed_begins_anew(network: Path) -> None:
    inputs, target = {"a": str(network / "a.zarr"), "b": str(network / "b.zarr")}, network / "z.zarr"

    def job() -> JobOutcome:
        return run_files(str(network / "m.onnx"), inputs, {"z": str(target)}, Resources())["z"]

    with unfinished():
        job()
    text = (network / "m.onnx").read_bytes()
    (network / "m.onnx").write_bytes(text.replace(b"minus", b"MINUS"))
    assert job().changed == ("the model",)
    (network / "m.onnx").touch()
    with pytest.raises(EltwiseError, match="made of another content of the model"):
        job()


def test_checkpoints(tmp_path: Path, seed: int) -> None:
    onnx.save(
        model([node("Sub", "xy", "z")], [value("x", None), value("y", None)], [value("z", None)]), tmp_path / "m.onnx"
    )
    draw = np.random.default_rng(seed)
    content = [{name: draw.standard_normal((9, 11), np.float32) for name in "ab"} for _ in "xy"]
    for name, tensors in zip("xy", content, strict=True):
        save_file(tensors, tmp_path / f"{name}.safetensors")
    inputs = {name: str(tmp_path / f"{name}.safetensors") for name in "xy"}
    run_files(str(tmp_path / "m.onnx"), inputs, {"z": str(tmp_path / "z.safetensors")}, Resources())
    for name, found in load_file(tmp_path / "z.safetensors").items():
        assert found.tobytes() == (content[0][name] - content[1][name]).tobytes()


@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "i64", "u8"])
def test_ports_that_convert_give_what_whole_arrays_give(kind: str, tmp_path: Path, seed: int) -> None:
    """An IR of version 10 takes float32 for float16, and gives every result as float32 or int32."""
    (tmp_path / "m.xml").write_bytes(binary(element_type=kind, version="10").xml())
    (tmp_path / "m.bin").touch()
    model = eltwise.load(tmp_path / "m.xml")
    generator = np.random.default_rng(seed)
    arrays = {
        port.name: (99 * generator.random((2, 3))).astype(port.type.element_type.storage)
        for port in model.graph.inputs
        if port.type.element_type
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (output,) = (port.name for port in model.outputs)
    inputs = {name: str(tmp_path / f"{name}.npy") for name in arrays}
    run_files(str(tmp_path / "m.xml"), inputs, {output: str(tmp_path / "out.npy")}, Resources())
    assert same_bits(np.load(tmp_path / "out.npy"), model.run(arrays)[output])


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ({"a": "a.zarr"}, {"z": "z.npy"}, "missing inputs: b"),
        ({"a": "b.npy", "b": "b.npy"}, {"z": "z.npy"}, "rank 1 is not the declared rank 3"),
        ({"a": "a.zarr", "b": "b.npy"}, {"z": "z.npy", "q": "z.npy"}, "two outputs have one name"),
        ({"a": "a.zarr", "b": "b.npy"}, {"z": "b.npy"}, "the output would replace an input"),
        ({"a": "a.zarr", "b": "b.npy"}, {"z": "z.safetensors"}, "with this ending"),
        ({"a": "a.zarr", "b": "none.npy"}, {"z": "z.npy"}, "there is no such file"),
    ],
)
def test_what_is_refused(
    network: Path, monkeypatch: pytest.MonkeyPatch, inputs: dict[str, str], outputs: dict[str, str], words: str
) -> None:
    monkeypatch.chdir(network)
    before = {path: path.stat().st_mtime_ns for path in network.iterdir()}
    with pytest.raises(EltwiseError) as refused:
        run_files("m.onnx", inputs, outputs, Resources())
    assert words in str(refused.value)
    assert before == {path: path.stat().st_mtime_ns for path in network.iterdir()}
