"""Broken ONNX files: every input ends in a reading, whose problems can be told, or in an EltwiseError."""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.reader import read_model_proto, read_onnx
from eltwise.formats.onnx.tensors import read_tensor_proto, write_tensor
from eltwise.formats.onnx.writer import write_onnx
from eltwise.formats.reading import Reading
from eltwise.ir.graph import Tensor
from support.onnx_models import (
    NEIGHBOURS,
    NEWEST,
    RUN_TYPES,
    all_problems,
    hard_bytes,
    model,
    neighbour_model,
    node,
    sub_model,
    value,
)

EXAMPLES = int(os.environ.get("ELTWISE_FUZZ_EXAMPLES", "1500"))
FOLDER = Path(__file__).parent
NUMBERS = [0, 1, -1, 2, 3, 6, 7, 14, 63, 64, 65, 99, 300, 2**16, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63)]
TEXTS = ["", "x", "y", "z", "w", "shape", "axes", "axis", "broadcast", "to", "value", "Sub", "Cast", "Reshape"]
TEXTS += ["ai.onnx", "location", "offset", "length", "-1", "99999999999", "../secret", "/dev/zero", ".", "a\0b", "?"]


def seeds() -> Iterator[ModelProto]:
    for opset in (1, 6, 7, 13, 14, NEWEST):
        yield sub_model(opset, **({"broadcast": 1, "axis": 0} if opset < 7 else {}))  # type: ignore[arg-type]
        yield from (neighbour_model(op_type, opset) for op_type in NEIGHBOURS)
    old = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y", ("N", 3))], [value("z", None)], ir_version=2)
    old.metadata_props.add(key="k", value="v")
    yield old
    initializers = [write_tensor(f"w{row.name}", Tensor(hard_bytes(row, 3), row)) for row in RUN_TYPES]
    initializers += [helper.make_tensor("f", TensorProto.FLOAT16, [2], [1.0, 2.0])]
    initializers += [helper.make_tensor("i", TensorProto.INT8, [2], [1, -2])]
    initializers += [helper.make_tensor("u", TensorProto.UINT64, [1, 1], [2**64 - 1])]
    outside = TensorProto(name="e", data_type=TensorProto.UINT8, dims=[10], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", Path(__file__).name), ("offset", "3"), ("length", "10")):
        outside.external_data.add(key=key, value=text)
    target = numpy_helper.from_array(np.array([3, -1], np.int64), "target")
    nodes = [
        node("Reshape", ["x", "target"], ["a"], "first"),
        node("Constant", [], ["b"], "second", value_floats=[1.0, float("nan")]),
        node("Sub", ["a", "b"], ["c"], "third"),
        node("Cast", ["c"], ["z"], "fourth", to=TensorProto.FLOAT8E5M2, saturate=0),
    ]
    inputs = [value("x", ("N", None)), value("target", (2,), TensorProto.INT64)]
    outputs = [value("z", None, TensorProto.FLOAT8E5M2)]
    yield model(nodes, inputs, outputs, 21, 10, [*initializers, outside, target], [value("a", (3, "M"))])


SEEDS = list(seeds())
BYTES = [seed.SerializeToString() for seed in SEEDS]


def broken_bytes(random: Random) -> bytes:
    """A valid file with bits flipped, parts cut out, doubled or taken from another file."""
    data = bytearray(random.choice(BYTES))
    for _ in range(random.randint(1, 4)):
        start, length = random.randrange(len(data) + 1), random.choice([1, 2, 8, 40])
        match random.randrange(5):
            case 0:
                data[start : start + 1] = bytes([random.randrange(256)])
            case 1 if start < len(data):
                data[start] ^= 1 << random.randrange(8)
            case 2:
                del data[start : start + length]
            case 3:
                other = random.choice(BYTES)
                place = random.randrange(len(other))
                data[start : start + random.choice([0, length])] = other[place : place + length]
            case _:
                del data[start:]
    return bytes(data)


def messages(message: Message) -> Iterator[Message]:
    yield message
    for field, content in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in [content] if field.has_presence else content:
                yield from messages(inner)


PARTS: dict[str, list[Message]] = {}
for _seed in SEEDS:
    for _part in messages(_seed):
        PARTS.setdefault(_part.DESCRIPTOR.name, []).append(_part)


def fresh_value(field: FieldDescriptor, random: Random) -> object:
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return random.choice(TEXTS)
        case FieldDescriptor.TYPE_BYTES:
            return random.choice([b"", b"\0", b"FLOAT", b"\xff" * 7, bytes(12), bytes(range(24))])
        case FieldDescriptor.TYPE_FLOAT | FieldDescriptor.TYPE_DOUBLE:
            return random.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), 3e38])
        case FieldDescriptor.TYPE_ENUM:
            return random.choice(field.enum_type.values).number
        case FieldDescriptor.TYPE_INT32:
            return random.choice([number for number in NUMBERS if -(2**31) <= number < 2**31])
        case FieldDescriptor.TYPE_UINT64:
            return random.choice([number for number in NUMBERS if number >= 0])
        case _:
            return random.choice(NUMBERS)


def change(message: Message, random: Random) -> None:
    """Change one field of a message: another value, another part of its kind, one entry more or less, or nothing."""
    field = random.choice(message.DESCRIPTOR.fields)
    if random.randrange(6) == 0:
        message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        parts = PARTS.get(field.message_type.name)
        content = getattr(message, field.name)
        target = content if field.has_presence else content.add()
        if parts:
            target.CopyFrom(random.choice(parts))
        else:
            target.SetInParent()
    elif field.has_presence:
        setattr(message, field.name, fresh_value(field, random))
    else:
        entries = getattr(message, field.name)
        if entries and random.randrange(3):
            entries[random.randrange(len(entries))] = fresh_value(field, random)
        else:
            entries.append(fresh_value(field, random))


def broken_model(random: Random) -> ModelProto:
    """A valid model with some of its fields changed."""
    proto = ModelProto()
    proto.CopyFrom(random.choice(SEEDS))
    for _ in range(random.choice([1, 1, 2, 5])):
        change(random.choice(list(messages(proto))), random)
    return proto


def read(data: bytes | ModelProto) -> Reading | EltwiseError:
    try:
        if isinstance(data, bytes):
            return read_onnx(data, FOLDER / "broken.onnx", "broken.onnx")
        return read_model_proto(data, FOLDER / "broken.onnx")
    except EltwiseError as error:
        return error.located(where="broken.onnx")


def outcome(data: bytes | ModelProto) -> str:
    """What becomes of an input; a model without problems must come back from its writer as it was."""
    reading = read(data)
    if isinstance(reading, EltwiseError):
        assert str(reading).startswith("broken.onnx: ")
        return "refused"
    problems = all_problems(reading)
    assert all(str(problem) for problem in problems)
    if reading.problems:
        return "read with problems"
    again = read_onnx(write_onnx(reading.graph), None, "again.onnx")
    assert again.graph == reading.graph
    return "inconsistent" if problems else "valid"


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_broken_bytes(random: Random) -> None:
    outcome(broken_bytes(random))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_broken_fields(random: Random) -> None:
    proto = broken_model(random)
    outcome(proto)
    outcome(proto.SerializeToString())


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    outcome(data)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_broken_tensor_files(random: Random) -> None:
    proto = TensorProto()
    proto.CopyFrom(random.choice(PARTS["TensorProto"]))
    change(proto, random)
    with contextlib.suppress(EltwiseError):
        read_tensor_proto(proto.SerializeToString(), FOLDER / "broken.pb", "broken.pb")


def test_the_fuzzer_reaches_every_outcome(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - tests need the same numbers every time
    found = {outcome(broken_model(random)) for _ in range(400)} | {outcome(broken_bytes(random)) for _ in range(400)}
    assert found == {"refused", "read with problems", "inconsistent", "valid"}
    assert {outcome(data) for data in BYTES} == {"valid"}


DATA = [{}, {"raw_data": b"1234"}, {"int32_data": [1]}, {"data_location": TensorProto.EXTERNAL}]
HOSTILE = [(2**62,), (2**31, 2**31), (0, 2**62, 2), (2**40,), (2**20, 2**20), (2**63 - 1,) * 64, (1,) * 10**5]


@pytest.mark.parametrize("dims", HOSTILE, ids=lambda dims: f"{dims[:2]}-{len(dims)}")
@pytest.mark.parametrize(
    "field", [{}, {"raw_data": b"1234"}, {"int32_data": [1]}, {"data_location": TensorProto.EXTERNAL}]
)
def test_a_hostile_size_allocates_nothing(dims: tuple[int, ...], field: dict[str, Any]) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.INT8, dims=dims, **field)
    if "data_location" in field:
        tensor.external_data.add(key="location", value=Path(__file__).name)
    proto = model([node("Identity", ["w"], ["z"])], [], [value("z", None)], initializers=[tensor])
    data = proto.SerializeToString()
    tracemalloc.start()
    try:
        reading = read_onnx(data, FOLDER / "hostile.onnx", "hostile.onnx")
        problems = all_problems(reading)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert any("initializer 'w'" in str(problem) for problem in problems)
    assert peak < 3 << 20
