"""Every installed adapter: models and calls in its own process, results into given arrays in this one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx.parser
import pytest

import eltwise
from eltwise import runtimes
from eltwise.conformance.cases import Case
from eltwise.conformance.compare import References
from eltwise.conformance.models import build
from eltwise.conformance.runner import CaseRunner
from eltwise.core.dtypes import FLOAT32, INT4, TYPES, UINT4, ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.ops import registry
from eltwise.runtimes import Host, Model, Runtime
from eltwise.runtimes.worker import make_adapter
from eltwise.tracing.model_program import program_of

INSTALLED = [pytest.param(runtime, id=runtime.name) for runtime in runtimes.installed()]


def case_of(runtime: Runtime, dtype: object) -> Case:
    schema = registry.find("Sub-14" if "ai.onnx" in runtime.domains else "Subtract-1")
    return Case(schema, (), (np.array([[5], [7]], dtype), np.array([1, 2, 3], dtype)))  # type: ignore[call-overload]


def constant_model(size: int) -> onnx.ModelProto:
    """A model with so many numbers."""
    numbers = onnx.numpy_helper.from_array(np.ones(size, np.float32), "c")
    ports = [onnx.helper.make_tensor_value_info(name, 1, [size]) for name in "xy"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Sub", ["x", "c"], ["y"])], "g", ports[:1], ports[1:], [numbers]
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize("runtime", INSTALLED)
def test_it_runs_a_case_in_a_process_of_its_own(runtime: Runtime) -> None:
    with Host(runtime) as host:
        assert host.version()
        for dtype in (np.float32, np.int32):
            case = case_of(runtime, dtype)
            for is_call in [False] * runtime.loads_models + [True] * runtime.calls:
                result = CaseRunner(host, References(), is_call=is_call).run([case])[case]
                assert result.outcome == "ok", result.answer
        if runtime.loads_models:
            model = build([case_of(runtime, np.float32)])
            assert host.run(Model(model.data, model.weights), [], only_load=True).kind == "result"
            assert host.run(Model(b"no model"), [], only_load=True).kind == "refused"


@pytest.mark.parametrize("runtime", [one for one in INSTALLED if one.values[0].loads_models])
def test_inputs_go_by_position_also_where_their_names_are_other_positions(runtime: Runtime) -> None:
    """PyTorch and others name values by numbers."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (int32[2] a, int32[2] b) => (int32[2] c) { c = Sub(a, b) }'
    )
    for name, port in zip(("1", "0"), made.graph.input, strict=True):
        port.name = name
    made.graph.node[0].input[:] = ["1", "0"]
    model = eltwise.load(made) if "ai.onnx" in runtime.domains else eltwise.convert(made, "openvino")[0]
    with Host(runtime) as host:
        answer = host.run(program_of(model.graph), [np.array([5, 7], np.int32), np.array([1, 2], np.int32)])
    assert np.array_equal(answer.arrays[0], [4, 5]), answer


@pytest.mark.parametrize("runtime", [one for one in INSTALLED if one.values[0].loads_models])
def test_a_full_disk_is_no_refusal_of_the_model(runtime: Runtime) -> None:
    """Here a limit of the size of files stands in for it."""
    resource = pytest.importorskip("resource")
    model = eltwise.load(constant_model(4096))
    program = program_of((model if "ai.onnx" in runtime.domains else eltwise.convert(model, "openvino")[0]).graph)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Host(runtime) as host:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            kind = host.run(program, [], only_load=True).kind
        except UnsupportedError as error:
            assert "could not be tried: OSError" in str(error)  # noqa: PT017 - or a result
            kind = "result"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert kind == "result"


@pytest.mark.parametrize("operator", ["NegativeLogLikelihoodLoss<ignore_index = 1>", "NegativeLogLikelihoodLoss"])
def test_openvino_reads_a_model_as_from_its_file(operator: str, tmp_path: Path) -> None:
    """It takes models in memory that it refuses in a file, which is what is deployed."""
    openvino = pytest.importorskip("openvino")
    ports = "(float[3, 5] x, int64[3] target) => (float z)"
    text = f'<ir_version: 8, opset_import: ["" : 13]> g {ports} {{ z = {operator}(x, target) }}'
    data = onnx.parser.parse_model(text).SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    try:
        openvino.Core().read_model(path)
        expected = "result"
    except RuntimeError:
        expected = "refused"
    with Host(runtimes.find("openvino", domain="ai.onnx")) as host:
        answer = host.run(Model(data), [], only_load=True)
    assert answer.kind == expected
    assert "eltwise-" not in str(answer), "a refusal names no folder of this run"


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "numpy", "torch", "numexpr"])
def test_it_writes_into_given_arrays(name: str) -> None:
    runtime = next(runtime for runtime in runtimes.RUNTIMES if runtime.name == name)
    if not runtime.is_installed:
        pytest.skip(f"{name} is not installed; the extra 'runtimes' has it")
    code = (
        "import numpy as np, sys\n"
        "from eltwise.runtimes.worker import make_adapter\n"
        "adapter = make_adapter(*sys.argv[1:3])\n"
        "from eltwise.conformance.cases import Case\n"
        "from eltwise.conformance.models import build\n"
        "from eltwise.ops import registry\n"
        "a, b, out = np.float32([5, 7]), np.float32([1, 2]), np.zeros(2, np.float32)\n"
        "op = 'Subtract-1' if sys.argv[2] == 'openvino' else 'Sub-14'\n"
        "if hasattr(adapter, 'load'):\n"
        "    model = build([Case(registry.find(op), (), (a, b))])\n"
        "    loaded = adapter.load(model.data, model.weights)\n"
        "else:\n"
        "    name = 'sub' if sys.argv[2] == 'torch' else 'subtract'\n"
        "    loaded = adapter.compile(op, ((name, (0, 1)), (name, (2, 1))), {})\n"
        "run = loaded.bind([a, b], [out])\n"
        "run()\n"
        "a[0] = 6\n"
        "run()\n"
        "assert out.tolist() == ([5, 5] if hasattr(adapter, 'load') else [4, 3]), out\n"
    )
    subprocess.run([sys.executable, "-c", code, runtime.adapter, name], check=True)  # noqa: S603


@pytest.mark.parametrize("name", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
def test_its_tensors_hold_every_type_exactly(name: str, element_type: ElementType) -> None:
    pytest.importorskip(name)
    from eltwise.oracle import hard_values, same_bits

    adapter = importlib.import_module(f"eltwise.runtimes.{name}")
    for count in (0, 1, 3, 4):
        array = hard_values.hard_values(element_type)[:count]
        for shaped in (array, array.reshape(-1, 1), array[:1].reshape(())) if count else (array,):
            again = adapter.array(adapter.tensor(shaped))
            assert isinstance(again, np.ndarray)
            assert again.dtype == shaped.dtype
            assert again.shape == shaped.shape
            assert same_bits(again, shaped)


@pytest.mark.parametrize("element_type", [INT4, UINT4], ids=str)
def test_onnxruntime_gives_and_takes_half_bytes(element_type: ElementType) -> None:
    pytest.importorskip("onnxruntime")
    text = (
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[5] x, {element_type.name}[5] a) =>'
        f" ({element_type.name}[5] q, float[5] y) {{ q = Cast<to={element_type.onnx_number}>(x) y = Cast<to=1>(a) }}"
    )
    model = eltwise.load(onnx.parser.parse_model(text))
    x = np.array([0, 1, 7, 3, 5], np.float32)
    with Host(runtimes.find("onnxruntime")) as host:
        answer = host.run(program_of(model.graph), [x, x.astype(element_type.storage)])
    assert answer.kind == "result", answer
    quantized, y = answer.arrays
    assert quantized is not None
    assert quantized.dtype == element_type.storage
    assert quantized.astype(np.float32).tolist() == x.tolist()
    assert y is not None
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize("runtime", runtimes.RUNTIMES, ids=lambda runtime: runtime.name)
def test_an_adapter_s_file_stands_alone(runtime: Runtime) -> None:
    """It is copied beside a reproduction."""
    module = runtime.adapter.partition(":")[0].rpartition(".")[2]
    text = (Path(runtimes.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    assert ("eltwise." in text.replace("eltwise.load", "")) == (module == "eltwise")


@pytest.mark.parametrize("name", ["mine", "numpy", "json"])
def test_a_function_of_a_file_is_an_adapter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has its own name, unless that is the one of an imported module, which stays what it is."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    before, file = sys.modules.get(name), tmp_path / f"{name}.py"
    file.write_text("def run(op, *operands, **attributes):\n    return sum(operands)\n", encoding="utf-8")
    runtime = runtimes.find(f"{file}:run")
    loaded = make_adapter(runtime.adapter, runtime.name).compile("Add-14", (), {})
    (result,) = loaded.arrays(loaded.bind([np.array([1], np.int8), np.array([2], np.int8)])())
    assert result.tolist() == [3]
    assert sys.modules[name].__file__ == str(file) if before is None else sys.modules[name] is before


@pytest.mark.parametrize("runtime", [one for one in INSTALLED if "openvino" in one.id or "onnxruntime" in one.id])
def test_a_result_has_its_shape_whatever_a_model_declares(runtime: Runtime) -> None:
    """A runtime may write what it computes into the beginning of an array of another shape, or refuse one too small."""
    inputs = [np.ones((1, 3, 1), np.float32), np.array([1, 2]), np.arange(7, dtype=np.float32)]
    nodes = {"z = Expand(x, s)": np.ones((1, 3, 2), np.float32), "z, i, j, k = Unique(r)": inputs[2]}
    with Host(runtime, shares_memory=True) as host:
        for node, declared in product(nodes, ["1, 3, 3", "1, 3, 2", "3, 3, 2", "1, 3, 1", "6"]):
            text = f"""<ir_version: 8, opset_import: ["" : 13]>
                g (float[1, 3, 1] x, int64[2] s, float[7] r) => (float[{declared}] z) {{ {node} }}"""
            data = onnx.parser.parse_model(text).SerializeToString()
            results = [(FLOAT32, tuple(map(int, declared.split(", "))))]
            plain = host.run(Model(data), inputs)
            answer = host.run(Model(data), inputs, results=results)
            assert answer.kind == plain.kind, (node, declared, answer.message)
            if answer.kind == "result":
                (array,) = answer.arrays
                assert array is not None
                np.testing.assert_array_equal(array, nodes[node], f"{node}, {declared}", strict=True)


@pytest.mark.parametrize("runtime", [one for one in INSTALLED if "openvino" in one.id or "onnx" in one.id])
def test_inputs_of_no_elements_are_not_taken_for_others(runtime: Runtime) -> None:
    """OpenVINO has no such input once it has read that nothing is computed of it."""
    empty = np.zeros(0, np.float32)
    arrays = {"x": np.array([1, 2, 3], np.float32), "y": np.array([5, 0, -1], np.float32), "e": empty, "f": empty}
    nodes = ("u = Relu(e)", "u = Concat<axis = 0>(e, x)")
    with Host(runtime) as host:
        for node, names in product(nodes, ("exy", "xey", "xye", "exyf")):
            ports = ", ".join(f"float[{arrays[name].size}] {name}" for name in names)
            text = f"""<ir_version: 8, opset_import: ["" : 13]>
                g ({ports}) => (float[3] z) {{ z = Sub(x, y) {node} }}"""
            data = onnx.parser.parse_model(text).SerializeToString()
            answer = host.run(Model(data), [arrays[name] for name in names])
            assert answer.kind == "result", (node, names, answer.message)
            (array,) = answer.arrays
            assert array is not None
            np.testing.assert_array_equal(array, arrays["x"] - arrays["y"], f"{node}, {names}", strict=True)


@pytest.mark.parametrize("name", ["numpy", "jax", "cupy"])
def test_arrays_that_are_given_are_written_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that copies operands would write into the copies; NumPy stands in for those that are not installed."""
    functions = SimpleNamespace(asarray=np.array, subtract=np.subtract)
    jax = {"config": SimpleNamespace(update=lambda *_: None), "devices": lambda: [None], "jit": lambda run: run}
    for module, stand_in in (("jax", SimpleNamespace(**jax)), ("jax.numpy", functions), ("cupy", functions)):
        monkeypatch.setitem(sys.modules, module, stand_in)
    runtime = next(runtime for runtime in runtimes.RUNTIMES if runtime.name == name)
    loaded = make_adapter(runtime.adapter, name).compile("Sub-14", (("subtract", (0, 1)),), {})
    a, b, out = np.array([5, 7]), np.array([1, 2]), np.zeros(2, int)
    with suppress(NotImplementedError):
        loaded.bind([a, b], [out])()
        assert out.tolist() == [4, 5]
