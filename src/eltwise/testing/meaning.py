"""What decides on the meaning of a golden's arrays beside their elements: labels, and attributes that decode."""

from __future__ import annotations

import json
from collections.abc import Mapping

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.escaping import shortened
from eltwise.engine.pandas_objects import Labels
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import of_array
from eltwise.testing.labels import labels_text, read_labels
from eltwise.testing.sides import check_sides
from eltwise.tracing.recording import Recording, RecordingError

__tracebackhide__ = True  # In pytest the line of the test is shown, not those of this module.

LABELS, PARAMETERS, FORMAT = "labels", "parameters", "format"
"""The names in the metadata of a golden."""

NAMES = (LABELS, PARAMETERS, FORMAT)


def metadata_of(tensors: TensorSet, objects: Mapping[str, object]) -> dict[str, str]:
    """The metadata of a golden of arrays.

    Raises:
        ElementTypeError: for labels that a text cannot hold.
    """
    parameters = json.dumps(tensors.parameters) if tensors.parameters else ""
    texts = {LABELS: labels_text(objects), PARAMETERS: parameters, FORMAT: tensors.format}
    return {name: text for name, text in texts.items() if text}


def check_values(actual: Recording, expected: Recording, tolerances: Tolerances, err_msg: str) -> None:
    """Fail if the values of two recordings differ, or what decides on their meaning, as ``assert_same`` fails.

    Raises:
        AssertionError: where they differ.
        RecordingError: for a golden whose labels or attributes are damaged.
    """
    labels: tuple[dict[str, Labels], dict[str, Labels]] = {}, {}
    if all(recording.metadata.get(LABELS) for recording in (actual, expected)):  # Else there is nothing to compare.
        labels = _labels(actual), _labels(expected)
    check_sides(_tensors(actual), _tensors(expected), tolerances, err_msg=err_msg, labels=labels)


def report_sides(one: Recording, other: Recording) -> tuple[TensorSet, TensorSet]:
    """Two recordings for a report: inputs as ``input/NAME``, and labels, where both have some, as attributes.

    Raises:
        RecordingError: for labels and attributes that are damaged.
    """
    sides = _tensors(one), _tensors(other)
    for recording, side in zip((one, other), sides, strict=True):
        inputs = {f"input/{name}": array for name, array in recording.inputs.items()}
        side.tensors.update({name: of_array(name, array, recording.where) for name, array in inputs.items()})
        if all(each.metadata.get(LABELS) for each in (one, other)):
            labels = json.loads(recording.metadata[LABELS]).items()
            side.parameters.update({f"{name}@labels": json.dumps(fields) for name, fields in labels})
    return sides


def _labels(recording: Recording) -> dict[str, Labels]:
    return read_labels(recording.metadata[LABELS], recording.where)


def _tensors(recording: Recording) -> TensorSet:
    """The values and their attributes."""
    text = recording.metadata.get(PARAMETERS, "{}")
    try:
        parameters = {str(name): str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError, RecursionError):
        problem, hint = "the attributes of the golden cannot be read", "write the golden anew"
        raise RecordingError(problem, where=recording.where, got=shortened(text), hint=hint) from None
    tensors = {name: of_array(name, array, recording.where) for name, array in recording.values.items()}
    kind = recording.metadata.get(FORMAT, "")
    return TensorSet(recording.where, tensors, format=kind, parameters=parameters)
