"""``eltwise ops``: list the operator versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing

if TYPE_CHECKING:
    from eltwise.ops.schema import ElementwiseSchema

_COLUMNS = ("operator", "format", "opsets", "broadcasting", "types", "attributes")
FORMATS = {"ai.onnx": "ONNX", "openvino": "OpenVINO"}


@click.command(cls=options.Command)
@options.json
def ops(json: bool) -> None:
    """List every operator version that eltwise runs."""
    from eltwise.ops import registry

    if json:
        printing.json_text("operators", {"operators": [schema_fields(schema) for schema in registry.ELEMENTWISE]})
        return
    columns = _COLUMNS if printing.is_wide() else _COLUMNS[:-1]
    rows = [_cells(schema)[: len(columns)] for schema in registry.ELEMENTWISE]
    printing.table(columns, rows, folding="types")


def _cells(schema: ElementwiseSchema) -> tuple[str, ...]:
    return (
        schema.versioned_name,
        FORMATS[schema.domain],
        opset_range(schema),
        schema.broadcasting,
        " ".join(element_type.ir or element_type.name for element_type in schema.types),
        " ".join(schema.attribute_names) or "none",
    )


def opset_range(schema: ElementwiseSchema) -> str:
    """The opsets that an operator version holds for."""
    from eltwise.ops import registry

    last = registry.last_opset(schema) or registry.NEWEST_OPSET[schema.domain]
    return f"{schema.version}" if schema.version == last else f"{schema.version} to {last}"


def schema_fields(schema: ElementwiseSchema) -> dict[str, object]:
    """An operator version as plain values."""
    from eltwise.ops import registry

    before = registry.previous(schema)
    return {
        "operator": schema.versioned_name,
        "name": schema.name,
        "domain": schema.domain,
        "since": schema.version,
        "last": registry.last_opset(schema),
        "operands": list(schema.operands),
        "variadic": schema.is_variadic,
        "types": [element_type.name for element_type in schema.types],
        "broadcasting": schema.broadcasting,
        "formula": str(schema.expression()),
        "arithmetic": "exact",
        "attributes": [
            {
                "name": attribute.name,
                "kind": attribute.kind,
                "default": attribute.default,
                "choices": [getattr(each, "name", each) for each in attribute.choices],
                "meaning": attribute.meaning,
            }
            for attribute in schema.attributes
        ],
        "previous": before.versioned_name if before else None,
        "changes": schema.changes,
    }
