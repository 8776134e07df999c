"""``eltwise ops`` and ``eltwise show``: the catalog, as a table and row by row."""

from __future__ import annotations

from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.ops import registry
from eltwise.ops.schema import Attribute, ElementwiseRow

_COLUMNS = ("operator", "dialect", "opsets", "broadcasting", "types", "attributes")
_DOMAINS = {"ai.onnx": "ONNX", "openvino": "OpenVINO"}
_BROADCASTING = {
    "legacy": "B onto A, with broadcast=1 (legacy)",
    "numpy": "both ways (numpy)",
    "auto_broadcast": "none, numpy or pdpd, as auto_broadcast says",
}

Json = Annotated[bool, typer.Option("--json", help="Print what a program can read.")]


def ops(json: Json = False) -> None:
    """List the catalog: one row an operator version."""
    if json:
        printing.json_text([_fields(row) for row in registry.ROWS])
        return
    columns = _COLUMNS if printing.is_wide() else _COLUMNS[:-1]
    table = printing.table(*columns, folding="types")
    for row in registry.ROWS:
        cells = (
            row.versioned_name,
            _DOMAINS[row.domain],
            _opsets(row),
            row.broadcasting,
            " ".join(element_type.ir or element_type.name for element_type in row.types),
            " ".join(row.attribute_names) or "none",
        )
        table.add_row(*cells[: len(columns)])
    printing.show(table)


def show(op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name.")], json: Json = False) -> None:
    """Show one row of the catalog whole."""
    row = registry.row(op)
    if json:
        printing.json_text(_fields(row))
        return
    before = registry.previous(row)
    lines = [
        ("operator", f"{row.versioned_name} of {_DOMAINS[row.domain]}"),
        ("since", f"opset {row.version}; holds for {_opsets(row)}{', the newest' if row.last is None else ''}"),
        ("formula", row.formula.text),
        ("broadcasting", _BROADCASTING[row.broadcasting]),
        ("types of A, B and the result", ", ".join(element_type.name for element_type in row.types)),
        ("attributes", "none" if not row.attributes else ""),
        *((f"  {attribute.name}", _described(attribute)) for attribute in row.attributes),
        ("arithmetic", "integers wrap; floats are rounded once a step, to nearest even; subnormals are kept"),
        (f"changed from {before.versioned_name}" if before else "changed", row.changes),
    ]
    printing.pairs(lines)


def _opsets(row: ElementwiseRow) -> str:
    last = registry.NEWEST_OPSET[row.domain] if row.last is None else row.last
    return f"{row.version}" if row.version == last else f"{row.version} to {last}"


def _described(attribute: Attribute) -> str:
    default = "unset" if attribute.default is None else repr(attribute.default)
    choices = f", one of {', '.join(map(str, attribute.choices))}" if attribute.choices else ""
    return f"{attribute.kind}, default {default}{choices}. {attribute.meaning}"


def _fields(row: ElementwiseRow) -> dict[str, object]:
    before = registry.previous(row)
    return {
        "operator": row.versioned_name,
        "name": row.name,
        "domain": row.domain,
        "since": row.version,
        "last": row.last,
        "types": [element_type.name for element_type in row.types],
        "broadcasting": row.broadcasting,
        "formula": row.formula.text,
        "arithmetic": row.arithmetic.name,
        "attributes": [
            {
                "name": attribute.name,
                "kind": attribute.kind,
                "default": attribute.default,
                "choices": list(attribute.choices),
                "meaning": attribute.meaning,
            }
            for attribute in row.attributes
        ],
        "previous": before.versioned_name if before else None,
        "changes": row.changes,
    }
