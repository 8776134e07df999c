"""Two models, wider types, IR, large models: what belongs together is found, and the memory stays bounded."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper
from onnx.parser import parse_model

import eltwise
from eltwise.core.dtypes import BOOL, BY_IR_NAME, TYPES, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Port
from eltwise.ir.types import UNKNOWN_TYPE
from eltwise.model import read
from eltwise.tracing.matching import match, matched_ports
from eltwise.tracing.model import read_model
from eltwise.tracing.report import TraceReport
from support.openvino_core import openvino_core
from support.openvino_models import binary
from support.peak import PEAK_KIB
from support.traced_models import CHAIN, PRODUCT, mixed, named, parsed

NODES = "h = Add (x, b) y = Relu (h)"

pytestmark = pytest.mark.usefixtures("planted", "local_hosts")

IMAGE = {"x": np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype(np.float32)}


@pytest.fixture(scope="module")
def ir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mixed model, converted by OpenVINO."""
    import openvino

    folder = tmp_path_factory.mktemp("ir")
    onnx.save(mixed(), folder / "mixed.onnx")
    openvino.save_model(openvino_core().read_model(folder / "mixed.onnx"), folder / "mixed.xml", compress_to_fp16=False)
    return folder / "mixed.xml"


def found(report: TraceReport) -> tuple[str | None, str | None, object]:
    node = report.first_node
    assert node is not None
    return report.first_name, node.cause, report.right


@pytest.mark.parametrize("segment", [1, 1 << 28])
def test_an_ir_of_any_operators_is_traced_against_the_exact_results(ir: Path, segment: int) -> None:
    report = eltwise.trace(ir, runtime="openvino", against="exact", inputs=IMAGE, segment=segment)
    assert found(report) == ("minus_mean", "saturation", ("exact",))
    by_type = {node.op_type: node for node in report.nodes}
    assert by_type["Convolution"].message == "exact: eltwise does not compute Convolution"
    assert by_type["Add"].status == "differs"
    assert by_type["Add"].blame == "inherited"


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("node", "old", "new"),
    [
        ("Elu", 'alpha="0.5"', 'alpha="1"'),
        ("Softmax", 'axis="1"', 'axis="2"'),
        ("Conv", 'pads_begin="1, 1" pads_end="1, 1"', 'pads_begin="0, 2" pads_end="2, 0"'),
    ],
)
def test_no_runtime_is_blamed_for_attributes_of_another_format(
    node: str, old: str, new: str, swapped: bool, tmp_path: Path
) -> None:
    import openvino

    model = named(
        parsed("""g (float[1,3,6,6] x, float[4,3,3,3] w) => (float[1,4,6,6] z) {
            c = Conv <pads = [1, 1, 1, 1]> (x, w)  e = Elu <alpha = 0.5> (c)  z = Softmax <axis = 1> (e)
        }""")
    )
    onnx.save(model, tmp_path / "model.onnx")
    openvino.save_model(openvino_core().read_model(tmp_path / "model.onnx"), tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text()
    assert old in text
    (tmp_path / "model.xml").write_text(text.replace(old, new))
    sides = [(tmp_path / "model.onnx", "onnxruntime"), (tmp_path / "model.xml", "openvino:precision=f32")]
    (one, runtime), (other, against) = sides[:: -1 if swapped else 1]
    report = eltwise.trace(one, other, runtime=runtime, against=against, switches=False)
    assert report.first_node is not None, str(report)
    assert report.first_node.op_type.casefold().startswith(node.casefold())
    assert "own" not in {each.blame for each in report.nodes}, str(report)


@pytest.mark.parametrize(
    ("kind", "types"), [("f16", ("float16", "float32")), ("i64", ("int64", "int32")), ("u8", ("uint8", "float32"))]
)
def test_an_ir_of_version_10_has_the_types_of_its_callers(kind: str, types: tuple[str, str], tmp_path: Path) -> None:
    """It computes the same as itself, and the same as version 11 only where its results have a type of that kind."""
    for version in ("10", "11"):
        (tmp_path / f"{version}.xml").write_text(binary("Maximum", element_type=kind, version=version).text())
    old, new = tmp_path / "10.xml", tmp_path / "11.xml"

    def traced(*models: Path, inputs: dict[str, np.ndarray] | None = None) -> TraceReport:
        return eltwise.trace(*models, runtime="openvino", against="openvino", inputs=inputs, switches=False)

    report = traced(old)
    assert (report.verdict, [output.status for output in report.outputs]) == ("agree", ["equal"]), str(report)
    for pair, (one, other) in (((new, old), types), ((old, new), types[::-1])):
        report = traced(*pair)
        if kind == "f16":
            assert report.verdict == "agree", str(report)
        else:
            assert (report.verdict, [output.message for output in report.outputs]) == (
                "disagree",
                [f"it is {one}, and {other} in the other model"],
            )
        comparison = eltwise.compare(*pair)
        assert not comparison.is_good
        converting = f"{'AB'[pair.index(old)]} has 1 more result in"
        assert ("result in" in str(comparison), converting in str(comparison)) == (kind != "f16",) * 2
    assert eltwise.compare(old, old).is_good
    of_caller = np.float32 if kind == "f16" else BY_IR_NAME[kind].storage
    array = np.arange(6).reshape(2, 3).astype(of_caller)
    assert traced(old, inputs={"a": array, "b": array[::-1].copy()}).verdict == "agree"


@pytest.mark.parametrize("segment", [1, 5000, 1 << 28])
def test_a_model_and_its_conversion_are_matched_by_name(ir: Path, segment: int) -> None:
    models = {"onnxruntime": mixed(), "openvino": ir}
    for runtime, against in (("onnxruntime", "openvino"), ("openvino", "onnxruntime")):
        pair = (models[runtime], models[against])
        report = eltwise.trace(*pair, runtime=runtime, against=against, inputs=IMAGE, segment=segment)  # type: ignore[arg-type]
        assert found(report) == ("minus_mean", "saturation", ("onnxruntime",))
        assert [node.status for node in report.nodes if node.op_type in ("Relu", "ReLU")] == ["differs"] * 12
        assert ("not in the other model" in str(report)) == (runtime == "openvino")


def test_values_of_other_names_are_matched_by_their_contents() -> None:
    """Two nodes that the other model has as one; of what it has beside that only the contents tell."""
    first = """g (float[4, 5] x) => (float[4, 5] z) {
        a = Tanh(x) b = Neg(a) c = Add(b, x) d = Sigmoid(c) z = Sqrt(d) }"""
    second = """g (float[4, 5] x) => (float[4, 5] z) {
        h = Tanh(x) i = Sub(x, h) j = Sigmoid(i) z = Sqrt(j) }"""
    report = eltwise.trace(named(parsed(first)), named(parsed(second)), runtime="onnxruntime", against="onnxruntime")
    assert report.is_good
    assert any(note.startswith("2 values matched by their contents: c, d") for note in report.notes)
    assert [node.status for node in report.nodes] == ["equal", "not_compared", "equal", "equal", "equal"]


def test_what_makes_and_reads_an_indivisible_value_is_one_unit() -> None:
    text = """net (float[4] x) => (float[2] out) {
        a, b = Split (x)
        c = Neg (b)
        d = Abs (a)
        e = Neg (c)
        out = Add (d, e)
    }"""
    model = read(parsed(text)).graph
    for values in chain.from_iterable(combinations("abcde", count) for count in range(6)):
        traced = read_model(model, {"x": np.zeros(4, np.float32)})
        traced.indivisible.update(values)
        units = traced.units()
        assert [number for unit in units for number in unit] == list(range(5))
        for value in values:
            ends = {traced.producer[value], traced.last_reader[value]}
            assert any(ends <= {*unit} for unit in units), (values, units)
        assert values or len(units) == 5


def test_two_models_of_other_inputs_are_refused() -> None:
    with pytest.raises(EltwiseError, match="input 'y' of the second model: the models have other inputs"):
        eltwise.trace(parsed(CHAIN), parsed(PRODUCT), runtime="onnxruntime", against="onnxruntime")


@given(*[st.lists(st.sampled_from("abcd"), unique=True, min_size=2, max_size=3)] * 2)
def test_each_input_and_output_is_matched_once(names: list[str], other_names: list[str]) -> None:
    """By name, and by position what has no namesake; in the same way whichever model is the first."""
    ports, others = ([Port(name, UNKNOWN_TYPE, name) for name in each] for each in (names, other_names))
    pairs = [(port.name, other.name) for port, other in matched_ports(ports, others) if other is not None]
    assert len({other for _name, other in pairs}) == len(pairs)
    assert {name for name, other in pairs if name == other} == {*names} & {*other_names}
    assert {(other.name, port.name) for port, other in matched_ports(others, ports) if other is not None} == {*pairs}


def test_a_model_that_lacks_an_input_by_its_name_is_refused() -> None:
    """Its array was that of another input, and z the same."""
    square, product = "g (float[3] a, float[3] b) => (float[3] z) { z = Mul(b, b) }", "(float[3] b, float[3] c)"
    other = square.replace("(float[3] a, float[3] b)", product).replace("Mul(b, b)", "Mul(b, c)")
    with pytest.raises(EltwiseError, match="input 'c' of the second model: the models have other inputs"):
        eltwise.trace(parsed(square), parsed(other), runtime="onnxruntime", against="onnxruntime")


def test_no_value_in_common_is_said() -> None:
    other = parsed("g (float[4, 5] x) => (float[7] q) { k = Constant <value = int64[1] {7}> () q = Expand(s, k)"
                   " s = ReduceMax <keepdims = 0> (x) }")  # fmt: skip
    report = eltwise.trace(named(parsed(CHAIN)), other, runtime="onnxruntime", against="onnxruntime")
    assert {node.status for node in report.nodes[:-1]} == {"not_compared"}
    assert report.nodes[-1].cause == "other_shape"
    assert report.nodes[-1].blame == "not_isolated"
    assert "no node is shown to be wrong alone; first beyond the tolerance" in str(report)


@pytest.mark.parametrize("narrow", [onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16])
def test_a_model_is_compared_with_itself_in_another_float_type(narrow: int) -> None:
    text = """g ({0}[4, 8] x) => ({0}[4, 8] z) {{ a = MatMul(x, w) b = Tanh(a) z = Mul(b, b) }}"""
    weights = np.random.default_rng(4).standard_normal((8, 8)).astype(np.float32)
    pair = []
    for number in (onnx.TensorProto.FLOAT, narrow):
        kind = helper.tensor_dtype_to_np_dtype(number)
        model = named(parsed(text.format(onnx.TensorProto.DataType.Name(number).lower())))
        model.graph.initializer.append(numpy_helper.from_array(weights.astype(kind), "w"))
        pair.append(model)
    report = eltwise.trace(*pair, runtime="onnxruntime", against="onnx-reference", tolerance="rtol=0.1, atol=0.1")
    assert report.is_good
    assert [node.status for node in report.nodes] == ["within_tolerance"] * 3


RANDOM = """g (float[4, 5] x) => (float[4, 5] z) {
    a = Neg(x)
    r = RandomNormalLike(a)
    u = RandomUniform <shape = [4, 5]> ()
    t = Constant <value = bool {1}> ()
    h = Constant <value = float {0.5}> ()
    d = Dropout(a, h, t)
    p = Sigmoid(a)
    b = Bernoulli(p)
    s = Sum(r, u, d, b)
    z = RELU(s)
}"""


@pytest.mark.parametrize("against", ["onnxruntime", "exact"])
@pytest.mark.parametrize(("operator", "first"), [("Tanh", None), ("Relu", "relu_9")])
def test_random_nodes_are_said_and_not_blamed(operator: str, first: str | None, against: str) -> None:
    model = named(parsed(RANDOM.replace("RELU", operator)))
    runtime = "onnxruntime" if first is None else "Wrong"
    report = eltwise.trace(model, runtime=runtime, against=against)
    assert report.first_name == first
    random = {node.name: node for node in report.nodes if "random" in node.message}
    assert set(random) == {"randomnormallike_1", "randomuniform_2", "dropout_5", "bernoulli_7"}
    assert {node.status for node in random.values()} == {"not_compared"}
    assert report.verdict == ("not_established" if report.first_name is None else "disagree")
    assert "not established: output z: it depends on random values" in str(report)


@pytest.mark.parametrize("training", [0, 1])
def test_dropout_is_random_where_it_drops(training: int) -> None:
    body = f"""g (float[4, 5] x) => (float[4, 5] z) {{
        t = Constant <value = bool {{{training}}}> () h = Constant <value = float {{0.5}}> () z = Dropout(x, h, t) }}"""
    report = eltwise.trace(parsed(body), runtime="onnxruntime", against="onnxruntime")
    assert report.nodes[0].status == ("not_compared" if training else "equal")


@pytest.mark.parametrize("called", ["p", "q"])
def test_of_two_overloads_the_one_that_is_called_is_random(called: str) -> None:
    """The one of them that is in the file last decides nothing."""
    heads = [f'<domain: "local", overload: "{name}", opset_import: ["" : 17]> F (x) => (y)' for name in "pq"]
    head = '<ir_version: 10, opset_import: ["" : 17, "local" : 1]> g (float[3] x) => (float[3] y)'
    bodies = ["{r = RandomNormalLike(x) y = Add(r, x)}", "{y = Tanh(x)}"]
    model = parse_model(
        f"{head} {{ y = local.F:{called}(x) }} {' '.join(map(' '.join, zip(heads, bodies, strict=True)))}"
    )
    assert bool(read_model(read(model).graph, {"x": np.zeros(3, np.float32)}).random) == (called == "p")


@pytest.mark.parametrize("against", ["float64", "exact", "onnx-reference", "the other model", "a recorded run"])
@pytest.mark.parametrize("size", ["2", "N"])
def test_a_constant_is_replaced_on_both_sides(against: str, size: str, tmp_path: Path) -> None:
    model = parsed(
        f"net (float[{size}, 3] x, float[3] b) => (float[{size}, 3] y) <float[3] b = {{1, 2, 3}}> {{{NODES}}}"
    )
    inputs = {"x": np.float32([[1, -9, 0.5], [2, 2, 2]]), "b": np.float32([5, 6, 7])}
    run = eltwise.record(model, runtime="onnxruntime", inputs=inputs)
    assert run.values["y"].tolist() == np.maximum(inputs["x"] + inputs["b"], 0).tolist()
    run.save(tmp_path / "run.safetensors")
    reference = {"a recorded run": f"{tmp_path}/run.safetensors", "the other model": "onnxruntime"}.get(
        against, against
    )
    other = model if against == "the other model" else None
    report = eltwise.trace(model, other, runtime="onnxruntime", against=reference, inputs=inputs)
    assert (report.verdict, report.feeds["b"].tolist()) == ("agree", [5, 6, 7]), str(report)
    assert report.right_outputs["y"].tolist() == run.values["y"].tolist()


def test_a_constant_that_only_one_model_lets_replace_is_refused() -> None:
    text = "net (float[2, 3] x{}) => (float[2, 3] y) <float[3] b = {{1, 2, 3}}> {{{}}}"
    models = parsed(text.format(", float[3] b", NODES)), parsed(text.format("", NODES))
    with pytest.raises(EltwiseError, match="the other model has no such input"):
        eltwise.trace(*models, runtime="onnxruntime", against="exact", inputs={"b": np.float32([5, 6, 7])})


def test_float64_is_the_same_graph_in_a_wider_type() -> None:
    model = named(
        parsed("""g (float[8, 8] x) => (float[8, 8] z) {
            w = Constant <value_floats = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]> ()
            a = MatMul(x, x)
            b = Cast <to = 1> (a)
            c = Mul(b, w)
            z = Tanh(c)
        }""")
    )
    assert eltwise.trace(model, runtime="onnxruntime", against="float64").is_good
    report = eltwise.trace(model, runtime="Bfloat16", against="float64")
    assert found(report) == ("matmul_1", "bfloat16_operands", None)


def test_what_nothing_has_in_float64_is_computed_in_its_own_type() -> None:
    report = eltwise.trace(mixed(2), runtime="onnxruntime", against="float64", inputs=IMAGE)
    assert report.is_good
    assert {node.status for node in report.nodes} == {"equal", "within_tolerance"}
    note = "1 node computed in its own type by eltwise, which nothing has in float64: DequantizeLinear 'dequantize'"
    assert note in report.notes


@pytest.mark.parametrize("against", ["exact", "float64"])
@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.onnx], ids=str)
def test_values_of_every_type_are_computed_right_by_onnxruntime(element_type: ElementType, against: str) -> None:
    number = element_type.onnx_number
    model = parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[2,4] x) => (float[2,4] y)'
        f" {{ q = Cast <to = {number}> (x) d = Cast <to = 1> (q) y = Relu (d) }}"
    )
    x = np.array([[0, 1, 1, 0], [1, 0, 1, 0]] if element_type is BOOL else [[0, 1, 2, 3], [4, 5, 6, 7]], np.float32)
    report = eltwise.trace(model, runtime="onnxruntime", against=against, inputs={"x": x})
    assert report.verdict == "agree", str(report)
    assert all(node.is_within for node in report.nodes), str(report)


def test_an_ir_has_no_wider_run(ir: Path) -> None:
    with pytest.raises(EltwiseError, match="OpenVINO computes float64 in float32"):
        eltwise.trace(ir, runtime="openvino", against="float64")


def test_bfloat16_products_of_openvino_are_named() -> None:
    if openvino_core().get_property("CPU", "INFERENCE_PRECISION_HINT").get_type_name() != "bf16":
        pytest.skip("OpenVINO computes float32 as such on this processor")
    generator = np.random.default_rng(3)
    weights = numpy_helper.from_array(generator.standard_normal((64, 64)).astype(np.float32), "w")
    model = named(parsed("g (float[64, 64] x, float[64, 64] w) => (float[64, 64] z) { z = MatMul(x, w) }"))
    model.graph.initializer.append(weights)
    del model.graph.input[1]
    report = eltwise.trace(model, runtime="openvino", against="onnxruntime")
    node = report.first_node
    assert node is not None
    assert node.cause == "bfloat16_operands"


def test_external_weights_are_brought_in_for_the_parts_that_read_them(tmp_path: Path) -> None:
    path = with_external_data(tmp_path / "model.onnx")
    report = eltwise.trace(path, runtime="onnxruntime", against="onnx-reference", inputs=IMAGE, segment=1000)
    assert not [node for node in report.nodes if node.status in ("differs", "failed")]
    assert sum(node.status == "within_tolerance" for node in report.nodes) >= 12


def long_chain(nodes: int) -> ModelProto:
    made = [
        helper.make_node(("Sigmoid", "Neg", "Tanh")[number % 3], [f"v{number}"], [f"v{number + 1}"])
        for number in range(nodes)
    ]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 8]) for name in ("v0", f"v{nodes}")]
    graph = helper.make_graph(made, "chain", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.slow
def test_ten_thousand_nodes() -> None:
    report = eltwise.trace(long_chain(10_000), runtime="onnxruntime", against="onnxruntime")
    assert report.is_good
    assert len(report.nodes) == 10_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_model(tmp_path: Path) -> None:
    """Values of 1 MiB each: 40 of them take no more memory than 200 do."""
    lines = (
        "import sys, resource, eltwise",
        "report = eltwise.trace(sys.argv[1], runtime='onnxruntime', against='onnxruntime', segment=8 << 20)",
        "assert report.is_good",
        f"print(max({PEAK_KIB}, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))",
    )
    peaks = []
    for nodes in (40, 200):
        model = long_chain(nodes)
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1 << 15
        path = tmp_path / f"{nodes}.onnx"
        onnx.save(model, path)
        done = subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, "-c", "\n".join(lines), path], check=True, capture_output=True
        )
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] < peaks[0] + 32, peaks


def test_only_the_named_types_of_a_report_change_with_the_tolerance() -> None:
    model = named(parsed(CHAIN))
    loose = eltwise.trace(model, runtime="Wrong", against="onnxruntime", tolerance="atol=10")
    assert loose.is_good
    assert loose.tolerance == "atol=10"
    strict = eltwise.trace(model, runtime="Wrong", against="onnxruntime", tolerance=["atol=10", "c: atol=1e-6"])
    assert strict.first_name == "relu_2"
    assert replace(strict, model="net").to_dict()["first"] == "relu_2"


def with_external_data(path: Path) -> Path:
    onnx.save(mixed(), path, save_as_external_data=True, size_threshold=64, location="model.data")
    return path


def test_weights_in_other_files_are_checked_and_stay_unread(tmp_path: Path) -> None:
    model = read(with_external_data(tmp_path / "model.onnx"), reads_weights=False)
    report = eltwise.trace(model, runtime="onnxruntime", against="onnxruntime", inputs=IMAGE)
    assert report.is_good
    assert not [name for name, tensor in model.graph.constants if tensor.is_external and "array" in vars(tensor)]
    data = tmp_path / "model.data"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(EltwiseError, match=r"initializer 'w11': .*model\.data"):
        eltwise.trace(tmp_path / "model.onnx", runtime="onnxruntime", against="onnxruntime")


def test_a_model_of_many_weights_is_not_run_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eltwise.tracing.model_program.LARGEST_SENT", 1000)
    report = eltwise.trace(mixed(), runtime="onnxruntime", against="onnxruntime", inputs=IMAGE)
    assert report.verdict == "not_established"
    assert "the whole model was not run: more than " in str(report)


BODIES_OF_OTHER_SIZES = """g (float[N, M] x, bool b) => (float[K, L] z) {
    a = Neg(x)
    c = If (b) <
        then_branch = yes () => (float[K, L] t) { t = Relu(a) },
        else_branch = no () => (float[K, L] e) { s = Constant <value = int64[2] {7, 3}> () e = Reshape(a, s) }
    >
    z = Tanh(c)
}"""


def test_a_body_that_takes_other_sizes_is_run_without_sizes() -> None:
    """onnxruntime refuses a model whose other branch cannot take the sizes of this run, if it is told these."""
    inputs = {"x": np.ones((4, 5), np.float32), "b": np.bool_(True)}
    model = named(parsed(BODIES_OF_OTHER_SIZES))
    report = eltwise.trace(model, runtime="onnxruntime", against="onnxruntime", inputs=inputs)
    assert [node.status for node in report.nodes] == ["equal"] * 3


def test_a_trace_in_which_nothing_was_compared_is_not_good() -> None:
    model = named(parsed("g (float[2] x) => (float[2] z) { z = test.domain.Unknown (x) }"))
    report = eltwise.trace(model, parsed(CHAIN.replace("4, 5", "2")), runtime="onnxruntime", against="Dying")
    assert {node.status for node in report.nodes} <= {"failed", "not_compared"}
    assert not report.is_good


def test_float64_is_of_one_model() -> None:
    with pytest.raises(EltwiseError, match="float64 is a reference, not a runtime"):
        eltwise.trace(parsed(CHAIN), runtime="float64", against="onnxruntime")
    with pytest.raises(EltwiseError, match="float64 is the first model in another type; give one model"):
        eltwise.trace(parsed(CHAIN), parsed(CHAIN), runtime="onnxruntime", against="float64")


def test_nodes_that_the_other_model_has_as_one_are_not_told_apart() -> None:
    """The reference saturates an 8-bit difference, which the tested model computes in int32."""
    repaired = """g (uint8[4, 5] x, uint8[4, 5] y) => (float[4, 5] z) {
        a = Cast <to = 6> (x) b = Cast <to = 6> (y) c = Sub(a, b) d = Cast <to = 2> (c) z = Cast <to = 1> (d) }"""
    first = """g (uint8[4, 5] x, uint8[4, 5] y) => (float[4, 5] z) { d = Sub(x, y) z = Cast <to = 1> (d) }"""
    report = eltwise.trace(named(parsed(repaired)), parsed(first), runtime="onnxruntime", against="openvino")
    assert report.first_name is None
    assert [node.blame for node in report.nodes] == [None, None, None, "not_isolated", "inherited"]
    assert report.nodes[3].message == "not told apart from sub_2, cast_1, cast_0"
    backwards = eltwise.trace(parsed(first), named(parsed(repaired)), runtime="openvino", against="onnxruntime")
    assert (backwards.first_name, backwards.right) == ("d", ("onnxruntime",))


@pytest.mark.parametrize("position", [0, 1])
def test_an_input_that_openvino_gives_out_as_it_is_is_equal(position: int) -> None:
    text = f"""g (float[4] x) => (float[4] z) {{
        n = Neg(x) s = SequenceConstruct(n, x) i = Constant <value_int = {position}> () z = SequenceAt(s, i) }}"""
    report = eltwise.trace(parsed(text), runtime="openvino", against="onnxruntime")
    if "SequenceAt: 'input' must be a sequence" in str(report):
        pytest.skip("OpenVINO 2025.4 refuses sequences")
    assert report.is_good
    assert report.nodes[-1].status == "equal"


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("a = Abs(x) n = Neg(x) b = Add(a, n) z = Tanh(b)", "Neg 'neg_1', Add 'add_2'"),
        ("a = Abs(x) b = Add(a, x) n = Mul(b, x) z = Tanh(n)", "Mul 'mul_2', Tanh 'tanh_3'"),
    ],
)
def test_a_node_that_only_the_other_model_has_is_named(second: str, words: str) -> None:
    text = "g (float[4, 8] x) => (float[4, 8] z) {{ {0} }}"
    pair = [named(parsed(text.format(body))) for body in ("a = Abs(x) b = Add(a, x) z = Tanh(b)", second)]
    report = eltwise.trace(*pair, runtime="onnxruntime", against="onnxruntime")
    assert (report.is_good, report.first_name) == (False, None)
    assert f"the other model has several nodes in its place: {words}" in str(report)


def test_an_output_that_differs_is_never_taken_for_another_value() -> None:
    text = "g (float[4, 8] x) => (float[4, 8] z) {{ a = Abs(x) b = Add(a, x) {0} }}"
    pair = [named(parsed(text.format(body))) for body in ("n = Mul(b, x) z = Tanh(n)", "z = Tanh(b)")]
    report = eltwise.trace(*pair, runtime="onnxruntime", against="onnxruntime")
    assert not report.is_good
    assert (report.nodes[-1].status, report.nodes[-1].message) == ("differs", "not told apart from mul_2")


@pytest.mark.parametrize(("kind", "shape"), [("float", "4, 6"), ("int32", "4, 5")])
def test_a_value_of_another_shape_or_type_is_no_partner(kind: str, shape: str) -> None:
    first = parsed("g (float[4, 5] x) => (float[4, 5] a) { a = Neg(x) }")
    second = parsed(f"g (float[4, 5] x, {kind}[{shape}] y) => (float[4, 5] b, {kind}[{shape}] a)"
                    " { b = Abs(x) a = Neg(y) }")  # fmt: skip
    arrays = {"x": np.zeros((4, 5), np.float32)}
    other = np.zeros([int(size) for size in shape.split(", ")], np.dtype(kind.replace("float", "float32")))
    del first.graph.output[:], second.graph.output[:]
    for model in (first, second):
        model.graph.node.add(op_type="Shape", input=["a"], output=["size"])
        model.graph.output.add(name="size")
    models = read_model(read(first).graph, arrays), read_model(read(second).graph, {**arrays, "y": other})
    assert "a" not in match(*models).values
    assert match(models[0], models[0]).values["a"] == "a"


def test_weights_of_two_models_stay_unread_where_their_nodes_agree(tmp_path: Path) -> None:
    models = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        models.append(read(with_external_data(tmp_path / name / "model.onnx"), reads_weights=False))
    report = eltwise.trace(*models, runtime="onnxruntime", against="onnxruntime", inputs=IMAGE)
    assert report.is_good
    for model in models:
        assert not [name for name, tensor in model.graph.constants if tensor.is_external and "array" in vars(tensor)]


BODIES = """<ir_version: 9, opset_import: ["" : 17, "own" : 1]>
g (float[4] x, bool c) => (float[4] z, float[4] w) {
    a = Tanh(x)
    z = If (c) <
        then_branch = t () => (float[4] r) { k = Constant<value = float[4] {1.0, 2.0, 3.0, 4.0}>() m = Mul(a, k)
            d = Not(c) r = If (d) <
                then_branch = i () => (float[4] q) { q = Abs(m) },
                else_branch = j () => (float[4] q) { p = Relu(m) q = Neg(p) }
            > },
        else_branch = e () => (float[4] r) { r = Identity(a) }
    >
    w = own.scaled(a)
}
<domain: "own", opset_import: ["" : 17]>
scaled (v) => (u) { n = Neg(v) u = Relu(n) }"""


@pytest.mark.parametrize("against", ["Planted", "float64", "swapped"])
def test_nodes_of_branches_and_functions_are_traced_one_by_one(against: str) -> None:
    """The planted Relu is in a branch of a branch, and in a function, of the file that is run as a whole too."""
    model = parse_model(BODIES)
    pair = ("Planted", "WrongInBodies") if against == "swapped" else ("WrongInBodies", against)
    for taken in (True, False):
        inputs = {"x": np.float32([-1, 2, -3, 4]), "c": np.array(taken)}
        report = eltwise.trace(model, runtime=pair[0], against=pair[1], inputs=inputs)
        wrong = [node.op_type for node in report.nodes if node.blame == "own"]
        assert (report.verdict, wrong) == ("disagree", ["Relu"] * (1 + taken)), str(report)
        assert [one.status == "differs" for one in report.outputs] == [taken, True]
        assert "compared as a whole" not in str(report)


DEFAULTS = """<ir_version: 9, opset_import: ["" : 17, "p" : 1]>
g (float[3] x, bool c) => (float[3] z) {
    a = p.f <k = 2.0> (x, c)
    b = p.f (a, c)
    d = p.h (b)
    z = If (c) <then_branch = t () => (float[3] r) { r = p.h (d) }, else_branch = e () => (float[3] s) { s = Neg (d) }>
}
<domain: "p", opset_import: ["" : 17]> f <k: float = 0.5> (v, c) => (w) {
    w = If (c) <then_branch = t () => (r) { r = LeakyRelu <alpha: float = @k> (v) },
        else_branch = e () => (s) { s = Elu <alpha: float = @k> (v) }>
}
<domain: "p", opset_import: ["" : 17, "p" : 1]> h <n, m: float = 0.25> (v) => (w) {
    i = LeakyRelu <alpha: float = @m> (v)
    j = p.g (i)
    k = p.g <alpha: float = @m> (j)
    w = p.g <alpha: float = @n> (k)
}
<domain: "p", opset_import: ["" : 17]> g <alpha: float = 0.75> (v) => (w) {
    w = LeakyRelu <alpha: float = @alpha> (v)
}"""


@pytest.mark.parametrize("against", ["float64", "onnxruntime", "openvino"])
@pytest.mark.parametrize("taken", [True, False])
def test_calls_of_functions_have_the_defaults_that_they_leave_out(taken: bool, against: str) -> None:
    """In bodies and in other functions, too; onnx's inliner loses them, so that every runtime was wrong."""
    inputs = {"x": np.float32([-1, 2, -3]), "c": np.array(taken)}
    report = eltwise.trace(parse_model(DEFAULTS), runtime="onnxruntime", against=against, inputs=inputs)
    assert (report.verdict, "compared as a whole" in str(report)) == ("agree", False), str(report)
    assert all(node.is_within for node in report.nodes)


NAMESAKES = """g (float[4] x, bool c) => (float[4] z, float[k, 4] rows) {
    "n/q" = Neg (x)
    "m/0/number" = Abs (x)
    a = If (c) <then_branch = t () => (float[4] p) { q = Tanh (x) p = Abs (q) },
        else_branch = e () => (float[4] r) { r = Exp (x) }>
    b = If (c) <then_branch = t () => (float[4] p) { q = Sin ("n/q") p = Neg (q) },
        else_branch = e () => (float[4] r) { r = Exp (x) }>
    two = Constant <value = int64 {2}> () go = Constant <value = bool {1}> ()
    d, rows = Loop (two, go, a) <body = f (int64 i, bool g, float[4] s) => (bool h, float[4] t, float[4] row) {
        h = Identity (g) j = Cast <to: int = 1> (i) q = Add (s, j) t = Cos (q) row = Mul (t, "m/0/number")
    }>
    y = Add (b, d)
    z = Mul (y, "n/q")
}"""


@pytest.mark.parametrize("names", [{}, {"If": "n", "Loop": "m"}, {"If": "n", "Loop": "n"}])
def test_nodes_of_one_name_are_opened_with_names_of_their_own(names: dict[str, str]) -> None:
    """Bodies may have the same names inside, and the model values that are called as theirs would be."""
    model = parsed(NAMESAKES)
    for node in model.graph.node:
        node.name = names.get(node.op_type, node.name)
    inputs = {"x": np.float32([-1, 2, -3, 4]), "c": np.array(True)}
    report = eltwise.trace(model, runtime="onnx-reference", against="float64", inputs=inputs)
    assert (report.verdict, "compared as a whole" in str(report)) == ("agree", False), str(report)
    assert {"opened: 2 Ifs, on the branch that is taken", "opened: 1 loop, round by round"} <= {*report.notes}
    assert all(node.is_within for node in report.nodes), str(report)


LOOP = """g (float[4] x, int64 n) => (float[4] z, float[k, 4] rows) {
    a = Neg(x)
    go = Constant <value = bool {1}> ()
    z, rows = Loop (n, go, a) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t, float[4] row) {
        d = Identity(c) f = Cast <to: int = 1> (i) m = Sub(s, f) t = Relu(m) row = Mul(t, x)
    }>
}"""


def test_nodes_of_loops_are_traced_round_by_round() -> None:
    """The state falls below 0 in the fourth round, where the planted Relu is wrong."""
    inputs = {"x": np.full(4, -3, np.float32), "n": np.array(5)}
    right = eltwise.trace(parsed(LOOP), runtime="Planted", against="float64", inputs=inputs)
    assert (right.verdict, len(right.nodes)) == ("agree", 1 + 5 * 6 + 2), str(right)
    report = eltwise.trace(parsed(LOOP), runtime="WrongInBodies", against="Planted", inputs=inputs)
    assert (report.verdict, [one.status for one in report.outputs]) == ("disagree", ["differs", "differs"])
    assert [node.name for node in report.nodes if node.blame == "own"] == ["z/3/t", "z/4/t"], str(report)
    assert "opened: 1 loop, round by round" in str(report)
    many = eltwise.trace(parsed(LOOP), runtime="Planted", against="Planted", inputs={**inputs, "n": np.array(99)})
    message = "compared as a whole, without the nodes inside: Loop 'z' (99 rounds, and up to 16 are followed)"
    assert message in str(many)


UNTIL = """g (float[4] x) => (float[4] z, float[k, 4] rows) {
    limit = Constant <value = float {10.0}> () two = Constant <value = float {2.0}> () a = Abs(x)
    first = ReduceMax <keepdims = 0> (a) go = Less(first, limit)
    z, rows = Loop ("", go, a) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t, float[4] row) {
        t = Mul(s, two) m = ReduceMax <keepdims = 0> (t) r = Relu(m) d = Less(r, limit) row = Neg(t)
    }>
}"""
SCAN = """g (float[4] x, float[2, 5, 4] list) => (float[4] z, float[4, 5] rows, float[5, 4] others) {
    axis = Constant <value = int64[1] {0}> () a = Neg(x)
    z, rows, others = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
        scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
        body = b (float[4] s, float[2, 4] part) => (float[4] t, float[4] row, float[4] other) {
            m = ReduceSum <keepdims = 0> (part, axis) t = Add(s, m) row = Relu(t) other = Neg(m)
    }> (a, list)
}"""


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("against", ["onnxruntime", "float64"])
def test_rounds_until_a_condition_and_of_scan_are_traced_one_by_one(runtime: str, against: str) -> None:
    """Forwards and backwards, along any axis, as many as the run has."""
    x = np.float32([-0.4, 0.1, 0.2, 0.3])
    values = np.random.default_rng(6).standard_normal((2, 5, 4)).astype(np.float32)
    for text, inputs, count in ((UNTIL, {"x": x}, 3 + 5 * 5 + 7), (SCAN, {"x": x, "list": values}, 1 + 5 * 7 + 3)):
        report = eltwise.trace(parsed(text), runtime=runtime, against=against, inputs=inputs)
        assert (report.verdict, len(report.nodes)) == ("agree", count), str(report)
        assert {"opened: 1 loop, round by round"} <= set(report.notes)


DECIDING = """g (float[4] x) => (float[4] z) {
    limit = Constant <value = float {3.5}> () r = Relu(x) m = ReduceMax <keepdims = 0> (r) c = Greater(m, limit)
    z = If (c) <then_branch = t () => (float[4] p) { p = Neg(x) }, else_branch = e () => (float[4] q) { q = Tanh(x) }>
}"""


@pytest.mark.parametrize(
    "pair", [("Planted", "WrongInBodies"), ("WrongInBodies", "Planted"), ("WrongInBodies", "float64")]
)
@pytest.mark.parametrize("text", [DECIDING, UNTIL])
def test_what_decides_on_a_branch_or_a_round_is_compared(text: str, pair: tuple[str, str]) -> None:
    """Float64 was asked for what the tested runtime had chosen, so that a wrong choice was right."""
    at_most = "y = Abs(x) a = Neg(y) n = Constant <value = int64 {7}> ()"
    model = parsed(text.replace("a = Abs(x)", at_most).replace('Loop ("",', "Loop (n,"))
    inputs = {"x": np.float32([-4, 1, 2, 3])}
    report = eltwise.trace(model, runtime=pair[0], against=pair[1], inputs=inputs)
    assert report.verdict == "disagree", str(report)
    assert report.nodes[[node.blame for node in report.nodes].index("own")].op_type == "Relu"
    assert "it decides on a branch or a round" in {output.message for output in report.outputs}
    right = eltwise.trace(
        model, runtime="Planted", against=pair[1] if pair[1] == "float64" else "Planted", inputs=inputs
    )
    assert right.verdict == "agree", str(right)
