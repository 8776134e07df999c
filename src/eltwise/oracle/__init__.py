"""The slow, exact reference implementation; it shares nothing with the engine but the table of element types."""

from eltwise.oracle.broadcasting import RuleName, place
from eltwise.oracle.elements import OracleRefusal, array_of, bits_of, differences, same_bits
from eltwise.oracle.evaluation import evaluate

__all__ = [
    "OracleRefusal",
    "RuleName",
    "array_of",
    "bits_of",
    "differences",
    "evaluate",
    "place",
    "same_bits",
]
