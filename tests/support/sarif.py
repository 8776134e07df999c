"""What SARIF 2.1.0 (OASIS) and GitHub's code scanning require of the properties that eltwise writes, as a schema."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}


def _object(*optional: str, **required: Any) -> dict[str, Any]:
    """An object with these properties, of which the optional ones are texts, and no others."""
    properties = dict.fromkeys(optional, _TEXT) | required
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_MESSAGE = _object(text=_TEXT)
_REGION = _object(startLine={"type": "integer"})
_PHYSICAL = _object(artifactLocation=_object("uriBaseId", uri=_TEXT), region=_REGION)
_LOCATION = _object(physicalLocation=_PHYSICAL)
_LOCATION["properties"]["logicalLocations"] = _array(_object("kind", name=_TEXT))
_RESULT = _object(
    ruleId=_TEXT,
    ruleIndex={"type": "integer"},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations=_array(_LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
)
_DRIVER = _object("semanticVersion", name=_TEXT, rules=_array(_object(id=_TEXT, shortDescription=_MESSAGE)))
_RUN = _object(
    tool=_object(driver=_DRIVER),
    automationDetails=_object(id=_TEXT),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_array(_RESULT),
)
SARIF = _object("$schema", version={"const": "2.1.0"}, runs=_array(_RUN))
