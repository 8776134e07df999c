"""``eltwise report``: what a report of a fault needs, as Markdown to paste: versions, processor, runtimes, a case."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from eltwise.cli import options, printing
from eltwise.version import VERSION

if TYPE_CHECKING:
    import numpy as np

PACKAGES = ("numpy", "ml_dtypes", "llvmlite", "onnx", "lxml", "safetensors")
VARIABLES = ("ELTWISE_CPU", "ELTWISE_KERNELS", "ELTWISE_NUM_THREADS")
HOW = "none; `eltwise trace --reproduce FOLDER` and `eltwise reproduce` write one, and `eltwise report FOLDER` adds it"


@click.command(cls=options.Command)
@click.argument(
    "case", type=options.PATH, required=False, help="A folder that `trace --reproduce` or `reproduce` wrote."
)
def report(*, case: Path | None) -> None:
    """Print what a report of a fault needs, for an issue: versions, the processor, runtimes and a minimal case."""
    about, arrays = ((), {}) if case is None else read_case(case)
    for name, text in facts().items():
        printing.line(f"- {name}: {text}")
    if case is None:
        printing.line(f"- case: {HOW}")
        return
    printing.line(f"- case, of which {case} is to be attached as an archive:")
    printing.line("```text")
    for line in about:
        printing.line(line)
    printing.results(arrays, json=False)
    printing.line("```")


def facts() -> dict[str, str]:
    """What is known of the installation, by what it is about."""
    from eltwise.core.machine import machine_name, processors
    from eltwise.kernels.dispatch import has_compiler
    from eltwise.runtimes.registry import RUNTIMES, installed

    if has_compiler():
        from eltwise.kernels.jit import target

        kernels = f"compiled for {target().name}, vectors of {target().vector_bytes} bytes"
    else:
        kernels = "not compiled: NumPy computes"
    present = {package for runtime in installed() for package in runtime.packages}
    absent = {package for runtime in RUNTIMES for package in runtime.packages} - present
    return {
        "eltwise": VERSION,
        "machine": f"{machine_name()}, {processors()} processors",
        "kernels": kernels,
        "packages": _versions(PACKAGES),
        "runtimes": _versions(sorted(present - set(PACKAGES))) or "none",
        "not installed": ", ".join(sorted(absent)) or "none",
        "variables": ", ".join(f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ) or "none",
    }


def _versions(packages: Sequence[str]) -> str:
    from importlib.metadata import PackageNotFoundError, version

    texts = []
    for package in packages:
        try:
            texts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            texts.append(f"{package} of an unknown version")
    return ", ".join(texts)


class CaseFile(NamedTuple):
    """The file case.json of a case."""

    about: tuple[str, ...]
    inputs: Mapping[str, str]  # The element type of each.
    adapter: object
    arguments: object
    environment: object
    output: object
    expected: str | None = None  # Its element type; None where a refusal is expected.
    model: object = None
    op: object = None
    steps: object = None
    attributes: object = None
    options: object = None


def read_case(folder: Path) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """What a case is about, a line each, and its arrays by their names."""
    from eltwise.core.dtypes import by_name
    from eltwise.core.fields import from_json
    from eltwise.formats.files import read_bytes
    from eltwise.formats.tensor_files import TensorFile, read_tensor_file

    file = folder / "case.json"
    case = from_json(CaseFile, read_bytes(file), str(file))
    types = {**case.inputs, **({"expected": case.expected, "got": case.expected} if case.expected else {})}
    arrays = {
        name: read_tensor_file(TensorFile(path), by_name(element_type))
        for name, element_type in types.items()
        if (path := folder / f"{Path(name).name}.npy").exists()
    }
    return case.about, arrays
