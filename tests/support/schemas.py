"""The JSON Schemas of the documentation, and a check against the part of JSON Schema that they use."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent.parent / "docs" / "reference" / "schemas"
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_KEYWORDS = {"$schema", "title", "description", "$ref", "anyOf", "const", "enum", "type", "items"}
_KEYWORDS |= {"properties", "required", "additionalProperties"}


@cache
def schema(kind: str) -> dict[str, Any]:
    """The schema of a kind."""
    fields: dict[str, Any] = json.loads((FOLDER / f"{kind}.json").read_text())
    return fields


def problems(value: Any, rule: Any, path: str = "$") -> list[str]:
    """Where a value does not fulfil a schema."""
    if isinstance(rule, bool):
        return [] if rule else [f"{path}: unexpected"]
    assert rule.keys() <= _KEYWORDS, f"{path}: {rule.keys() - _KEYWORDS}"
    if "$ref" in rule:
        return problems(value, schema(rule["$ref"].removesuffix(".json")), path)
    if "anyOf" in rule:
        return min((problems(value, one, path) for one in rule["anyOf"]), key=len)
    if "const" in rule or "enum" in rule:
        return [] if value in rule.get("enum", [rule.get("const")]) else [f"{path}: {value!r} is not allowed"]
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if not any(isinstance(value, _TYPES[name]) and (name == "boolean") >= isinstance(value, bool) for name in types):
        return [f"{path}: {value!r} is not {' or '.join(types)}"]
    if isinstance(value, list):
        return [one for index, each in enumerate(value) for one in problems(each, rule["items"], f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    assert len({*rule.get("required", ())}) == len(rule.get("required", ())), f"{path}: a name is required twice"
    found = [f"{path}.{name} is missing" for name in rule.get("required", ()) if name not in value]
    named, rest = rule.get("properties", {}), rule.get("additionalProperties", True)
    return found + [
        one for name, each in value.items() for one in problems(each, named.get(name, rest), f"{path}.{name}")
    ]
