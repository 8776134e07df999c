"""What layers of IR hold and eltwise does not read, graphs and elements of other types: it is compared and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import openvino
import openvino.opset13 as ops
import pytest
from openvino import Model

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.model import read
from eltwise.tracing.report import TraceReport
from support.local_hosts import use_local_hosts

Operator = Callable[..., openvino.Node]
KINDS = ("If", "TensorIterator")
X = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}


@pytest.fixture(autouse=True, scope="module")
def _local() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_local_hosts(patch)
        yield


def write(
    path: Path,
    kind: str,
    numbers: tuple[int, int] = (5, 9),
    operator: Operator = ops.add,
    names: str = "",
    before: int = 0,
) -> Path:
    """A model of which a layer has a graph with two constants; others before these move them to other offsets."""
    x, zero = ops.parameter([3, 4], np.float32, name="x"), ops.constant(np.zeros((1, 4), np.float32))
    read = [ops.parameter([1, 4], np.float32, name=f"{names}read{number}") for number in range(2)]
    constants = [
        ops.constant(np.float32([[one, 1, 2, 3]]), name=f"{names}constant{number}")
        for number, one in enumerate(numbers)
    ]
    scaled = ops.multiply(read[0], constants[0], name=f"{names}scaled")
    result = operator(ops.add(scaled, constants[1], name=f"{names}moved"), read[1], name=f"{names}result")
    body, rows = Model([result], read, f"{names}body"), x
    for number in range(before):
        rows = ops.add(rows, ops.constant(np.full((3, 4), number, np.float32)))
    if kind == "If":
        other = ops.parameter([1, 4], np.float32)
        node = ops.if_op(ops.constant(np.array([False])))
        node.set_then_body(Model([ops.relu(other)], [other]))
        node.set_else_body(body)
        row = ops.gather(rows, ops.constant(np.int64([1])), ops.constant(np.int64(0)))
        node.set_input(row.output(0), other, read[0])
        node.set_input(zero.output(0), None, read[1])
        end = node.set_output(node.get_function(0).get_results()[0], body.get_results()[0])
    else:
        node = ops.tensor_iterator()
        node.set_body(body)
        node.set_sliced_input(read[0], rows.output(0), 0, 1, 1, -1, 0)
        node.set_merged_input(read[1], zero.output(0), result.output(0))
        end = node.get_iter_value(result.output(0), -1)
    openvino.serialize(Model([ops.relu(end)], [x], "whole"), path)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_read_with_its_layer_and_is_run(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "model.xml", kind)
    report = eltwise.check(path)
    assert (report.exit_code, [str(problem) for problem in report.problems]) == (0, []), str(report)
    assert f"({kind})" in str(report) or f", {kind}" in str(report), str(report)
    traced = eltwise.trace(path, runtime="openvino", against="openvino", inputs=X)
    assert traced.verdict == "agree", str(traced)
    assert kind in {node.op_type for node in traced.nodes if node.status == "equal"}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_a_body_is_compared(kind: str, swapped: bool, tmp_path: Path) -> None:
    """Names and offsets do not count; operators and the elements of constants do, also if two were exchanged."""
    model = write(tmp_path / "model.xml", kind)
    others = {
        "names": write(tmp_path / "names.xml", kind, names="other "),
        "number": write(tmp_path / "number.xml", kind, (6, 9)),
        "exchanged": write(tmp_path / "exchanged.xml", kind, (9, 5), names="other "),
        "operator": write(tmp_path / "operator.xml", kind, operator=ops.subtract),
    }
    for what, other in others.items():
        pair = (other, model) if swapped else (model, other)
        report = eltwise.compare(*pair)
        assert report.is_good == (what == "names"), f"{what}: {report}"
    moved = [write(tmp_path / f"{number}.xml", kind, (number, 9), before=1) for number in (5, 6)]
    nodes = {nodes_of(path, kind) for path in (model, *moved, others["names"])}
    assert len(nodes) == 2, "offsets count"


def nodes_of(path: Path, kind: str) -> str:
    """The attributes of the layer of a kind."""
    (node,) = (one for one in read(path).graph.nodes if one.schema.name == kind)
    return repr(node.operation.attributes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_changed_body_is_named(kind: str, swapped: bool, tmp_path: Path) -> None:
    pair = [write(tmp_path / f"{number}.xml", kind, (number, 9)) for number in (5, 6)]
    report = eltwise.trace(
        *pair[:: -1 if swapped else 1], runtime="openvino", against="openvino", inputs=X, switches=False
    )
    node = report.first_node
    assert node is not None, str(report)
    assert (report.verdict, node.op_type, node.blame) == ("disagree", kind, "changed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_that_the_weights_lack_is_a_problem(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "model.xml", kind)
    weights = path.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:-1])
    report = eltwise.check(path)
    assert report.exit_code == 1
    assert "of the weights" in str(report)
    with pytest.raises(EltwiseError, match="weights"):
        eltwise.compare(path, path)


def write_weights(path: Path, element_type: str, numbers: Sequence[int], name: str = "w") -> Path:
    """A model with weights of a type, behind an operator."""
    x = ops.parameter([2, 4], np.float32, name="x")
    weights = openvino.op.Constant(getattr(openvino.Type, element_type), openvino.Shape([4, 2]), list(numbers))
    weights.set_friendly_name(name)
    end = ops.matmul(ops.relu(x), ops.convert(weights, "f32", name="wide"), False, False)
    openvino.serialize(Model([end], [x], "weights"), path)
    return path


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("element_type", ["nf4", "u1", "f4e2m1"])
def test_no_runtime_is_blamed_for_weights_that_are_not_read(element_type: str, swapped: bool, tmp_path: Path) -> None:
    ones = [1, 0, 1, 1, 0, 1, 0, 1]
    pair = [
        write_weights(tmp_path / f"{number}.xml", element_type, [*ones[:-1], number], name)
        for number, name in ((1, "w"), (0, "v"))
    ]
    inputs = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}

    def traced(one: Path, other: Path) -> TraceReport:
        return eltwise.trace(one, other, runtime="openvino", against="openvino", inputs=inputs, switches=False)

    report = traced(*pair[:: -1 if swapped else 1])
    node = report.first_node
    assert node is not None, str(report)
    assert (report.verdict, node.op_type, node.blame) == ("disagree", "Convert", "changed")
    assert node.message == f"the other model has another constant {'v' if swapped else 'w'!r}"
    same = write_weights(tmp_path / "same.xml", element_type, [*ones[:-1], 1], "other name")
    assert {node.blame for node in traced(pair[0], same).nodes} == {None}
    assert not eltwise.compare(*pair).is_good
    assert eltwise.check(same).problems == ()
    same.with_suffix(".bin").write_bytes(b"")
    assert "of the weights" in str(eltwise.check(same))


def test_a_constant_without_elements_is_read_as_openvino_writes_it(tmp_path: Path) -> None:
    x, path = ops.parameter([2, 3], np.float32, name="x"), tmp_path / "model.xml"
    openvino.serialize(Model([ops.concat([x, ops.constant(np.zeros((0, 3), np.float32))], 0)], [x], "empty"), path)
    assert eltwise.check(path).problems == ()
    assert [len(tensor.array) for _name, tensor in read(path).graph.constants] == [0]
