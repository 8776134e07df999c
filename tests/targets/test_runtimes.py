"""Check and repair with the runtimes themselves: rules say what they do, and what is repaired is right there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

import eltwise
from eltwise import runtimes
from eltwise.conformance.compare import References
from eltwise.core.dtypes import BFLOAT16, INT8
from eltwise.ir.graph import Graph, Origin
from eltwise.passes import align_broadcast, upcast
from eltwise.passes.align_broadcast import Alignment
from eltwise.runtimes import Host
from eltwise.runtimes.registry import BY_NAME
from eltwise.targets.measure import NEWEST_IR_VERSION, loads, measure_variant, requested
from eltwise.targets.rules import MEASURED_FACTS, level, shipped_rules
from eltwise.targets.run import severity_of
from eltwise.tracing.model_program import program_of
from support import onnx_models
from support.node_pairs import node_pairs
from support.openvino_models import binary
from support.random_chains import random_chain

MODELS = Path(__file__).parents[2] / "examples" / "models"
TARGET_OF = {"onnxruntime": "onnxruntime", "openvino": "openvino", "openvino-onnx": "openvino"}
DOMAIN_OF = {name: BY_NAME[name].domains[0] for name in TARGET_OF}
INSTALLED = [runtime for runtime in runtimes.RUNTIMES if runtime.name in TARGET_OF and runtime.is_installed]
_CHAINS = 120

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSTALLED, reason="the extra 'runtimes' has the runtimes"),
]
each_runtime = pytest.mark.parametrize("runtime", INSTALLED, ids=lambda runtime: runtime.name)


def is_measured_version(runtime: runtimes.Runtime) -> bool:
    return version(TARGET_OF[runtime.name]) == shipped_rules(runtime.name).number


Claim = tuple[str, int, Graph, list[np.ndarray], list[np.ndarray]]


def claims_of(runtime: runtimes.Runtime, graphs: Iterable[tuple[Graph, dict[str, np.ndarray]]]) -> Iterator[Claim]:
    """The graphs of which something is said: that they are right, not severely wrong, or that they were made so."""
    target = TARGET_OF[runtime.name]
    for number, (graph, feeds) in enumerate(graphs):
        model = eltwise.load(program_of(graph).data, program_of(graph).weights or None)
        expected, inputs = list(model.run(feeds).values()), list(feeds.values())
        report = eltwise.check(model, target, run=False, severity="sign")
        if not report.severe:
            yield "exact", number, model.graph, inputs, expected
        elif all(level(found.severity) < level("wrong values") for found in report.findings):
            yield "not severe", number, model.graph, inputs, expected
        try:
            made, _report = eltwise.repair(model, target, severity="sign")
        except eltwise.EltwiseError:
            continue
        if made is not model:
            yield "repaired", number, made.graph, inputs, expected


def refuted(runtime: runtimes.Runtime, claims: Iterable[Claim]) -> tuple[set[str], list[str]]:
    """What is claimed, and the claims that a run refutes.

    The rules were measured with bfloat16 instructions; without them OpenVINO rounds to bfloat16 otherwise.
    """
    kinds, wrong = set(), []
    with Host(runtime, 60.0) as host:
        is_rounded_so = not runtime.name.startswith("openvino") or "bf16" in host.version()
        for claim, number, graph, inputs, expected in claims:
            kinds.add(claim)
            answer = host.run(program_of(graph), inputs)
            assert answer.kind == "result", (claim, number, answer.message)
            found = [severity_of(got, exact, False) for got, exact in zip(answer.arrays, expected, strict=True)]
            if not is_rounded_so and graph.inputs[0].type.element_type is BFLOAT16:
                found = [None if one == "precision" else one for one in found]
            if any(one == "wrong values" or (one and claim != "not severe") for one in found):
                nodes = ", ".join(f"{node.label}: {node.schema}" for node in graph.nodes)
                wrong.append(f"{claim} {number}, {graph.inputs[0].type}: {nodes}: {found}")
    return kinds, wrong


@each_runtime
def test_what_is_said_of_chains_holds_on_the_runtime(runtime: runtimes.Runtime, seed: int) -> None:
    """No chain that is called right or that is repaired gives other bits, and none that is not severe wrong values."""
    domain = DOMAIN_OF[runtime.name]
    chains = (random_chain(np.random.default_rng([seed, number]), domain) for number in range(_CHAINS))
    assert refuted(runtime, claims_of(runtime, chains)) == ({"exact", "not severe", "repaired"}, [])


@each_runtime
def test_what_is_said_of_two_nodes_holds_whichever_reads_the_other(runtime: runtimes.Runtime, seed: int) -> None:
    """A result that a runtime keeps in a wider type shows only in some of the nodes that read it."""
    pairs = node_pairs(DOMAIN_OF[runtime.name], np.random.default_rng(seed))
    kinds, wrong = refuted(runtime, claims_of(runtime, pairs))
    assert "exact" in kinds
    assert wrong == []


@each_runtime
def test_the_rules_are_what_the_installed_runtime_does(runtime: runtimes.Runtime) -> None:
    """Nothing that is measured now of a few operator versions is more severe than the rules tell."""
    if not is_measured_version(runtime):
        pytest.skip("another version is installed than was measured")
    ops = ("Subtract-1",) if runtime.name == "openvino" else ("Add-14",)
    rules, worse = shipped_rules(runtime.name), []
    with Host(runtime, 60.0) as host:
        for variant in requested(runtime, ops, ("float32", "int32")):
            for key, seen in measure_variant(host, variant, References()).items():
                facts = {name: frozenset({one}) for name, one in zip(MEASURED_FACTS, key, strict=True)}
                if level(seen.severity) > max((level(rule.severity) for rule in rules.matches(facts)), default=-1):
                    worse.append((key, seen))
    assert worse == []


@each_runtime
def test_the_versions_are_what_the_installed_runtime_loads(runtime: runtimes.Runtime) -> None:
    if not is_measured_version(runtime):
        pytest.skip("another version is installed than was measured")
    rules, domain = shipped_rules(runtime.name), DOMAIN_OF[runtime.name]
    last = max(rules.file_versions)
    with Host(runtime, 60.0) as host:
        assert loads(host, Origin(domain, last, 9 if rules.opsets else 0))
        # OpenVINO loads ONNX files of any version, of which not all are tried.
        assert last == NEWEST_IR_VERSION or not loads(host, Origin(domain, last + 1, 9 if rules.opsets else 0))
        for opset in {max(rules.opsets, default=0), 27} if rules.opsets else ():
            assert loads(host, Origin(domain, 8, opset)) == (opset in rules.opsets)


@pytest.mark.parametrize(
    ("file", "target"), [("sub13_bfloat16.onnx", "onnxruntime"), ("subtract_uint8.xml", "openvino")]
)
def test_a_repaired_model_is_proved_there(
    file: str, target: str, tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    if target not in {TARGET_OF[runtime.name] for runtime in INSTALLED}:
        pytest.skip("the extra 'runtimes' has the runtimes")
    out = tmp_path / file
    assert cli("check", MODELS / file, "--target", target)[0] == 1
    code, printed, _said = cli("repair", MODELS / file, out, "--target", target, "--run")
    assert code == 0
    assert "\nverified: " in printed
    code, printed, _said = cli("check", out, "--target", target)
    assert (code, "verified: " in printed) == (0, True)


def test_a_repair_that_is_planted_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison that passes every repair fails for a wrong alignment and for a wrong type."""
    if "openvino" not in {runtime.name for runtime in INSTALLED}:
        pytest.skip("the extra 'runtimes' has the runtimes")
    axis = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": 0}
    square = binary("Subtract", "3,3", "3", "i32", **axis).xml()  # type: ignore[arg-type]
    narrow = binary("SquaredDifference", "2,3", "2,3", "u8").xml()
    for made in (square, narrow):
        _model, report = eltwise.repair(made, "openvino", verify=True)
        assert report.is_verified
        assert not report.unchanged
    with monkeypatch.context() as planted:
        planted.setattr(align_broadcast, "align", lambda *_arguments: Alignment())
        with pytest.raises(eltwise.EltwiseError, match="gives other values"):
            eltwise.repair(square, "openvino", verify=True)
    with monkeypatch.context() as planted:
        planted.setattr(upcast, "exact_upcast", lambda *_arguments: INT8)
        with pytest.raises(eltwise.EltwiseError):
            eltwise.repair(narrow, "openvino", verify=True)


# A constant of shape (0) beside (0) or (2, 0) is right by chance, and said to give another shape.
EMPTY = [
    *[((0,), (0,)), ((0,), (1,)), ((0,), ()), ((0, 3), (0, 3)), ((0, 3), (3,)), ((0, 3), ())],
    *[((3,), (0, 3)), ((0, 1), (1, 3)), ((0, 0), (0, 0)), ((1, 1, 0), (1,))],
]


@pytest.mark.skipif("openvino" not in {each.name for each in INSTALLED}, reason="OpenVINO is not installed")
@pytest.mark.parametrize("operator", ["Sub", "Max"])
def test_openvino_is_said_to_fail_without_elements_where_it_does(operator: str) -> None:
    """Its reader of ONNX takes an input of shape (0) and every constant without elements for a scalar."""
    runtime = runtimes.find("openvino", domain="ai.onnx")
    if not is_measured_version(runtime):
        pytest.skip("another version was measured")
    wrong = []
    with Host(runtime) as host:
        for shapes, constants in product(EMPTY, product((False, True), repeat=2)):
            arrays = {name: np.ones(shape, np.float32) for name, shape in zip("xy", shapes, strict=True)}
            inputs = [name for name, is_constant in zip("xy", constants, strict=True) if not is_constant]
            made = onnx_models.model(
                [onnx_models.node(operator, ["x", "y"], ["z"])],
                [onnx_models.value(name, arrays[name].shape) for name in inputs],
                [onnx_models.value("z", np.broadcast_shapes(*shapes))],
                initializers=[numpy_helper.from_array(arrays[name], name) for name in arrays if name not in inputs],
            )
            answer = host.run(runtimes.Model(made.SerializeToString()), [arrays[name] for name in inputs])
            is_right = bool(answer.arrays) and np.shape(answer.arrays[0]) == np.broadcast_shapes(*shapes)
            report = eltwise.check(made, "openvino", run=False)
            is_by_chance = shapes == ((0,), (0,)) and constants[0] != constants[1]
            if is_right == bool(report.severe) and not is_by_chance:
                wrong.append((shapes, constants, is_right, str(report)))
    assert not wrong
