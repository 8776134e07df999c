"""Run every example model and print what came out, beside what is known.

``python examples/demo.py`` after ``python examples/make_models.py``. What is known is either printed in the
specification's text, to eight digits, or computed by the exact oracle, which shares no code with the engine.
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
from eltwise.conformance.cases import Case
from eltwise.formats.tensor_files import parse_place, read_tensor_file
from eltwise.ops import registry

MODELS = Path(__file__).parent / "models"
PRINTED_DIGITS = 1.5e-8
"""Half a unit in the eighth decimal of x, of y and of z, as the texts print them; the last bit of z may differ."""


NARROW_COLUMNS = ("model", "operator", "A - B", "right")
WIDE_COLUMNS = ("model", "operator", "A - B", "type", "result", "first values", "right")
WIDE = 136


def main() -> int:
    """Print the table; 1 when a result is not what is known."""
    console = Console()
    console = console if console.is_terminal else Console(width=WIDE)
    table = Table(
        title="Element-wise subtraction, from model files",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption="right: as the specification's text prints it, or bit for bit what the exact oracle computes",
    )
    columns = WIDE_COLUMNS if console.width >= WIDE else NARROW_COLUMNS
    for column in columns:
        table.add_column(column, no_wrap=True)
    wrong = 0
    for entry in json.loads((MODELS / "index.json").read_text()):
        schema, right = _run(entry)
        wrong += not right
        table.add_row(*(schema[column] for column in columns))
    console.print(table)
    console.print(f"{wrong} results are wrong" if wrong else "every result is what is known", style="bold")
    return 1 if wrong else 0


def _run(entry: dict[str, object]) -> tuple[dict[str, str], bool]:
    path = MODELS / str(entry["model"])
    model = eltwise.load(path)
    inputs = {}
    for port in model.inputs:
        place = parse_place(str(MODELS / f"{path.stem}.{port.name}.npy"))
        inputs[port.name] = read_tensor_file(place, port.type.element_type)
    (result,) = model.run(inputs).values()
    right, known = _judged(entry, path, list(inputs.values()), result)
    a, b, shape = (_sizes(array) for array in (*inputs.values(), result))
    first = "  ".join(f"{float(value):.4g}" for value in result.reshape(-1)[:4])
    mark = f"[green]✓[/] {known}" if right else f"[red]✗ {known}[/]"
    cells = {
        "model": path.name,
        "operator": str(entry["operator"]),
        "A - B": f"{a} - {b}",
        "type": str(result.dtype),
        "result": shape,
        "first values": first,
        "right": mark,
    }
    return cells, right


def _sizes(array: np.ndarray) -> str:
    return "×".join(map(str, array.shape)) or "scalar"


def _judged(entry: dict[str, object], path: Path, operands: list[np.ndarray], result: np.ndarray) -> tuple[bool, str]:
    if entry["known"] == "text":
        printed = np.load(MODELS / f"{path.stem}.z.npy")
        distance = np.abs(result.astype(np.float64) - printed.astype(np.float64))
        close = distance <= PRINTED_DIGITS + np.spacing(np.abs(printed))
        return result.shape == printed.shape and bool(close.all()), "text"
    attributes = entry["attributes"]
    assert isinstance(attributes, dict)
    case = Case(registry.find(str(entry["operator"])), tuple(attributes.items()), tuple(operands))
    return oracle.same_bits(result, case.expected()), "oracle"


if __name__ == "__main__":
    sys.exit(main())
