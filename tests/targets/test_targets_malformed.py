"""What a runtime refuses before it looks at a kernel: what is not valid, and what it alone forbids."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.errors import GraphError
from eltwise.targets.runtime_rules import onnxruntime_problems
from onnx_models import find_problems, model, node, sub_model, value


@pytest.mark.parametrize(
    ("nodes", "onnxruntime", "openvino"),
    [
        ([node("Sub", ["x", "y"], ["d"], "n"), node("Neg", ["d"], ["z"], "n")], 1, 0),
        ([node("Sub", ["x", "y"], ["d"]), node("Neg", ["d"], ["z"])], 0, 0),
        ([node("Sub", ["x", "y"], ["d"], "m"), node("Neg", ["d"], ["z"], "n")], 0, 0),
        *(([node("Sub", operands, ["z"], "n")], 1, 1) for operands in ([], ["x"], ["x", ""], ["x", "y", "x"])),
        ([node("Mul", ["x", "y"], ["z", "w"], "n")], 1, 1),
    ],
)
def test_what_every_session_refuses_is_named(nodes: list[onnx.NodeProto], onnxruntime: int, openvino: int) -> None:
    made = model(nodes, [value("x"), value("y")], [value("z")], 14, 8)
    for target, count in (("onnxruntime", onnxruntime), ("openvino", openvino)):
        found = [finding for finding in eltwise.check(made, target).findings if finding.kind == "refused"]
        assert [("'n'" in str(finding)) for finding in found] == [True] * count
        if count:
            with pytest.raises(GraphError, match="'n'"):
                eltwise.repair(made, target)


def test_what_onnxruntime_alone_refuses_is_told_of_it_alone() -> None:
    branch = helper.make_graph([node("Neg", ["x"], ["t"])], "branch", [], [value("x", None)])
    chosen = node("If", ["k"], ["z"], then_branch=branch, else_branch=branch)
    made = model([chosen], [value("x"), value("k", (), TensorProto.BOOL)], [value("z", None)], 14, 8)
    assert find_problems(made) == []
    assert "gives out 'x', which is made around it" in str(onnxruntime_problems(made)[0])
    assert [len(eltwise.check(made, runtime).findings) for runtime in ("onnxruntime", "openvino")] == [1, 0]


def test_openvino_alone_does_not_read_sparse_initializers() -> None:
    made = sub_model(14)
    del made.graph.input[1]
    held = onnx.SparseTensorProto(dims=[3], values=numpy_helper.from_array(np.float32([5]), "y"))
    held.indices.CopyFrom(numpy_helper.from_array(np.int64([1])))
    made.graph.sparse_initializer.append(held)
    findings = [eltwise.check(made, runtime).findings for runtime in ("onnxruntime", "openvino")]
    assert [len(found) for found in findings] == [0, 1]
    assert str(findings[1][0]).startswith("initializer 'y': refused: OpenVINO does not read sparse initializers")


@pytest.mark.parametrize(("ir_version", "is_read", "count"), [(3, False, 1), (3, True, 0), (4, False, 0)])
def test_onnxruntime_refuses_needless_data_of_old_files(ir_version: int, is_read: bool, count: int) -> None:
    y = numpy_helper.from_array(np.float32([1, 2, 3]), "k")
    operands = ["x", "k" if is_read else "x"]
    made = model([node("Sub", operands, ["z"], "n")], [value("x")], [value("z")], 14, ir_version, [y])
    assert find_problems(made) == []
    assert ["initializer 'k'" in str(problem) for problem in onnxruntime_problems(made)] == [True] * count


def test_of_a_model_with_other_operators_only_nothing_is_said() -> None:
    made = model([node("Normalizer", ["x"], ["z"], "n")], [value("x")], [value("z")], 3, 8)
    made.graph.node[0].domain = made.opset_import[0].domain = "ai.onnx.ml"
    report = eltwise.check(made, "onnxruntime")
    assert (report.is_good, report.judged, dict(report.not_judged)) == (True, 0, {"ai.onnx.ml.Normalizer": 1})
    same, said = eltwise.repair(made, "onnxruntime")
    assert (same, said.unchanged) == (made, True)
