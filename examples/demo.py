"""Run every example model and compare the result with what is known.

``python examples/demo.py`` after ``python examples/make_models.py``. What is known is either printed in the
specification, to eight digits, or computed by the exact reference, which shares no code with the engine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import eltwise
from eltwise import oracle
from eltwise.formats.tensor_files import parse_tensor_file, read_tensor_file
from eltwise.ops import registry

MODELS = Path(__file__).parent / "models"
PRINTED_DIGITS = 1.5e-8
"""Half a unit in the eighth decimal of x, of y and of z, as the specification prints them."""

NARROW_COLUMNS = ("model", "operator", "operands", "check")
WIDE_COLUMNS = ("model", "operator", "operands", "type", "result", "first values", "check")
WIDE = 136


def main() -> int:
    """Print the table; 1 if a result differs from what is known."""
    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    table = Table(
        title="Example models",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption="check: as printed in the specification, or bit for bit what the exact reference computes",
    )
    columns = WIDE_COLUMNS if console.width >= WIDE else NARROW_COLUMNS
    for column in columns:
        table.add_column(column, no_wrap=True)
    wrong = 0
    for entry in json.loads((MODELS / "index.json").read_text()):
        cells, right = run(entry)
        wrong += not right
        table.add_row(*(cells[column] for column in columns))
    console.print(table)
    console.print(f"{wrong} results are wrong" if wrong else "all results are right", style="bold")
    return 1 if wrong else 0


def run(entry: dict[str, object]) -> tuple[dict[str, str], bool]:
    """Run one model; give the cells of its row, and whether the result is right."""
    path = MODELS / str(entry["model"])
    model = eltwise.load(path)
    operands = [
        read_tensor_file(parse_tensor_file(str(MODELS / f"{path.stem}.{port.name}.npy")), port.type.element_type)
        for port in model.inputs
    ]
    (result,) = model.run({port.name: operand for port, operand in zip(model.inputs, operands, strict=True)}).values()
    right = is_right(entry, operands, result)
    mark = f"[green]✓[/] {entry['known']}" if right else f"[red]✗ {entry['known']}[/]"
    cells = {
        "model": path.name,
        "operator": str(entry["operator"]),
        "operands": ", ".join(map(_sizes, operands)),
        "type": str(result.dtype),
        "result": _sizes(result),
        "first values": "  ".join(f"{float(value):.4g}" for value in result.reshape(-1)[:4]),
        "check": mark,
    }
    return cells, right


def is_right(entry: dict[str, object], operands: list[np.ndarray], result: np.ndarray) -> bool:
    """Whether a result is what the specification prints, or what the reference computes."""
    if entry["known"] == "text":
        printed = np.load(MODELS / str(entry["model"]).replace(".onnx", ".z.npy"))
        distance = np.abs(result.astype(np.float64) - printed.astype(np.float64))
        tolerance = PRINTED_DIGITS + np.spacing(np.abs(printed))
        return result.shape == printed.shape and bool((distance <= tolerance).all())
    attributes = entry["attributes"]
    assert isinstance(attributes, dict)
    operation = registry.find(str(entry["operator"])).bind(attributes)
    rule = operation.rule
    a, b = operands
    expected = oracle.evaluate(operation.function, a, b, rule=rule.name, axis=rule.axis, enabled=rule.enabled)
    return oracle.same_bits(result, expected)


def _sizes(array: np.ndarray) -> str:
    return "×".join(map(str, array.shape)) or "scalar"


if __name__ == "__main__":
    sys.exit(main())
