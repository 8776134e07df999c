"""Random models: however one is run, each output has the bits that the reference gives, node by node.

``make test-random SEED=7 COUNT=5000`` draws others, and more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import eltwise
from eltwise import oracle
from eltwise.core import broadcasting
from eltwise.core.blocks import Box, ranges
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, UnsupportedError, ValueRangeError
from eltwise.engine import dask_arrays, fusion, runner
from eltwise.engine.call import calls_of
from eltwise.formats.tensor_files import parse_tensor_file, read_tensor_file, write_tensor_files
from eltwise.kernels import compiled, dispatch
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.native import OFTEN
from eltwise.ops.expression import Expression, Step
from eltwise.ops.schema import ElementwiseSchema
from eltwise.scale import blocks
from eltwise.scale.jobs import Resources
from eltwise.scale.models import run_files
from support.conversions import written
from support.graph_reference import outputs_of, values_of, without_unread
from support.layouts import layouts, view
from support.random_graphs import Drawn, graphs
from support.seeds import examples

Arrays = dict[str, np.ndarray]
MOST_NODES = 12
DOMAINS = ["ai.onnx", "openvino"]


def outcome(run: Callable[[], Arrays]) -> Arrays | None:
    """What a run gives; None where it refuses the values of an operand."""
    try:
        return run()
    except ValueRangeError:
        return None


def check(outputs: Arrays | None, expected: Arrays | None, way: str) -> None:
    assert (outputs is None) == (expected is None), f"{way}: refused {outputs is None}, must be {expected is None}"
    if outputs is None or expected is None:
        return
    assert [*outputs] == [*expected], way
    for name, array in outputs.items():
        assert oracle.same_bits(np.asarray(array), expected[name]), f"{way}, {name}: {array}, not {expected[name]}"


def check_what_is_read(outputs: Arrays | None, drawn: Drawn, way: str) -> None:
    """Compare the outputs of a run that need not compute what no output is made of."""
    if outputs is not None or outputs_of(*drawn) is not None:
        check(outputs, outputs_of(without_unread(drawn.graph), drawn.feeds), way)


def in_any_layout(draw: st.DrawFn, array: np.ndarray) -> np.ndarray:
    """The same elements in memory of their own: strided, reversed, transposed, byte-swapped or unaligned."""
    layout = draw(layouts(array.shape, array.dtype.itemsize))
    memory = np.zeros(2 * array.nbytes + 64, np.uint8)
    placed = view(memory, of_numpy(array.dtype), array.shape, layout)
    placed[...] = array
    return placed


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@examples(60)
@given(data=st.data())
def test_however_it_is_run(domain: str, data: st.DataObject) -> None:
    drawn = data.draw(graphs(domain, MOST_NODES))
    model, expected = eltwise.load(*written(drawn.graph)), outputs_of(*drawn)
    given = {name: array.copy() for name, array in drawn.feeds.items()}
    check(outcome(lambda: model.run(given)), expected, "the first run")
    check(outcome(lambda: model.run(given)), expected, "the second run")
    for name, array in drawn.feeds.items():
        assert oracle.same_bits(given[name], array), f"input {name} was written"
    odd = {name: in_any_layout(data.draw, array) for name, array in given.items()}
    check(outcome(lambda: model.run(odd)), expected, "arrays in any layout")
    if expected is not None:
        for _call in range(OFTEN):
            model.run(given)
    check(outcome(lambda: model.run(given)), expected, f"after {OFTEN} runs")
    check(outcome(lambda: model.run(odd)), expected, f"arrays in any layout after {OFTEN} runs")


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("domain", DOMAINS)
@examples(60)
@given(data=st.data())
def test_every_kernel(domain: str, kernels: str, data: st.DataObject) -> None:
    """Of two threads each computes some of the elements."""
    drawn = data.draw(graphs(domain, MOST_NODES))
    expected = outputs_of(*drawn)
    odd = {name: in_any_layout(data.draw, array) for name, array in drawn.feeds.items()}
    with pytest.MonkeyPatch.context() as patch, eltwise.set_num_threads(data.draw(st.sampled_from([2, 1]))):
        patch.setattr(dispatch, "mode", lambda: kernels)
        patch.setattr(compiled, "LEAST_BYTES_PER_PIECE", 8)
        calls_of.cache_clear()
        model = eltwise.load(*written(drawn.graph))
        for feeds, way in ((drawn.feeds, "the first run"), (drawn.feeds, "the second run"), (odd, "in any layout")):
            check(outcome(lambda feeds=feeds: model.run(feeds)), expected, way)  # type: ignore[misc]
    calls_of.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@examples(100)
@given(data=st.data())
def test_nodes_into_arrays_that_share_memory_with_their_operands(domain: str, data: st.DataObject) -> None:
    drawn = data.draw(graphs(domain, MOST_NODES))
    try:
        values = values_of(drawn.graph, drawn.feeds)
    except oracle.OracleRefusal:
        return
    for node in drawn.graph.nodes:
        if not isinstance(node.schema, ElementwiseSchema) or not all(node.inputs):
            continue
        right = values[node.outputs[0]]
        memory = np.zeros(2 * max(values[name].nbytes for name in (*node.inputs, *node.outputs)) + 64, np.uint8)
        arrays = [values[name] for name in node.inputs]
        chosen = data.draw(st.integers(0, len(arrays) - 1))
        shared, out = (
            view(memory, of_numpy(each.dtype), each.shape, data.draw(layouts(each.shape, each.dtype.itemsize)))
            for each in (arrays[chosen], right)
        )
        shared[...] = arrays[chosen]
        arrays[chosen] = shared
        operator = eltwise.operator(node.schema.versioned_name, **dict(node.bound.attributes))
        assert operator(*arrays, out=out) is out
        assert oracle.same_bits(np.array(out, right.dtype), right), f"{node}: {out}, not {right}"


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@examples(60)
@given(data=st.data())
def test_lazily(domain: str, data: st.DataObject) -> None:
    drawn = data.draw(graphs(domain, MOST_NODES))
    if not drawn.feeds:
        return
    model = eltwise.load(*written(drawn.graph))
    lazy = {
        name: da.from_array(array, tuple(data.draw(st.integers(1, max(size, 1))) for size in array.shape))
        for name, array in drawn.feeds.items()
    }

    def run() -> Arrays:
        return {name: np.asarray(array) for name, array in model.run(lazy).items()}

    with suppress(UnsupportedError):  # Some graphs do more than lazy arrays can.
        check_what_is_read(outcome(run), drawn, "lazily")


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@examples(40)
@given(data=st.data())
def test_on_files_larger_than_memory(
    domain: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    drawn = data.draw(graphs(domain, MOST_NODES))
    if not drawn.feeds:
        return
    folder = tmp_path_factory.mktemp("files")
    model = eltwise.load(*written(drawn.graph))
    path = folder / ("model.onnx" if domain == "ai.onnx" else "model.xml")
    eltwise.save(model, path)
    inputs = {name: parse_tensor_file(str(folder / f"input{number}.npy")) for number, name in enumerate(drawn.feeds)}
    targets = {
        port.name: parse_tensor_file(str(folder / f"output{number}.npy")) for number, port in enumerate(model.outputs)
    }
    write_tensor_files(drawn.feeds, inputs)
    sources, outputs = ({name: str(file.path) for name, file in files.items()} for files in (inputs, targets))

    def run() -> Arrays:
        run_files(str(path), sources, outputs, Resources())
        return {port.name: read_tensor_file(targets[port.name], port.type.element_type) for port in model.outputs}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", data.draw(st.sampled_from([16, 64])))
        check_what_is_read(outcome(run), drawn, "on files")


# The proof that each property can fail: faults that are planted in the engine.


def swapping_operands_of_joined_nodes(patch: pytest.MonkeyPatch) -> None:
    joined = fusion._joined

    def swapped(reader: fusion.Group, inner: fusion.Group) -> fusion.Group | None:
        group = joined(reader, inner)
        if group is None:
            return None
        *steps, last = group.expression.steps
        expression = replace(group.expression, steps=(*steps, last._replace(operands=last.operands[::-1])))
        return replace(group, expression=expression)

    patch.setattr(fusion, "_joined", swapped)


def joining_what_two_nodes_read(patch: pytest.MonkeyPatch) -> None:
    """The first operand in place of the result of the inner node, as where its number is not what it was."""
    renumbered = fusion._renumbered

    def off(expression: Expression, numbers: Sequence[int], first_step: int) -> tuple[Step, ...]:
        return renumbered(expression, [0 if number >= first_step - 1 > 1 else number for number in numbers], first_step)

    patch.setattr(fusion, "_renumbered", off)


def forgetting_divisors_of_joined_nodes(patch: pytest.MonkeyPatch) -> None:
    joined = fusion._joined

    def without(reader: fusion.Group, inner: fusion.Group) -> fusion.Group | None:
        group = joined(reader, inner)
        return group and replace(group, divisors=())

    patch.setattr(fusion, "_joined", without)


def ignoring_the_axis(patch: pytest.MonkeyPatch) -> None:
    rule = broadcasting._RULES["pdpd"]
    patch.setitem(broadcasting._RULES, "pdpd", lambda given, a, b: rule(given._replace(axis=-1), a, b))


def mistaking_byte_orders(patch: pytest.MonkeyPatch) -> None:
    """A program is found for arrays that are alike but for their byte order."""

    def key_of(arrays: Sequence[np.ndarray], names: tuple[str, ...] = ()) -> object:
        return (*names, *((array.dtype.newbyteorder("="), array.shape) for array in arrays))

    patch.setattr(runner, "key_of", key_of)


def recording_another_kernel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiled, "kernel_text", lambda structure: kernel_text(structure).replace(" fmul ", " fadd "))


def losing_tails(patch: pytest.MonkeyPatch) -> None:
    """A kernel's last piece ends one run or element early."""

    def early(*arguments: int) -> list[tuple[int, int]]:
        pieces = list(ranges(*arguments))
        return pieces[:-1] if len(pieces) > 1 else pieces

    patch.setattr(compiled, "ranges", early)


def reading_the_first_block_again(patch: pytest.MonkeyPatch) -> None:
    read = blocks.BlockCall.read

    def first(call: blocks.BlockCall, box: Box) -> list[np.ndarray]:
        return read(call, tuple(slice(0, part.stop - part.start) for part in box))

    patch.setattr(blocks.BlockCall, "read", first)


def swapping_chunks(patch: pytest.MonkeyPatch) -> None:
    placed = dask_arrays._Layout.placed
    patch.setattr(dask_arrays._Layout, "placed", lambda *given: np.flip(placed(*given)))


def writing_before_reading(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiled.Recipe, "overlaps", lambda *_given: False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "finder", "domain", "kernels"),
    [
        (swapping_operands_of_joined_nodes, test_however_it_is_run, "ai.onnx", None),
        (joining_what_two_nodes_read, test_however_it_is_run, "openvino", None),
        (forgetting_divisors_of_joined_nodes, test_however_it_is_run, "openvino", None),
        (ignoring_the_axis, test_however_it_is_run, "openvino", None),
        (mistaking_byte_orders, test_however_it_is_run, "ai.onnx", None),
        (recording_another_kernel, test_however_it_is_run, "ai.onnx", None),
        (losing_tails, test_every_kernel, "ai.onnx", "compiled"),
        (reading_the_first_block_again, test_on_files_larger_than_memory, "ai.onnx", None),
        (swapping_chunks, test_lazily, "ai.onnx", None),
        (writing_before_reading, test_nodes_into_arrays_that_share_memory_with_their_operands, "ai.onnx", "compiled"),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    finder: Any,
    domain: str,
    kernels: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    plant(monkeypatch)
    calls_of.cache_clear()
    if kernels:
        monkeypatch.setattr(dispatch, "mode", lambda: kernels)
    fixtures = {"kernels": kernels, "tmp_path_factory": tmp_path_factory}
    arguments = {name: value for name, value in fixtures.items() if name in signature(finder).parameters}

    @settings(
        phases=[Phase.generate], report_multiple_bugs=False, max_examples=1000, suppress_health_check=[*HealthCheck]
    )
    @given(st.data())
    def search(data: st.DataObject) -> None:
        finder.hypothesis.inner_test(domain=domain, data=data, **arguments)

    with pytest.raises((AssertionError, EltwiseError)):
        search()
    calls_of.cache_clear()
