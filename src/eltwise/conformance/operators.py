"""The operator versions that are tested: those of which texts state every bit, and casts."""

from __future__ import annotations

from functools import cache

from eltwise.core.errors import UnsupportedError
from eltwise.ops import registry
from eltwise.ops.data_movement import DataMovementSchema
from eltwise.ops.schema import ElementwiseSchema, stated_types


def _as_elementwise(schema: DataMovementSchema) -> ElementwiseSchema:
    """A cast as an operator that computes a result for each element, of the type that an attribute states."""
    return ElementwiseSchema(
        name=schema.name,
        domain=schema.domain,
        version=schema.version,
        last=schema.last,
        types=schema.types,
        operands=schema.operands,
        required_operands=1,
        attributes=schema.attributes,
        function="cast",
        broadcasting="none",
        parameters=((_target_of(schema), "to"), ("saturate", "saturate")),
        constants=(("saturate", False),),
    )


def _target_of(schema: DataMovementSchema) -> str:
    """The attribute that states the type of the result."""
    return next(each.name for each in schema.attributes if each.kind == "element type")


CASTS = tuple(
    _as_elementwise(each)
    for each in registry.DATA_MOVEMENT
    if each.behaviour == "cast" and len(each.operands) == 1  # CastLike is a Cast with another source of its type.
)
TESTED = (*filter(stated_types, registry.ELEMENTWISE), *CASTS)
"""The operator versions that are tested. ``accuracy`` measures functions, of which no text states the bits."""

_CASTS_BY_NAME = {name: each for each in CASTS for name in (str(each), f"{each.domain}.{each.name}-{each.version}")}


def find(name: str) -> ElementwiseSchema:
    """Find an operator version by its name.

    Raises:
        NameUnknownError: where there is none of this name, with the nearest.
    """
    return _CASTS_BY_NAME.get(name.removeprefix("onnx.")) or registry.find(name)


def find_tested(name: str) -> ElementwiseSchema:
    """Find an operator version that is tested.

    Raises:
        NameUnknownError: where there is none of this name, with the nearest.
        UnsupportedError: for one of which no text states the bits.
    """
    schema = find(name)
    if not stated_types(schema):
        raise UnsupportedError(
            "no text states the bits of this function, so that its results are measured and not tested",
            operator=str(schema),
            hint="`eltwise accuracy --op NAME` says how far runtimes are from the real values",
        )
    return schema


def is_cast(schema: ElementwiseSchema) -> bool:
    """Whether an operator version is a cast, which libraries of functions do not have."""
    return schema.function == "cast"


@cache
def newer_version(schema: ElementwiseSchema) -> ElementwiseSchema | None:
    """The newest version of an operator after this one if it computes the same under the same rule, else None.

    Its types may differ: those that this version has too give the same results.
    """
    newest = max((other for other in TESTED if _kernel(other) == _kernel(schema)), key=lambda each: each.version)
    return newest if newest.version > schema.version else None


def _kernel(schema: ElementwiseSchema) -> object:
    """What versions have in common that compute the same of a type."""
    return schema.domain, schema.name, schema.function, schema.variants, schema.broadcasting
