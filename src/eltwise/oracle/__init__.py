"""The slow, exact reference implementation; it shares nothing with the engine but the table of element types."""

from eltwise.oracle.evaluation import (
    OracleRefusal,
    Placement,
    RuleName,
    add,
    array_of,
    bits_of,
    differences,
    evaluate,
    multiply,
    place,
    same_bits,
    squared_difference,
    subtract,
)

__all__ = [
    "OracleRefusal",
    "Placement",
    "RuleName",
    "add",
    "array_of",
    "bits_of",
    "differences",
    "evaluate",
    "multiply",
    "place",
    "same_bits",
    "squared_difference",
    "subtract",
]
