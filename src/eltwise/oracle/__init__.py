"""The slow, exact reference implementation; it shares nothing with the engine but the table of element types."""

from eltwise.oracle.broadcasting import Placement, RuleName, place, place_all
from eltwise.oracle.elements import OracleRefusal, array_of, bits_of, differences, same_bits
from eltwise.oracle.evaluation import evaluate
from eltwise.oracle.reduction import ReductionName, absolute_differences, reduce

__all__ = [
    "OracleRefusal",
    "Placement",
    "ReductionName",
    "RuleName",
    "absolute_differences",
    "array_of",
    "bits_of",
    "differences",
    "evaluate",
    "place",
    "place_all",
    "reduce",
    "same_bits",
]
