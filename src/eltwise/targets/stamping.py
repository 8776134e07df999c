"""Which opset and file version a model is to have for a runtime: its own, or the nearest that loads and is exact."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from eltwise.targets.examining import Examined
from eltwise.targets.judging import decide, judged
from eltwise.targets.table import Measurement


@dataclass(frozen=True)
class Stamps:
    """What a model's stamps are to be.

    Attributes:
        opset: the ONNX opset; 0 for an IR.
        file_version: the version of the file format.
        refused: the stamps that the runtime refuses, in words, each with those that it loads.
        reason: why there is no version that would do, empty where there is one.
    """

    opset: int
    file_version: int
    refused: tuple[tuple[str, str], ...] = ()
    reason: str = ""


def stamps_for(model: Examined, measurement: Measurement, allowed: Collection[str] = ()) -> Stamps:
    """Choose the stamps: those that a model has where they load and nothing in it needs others.

    Args:
        model: the model.
        measurement: what is known of the runtime.
        allowed: reasons for differences that are accepted, by name.
    """
    origin = model.origin
    refused = []
    if measurement.opsets and origin.opset not in measurement.opsets:
        refused.append((f"opset {origin.opset}", f"opsets {_span(measurement.opsets)}"))
    opset = _opset(model, measurement, allowed) if measurement.opsets else 0
    version, reason = origin.file_version, ""
    # Files of ir_version 1 and 2 cannot say an opset, and are written in version 3 where that is needed.
    if version not in measurement.file_versions and version >= min(measurement.file_versions, default=0):
        refused.append((_named(model, version), f"{_named(model, 0)}{_span(measurement.file_versions)}"))
        version, reason = _file_version(model, measurement)
    return Stamps(opset, version, tuple(refused), reason)


def _opset(model: Examined, measurement: Measurement, allowed: Collection[str]) -> int:
    """The model's own opset, else the next newer one, else the next older one, in which every node can be right."""
    own, last = model.origin.opset, 0
    for opset in _nearest(own, measurement.opsets):
        last = last or opset
        if all(
            decide(measurement, place, allowed, opset).way is not None for place in judged(measurement, model.places)
        ):
            return opset
    return last


def _nearest(own: int, opsets: Collection[int]) -> Iterator[int]:
    yield from sorted(opset for opset in opsets if opset >= own)
    yield from sorted((opset for opset in opsets if opset < own), reverse=True)


def _file_version(model: Examined, measurement: Measurement) -> tuple[int, str]:
    """The newest version that the runtime loads, and why it does not do for this model."""
    wanted = max((known for known in measurement.file_versions if known < model.origin.file_version), default=0)
    if model.proto is None or not wanted:
        return model.origin.file_version, "it is too old" if not wanted else "an IR of another version has other ports"
    from eltwise.passes.onnx_versions.file_versions import needed_file_version

    needed, words = needed_file_version(model.proto)
    if needed > wanted:
        return model.origin.file_version, f"{words} needs ir_version {needed}, and it loads up to {wanted}"
    return wanted, ""


def _named(model: Examined, version: int) -> str:
    name = "ir_version" if model.dialect == "onnx" else "OpenVINO IR"
    return f"{name} {version or ''}"


def _span(numbers: Collection[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if numbers else "none"
