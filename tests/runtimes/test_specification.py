"""Run specifications are read as they are written, odd ones are refused, and what they ask for is what runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise import runtimes
from eltwise.core.errors import AttributeValueError, EltwiseError, NameUnknownError, UnsupportedError
from eltwise.runtimes import Host, Model
from eltwise.runtimes.environments import _numpy_for
from eltwise.runtimes.registry import RUNTIMES
from eltwise.runtimes.specification import Option, Settings, Specification, arguments, check, split
from support.onnx_models import model, node, value

WITH_OPTIONS = [runtime for runtime in RUNTIMES if runtime.options and runtime.is_installed]
NAME = st.from_regex(r"[a-z][a-z.]{0,8}", fullmatch=True)
DIFFERENCE = model([node("Sub", "xy", "z")], [value("x"), value("y")], [value("z")]).SerializeToString()
VALUE = st.from_regex(r"[A-Za-z0-9_.+=/-]{1,8}", fullmatch=True)


ORIGIN = st.one_of(
    st.just(("", "")),
    st.tuples(st.from_regex(r"[0-9][0-9a-z.]{0,5}", fullmatch=True), st.just("")),
    st.tuples(st.just(""), st.sampled_from(["env/bin/python", "C:\\env\\python.exe", "~/a@b/python3.12", "/x=y/p"])),
)


@given(NAME, ORIGIN, st.dictionaries(NAME, VALUE))
def test_a_specification_is_read_as_it_is_written(name: str, origin: tuple[str, str], chosen: dict[str, str]) -> None:
    specification = Specification(name, tuple(sorted(chosen.items())), *origin)
    assert split(str(specification)) == specification


@pytest.mark.parametrize("text", ["==", "==abc", "=1.20", "@", "==1 --pre", "==-r", "@:threads=1"])
def test_what_is_no_version_and_no_interpreter_is_refused(text: str) -> None:
    with pytest.raises(EltwiseError, match=r"not the specification of a run|no such interpreter"):
        runtimes.find(f"onnxruntime{text}")


@pytest.mark.parametrize("runtime", WITH_OPTIONS, ids=lambda runtime: runtime.name)
@given(text=st.text(max_size=20))
def test_odd_text_is_refused_in_a_sentence(runtime: runtimes.Runtime, text: str) -> None:
    name = f"{runtime.name}:{text}"
    parts = [part.partition("=") for part in text.split(",")]
    options = {option.name: option for option in runtime.options if not option.name.endswith(".")}
    if len({key for key, _equals, _value in parts}) == len(parts) and all(
        value and (options[key].takes(value) if key in options else key.startswith("config.") and key[7:])
        for key, _equals, value in parts
    ):
        assert runtimes.find(name).settings == tuple(sorted((key, value) for key, _equals, value in parts))
        return
    with pytest.raises(EltwiseError, match=runtime.name):
        runtimes.find(name)


@pytest.mark.parametrize("text", ["", "threads", "threads=", "=1", "threads=1,", "threads=1,threads=2"])
def test_what_is_no_option_and_value_is_refused(text: str) -> None:
    with pytest.raises(AttributeValueError, match="runtime 'onnxruntime'"):
        split(f"onnxruntime:{text}")


@pytest.mark.parametrize("runtime", [one for one in RUNTIMES if one.is_installed], ids=lambda runtime: runtime.name)
def test_unknown_options_and_values_are_refused_by_name(runtime: runtimes.Runtime) -> None:
    for wrong in ("nope=1", "config.=1", "config=1"):
        with pytest.raises(NameUnknownError, match="there is no option of"):
            runtimes.find(f"{runtime.name}:{wrong}")
    for option in runtime.options:
        if option.values or option.most:
            with pytest.raises(NameUnknownError, match="allowed:"):
                runtimes.find(f"{runtime.name}:{option.name}=nope")


@pytest.mark.parametrize(
    ("value", "is_taken"), [("1", True), ("8", True), ("0", False), ("9", False), ("٣", False), ("1" * 5000, False)]
)
def test_a_count_has_a_largest_value(value: str, is_taken: bool) -> None:
    assert Option("threads", most=8).takes(value) is is_taken


def test_arguments_are_those_of_the_adapter() -> None:
    settings: Settings = (("config.a.b", "1"), ("precision", "f32"), ("threads", "8"))
    check("openvino", settings, (Option("threads", most=8), Option("precision", ("f32",)), Option("config.")))
    assert arguments(settings) == {"config": {"a.b": "1"}, "precision": "f32", "threads": 8}


CODE = """
import json, sys
from eltwise.runtimes.worker import make_adapter
loaded = make_adapter(sys.argv[1], sys.argv[2], **json.loads(sys.argv[3])).load(open(sys.argv[4], "rb").read())
print(eval(sys.argv[5], {"loaded": loaded}))
"""
ASKED = (
    ("onnxruntime", "optimization=basic", "loaded._session.get_session_options().graph_optimization_level.name"),
    ("onnxruntime", "threads=3", "loaded._session.get_session_options().intra_op_num_threads"),
    ("onnxruntime", "deterministic=true", "loaded._session.get_session_options().use_deterministic_compute"),
    ("onnxruntime", "config.a.b=7", "loaded._session.get_session_options().get_session_config_entry('a.b')"),
    ("openvino", "precision=f32", "loaded._compiled.get_property('INFERENCE_PRECISION_HINT').get_type_name()"),
    ("openvino", "threads=1", "loaded._compiled.get_property('INFERENCE_NUM_THREADS')"),
    ("openvino", "hint=throughput", "loaded._compiled.get_property('PERFORMANCE_HINT')"),
    ("openvino", "config.ENABLE_CPU_PINNING=NO", "loaded._compiled.get_property('ENABLE_CPU_PINNING')"),
)
GIVEN = ("ORT_ENABLE_BASIC", "3", "True", "7", "f32", "1", "THROUGHPUT", "False")


@pytest.mark.parametrize(("name", "option", "question", "answer"), [(*a, g) for a, g in zip(ASKED, GIVEN, strict=True)])
def test_what_is_asked_for_is_what_runs(name: str, option: str, question: str, answer: str, tmp_path: Path) -> None:
    """Asked in a process of its own, since both libraries bring threads along."""
    if not runtimes.registry.BY_NAME[name].is_installed:
        pytest.skip(f"{name} is not installed; the extra 'runtimes' has it")
    runtime = runtimes.find(f"{name}:{option}", domain="ai.onnx")
    file = tmp_path / "model.onnx"
    file.write_bytes(DIFFERENCE)
    command = [sys.executable, "-c", CODE, runtime.adapter, runtime.name, json.dumps(arguments(runtime.settings))]
    run = subprocess.run([*command, str(file), question], check=True, capture_output=True, text=True)  # noqa: S603
    assert run.stdout.strip() == answer


@pytest.mark.parametrize("text", ["onnxruntime:provider=NopeProvider", "openvino:device=NOPE"])
def test_what_is_not_there_is_refused_and_not_replaced(text: str) -> None:
    """onnxruntime would warn, and run on the processor."""
    if not runtimes.registry.BY_NAME[text.partition(":")[0]].is_installed:
        pytest.skip(f"{text} is not installed; the extra 'runtimes' has it")
    with Host(runtimes.find(text)) as host, pytest.raises(UnsupportedError, match=r"there is no (provider|device)"):
        host.version()


def test_a_precision_that_the_processor_lacks_is_refused() -> None:
    """OpenVINO computes in another one, without a word."""
    pytest.importorskip("openvino")
    for precision in ("f32", "bf16", "f16"):
        with Host(runtimes.find(f"openvino:precision={precision}", domain="ai.onnx")) as host:
            answer = host.run(Model(DIFFERENCE), [np.zeros((2, 3), np.float32)] * 2)
        assert answer.kind == "result" or f"no precision {precision}" in answer.message


def test_a_specification_is_named_in_reports(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    file = tmp_path / "model.onnx"
    file.write_bytes(DIFFERENCE)
    report = eltwise.trace(file, runtime="onnxruntime:threads=1,optimization=disabled", against="exact")
    assert report.runtime.startswith("onnxruntime:threads=1,optimization=disabled ")
    assert report.is_good


@pytest.mark.parametrize(
    ("package", "last", "first"),
    [
        ("onnxruntime", "1.18.1", "1.19.0"),
        ("onnx", "1.16.2", "1.17.0"),
        ("torch", "2.2.2+cpu", "2.3.0"),
        ("numexpr", "2.9.0", "2.10.0"),
    ],
)
def test_versions_from_before_numpy_2_get_an_older_one(package: str, last: str, first: str) -> None:
    assert [_numpy_for(package, version) for version in ("0.1", last, first, "99.0")] == [("numpy<2",)] * 2 + [()] * 2
    assert _numpy_for("openvino", "0.1") == ()
