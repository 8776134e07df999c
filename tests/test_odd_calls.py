"""Odd calls of everything that is public: each gives a result or an error of the family, which comes in two frames."""

from __future__ import annotations

import inspect
import re
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.machine import processors
from eltwise.errors import EltwiseError
from support.local_hosts import use_local_hosts
from support.odd import ODD

ROOT = Path(eltwise.__file__).parent
EXAMPLES = Path(__file__).parent.parent / "examples"
MODEL = EXAMPLES / "models" / "sub14_uint8.onnx"
WEIGHTS = EXAMPLES / "checkpoints" / "trained.safetensors"


ARRAY = np.float32([[1, 2], [3, 4]])
SUBTRACT = eltwise.operator("Subtract-1")
LOADED = eltwise.load(MODEL)
FEEDS = {"x": np.load(MODEL.with_suffix(".x.npy")), "y": np.load(MODEL.with_suffix(".y.npy"))}

USUAL: dict[str, dict[str, object]] = {
    "Model": {"analysis": LOADED.analysis},
    "Model.__call__": {"inputs": FEEDS},
    "Model.random_inputs": {"sizes": {}},
    "Model.save": {"path": "out.onnx"},
    "Model.explain": {"inputs": FEEDS},
    "Model.run": {"inputs": FEEDS},
    "Operator": {"operation": SUBTRACT.operation},
    "Operator.__call__": {"operands": (ARRAY, ARRAY)},
    "Operator.infer_shape": {"operands": ("2,3", "3")},
    "check": {"source": LOADED, "target": "onnxruntime", "run": False},
    "compare": {"a": {"x": ARRAY}, "b": {"x": ARRAY + 1}},
    "conform": {"runtimes": "numpy", "ops": "Sub-14", "types": "uint8", "sources": "call", "extent": "quick"},
    "convert": {"source": LOADED, "opset": 15},
    "delta": {"tuned": WEIGHTS, "base": WEIGHTS, "output": "out.delta", "force": True},
    "load": {"source": MODEL},
    "operator": {"name": "Sub-6", "attributes": {"broadcast": 1, "axis": 0}},
    "record": {"model": MODEL, "runtime": "eltwise"},
    "reduce": {"reduction": "sum", "operator_": "Subtract-1", "operands": (ARRAY, ARRAY)},
    "repair": {"source": LOADED, "target": "onnxruntime"},
    "restore": {"base": WEIGHTS, "delta": "usual.delta", "output": "out.safetensors", "force": True},
    "save": {"model": LOADED, "path": "out.onnx"},
    "set_num_threads": {"count": 2},
    "testing.assert_close": {"actual": {"x": ARRAY}, "expected": {"x": ARRAY}},
    "testing.assert_same": {"actual": {"x": ARRAY}, "expected": {"x": ARRAY}},
    "testing.assert_same_model": {"actual": MODEL, "expected": MODEL},
    "trace": {"model": MODEL, "runtime": "onnxruntime", "against": "exact"},
}
"""Arguments that are right, by function; arrays where nothing is said."""

OPTION = re.compile(r"(^|[\s(`])--[a-z]")


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, class and method, without the errors."""
    for name in eltwise.__all__:
        value = getattr(eltwise, name)
        if isinstance(value, type) and not issubclass(value, Exception):
            yield name, value
            yield from (
                (f"{name}.{method}", function)
                for method, function in vars(value).items()
                if inspect.isfunction(function) and (method == "__call__" or not method.startswith("_"))
            )
        elif callable(value) and not isinstance(value, type) and not isinstance(value, ModuleType):
            yield name, value
    yield from ((f"testing.{name}", getattr(eltwise.testing, name)) for name in eltwise.testing.__all__)


PUBLIC = dict(public())


def usual(name: str) -> dict[str, object]:
    """Arguments that a function takes."""
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty and each.kind != each.VAR_KEYWORD]
    owners = {"Model": LOADED, "Operator": SUBTRACT}
    values: dict[str, object] = dict.fromkeys(needed, ARRAY) | USUAL.get(name, {})
    return values | ({"self": owners[name.partition(".")[0]]} if "self" in needed else {})


def is_of_package(file: str) -> bool:
    return Path(file).is_relative_to(ROOT)


def call(name: str, values: dict[str, Any]) -> Any:
    function, positional, keywords = PUBLIC[name], [], {}
    for each in inspect.signature(function).parameters.values():
        if each.name not in values:
            continue
        if each.kind == each.VAR_POSITIONAL:
            positional += values[each.name]
        elif each.kind == each.VAR_KEYWORD:
            keywords |= values[each.name]
        elif each.kind == each.POSITIONAL_ONLY or each.name == "self":
            positional.append(values[each.name])
        else:
            keywords[each.name] = values[each.name]
    return function(*positional, **keywords)


def odd_calls(name: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Calls with one odd argument, and with an odd one among the operands and attributes."""
    right = usual(name)
    for parameter in inspect.signature(PUBLIC[name]).parameters.values():
        if parameter.name == "self":
            continue
        for label, make in ODD.items():
            if parameter.name == "progress" and callable(make()):
                continue  # What it raises is its own.
            if parameter.kind == parameter.VAR_POSITIONAL:
                first, *rest = list(right[parameter.name])  # type: ignore[call-overload]
                yield f"*{parameter.name}[-1]={label}", right | {parameter.name: (first, *rest[:-1], make())}
                yield f"*{parameter.name}=({label},)", right | {parameter.name: (make(),)}
            elif parameter.kind == parameter.VAR_KEYWORD:
                yield f"odd={label}", right | {parameter.name: {"odd": make()}}
                yield f"axis={label}", right | {parameter.name: {"axis": make()}}
            else:
                yield f"{parameter.name}={label}", right | {parameter.name: make()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for what is written; the runtimes of traces run in this process, since most calls start two."""
    use_local_hosts(monkeypatch)
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    eltwise.delta(WEIGHTS, WEIGHTS, "usual.delta")
    shutil.copy(MODEL, "odd.onnx")
    yield inner
    eltwise.set_num_threads(processors())


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.usefixtures("folder")
def test_an_odd_call_gives_a_result_or_an_error_of_the_family(name: str) -> None:
    call(name, usual(name))
    raw, deep, options = [], [], []
    for label, values in odd_calls(name):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(name, values)
        except EltwiseError as error:
            frames = [each.name for each in traceback.extract_tb(error.__traceback__) if is_of_package(each.filename)]
            if len(frames) > 2:
                deep.append(f"{label}: {' < '.join(frames)}")
            if OPTION.search(str(error)):
                options.append(str(error))
        except AssertionError:
            assert name.startswith("testing."), label
        except Exception as error:  # noqa: BLE001 - that is what the test looks for
            last = traceback.extract_tb(error.__traceback__)[-1]
            raw.append(f"{label}: {type(error).__name__}: {str(error)[:99]} ({Path(last.filename).name}:{last.lineno})")
    assert raw == []
    assert deep == []
    assert options == []


def test_a_planted_raw_error_and_a_deep_one_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above is able to fail."""
    with monkeypatch.context() as patched:
        patched.setattr("eltwise.core.border.stripped", lambda error: error)
        with pytest.raises(AssertionError, match="call < call < _check_arguments < _check"):
            test_an_odd_call_gives_a_result_or_an_error_of_the_family("operator")
    monkeypatch.setitem(PUBLIC, "operator", lambda name, **attributes: name.lower())
    with pytest.raises(AssertionError, match="AttributeError"):
        test_an_odd_call_gives_a_result_or_an_error_of_the_family("operator")
