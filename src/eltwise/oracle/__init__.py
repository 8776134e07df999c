"""The slow, exact reference implementation; it shares nothing with the engine but the table of element types."""

from eltwise.oracle.broadcasting import Placement, RuleName, place, place_all
from eltwise.oracle.elements import OracleRefusal, array_of, bits_of, differences, same_bits
from eltwise.oracle.evaluation import evaluate

__all__ = [
    "OracleRefusal",
    "Placement",
    "RuleName",
    "array_of",
    "bits_of",
    "differences",
    "evaluate",
    "place",
    "place_all",
    "same_bits",
]
