"""The JSON of every command has a schema in the documentation, and a version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from safetensors.numpy import save_file

from eltwise.cli import COMMANDS as NAMES
from eltwise.cli import app
from eltwise.formats.reports import JSON_VERSION
from support.schemas import FOLDER, problems, schema

Cli = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("local_hosts")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MODELS, MOTION = EXAMPLES / "models", EXAMPLES / "networks" / "motion.onnx"
SUB = MODELS / "sub14_uint8.onnx"
ON_TENSORS = ("Sub-14", "a.npy", "b.npy")
CONFORM = ("conform", "--runtime", "openvino-onnx", "--op", "Sub-14")
ACCURACY = ("accuracy", "--runtime", "onnxruntime", "--op", "Exp")
TRACE = ("trace", MOTION, "--runtime", "openvino", "--against", "onnxruntime", "--json", "-")

COMMANDS: dict[str, tuple[object, ...]] = {
    "trace": TRACE,
    "trace two models": ("trace", MOTION, MOTION, *TRACE[2:]),
    "target": ("check", MOTION, "--target", "openvino", "--json"),
    "target bit for bit": ("check", SUB, "--target", "openvino", "--json"),
    "problems": ("check", MOTION, "--json"),
    "comparison": ("compare", "a.npy", "b.npy", "--json", "-"),
    "changes": ("convert", SUB, "sub.xml", "--json", "--verify"),
    "changes of a repair": ("repair", SUB, "sub.onnx", "--target", "openvino", "--json"),
    "operators": ("ops", "--json"),
    "operator": ("show", "Subtract-1", "--json"),
    "shape": ("infer", "Sub-14", "N,4", "4", "--json"),
    "arrays": ("apply", *ON_TENSORS, "--json"),
    "arrays of a model": (
        "run",
        SUB,
        "-i",
        f"x={MODELS}/sub14_uint8.x.npy",
        "-i",
        f"y={MODELS}/sub14_uint8.y.npy",
        "--json",
    ),
    "blocks": ("apply", "Sub-14", "a.safetensors", "b.safetensors", "-o", "c.safetensors", "--json"),
    "reduction": ("reduce", "sum", *ON_TENSORS, "--json"),
    "rules": ("targets", "--json"),
    "delta": ("delta", "a.safetensors", "b.safetensors", "-o", "d.delta", "--json"),
    "results": (*CONFORM, "--type", "uint8", "--quick", "--json", "r.json"),
    "case": ("reproduce", "r.json", "openvino-onnx/Sub-14/uint8/numpy/static", "-o", "case", "--json"),
    "accuracy": (*ACCURACY, "--type", "float32", "--numbers", "100", "--json", "-"),
    "error": ("check", "nothing.onnx", "--json"),
}
"""By the kind of their JSON, with a remark where there are several."""


GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "conformance.md"


def test_the_guide_names_the_fields_of_results() -> None:
    section = GUIDE.read_text().partition("## Results as JSON")[2].partition("\n|")[0]
    named = {one.strip('"') for one in re.findall(r'`(\w+)`|("\w+")', section) for one in one if one}
    fields = schema("results")["properties"]
    assert named == {*fields} | ({*fields["tests"]["items"]["properties"]} - {"description"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("json")
    a, b = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    b[0, 0] = np.nan
    for name, array in (("a", a), ("b", b)):
        np.save(path / f"{name}.npy", array)
        save_file({"w": array}, path / f"{name}.safetensors")
    return path


def test_every_command_with_json_is_here() -> None:
    commands = [app.get_command(click.Context(app), name) for name in NAMES]
    named = {one.name for one in commands if one and any("--json" in each.opts for each in one.params)}
    assert named == {command[0] for command in COMMANDS.values()}
    assert {path.stem for path in FOLDER.iterdir()} == {kind.partition(" ")[0] for kind in COMMANDS}


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_json_of_a_command_fulfils_its_schema(
    kind: str, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if kind == "case":
        cli(*COMMANDS["results"])
    _code, out, _err = cli(*COMMANDS[kind])
    text = (folder / "r.json").read_text() if kind == "results" else out
    fields = json.loads(text, parse_constant=pytest.fail)
    name = kind.partition(" ")[0]
    assert (fields["format"], fields["version"]) == (f"eltwise-{name}", JSON_VERSION)
    assert problems(fields, schema(name)) == []


@pytest.mark.parametrize("kind", COMMANDS)
def test_an_error_is_json_where_the_result_would_be(kind: str, cli: Cli) -> None:
    """On stdout, by the flag or by ``-``; of a file that is named nothing is written."""
    command = COMMANDS[kind]
    code, out, err = cli(*command, "--none")
    assert (code, "No such option" in err) == (2, True)
    if "r.json" in command[command.index("--json") :]:
        assert out == ""
    else:
        assert problems(json.loads(out), schema("error")) == []


def test_what_a_schema_does_not_allow_is_found() -> None:
    fields = {"format": "eltwise-shape", "version": 1, "shape": "4", "assumptions": ["", 1], "more": True}
    assert problems(fields, schema("shape")) == ["$.assumptions[1]: 1 is not string", "$.more: unexpected"]
    assert problems({"shape": None}, schema("shape")) == ["$.assumptions is missing", "$.shape: None is not string"]
