"""The slow, exact reference implementation; it shares nothing with the engine but the table of element types."""

from eltwise.oracle.evaluation import (
    OracleRefusal,
    Placement,
    RuleName,
    array_of,
    bits_of,
    differences,
    evaluate,
    place,
    same_bits,
)

__all__ = [
    "OracleRefusal",
    "Placement",
    "RuleName",
    "array_of",
    "bits_of",
    "differences",
    "evaluate",
    "place",
    "same_bits",
]
