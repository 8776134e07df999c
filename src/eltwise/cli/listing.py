"""``eltwise ops`` and ``eltwise show``: the catalog, as a table and row by row."""

from __future__ import annotations

from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.ops import registry
from eltwise.ops.schema import Attribute, ElementwiseSchema

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
        printing.json_text([_fields(schema) for schema in registry.ELEMENTWISE])
        return
    columns = _COLUMNS if printing.is_wide() else _COLUMNS[:-1]
    table = printing.table(*columns, folding="types")
    for schema in registry.ELEMENTWISE:
        cells = (
            schema.versioned_name,
            _DOMAINS[schema.domain],
            _opsets(schema),
            schema.broadcasting,
            " ".join(element_type.ir or element_type.name for element_type in schema.types),
            " ".join(schema.attribute_names) or "none",
        )
        table.add_row(*cells[: len(columns)])
    printing.show(table)


def show(op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name.")], json: Json = False) -> None:
    """Show one row of the catalog whole."""
    schema = registry.find(op)
    if json:
        printing.json_text(_fields(schema))
        return
    before = registry.previous(schema)
    lines = [
        ("operator", f"{schema.versioned_name} of {_DOMAINS[schema.domain]}"),
        (
            "since",
            f"opset {schema.version}; holds for {_opsets(schema)}{', the newest' if schema.last is None else ''}",
        ),
        ("formula", str(schema.expression())),
        ("broadcasting", _BROADCASTING[schema.broadcasting]),
        ("types of A, B and the result", ", ".join(element_type.name for element_type in schema.types)),
        ("attributes", "none" if not schema.attributes else ""),
        *((f"  {attribute.name}", _described(attribute)) for attribute in schema.attributes),
        ("arithmetic", "integers wrap; floats are rounded once a step, to nearest even; subnormals are kept"),
        (f"changed from {before.versioned_name}" if before else "changed", schema.changes),
    ]
    printing.pairs(lines)


def _opsets(schema: ElementwiseSchema) -> str:
    last = registry.NEWEST_OPSET[schema.domain] if schema.last is None else schema.last
    return f"{schema.version}" if schema.version == last else f"{schema.version} to {last}"


def _described(attribute: Attribute) -> str:
    default = "unset" if attribute.default is None else repr(attribute.default)
    choices = f", one of {', '.join(map(str, attribute.choices))}" if attribute.choices else ""
    return f"{attribute.kind}, default {default}{choices}. {attribute.meaning}"


def _fields(schema: ElementwiseSchema) -> dict[str, object]:
    before = registry.previous(schema)
    return {
        "operator": schema.versioned_name,
        "name": schema.name,
        "domain": schema.domain,
        "since": schema.version,
        "last": schema.last,
        "types": [element_type.name for element_type in schema.types],
        "broadcasting": schema.broadcasting,
        "formula": str(schema.expression()),
        "arithmetic": "exact",
        "attributes": [
            {
                "name": attribute.name,
                "kind": attribute.kind,
                "default": attribute.default,
                "choices": list(attribute.choices),
                "meaning": attribute.meaning,
            }
            for attribute in schema.attributes
        ],
        "previous": before.versioned_name if before else None,
        "changes": schema.changes,
    }
