"""Models that are no models: every command and every public function says so in a sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

import eltwise
from eltwise.core.errors import EltwiseError
from support.onnx_models import model, node, sub_model, value

Cli = Callable[..., tuple[int, str, str]]

IN_PYTHON: dict[str, Callable[[ModelProto], object]] = {
    "load": eltwise.load,
    "up": lambda made: eltwise.convert(made, opset=17),
    "down": lambda made: eltwise.convert(made, opset=7),
    "to IR": lambda made: eltwise.convert(made, "openvino"),
    "verified": lambda made: eltwise.convert(made, opset=17, verify=True),
    "check onnxruntime": lambda made: eltwise.check(made, "onnxruntime", run=False),
    "check openvino": lambda made: eltwise.check(made, "openvino", run=False),
    "repair onnxruntime": lambda made: eltwise.repair(made, "onnxruntime"),
    "repair openvino": lambda made: eltwise.repair(made, "openvino"),
}
AT_THE_SHELL = (
    ("check", "in.onnx"),
    ("check", "in.onnx", "--target", "openvino", "--no-run"),
    ("convert", "in.onnx", "out.xml"),
)
STARTING_RUNTIMES = (
    ("check", "in.onnx", "--target", "onnxruntime"),
    ("repair", "in.onnx", "out.onnx", "--target", "onnxruntime"),
    ("repair", "in.onnx", "out.onnx", "--target", "openvino"),
    ("convert", "in.onnx", "out.onnx", "--opset", "17", "--verify"),
)
"""Each takes longer than all that start none: a model gets one of them, and the next model the next one."""


def of_unknown_type(place: str) -> ModelProto:
    """A model with an element type that there is not, in a value's type."""
    made = sub_model(13)
    made.graph.value_info.append(value("difference", (2, 3)))
    made.graph.initializer.add(name="y", data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=bytes(24))
    match place:
        case "initializer":
            made.graph.initializer[0].data_type = 99
        case "input of an initializer":
            made.graph.input[1].type.tensor_type.elem_type = 99
        case "attribute":
            made.graph.node.append(node("Cast", ["x"], ["w"], to=99))
        case "sequence":
            made.graph.value_info[0].type.sequence_type.elem_type.tensor_type.elem_type = 99
        case "map":
            made.graph.value_info[0].type.map_type.key_type = 99
        case _:
            getattr(made.graph, place)[0].type.tensor_type.elem_type = 99
    return made


def of_deep_type(field: str, kind: str, depth: int) -> ModelProto:
    """A model with a type of types of types."""
    made = sub_model(13)
    found = getattr(made.graph, field).add(name="deep").type
    for _ in range(depth):
        found = getattr(found, kind)
        found = found.value_type if kind == "map_type" else found.elem_type
    found.tensor_type.elem_type = 1
    return made


def of_wiring(nodes: list[tuple[str, list[str]]]) -> ModelProto:
    made = [node("Sub", inputs, [output]) for output, inputs in nodes]
    return model(made, [value("x")], [value("z")], 13)


MODELS: dict[str, Callable[[], ModelProto]] = {
    **{
        f"unknown type of {place}": lambda place=place: of_unknown_type(place)  # type: ignore[misc]
        for place in (
            "input",
            "output",
            "value_info",
            "initializer",
            "input of an initializer",
            "attribute",
            "sequence",
            "map",
        )
    },
    **{
        f"{kind} {depth} deep in {field}": lambda field=field, kind=kind, depth=depth: of_deep_type(field, kind, depth)  # type: ignore[misc]
        for kind in ("sequence_type", "optional_type", "map_type")
        for field in ("input", "output", "value_info")
        for depth in (45, 400, 1100)
    },
    "no maker": lambda: of_wiring([("z", ["x", "nobody"])]),
    "no maker beside itself": lambda: of_wiring([("z", ["nobody", "z"])]),
    "no maker in a cycle": lambda: of_wiring([("a", ["nobody", "b"]), ("b", ["a", "other"]), ("z", ["a", "b"])]),
    "no maker and a second one": lambda: of_wiring([("z", ["nobody", "z"]), ("z", ["z", "nobody"])]),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_wrong_is_an_error_of_the_family_in_python(name: str) -> None:
    for call in IN_PYTHON.values():
        with contextlib.suppress(EltwiseError):
            call(MODELS[name]())


@pytest.mark.parametrize("name", [name for name in MODELS if "400" not in name])
def test_what_is_wrong_is_a_sentence_at_the_shell(
    name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        Path("in.onnx").write_bytes(MODELS[name]().SerializeToString())
    except ValueError:
        pytest.skip("protobuf does not write it")
    turn = list(MODELS).index(name) % len(STARTING_RUNTIMES)
    for arguments in (*AT_THE_SHELL, STARTING_RUNTIMES[turn]):
        code, _out, err = cli(*arguments)
        assert code in (0, 1, 2, 3)
        assert code != 2 or err.startswith("eltwise: ")


def outer(sizes: list[int], element_type: int) -> ModelProto:
    """A model of a few numbers an input, whose result has the product of them all."""
    names = [f"i{number}" for number in range(len(sizes))]
    inputs = [
        value(name, tuple(size if axis == number else 1 for axis in range(len(sizes))), element_type)
        for number, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]
    results = [names[0], *(f"r{number}" for number in range(1, len(sizes)))]
    nodes = [node("Sub", [results[n], names[n + 1]], [results[n + 1]]) for n in range(len(sizes) - 1)]
    return model(nodes, inputs, [value(results[-1], None, element_type)], 14)


@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.UINT8])
@pytest.mark.parametrize("sizes", [[1 << 16] * 2, [1 << 20] * 3, [1 << 16] * 4, [1 << 17] * 4, [1 << 20] * 4])
def test_a_result_larger_than_memory_is_not_run_to_verify(sizes: list[int], element_type: int) -> None:
    for wanted in ({"opset": 17}, {"to": "openvino"}):
        try:
            _made, report = eltwise.convert(outer(sizes, element_type), verify=True, **wanted)
        except EltwiseError:
            continue
        assert report.verified == "nothing could be compared: a result is too large to be compared"


@pytest.mark.parametrize("sizes", [[1 << 10, 1 << 10, 1 << 26], [1 << 20] * 3, [1 << 17] * 4])
def test_a_result_larger_than_memory_is_a_sentence(sizes: list[int]) -> None:
    made = outer(sizes, TensorProto.DOUBLE)
    feeds = {port.name: np.zeros([d.dim_value for d in port.type.tensor_type.shape.dim]) for port in made.graph.input}
    with pytest.raises(EltwiseError, match=r"memory|too large|elements"):
        eltwise.load(made).run(feeds)


@pytest.mark.parametrize("sizes", [[2**40, 2**40], [0, 2**40, 2**40], [2**25 + 1]])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("trace", "in.onnx", "--runtime", "onnxruntime", "--against", "exact"), 2),
        (("record", "in.onnx", "--runtime", "onnxruntime", "--output", "out.safetensors"), 2),
        (("check", "in.onnx", "--target", "onnxruntime"), 3),
    ],
)
def test_inputs_are_not_drawn_where_a_file_makes_them_large(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], command: tuple[str, ...], code: int
) -> None:
    """In the last file each of two inputs could be drawn alone."""
    monkeypatch.chdir(tmp_path)
    inputs = [value("x", sizes, TensorProto.INT32), value("y", sizes, TensorProto.INT32)]
    made = model([node("Sub", ["x", "y"], ["z"])], inputs, [value("z", sizes, TensorProto.INT32)], 14)
    Path("in.onnx").write_bytes(made.SerializeToString())
    got, out, err = cli(*command)
    assert got == code
    assert "the inputs are too large to be drawn at random" in out + err
    assert "at most 67,108,864 elements in all inputs" in out + err
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]
    with pytest.raises(EltwiseError, match="the inputs are too large to be drawn at random"):
        eltwise.load(made).random_inputs()


def test_sizes_that_make_inputs_too_large_are_not_tried() -> None:
    """Of what is tried for the open dimensions, 512 for each comes before 77, of which alone the model runs."""
    nodes = [node("Reshape", ["x", "shape"], ["y"]), node("Neg", ["y"], ["z"])]
    made = model(nodes, [value("x", list("ABCDE"))], [value("z", None)], 13)
    made.graph.initializer.append(numpy_helper.from_array(np.int64([7, 11]), "shape"))
    report = eltwise.trace(made, runtime="onnxruntime", against="exact")
    assert report.verdict == "agree"
    assert "77" in report.inputs
