"""Pairs of models that mean the same, with or without one planted fault: generated models, and ways to rewrite them.

The name of a node says which nodes of the generated model it stands for: ``mul_3+add_4``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from copy import deepcopy

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

SHAPE = (4, 6)
UNARY = ("Relu", "Tanh", "Neg", "Abs", "Sigmoid", "Softplus")
CONSTANT = ("Add", "Sub", "Mul", "MatMul")
BINARY = ("Add", "Sub", "Mul", "Max")


def generate(rng: random.Random, nodes: int) -> ModelProto:
    """A model of random nodes, all values of one shape; the last ones are its outputs."""
    values, made, constants = ["x"], list[NodeProto](), dict[str, np.ndarray]()
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    for number in range(nodes):
        kind = rng.choice(("unary", "constant", "constant", "binary", "folded"))
        read = [rng.choice(values[-3:])]
        if kind == "unary":
            op = rng.choice(UNARY)
        elif kind == "binary":
            op = rng.choice(BINARY)
            read.append(rng.choice(values[-4:]))
        else:
            op = rng.choice(CONSTANT) if kind == "constant" else "Add"
            size = (SHAPE[1],) * (2 if op == "MatMul" else 1)
            scale = 0.5 if op == "MatMul" else 1.0
            constants[f"c{number}"] = (scale * numbers.standard_normal(size)).astype(np.float32)
            read.append(f"c{number}")
        if kind == "folded":
            constants[f"d{number}"] = numbers.standard_normal(SHAPE[1]).astype(np.float32)
            made.append(helper.make_node("Mul", [f"c{number}", f"d{number}"], [f"k{number}"], f"scale_{number}"))
            read[1] = f"k{number}"
        made.append(helper.make_node(op, read, [f"v{number}"], f"{op.lower()}_{number}"))
        values.append(f"v{number}")
    read_values = {value for node in made for value in node.input}
    outputs = [value for value in values if value not in read_values]
    return _model(made, outputs, constants)


def _model(nodes: list[NodeProto], outputs: list[str], constants: dict[str, np.ndarray]) -> ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", *outputs)]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "generated", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def constants_of(model: ModelProto) -> dict[str, np.ndarray]:
    """The constants by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _set_constants(model: ModelProto, constants: dict[str, np.ndarray]) -> None:
    del model.graph.initializer[:]
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())


def _set_nodes(model: ModelProto, nodes: list[NodeProto]) -> None:
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def plant(model: ModelProto, rng: random.Random) -> tuple[ModelProto, str]:
    """The model with another constant or another operator at one node, and the name of that."""
    changed = deepcopy(model)
    node = rng.choice(list(changed.graph.node))
    constants = constants_of(changed)
    read = [name for name in node.input if name in constants]
    if read and (rng.random() < 0.7 or node.op_type == "MatMul"):
        name = read[-1]
        constants[f"{name}'"] = (constants[name] * 1.5 + 0.25).astype(np.float32)
        node.input[list(node.input).index(name)] = f"{name}'"
        _set_constants(changed, constants)
    elif len(node.input) == 1:
        node.op_type = rng.choice([op for op in UNARY if op != node.op_type])
    else:
        node.op_type = rng.choice([op for op in BINARY if op != node.op_type])
    return changed, node.name


def renamed(model: ModelProto, rng: random.Random) -> ModelProto:
    """Other names of everything inside, of which some are those of other values."""
    model = deepcopy(model)
    outputs = {value.name for value in model.graph.output}
    inside = [node.output[0] for node in model.graph.node if node.output[0] not in outputs]
    shift = min(rng.randrange(0, 3), len(inside))
    others = [*inside[shift:], *(f"new {number}" for number in range(shift))] if shift else [f"n{v}" for v in inside]
    new = dict(zip(inside, others, strict=True))
    for node in model.graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    return model


def with_identities(model: ModelProto, rng: random.Random) -> ModelProto:
    """Some values copied; the copy has the name, or what is copied."""
    model = deepcopy(model)
    outputs = {value.name for value in model.graph.output}
    nodes, new = list[NodeProto](), dict[str, str]()
    for node in model.graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        value, nodes = node.output[0], [*nodes, node]
        if rng.random() < 0.3:
            copy = f"{value} copy"
            if value in outputs or rng.random() < 0.5:
                node.output[0] = copy
                nodes.append(helper.make_node("Identity", [copy], [value], f"copy of {value}"))
            else:
                nodes.append(helper.make_node("Identity", [value], [copy], f"copy of {value}"))
                new[value] = copy
    _set_nodes(model, nodes)
    return model


def with_rounded_constants(model: ModelProto, names: Collection[str]) -> ModelProto:
    """Some constants in float16, cast back for their readers."""
    model = deepcopy(model)
    constants, casts = constants_of(model), list[NodeProto]()
    for name in sorted(names):
        constants[f"{name} half"] = constants.pop(name).astype(np.float16)
        casts.append(helper.make_node("Cast", [f"{name} half"], [name], f"cast {name}", to=TensorProto.FLOAT))
    _set_nodes(model, [*casts, *model.graph.node])
    _set_constants(model, constants)
    return model


def folded(model: ModelProto, _rng: random.Random) -> ModelProto:
    """What is computed of constants as a constant."""
    model = deepcopy(model)
    constants, nodes, names = constants_of(model), list[NodeProto](), dict[str, str]()
    functions = {"Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Max": np.maximum}
    for node in model.graph.node:
        if len(node.input) == 2 and all(name in constants for name in node.input) and node.op_type in functions:
            one, two = (constants[name] for name in node.input)
            constants[node.output[0]] = functions[node.op_type](one, two)
            names[node.output[0]] = node.name
        else:
            node.name = "+".join([node.name, *(names[name] for name in node.input if name in names)])
            nodes.append(node)
    _set_nodes(model, nodes)
    _set_constants(model, constants)
    return model


def upset(model: ModelProto, _rng: random.Random) -> ModelProto:
    """The same in opset 18."""
    return onnx.version_converter.convert_version(model, 18)


def reordered(model: ModelProto, rng: random.Random) -> ModelProto:
    """(x - m) * s as x * s - m * s, and x + a + b as x + b + a; the value between keeps its name, or has a new one."""
    model = deepcopy(model)
    constants, nodes = constants_of(model), list(model.graph.node)
    outputs = {value.name for value in model.graph.output}
    for one, two in zip(list(nodes), list(nodes)[1:], strict=False):
        kinds = (one.op_type, two.op_type)
        between = one.output[0]
        readers = [name for node in nodes for name in node.input].count(between)
        is_chain = two.input[0] == between and readers == 1 and between not in outputs and one in nodes
        if not (is_chain and all(len(node.input) == 2 and node.input[1] in constants for node in (one, two))):
            continue
        a, b = one.input[1], two.input[1]
        name = rng.choice((between, f"{between} swapped"))
        if kinds in (("Sub", "Mul"), ("Add", "Mul")):
            constants[f"{a}*{b}"] = constants[a] * constants[b]
            new = ("Mul", b), (kinds[0], f"{a}*{b}")
        elif set(kinds) <= {"Add", "Sub"}:
            new = (kinds[1], b), (kinds[0], a)
        else:
            continue
        first = helper.make_node(new[0][0], [one.input[0], new[0][1]], [name], f"{one.name}+{two.name}")
        second = helper.make_node(new[1][0], [name, new[1][1]], list(two.output), f"{two.name}+{one.name}")
        nodes[nodes.index(one)], nodes[nodes.index(two)] = first, second
    _set_nodes(model, nodes)
    _set_constants(model, constants)
    return model


def fused(model: ModelProto, _rng: random.Random) -> ModelProto:
    """MatMul and Add of a constant as Gemm."""
    model = deepcopy(model)
    constants, nodes = constants_of(model), list(model.graph.node)
    outputs = {value.name for value in model.graph.output}
    for one, two in zip(list(nodes), list(nodes)[1:], strict=False):
        between = one.output[0]
        readers = [name for node in nodes for name in node.input].count(between)
        if (one.op_type, two.op_type) != ("MatMul", "Add") or readers != 1 or between in outputs:
            continue
        if two.input[0] != between or two.input[1] not in constants or one.input[1] not in constants:
            continue
        inputs = [*one.input, two.input[1]]
        place = nodes.index(one)
        nodes[place : place + 2] = [helper.make_node("Gemm", inputs, list(two.output), f"{one.name}+{two.name}")]
    _set_nodes(model, nodes)
    return model


REWRITES: tuple[Callable[[ModelProto, random.Random], ModelProto], ...] = (
    renamed,
    with_identities,
    folded,
    upset,
    reordered,
    fused,
)
