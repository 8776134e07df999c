"""A package imports only from lower layers, and no modules import each other in a circle.

Imports are read from the syntax tree, wherever they stand: also in functions and for the type checker.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import eltwise

ROOT = Path(eltwise.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("version", "core"),
    ("errors", "ops", "oracle"),
    ("ir", "kernels"),
    ("formats",),
    ("engine", "passes"),
    ("model",),
    ("scale", "verification"),
    ("conversion", "runtimes", "backend", "faults"),
    ("report",),
    ("conformance",),
    ("comparison", "accuracy"),
    ("tracing",),
    ("targets",),
    ("configuration",),
    ("testing",),
    ("cli",),
    ("__main__",),
)
"""From the lowest up. A package may import itself and those of lower layers, not its neighbours."""

HEAVY = {
    "onnx": ("formats/onnx/", "passes/onnx_converter.py", "runtimes/", "conformance/", "backend.py", "cli/demo"),
    "google": ("formats/onnx/",),
    "lxml": ("formats/openvino/",),
    "flint": ("oracle/nearest.py", "oracle/power.py", "oracle/real_functions.py"),
    "llvmlite": ("kernels/jit.py",),
    "click": ("cli/",),
    "rich": ("cli/",),
    "safetensors": ("formats/safetensors_files.py",),
    "zarr": ("formats/zarr_stores.py", "formats/guarded_codecs.py", "formats/guarded_store.py"),
    "zstandard": ("scale/",),
    "google_crc32c": ("scale/",),
    "distributed": ("scale/",),
    "onnxruntime": ("runtimes/",),
    "openvino": ("runtimes/",),
    "torch": ("runtimes/", "engine/array_libraries.py"),
    "jax": ("runtimes/", "engine/array_libraries.py"),
    "dask": ("engine/dask_arrays.py", "engine/intake.py"),
    "xarray": ("engine/xarray_objects.py", "engine/intake.py"),
    "pandas": ("formats/reports.py", "testing/labels.py"),
    "numexpr": ("runtimes/",),
}
"""The files that may import a heavy library at run time."""

LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}
PUBLIC = ROOT / "__init__.py"  # The public API stands above all.


@cache
def imports(source: str) -> list[tuple[str, bool]]:
    """Every module that a source imports, and whether only for the type checker."""
    found = []

    def walk(node: ast.AST, typing_only: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, typing_only) for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            found.extend((f"{node.module}.{alias.name}", typing_only) for alias in node.names)
        is_guard = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.iter_child_nodes(node):
            walk(child, typing_only or (is_guard and child in getattr(node, "body", ())))

    walk(ast.parse(source), False)
    return found


def faults(files: dict[str, str]) -> list[str]:
    """Every import that goes up or sideways, and every heavy library where it has no business."""
    found = []
    for file, source in files.items():
        package = file.split("/")[0].removesuffix(".py")
        if package not in LAYER_OF:
            found.append(f"{file} belongs to no layer")
            continue
        for module, typing_only in imports(source):
            top, *rest = module.split(".")
            if top == "eltwise":
                target = rest[0] if rest and rest[0] in LAYER_OF else "__init__"
                if target != package and LAYER_OF.get(target, len(LAYERS)) >= LAYER_OF[package]:
                    found.append(f"{file} imports {module}")
            elif top in HEAVY and not typing_only and not file.startswith(HEAVY[top]):
                found.append(f"{file} imports {module}")
    return found


def circles(files: dict[str, str]) -> list[set[str]]:
    """Every set of modules that import each other, over others too."""
    modules = {file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file for file in files}
    reached = {
        module: {
            name if name in modules else name.rpartition(".")[0]
            for name in (path.removeprefix("eltwise.") for path, _typing_only in imports(files[file]))
        }
        & modules.keys() - {module}
        for module, file in modules.items()
    }
    for module in modules:  # Warshall's algorithm: what is reached over this one.
        for others in reached.values():
            others.update(reached[module] if module in others else ())
    found = [{other for other in reached[module] if module in reached[other]} for module in modules]
    return [circle for number, circle in enumerate(found) if circle and circle not in found[:number]]


def sources() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py")) if path != PUBLIC
    }


def test_a_package_imports_only_from_lower_layers() -> None:
    assert faults(sources()) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(sources()) == []


@pytest.mark.parametrize(
    ("planted", "circle"),
    [
        ({"core/shapes.py": "from eltwise.core.broadcasting import Rule"}, {"core.shapes", "core.broadcasting"}),
        ({"core/shapes.py": "from eltwise.core import broadcasting"}, {"core.shapes", "core.broadcasting"}),
        ({"core/shapes.py": "import eltwise.core.broadcasting"}, {"core.shapes", "core.broadcasting"}),
        (
            {"formats/npy.py": "def late() -> None:\n    from eltwise.formats import tensor_files"},
            {"formats.npy", "formats.tensor_sets", "formats.tensor_files"},
        ),
        (
            {
                "core/first.py": "if TYPE_CHECKING:\n    from eltwise.core import second",
                "core/second.py": "from eltwise.core.third import name",
                "core/third.py": "def late() -> None:\n    from eltwise.core.first import other",
            },
            {"core.first", "core.second", "core.third"},
        ),
    ],
)
def test_a_planted_circle_is_found(planted: dict[str, str], circle: set[str]) -> None:
    before = sources()
    after = before | {file: f"{before.get(file, '')}\n{text}\n" for file, text in planted.items()}
    assert [each for each in circles(after) if each not in circles(before)] == [circle]


def test_every_package_of_the_list_exists() -> None:
    assert set(LAYER_OF) == {file.split("/")[0].removesuffix(".py") for file in sources()}


@pytest.mark.parametrize(
    ("file", "planted"),
    [
        ("core/shapes.py", "from eltwise.engine import call"),
        ("core/errors.py", "import eltwise.cli.printing"),
        ("core/dtypes.py", "from eltwise import load"),
        ("ir/infer.py", "def late() -> None:\n    from eltwise.model import load"),
        ("kernels/plan.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eltwise.engine import call"),
        ("ops/registry.py", "from eltwise.oracle import add"),
        ("oracle/numbers.py", "from eltwise.ops import schema"),
        ("engine/call.py", "import onnx"),
        ("passes/opset.py", "from onnx import NodeProto"),
        ("passes/onnx_converter.py", "from google.protobuf import message"),
        ("ir/graph.py", "from lxml import etree"),
        (
            "model.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from onnx import ModelProto\nimport onnx",
        ),
        ("model.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import onnx"),
    ],
)
def test_a_planted_fault_is_found(file: str, planted: str) -> None:
    before = sources()
    after = before | {file: f"{before[file]}\n{planted}\n"}
    assert len(set(faults(after)) - set(faults(before))) == 1


def test_the_reference_imports_nothing_of_the_package_but_the_element_types() -> None:
    used = {
        module.rpartition(".")[0]
        for file, source in sources().items()
        if file.startswith("oracle/")
        for module, _typing_only in imports(source)
        if module.startswith("eltwise.") and not module.startswith("eltwise.oracle")
    }
    assert used == {"eltwise.core.dtypes"}
