"""The operator versions that are tested: those of which texts state every bit."""

from __future__ import annotations

from functools import cache

from eltwise.core.errors import UnsupportedError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, stated_types

TESTED = tuple(filter(stated_types, registry.ELEMENTWISE))
"""The operator versions that are tested. ``accuracy`` measures functions, of which no text states the bits."""


def find_tested(name: str) -> ElementwiseSchema:
    """Find an operator version that is tested.

    Raises:
        NameUnknownError: where there is none of this name, with the nearest.
        UnsupportedError: for one of which no text states the bits.
    """
    schema = registry.find(name)
    if not stated_types(schema):
        raise UnsupportedError(
            "no text states the bits of this function, so that its results are measured and not tested",
            operator=str(schema),
            hint="`eltwise accuracy --op NAME` says how far runtimes are from the real values",
        )
    return schema


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
