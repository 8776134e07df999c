"""The labels of pandas' and xarray's objects as a text, which the metadata of a golden holds.

The text is JSON: by the name of each object the names of its ``dimensions``, the labels of its ``axes``, and ``facts``:
its name, and the types and names of its labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eltwise.core.errors import ElementTypeError
from eltwise.core.escaping import shortened
from eltwise.engine.pandas_objects import Labels, facts_of, labels_of
from eltwise.tracing.recording import RecordingError

_MOST_CHARACTERS = 1 << 24


def labels_text(objects: Mapping[str, object]) -> str:
    """The labels of objects by their names; empty where none has any.

    Raises:
        ElementTypeError: for labels that could not be read from the text as they are.
    """
    by_name = {name: replace(labels_of(value), facts=facts_of(value)) for name, value in objects.items()}
    texts = {name: _text(name, labels) for name, labels in by_name.items() if labels.axes or labels.facts}
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in texts.items())}}}" if texts else ""


def read_labels(text: str, where: str) -> dict[str, Labels]:
    """The labels by the names of the objects.

    Raises:
        RecordingError: for a text that is damaged, or that the installed pandas does not read.
    """
    try:
        return {name: _decoded(fields) for name, fields in json.loads(text).items()}
    except Exception as error:  # noqa: BLE001 - pandas raises what it likes
        problem, hint = "the labels of the golden cannot be read", "write the golden anew"
        raise RecordingError(problem, where=where, got=shortened(str(error)), hint=hint) from None


def _text(name: str, labels: Labels) -> str:
    hint = "give its NumPy array"
    try:
        text = json.dumps(_encoded(labels))
        is_complete = _is_same(labels, _decoded(json.loads(text)))
    except Exception:  # noqa: BLE001 - labels are any objects, and pandas raises what it likes
        is_complete = False
    if not is_complete:
        kinds = ", ".join(sorted({type(each).__name__ for each in labels.axes if each is not None}))
        raise ElementTypeError("a golden cannot hold these labels", operand=name, got=kinds, hint=hint)
    if len(text) > _MOST_CHARACTERS:
        limit = f"{_MOST_CHARACTERS} characters"
        raise ElementTypeError(
            "too many labels for a golden", operand=name, got=str(len(text)), allowed=limit, hint=hint
        )
    return text


def _is_same(one: Labels, other: Labels) -> bool:
    pairs = list(zip(one.axes, other.axes, strict=True))
    return one.dimensions == other.dimensions and all((a is None and b is None) or a.equals(b) for a, b in pairs)


def _encoded(labels: Labels) -> dict[str, Any]:
    axes = [_encoded_axis(axis) for axis in labels.axes]
    return {"dimensions": list(labels.dimensions), "axes": axes, "facts": dict(labels.facts)}


def _decoded(fields: Mapping[str, Any]) -> Labels:
    axes = tuple(_decoded_axis(axis) for axis in fields["axes"])
    return Labels(tuple(fields["dimensions"]), axes, dict(fields.get("facts", {})))


def _encoded_axis(axis: Any) -> dict[str, Any] | None:
    """The labels of one axis: a range, the levels of tuples, or values of a type; times are counted in its unit."""
    import pandas as pd

    if axis is None:
        return None
    if isinstance(axis, pd.RangeIndex):
        return {"range": [axis.start, axis.stop, axis.step]}
    if isinstance(axis, pd.MultiIndex):
        return {"levels": [_encoded_axis(axis.get_level_values(level)) for level in range(axis.nlevels)]}
    if isinstance(axis, pd.DatetimeIndex | pd.TimedeltaIndex):
        return {"type": str(axis.dtype), "counts": axis.asi8.tolist()}
    return {"type": str(axis.dtype), "values": axis.tolist()}


def _decoded_axis(fields: Mapping[str, Any] | None) -> Any:
    import pandas as pd

    if fields is None:
        return None
    if "range" in fields:
        return pd.RangeIndex(*fields["range"])
    if "levels" in fields:
        return pd.MultiIndex.from_arrays([_decoded_axis(level) for level in fields["levels"]])
    if "counts" in fields:
        return pd.Index(fields["counts"], dtype="int64").astype(fields["type"])
    return pd.Index(fields["values"], dtype=fields["type"])
