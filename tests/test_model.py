"""A model as a Python object: its ports, calls, random inputs, copies; and operators by name and opset."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import StringStringEntryProto, TensorProto, numpy_helper

import eltwise
from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.errors import AttributeValueError, EltwiseError, FileFormatError, GraphError, NameUnknownError
from eltwise.ops import registry
from eltwise.targets.problems import problems_of
from support.onnx_models import model, node, value
from support.operands import required

LOCATION = StringStringEntryProto(key="location", value="absent.bin")
MODELS = Path(__file__).parents[1] / "examples" / "models"


def symbolic() -> eltwise.Model:
    inputs = [value("x", ["N", 3]), value("y", ["N", None])]
    return eltwise.load(model([node("Sub", ["x", "y"], ["z"])], inputs, [value("z", None)], 14))


def test_ports_say_shapes_and_types_as_python_has_them() -> None:
    loaded = symbolic()
    assert [port.shape for port in loaded.inputs] == [("N", 3), ("N", None)]
    assert [port.dtype for port in loaded.inputs] == [np.dtype("float32")] * 2
    bfloat16 = eltwise.load(MODELS / "sub13_bfloat16.onnx")
    assert bfloat16.inputs[0].dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("path", sorted((*MODELS.glob("*.onnx"), *MODELS.glob("*.xml"))), ids=lambda path: path.name)
def test_every_model_is_called_with_its_random_inputs_and_copied(path: Path) -> None:
    loaded = eltwise.load(path)
    inputs = loaded.random_inputs(seed=3)
    results = loaded(**inputs)
    again = loaded.run(loaded.random_inputs(3))
    for copied in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):  # noqa: S301
        assert copied == loaded
        for name, result in copied.run(inputs).items():
            assert result.tobytes() == results[name].tobytes() == again[name].tobytes()
    names = ", ".join(inputs)
    with pytest.raises(GraphError, match=f"got list; allowed: a dict of {re.escape(names) or 'no inputs'}$"):
        loaded.run(list(inputs.values()))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("number", "content", "message"),
    [
        (TensorProto.FLOAT, {"raw_data": b"123"}, "raw_data is 3 bytes, expected 12"),
        (TensorProto.BOOL, {"raw_data": b"\2\1\0"}, "bytes that are not bool values, got 2"),
        (TensorProto.INT8, {"int32_data": [300, 1, 2]}, "int32_data is no int8, got 300"),
        (TensorProto.FLOAT, {"data_location": 1, "external_data": [LOCATION]}, "there is no external data file"),
    ],
)
@pytest.mark.parametrize("is_read", [True, False])
def test_the_elements_of_tensors_are_checked_when_a_model_is_loaded(
    tmp_path: Path, number: int, content: dict[str, Any], message: str, is_read: bool
) -> None:
    """Also those that no node reads."""
    nodes = [node("Identity", ["w" if is_read else "x"], ["z"])]
    proto = model(nodes, [value("x", [3], number)], [value("z", [3], number)], 14)
    proto.graph.initializer.append(TensorProto(name="w", data_type=number, dims=[3], **content))
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(EltwiseError, match=message):
        eltwise.load(path)
    (problem,) = problems_of(path).problems
    assert message in str(problem)


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.name)
def test_a_model_that_was_converted_there_and_back_equals_the_one_that_was_read(path: Path) -> None:
    """What keeps a file's bytes is no part of a model."""
    loaded = eltwise.load(path)
    opset = loaded.graph.origin.opset
    newer, _report = eltwise.convert(loaded, opset=opset + 1)
    assert newer != loaded
    assert eltwise.convert(newer, opset=opset)[0] == loaded == eltwise.load(path)


@pytest.mark.parametrize("element_type", [BOOL, *(each for each in TYPES if each.is_numeric)], ids=str)
def test_random_inputs_have_values_of_every_kind(element_type: ElementType) -> None:
    """Narrow integers overflow; wider ones, which an operator may take for an index, are small, and none is 0."""
    ports = [value(name, [500], element_type.onnx_number) for name in "xz"]
    (array,) = (
        eltwise.load(model([node("Identity", ["x"], ["z"])], ports[:1], ports[1:], 21, 10)).random_inputs().values()
    )
    numbers = array.astype(np.float64)
    if element_type is BOOL:
        assert 0.3 < numbers.mean() < 0.7
    elif element_type.kind == "float":
        assert 0.3 < (numbers > 0).mean() < 0.7
        assert 0.5 < numbers.std() < 1.5
    elif element_type.bits > 16:
        assert set(numbers.tolist()) == set(range(1, 8))
    else:
        low, high = element_type.limits
        assert (numbers.min() < low / 2) if low else (numbers.min() < high / 2)
        assert numbers.max() > high / 2
        assert numbers.all()


def test_random_inputs_have_the_sizes_that_are_given() -> None:
    inputs = symbolic().random_inputs(N=5)
    assert (inputs["x"].shape, inputs["y"].shape) == ((5, 3), (5, 16))
    other = symbolic().random_inputs(seed=1, N=5)
    assert (inputs["x"] != other["x"]).any()
    with pytest.raises(NameUnknownError, match="there is no dimension 'M'; allowed: N"):
        symbolic().random_inputs(M=2)
    for wrong in (-1, 1.5, True, "2", None):
        with pytest.raises(EltwiseError, match="N: not a size of this dimension"):
            symbolic().random_inputs(N=wrong)  # type: ignore[arg-type]


def test_a_call_takes_inputs_by_name_and_refuses_others() -> None:
    with pytest.raises(EltwiseError, match="missing inputs: y"):
        symbolic()(x=np.ones((2, 3), np.float32))
    with pytest.raises(EltwiseError, match="self"):
        symbolic()(self=1)


@pytest.mark.parametrize("mapping", [dict, OrderedDict, MappingProxyType])
def test_a_run_takes_inputs_of_every_mapping(mapping: type) -> None:
    inputs = {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)}
    (result,) = symbolic().run(mapping(inputs)).values()
    assert result.tolist() == [[0, 0, 0]] * 2
    with pytest.raises(EltwiseError, match="the inputs are given by name"):
        symbolic().run(list(inputs.values()))  # type: ignore[call-overload]


def test_a_model_saves_itself(tmp_path: Path) -> None:
    loaded = eltwise.load(MODELS / "sub14_uint8.onnx")
    assert loaded.save(tmp_path / "same.onnx") == ()
    assert eltwise.load(tmp_path / "same.onnx") == loaded


@pytest.mark.parametrize("arguments", [(), (False,), (True,)])
@pytest.mark.parametrize("save", [eltwise.save, eltwise.Model.save])
def test_weights_get_a_file_of_their_own_only_if_asked_for(
    save: Callable[..., object], arguments: tuple[bool, ...], tmp_path: Path
) -> None:
    weights = numpy_helper.from_array(np.ones(1000, np.float32), "w")
    nodes, x, z = [node("Sub", ["x", "w"], ["z"])], value("x", [1000]), value("z", [1000])
    save(eltwise.load(model(nodes, [x], [z], 14, initializers=[weights])), tmp_path / "m.onnx", *arguments)
    assert len([*tmp_path.iterdir()]) == 1 + any(arguments)


def test_operators_are_equal_and_hashed_by_what_they_compute() -> None:
    one, same = (eltwise.operator("Sub-6", broadcast=1, axis=axis) for axis in (0, np.int64(0)))
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same, eltwise.operator("Sub-6"), eltwise.operator("Sub-7")}) == 3
    assert one != "Sub-6"
    assert copy.deepcopy(one) == one


def test_every_operator_is_listed_and_found_by_its_opset() -> None:
    for name in eltwise.operators():
        attributes = required(registry.find(name))
        operator = eltwise.operator(name, **attributes)
        schema = operator.operation.schema
        assert eltwise.operator(f"{schema.domain}.{schema.name}", opset=schema.version, **attributes) == operator
        if schema.domain == "ai.onnx":
            assert eltwise.operator(schema.name, opset=schema.version, **attributes) == operator


def test_an_opset_chooses_the_version() -> None:
    names = [eltwise.operator("Sub", opset=opset).name for opset in (1, 6, 12, 13, 21)]
    assert names == ["Sub-1", "Sub-6", "Sub-7", "Sub-13", "Sub-14"]
    assert len(eltwise.operators()) == len(registry.ELEMENTWISE)
    for wrong in (0, -1, 10**9):
        with pytest.raises(AttributeValueError, match="there is no such opset"):
            eltwise.operator("Sub", opset=wrong)
    for name in ("Subtract", "Reshape", "Sub-6", "nowhere.Sub"):
        with pytest.raises(NameUnknownError):
            eltwise.operator(name, opset=14)
    for unversioned in ("Sub", "Sub-99"):
        with pytest.raises(NameUnknownError, match="the newest is Sub-14"):
            eltwise.operator(unversioned)


def test_a_number_of_threads_is_for_a_block_or_for_good() -> None:
    before = eltwise.get_num_threads()
    with eltwise.set_num_threads(3):
        assert eltwise.get_num_threads() == 3
        with eltwise.set_num_threads(1):
            assert eltwise.get_num_threads() == 1
        assert eltwise.get_num_threads() == 3
    assert eltwise.get_num_threads() == before
    eltwise.set_num_threads(2)
    assert eltwise.get_num_threads() == 2
    eltwise.set_num_threads(before)


@pytest.mark.parametrize("name", ["sub14_uint8.onnx", "subtract_none.xml"])
def test_a_model_is_loaded_from_an_open_file(name: str) -> None:
    with (MODELS / name).open("rb") as opened:
        assert eltwise.load(opened) == eltwise.load(MODELS / name)
    assert eltwise.load(io.BytesIO((MODELS / name).read_bytes())) == eltwise.load(MODELS / name)
    with pytest.raises(FileFormatError, match="open it with mode 'rb'"):
        eltwise.load(io.StringIO("text"))  # type: ignore[arg-type]
    with (MODELS / name).open("rb") as closed:
        pass
    with pytest.raises(FileFormatError, match="the open file cannot be read"):
        eltwise.load(closed)


def test_a_module_is_compared_by_its_tensors() -> None:
    class Module:
        def state_dict(self) -> dict[str, np.ndarray]:
            return {"w": np.ones(1, np.float32)}

    with pytest.raises(TypeError, match=r"no set of tensors, got Module; compare its tensors: state_dict\(\)"):
        eltwise.compare(Module(), Module())
    assert eltwise.compare(Module().state_dict(), Module().state_dict()).is_good
