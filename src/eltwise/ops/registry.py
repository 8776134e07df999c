"""All op schemas, and how a name and an opset select one."""

from __future__ import annotations

from functools import lru_cache

from eltwise.core.errors import unknown_name
from eltwise.ops import data_movement, elementwise
from eltwise.ops.schema import Domain, ElementwiseSchema, OpSchema

NEWEST_OPSET: dict[Domain, int] = {"ai.onnx": 28, "openvino": 16}
"""The newest opset of each domain that the tables were checked against."""

ELEMENTWISE = elementwise.SCHEMAS
DATA_MOVEMENT = data_movement.SCHEMAS
_BY_VERSIONED_NAME = {schema.versioned_name: schema for schema in ELEMENTWISE}


def find(versioned_name: str) -> ElementwiseSchema:
    """Find an element-wise op schema by its versioned name.

    Raises:
        NameUnknownError: where there is none of this name, with the nearest name.
    """
    found = _BY_VERSIONED_NAME.get(versioned_name)
    if found is None:
        raise unknown_name("operator", versioned_name, _BY_VERSIONED_NAME)
    return found


@lru_cache(maxsize=1024)  # Models have many nodes of few operators.
def resolve(domain: Domain, name: str, opset: int) -> OpSchema | None:
    """Select the op schema that an opset has of an operator: the greatest since-version not above it.

    OpenVINO's names are matched without regard to case, ONNX's exactly. None where there is no such operator.
    """
    wanted = name.casefold() if domain == "openvino" else name
    candidates = [
        candidate
        for candidate in (*ELEMENTWISE, *DATA_MOVEMENT)
        if candidate.domain == domain
        and (candidate.name.casefold() if domain == "openvino" else candidate.name) == wanted
        and candidate.version <= opset
    ]
    return max(candidates, key=lambda candidate: candidate.version, default=None)


def previous(of: ElementwiseSchema) -> ElementwiseSchema | None:
    """The version before this one, None for the first."""
    older = [
        other
        for other in ELEMENTWISE
        if (other.name, other.domain) == (of.name, of.domain) and other.version < of.version
    ]
    return max(older, key=lambda other: other.version, default=None)
