"""``eltwise show``: show one operator version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.ops import FORMATS, opset_range, schema_fields

if TYPE_CHECKING:
    from eltwise.ops.attribute import Attribute
    from eltwise.ops.schema import ElementwiseSchema

_BROADCASTING = {
    "legacy": "B onto A, with broadcast=1 (legacy)",
    "numpy": "both ways (numpy)",
    "none": "none: all operands have one shape",
    "channel": "B onto A: one dimension onto A's second one where the sizes are equal, else as in NumPy",
    "axis": "of the others onto the first: one element, one for each index of the axis, or one for each block of them",
}


@click.command(cls=options.Command)
@click.argument("op", metavar="OPERATOR", help="A versioned name.")
@options.json
def show(op: str, json: bool) -> None:
    """Show one operator version: types, attributes, broadcasting and what changed."""
    from eltwise.ops import registry

    schema = registry.find(op)
    if json:
        printing.json_text("operator", schema_fields(schema))
        return
    before, newest = registry.previous(schema), "" if registry.last_opset(schema) else ", the newest"
    lines = [
        ("operator", f"{schema.versioned_name} of {FORMATS[schema.domain]}"),
        ("since", f"opset {schema.version}; holds for {opset_range(schema)}{newest}"),
        ("expression", str(schema.expression())),
        ("broadcasting", _broadcasting(schema)),
        ("operands", _operands(schema)),
        ("their type", ", ".join(element_type.name for element_type in schema.types)),
        ("result", _result(schema)),
        ("attributes", "none" if not schema.attributes else ""),
        *((f"  {attribute.name}", _described(attribute)) for attribute in schema.attributes),
        ("arithmetic", _arithmetic(schema)),
        (f"changed from {before.versioned_name}" if before else "changed", schema.changes),
    ]
    printing.pairs(lines)


def _broadcasting(schema: ElementwiseSchema) -> str:
    if schema.broadcasting != "auto_broadcast":
        return _BROADCASTING[schema.broadcasting]
    (rules,) = (attribute.choices for attribute in schema.attributes if attribute.name == "auto_broadcast")
    return f"{', '.join(map(str, rules[:-1]))} or {rules[-1]}, as auto_broadcast says"


def _operands(schema: ElementwiseSchema) -> str:
    return f"{schema.operands[0]}, one or more" if schema.is_variadic else " and ".join(schema.operands)


def _result(schema: ElementwiseSchema) -> str:
    stated = next((attribute for attribute, name in schema.parameters if name == "to"), "")
    if schema.like is None:
        others = "bool" if schema.expression().gives_booleans else "of their type"
        return f"of the type that {stated} states" if stated else others
    operand, absent = schema.like
    return f"of the type of {schema.operands[operand]}{f', without which {absent}' if absent else ''}"


def _arithmetic(schema: ElementwiseSchema) -> str:
    """What becomes of integers that are beyond the type, and of numbers that are no floats."""
    steps = [step.definition for step in schema.expression().steps]
    rounded, texts = sum(step.rounds for step in steps), list[str]()
    if any(step.wraps for step in steps) and any(each.is_integer for each in schema.types):
        texts.append("integers wrap")
    if any(each.kind == "float" for each in schema.types) or steps[-1].result == "to":
        count = "once" if rounded == 1 else "after each step"
        texts.append(
            f"floats are rounded {count}, to nearest even; subnormals are kept" if rounded else "floats are exact"
        )
    if any(attribute.name == "precision" for attribute in schema.attributes):
        texts.append("the quotient is rounded first where precision is stated")
    return "; ".join(texts or ["exact"])


def _described(attribute: Attribute) -> str:
    default = "unset" if attribute.default is None else repr(attribute.default)
    choices = f", one of {', '.join(map(str, attribute.choices))}" if attribute.choices else ""
    return f"{attribute.kind}, default {default}{choices}. {attribute.meaning}"
