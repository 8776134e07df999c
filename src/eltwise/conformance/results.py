"""The results of the referee, and how they are written: JSON, a line a cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from eltwise.conformance.cells import Cell, StoredCase, StoredOperand
from eltwise.core.errors import unknown_name
from eltwise.formats import files

Extent = Literal["quick", "usual", "thorough"]
EXTENTS: tuple[Extent, ...] = get_args(Extent)
"""How much is asked, from little to everything."""

SHOWN_FIELDS = ("a", "b", "expected", "got")
"""The parts of an example, in the order in which they are written."""


@dataclass(frozen=True)
class Results:
    """What was found, and where.

    Attributes:
        cells: one record a cell, in the order in which they are shown.
        machine: the processor, in its own words.
        date: when, as ``YYYY-MM-DD``.
        seed: what the random values were drawn with.
        extent: how much was asked.
        interrupted: whether it was stopped before its end.
        versions: of everything that took part, by name.
    """

    cells: tuple[Cell, ...]
    machine: str = ""
    date: str = ""
    seed: int = 0
    extent: Extent = "usual"
    interrupted: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)

    def find(self, key: str) -> Cell:
        """Find a cell by its key.

        Raises:
            NameUnknownError: where there is none, with the nearest key.
        """
        for cell in self.cells:
            if cell.key == key:
                return cell
        error = unknown_name("cell", key, [cell.key for cell in self.cells])
        error.allowed = f"the {len(self.cells)} cells of the results, each RUNTIME/OPERATOR/TYPE/BROADCAST/PATH"
        raise error


def write_results(results: Results, path: Path) -> None:
    """Write results to a file, beside its place first.

    Raises:
        FileFormatError: where it cannot be written.
    """
    files.write_atomically(path, [results_text(results).encode(errors="backslashreplace")])


def results_text(results: Results) -> str:
    """Write results as JSON, a line a cell; the same text for the same results."""
    about = {
        "machine": results.machine,
        "date": results.date,
        "seed": results.seed,
        "extent": results.extent,
        "interrupted": results.interrupted,
        "versions": dict(results.versions),
    }
    head = json.dumps(about, ensure_ascii=False)
    cells = ",\n".join(json.dumps(cell_fields(cell), ensure_ascii=False) for cell in results.cells)
    return f'{head[:-1]}, "cells": [\n{cells}\n]}}\n'


def cell_fields(cell: Cell) -> dict[str, object]:
    """A cell as plain values; what it does not have is left out."""
    made: dict[str, object] = {
        "runtime": cell.runtime,
        "version": cell.version,
        "op": cell.op,
        "dtype": cell.dtype,
        "broadcast": cell.broadcast,
        "path": cell.path,
        "verdict": cell.verdict,
        "explanation": cell.explanation,
        "wrong": cell.wrong,
        "total": cell.total,
    }
    if cell.example is not None:
        made["example"] = {
            name: None if shown is None else {"value": shown.value, "bits": shown.bits}
            for name in SHOWN_FIELDS
            for shown in (getattr(cell.example, name),)
        }
    made["message"] = cell.message
    if cell.case is not None:
        made["case"] = _case_fields(cell.case)
    return made


def _case_fields(case: StoredCase) -> dict[str, object]:
    made: dict[str, object] = {
        "attributes": {name: list(value) if isinstance(value, tuple) else value for name, value in case.attributes},
        "a": _operand_fields(case.a),
        "b": _operand_fields(case.b),
        "got": None if case.got is None else _operand_fields(case.got),
    }
    if case.beside is not None:
        made["beside"] = _case_fields(case.beside)
    return made


def _operand_fields(operand: StoredOperand) -> dict[str, object]:
    digits = (operand.element_type.bits + 3) // 4
    return {
        "dtype": operand.element_type.name,
        "shape": list(operand.shape),
        "bits": [f"0x{pattern:0{digits}x}" for pattern in operand.bits],
    }
