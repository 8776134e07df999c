"""Models with random faults: none that onnxruntime loads is called not valid, and nearly all that it refuses are."""

from __future__ import annotations

import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from test_validate import load_all

from onnx_models import find_problems, model, node, value

VALUES = ["x", "c", "i", "cc", "r", "k", "tt", "cs", "cf", "rm", "z", "mm", "b", "sh", "w", "nothing", ""]
OPERATORS = ["Add", "Relu", "Neg", "MatMul", "Sum", "Max", "Softmax", "Flatten", "Identity", "Where", "Sub", "Cast"]
SHAPES = [None, (2, 3), (3,), (4, 3), ("N", 3), (0, 3), ()]


def valid() -> onnx.ModelProto:
    branch = helper.make_graph([node("Sub", ["x", "b"], ["p"])], "branch", [], [value("p")])
    nodes = [
        node("If", ["c"], ["i"], "if", then_branch=branch, else_branch=branch),
        node("Concat", ["i", "i"], ["cc"], "joined", axis=1),
        node("Relu", ["cc"], ["r"], "rectified"),
        node("Reshape", ["r", "sh"], ["k"], "reshaped"),
        node("Transpose", ["k"], ["tt"], "transposed", perm=[1, 0]),
        node("Cast", ["tt"], ["cs"], "cast", to=TensorProto.DOUBLE),
        node("Cast", ["cs"], ["cf"], to=TensorProto.FLOAT),
        node("ReduceMax", ["cf"], ["rm"], "largest", axes=[0], keepdims=1),
        node("Sub", ["cf", "rm"], ["z"], "minus"),
        node("MatMul", ["cf", "w"], ["mm"], "product"),
    ]
    tensors = [
        numpy_helper.from_array(np.float32([1, 2, 3]), "b"),
        numpy_helper.from_array(np.int64([4, 3]), "sh"),
        numpy_helper.from_array(np.ones((4, 2), np.float32), "w"),
    ]
    inputs = [value("x"), value("c", (), TensorProto.BOOL)]
    return model(nodes, inputs, [value("z", None), value("mm", None)], 14, 8, tensors)


def spoil(made: onnx.ModelProto, chance: random.Random) -> None:
    graph = made.graph
    found: NodeProto = chance.choice(graph.node)
    types = [TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE]
    match chance.randrange(9):
        case 0:
            found.op_type = chance.choice(OPERATORS)
        case 1 if found.attribute:
            chance.choice(found.attribute).i = chance.choice([-3, -2, -1, 0, 1, 2, 5, 7, 10, 11, 13, 99])
        case 2 if found.input:
            found.input[chance.randrange(len(found.input))] = chance.choice(VALUES)
        case 3:
            found.input.append(chance.choice(VALUES))
        case 4 if found.input:
            del found.input[-1]
        case 5:
            found.output[0] = chance.choice(VALUES[:-1])
        case 6:
            declared = chance.choice([*graph.input, *graph.output])
            declared.CopyFrom(value(declared.name, chance.choice(SHAPES), chance.choice(types)))
        case 7:
            graph.value_info.append(value(chance.choice(VALUES[:-1]), chance.choice(SHAPES), chance.choice(types)))
        case _:
            nodes = list(graph.node)
            chance.shuffle(nodes)
            copies = [NodeProto.FromString(one.SerializeToString()) for one in nodes]
            graph.ClearField("node")
            graph.node.extend(copies)


def test_random_faults_are_found_where_onnxruntime_refuses_them(seed: int) -> None:
    if find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed; the extra 'witnesses' has it")
    chance = random.Random(seed)  # noqa: S311 - nothing secret is drawn
    models = {}
    for number in range(600):
        models[str(number)] = made = valid()
        for _time in range(number % 3):
            spoil(made, chance)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        data = {name: made.SerializeToString() for name, made in models.items()}
        refused = process.submit(load_all, data).result()
    found = {name: problems for name, made in models.items() if (problems := find_problems(made))}
    assert len(refused) > 100
    assert {name: str(found[name][0]) for name in found.keys() - refused.keys()} == {}
    missed = refused.keys() - found.keys()
    assert len(missed) <= len(refused) // 50, [refused[name] for name in missed]
