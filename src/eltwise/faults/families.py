"""The families of faults: what conformance findings, causes of differences and rules of targets are called.

A family is what a user is told and may allow; the faults of a family mean the same for a model. A slug is an
identifier, never parsed: each fault states its family.
"""

from __future__ import annotations

from eltwise.core.dtypes import TYPES
from eltwise.core.errors import unknown_name

AFFECTED_BY_OTHER_NODES = "affected_by_other_nodes"
CRASHES = "crashes"
FLOAT_MODE_CHANGED = "float_mode_changed"
HANGS = "hangs"
NOT_REPRODUCIBLE = "not_reproducible"
OPERANDS_CHANGED = "operands_changed"
OTHER_SHAPE = "other_shape"
OTHER_TYPE = "other_type"
REFUSED = "refused"
REFUSED_IN_PART = "refused_in_part"
UNEXPLAINED = "unexplained"
WIDER_BETWEEN_NODES = "wider_between_nodes"
WRONG_ALIGNMENT = "wrong_alignment"

_OF_VALUES = {
    "always_false": "the result is always false",
    "cancellation": "digits are lost where numbers of nearly one size are subtracted",
    "constant": "every element is one value",
    "conversion_rounded": "a float is rounded to another integer than specified",
    "fused_rounding": "several steps are rounded once",
    "int8_operands": "operands become int8, by a scale for each group of a row",
    "integers_as_float_bits": "the bits of integers are taken for those of floats",
    "inverted": "all bits are inverted",
    "last_bit": "the last bit is rounded otherwise",
    "low_rank": "a matrix of low rank is added, as by a merged adapter",
    "multiplied_by_reciprocal": "A * (1 / B) is computed, which is rounded twice",
    "nan_bits": "a NaN has other bits",
    "nan_handling": "an operand that is NaN gives the other operand, 0 or true",
    "negated": "the sign is inverted",
    "noise": "no difference is larger than some rounding steps of the largest value",
    "offset": "a constant is added",
    "operand_copied": "the result is one of the operands",
    "prepared_for_bfloat16": "numbers that bfloat16 cannot hold without subnormals are changed before the run",
    "quantized": "values are quantized with a scale and a zero point, or dequantized",
    "quotient_rounded": "the quotient is rounded to another integer than specified",
    "quotient_rounded_first": "the quotient is rounded to a float type before it is rounded to an integer",
    "remainder_of_rounded_quotient": "a remainder is computed from the rounded quotient",
    "saturation": "results saturate at the limits of the type instead of wrapping",
    "saturated_pairs": "sums of two products of bytes saturate at the limits of int16",
    "scaled": "a constant factor is applied",
    "sign_lost": "the result is the absolute value",
    "signedness": "integers are taken for those of the other sign",
    "small_values_zeroed": "numbers up to a limit become zero",
    "subnormals_flushed": "subnormal numbers become zero",
    "swapped_operands": "the operands change places",
    "wraparound": "values are taken modulo 2^n",
    "wrong_operation": "another operation is computed",
    "zero_point": "the zero point is left out, or acts at another step than specified",
    "zero_sign": "a zero may have the other sign",
    "zeroed": "other numbers are zero",
}
_OF_POSITIONS = {
    "byte_order": "the bytes of each element are in the other order",
    "expanded": "the tensor is broadcast to a larger shape",
    "flipped": "the elements along an axis are in the reverse order",
    OTHER_SHAPE: "the result has another shape",
    OTHER_TYPE: "the result has another element type",
    "padded": "the tensor is padded",
    "renamed": "the tensor has another name",
    "reordered": "the slices along an axis are in another order",
    "reshaped": "the same elements have another shape",
    "shared": "one side has the tensor once for several names",
    "shifted": "the elements are shifted along an axis",
    "stale_copy": "the tensor is a copy of another one",
    "transposed": "the axes are in another order",
    "unrelated_tail": "from some element on other values follow, as in memory that was not written",
    WRONG_ALIGNMENT: "an operand is not aligned at the specified axis",
}
OF_RUNS = {
    AFFECTED_BY_OTHER_NODES: "in one model with other nodes it gives other values than alone",
    "constant_left_out": "the node is left out, since its constant is 0, or is 0 or 1 in float32",
    CRASHES: "the process of the runtime ends",
    FLOAT_MODE_CHANGED: "the thread's floating-point mode is left changed",
    "fused_with_producer": "it and the node that produces its operand become one step, or their constants become one",
    HANGS: "the runtime gives no answer",
    NOT_REPRODUCIBLE: "the same operands give other values when they are run again",
    OPERANDS_CHANGED: "it writes to its operands",
    REFUSED: "the runtime does not load or run it",
    REFUSED_IN_PART: "the runtime refuses it for some shapes",
    UNEXPLAINED: "no known fault gives these values",
    WIDER_BETWEEN_NODES: "the result is not brought to its type before the next node reads it",
}
_NUMERIC = [element_type for element_type in TYPES if element_type.is_numeric]
_FLOAT_NAMES = [*(each.name for each in _NUMERIC if each.kind == "float"), "tf32"]
_OF_TYPES = {
    **{f"{each}_arithmetic": f"values are held or computed in {each}" for each in _NUMERIC},
    **{f"{name}_operands": f"operands are rounded to {name}" for name in _FLOAT_NAMES},
    **{f"{name}_rounding": f"elements are rounded to {name}" for name in _FLOAT_NAMES},
    **{f"{name}_truncation": f"elements are truncated to {name}" for name in _FLOAT_NAMES},
}
FAMILIES: dict[str, str] = _OF_VALUES | _OF_POSITIONS | OF_RUNS | _OF_TYPES
"""A sentence for each family by its slug."""


def sentence_of(family: str) -> str:
    """Say what the faults of a family do, as a clause.

    Raises:
        NameUnknownError: if the catalog has no such family.
    """
    if family not in FAMILIES:
        raise unknown_name("fault", family, FAMILIES)
    return FAMILIES[family]
