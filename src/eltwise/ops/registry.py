"""All op schemas, and how a name and an opset select one."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from eltwise.core.errors import AttributeValueError, EltwiseError, NameUnknownError, shown, unknown_name
from eltwise.ops import casts, data_movement, onnx_operators, openvino_operators
from eltwise.ops.schema import Domain, ElementwiseSchema, Operation, OpSchema

NEWEST_OPSET: dict[Domain, int] = {"ai.onnx": 28, "openvino": 16}
"""The newest opset of each domain that the tables were checked against."""

ELEMENTWISE: tuple[ElementwiseSchema, ...] = (
    *onnx_operators.SCHEMAS,
    *casts.QUANTIZATION,
    *openvino_operators.SCHEMAS,
    *casts.CASTS,
)
DATA_MOVEMENT = data_movement.SCHEMAS
_BY_VERSIONED_NAME = {schema.versioned_name: schema for schema in ELEMENTWISE}
_BY_QUALIFIED_NAME = {f"{schema.domain}.{schema.name}-{schema.version}": schema for schema in ELEMENTWISE}


def find(versioned_name: str) -> ElementwiseSchema:
    """Find an element-wise op schema by its versioned name, which a domain may precede.

    >>> [str(find(name)) for name in ("Sub-14", "onnx.Sub-14", "ai.onnx.Sub-14", "openvino.Divide-1", "openvino.Add-1")]
    ['Sub-14', 'Sub-14', 'Sub-14', 'Divide-1', 'openvino.Add-1']

    Raises:
        NameUnknownError: where there is none of this name, with the versions of the operator, or the nearest name.
    """
    qualified_name = f"ai.{versioned_name}" if versioned_name.startswith("onnx.") else versioned_name
    schema = _BY_VERSIONED_NAME.get(versioned_name) or _BY_QUALIFIED_NAME.get(qualified_name)
    if schema is None:
        raise _unknown(versioned_name, qualified_name)
    return schema


def _unknown(versioned_name: str, qualified_name: str) -> NameUnknownError:
    """Make the error for a name without a version, or with one that there is not, or for one that is unknown."""
    name = qualified_name.partition("-")[0].casefold()
    versions, moving = (
        [each for each in schemas if name in (each.name.casefold(), f"{each.domain}.{each.name}".casefold())]
        for schemas in (ELEMENTWISE, DATA_MOVEMENT)
    )
    if not versions and moving:
        hint = "load a model that has this node, and run it"
        return NameUnknownError(f"{versioned_name!r} is run in models, and not alone", hint=hint)
    if not versions:
        return unknown_name("operator", versioned_name, _BY_VERSIONED_NAME)
    newest = max(versions, key=lambda each: (each.domain == versions[0].domain, each.version))
    return NameUnknownError(
        f"there is no operator version {versioned_name!r}",
        allowed=", ".join(map(str, versions)),
        hint=f"the newest is {newest}",
    )


@lru_cache(maxsize=1024)  # Models have many nodes of few operators.
def resolve(domain: Domain, name: str, opset: int) -> OpSchema | None:
    """Select the op schema that an opset has of an operator: the greatest since-version not above it.

    OpenVINO's names are matched without regard to case, ONNX's exactly. None where there is no such operator.
    """
    sought = name.casefold() if domain == "openvino" else name
    candidates = [
        candidate
        for candidate in (*ELEMENTWISE, *DATA_MOVEMENT)
        if candidate.domain == domain
        and (candidate.name.casefold() if domain == "openvino" else candidate.name) == sought
        and candidate.version <= opset
    ]
    return max(candidates, key=lambda candidate: candidate.version, default=None)


def find_in(name: str, opset: int) -> ElementwiseSchema:
    """Find the version of an operator that an opset has; a name without a domain is ONNX's.

    >>> str(find_in("Sub", 12)), str(find_in("openvino.Divide", 8))
    ('Sub-7', 'Divide-1')

    Raises:
        AttributeValueError: for an opset that is not known here.
        NameUnknownError: where the opset has no such operator.
    """
    prefix, _dot, plain = name.rpartition(".")
    domain: Domain = "openvino" if prefix == "openvino" else "ai.onnx"
    if not 1 <= opset <= NEWEST_OPSET[domain]:
        raise AttributeValueError(
            "there is no such opset", operand="opset", got=shown(opset), allowed=f"1 to {NEWEST_OPSET[domain]}"
        )
    schema = resolve(domain, plain, opset) if prefix in ("", "onnx", "ai.onnx", "openvino") else None
    if not isinstance(schema, ElementwiseSchema):
        names = dict.fromkeys(each.name for each in ELEMENTWISE if each.domain == domain and each.version <= opset)
        raise unknown_name(f"operator of opset {opset}", name, names)
    return schema


def previous(of: ElementwiseSchema) -> ElementwiseSchema | None:
    """The version before this one, None for the first."""
    older = [
        other
        for other in ELEMENTWISE
        if (other.name, other.domain) == (of.name, of.domain) and other.version < of.version
    ]
    return max(older, key=lambda other: other.version, default=None)


def last_opset(of: ElementwiseSchema) -> int | None:
    """The last opset that has an operator in this version; None where that is the newest.

    >>> last_opset(find("Sub-7")), last_opset(find("Sub-14"))
    (12, None)
    """
    newer = [other.version for other in ELEMENTWISE if (other.name, other.domain) == (of.name, of.domain)]
    return min((version - 1 for version in newer if version > of.version), default=None)


@lru_cache(maxsize=1024)
def newest_alike(operation: Operation, present: tuple[bool, ...]) -> ElementwiseSchema:
    """The newest version of an operator that computes the same with these attributes, in as many types or others."""
    schema = operation.schema
    assert isinstance(schema, ElementwiseSchema)
    defaults = {each.name: each.default for each in schema.attributes}
    values = {name: value for name, value in operation.attributes if value != defaults.get(name)}
    expected, newest = _meaning(operation, present), schema
    newer = (each for each in ELEMENTWISE if (each.name, each.domain) == (schema.name, schema.domain))
    for each in sorted(newer, key=lambda one: one.version):
        with suppress(EltwiseError):  # It lacks an attribute, or takes other inputs.
            if each.version > newest.version and _meaning(each.bind(values), present) == expected:
                newest = each
    return newest


def _meaning(operation: Operation, present: tuple[bool, ...]) -> object:
    """What an operation computes of inputs, whatever their types."""
    computation = operation.computation_of([True if each else None for each in present])[0]
    return computation.expression, computation.rule, computation.operands, computation.keeps_shape
