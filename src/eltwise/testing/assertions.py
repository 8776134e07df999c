"""``assert_same`` and ``assert_close``: two sides are equal, bit for bit or within a tolerance.

What compares other sides than equal arrays is imported when it is needed: tests start often.
"""

from __future__ import annotations

import numpy as np

from eltwise.comparison.numbers import has_same_bits
from eltwise.comparison.tolerance import ToleranceLike, parse_tolerances
from eltwise.core.border import public
from eltwise.core.dtypes import is_run

__tracebackhide__ = True  # In pytest the line of the test is shown, not those of this module.


@public
def assert_same(
    actual: object, expected: object, *, equal_nan: bool = True, check_dtype: bool = True, err_msg: str = ""
) -> None:
    """Fail unless two sides have the same names, element types, shapes and bits.

    Args:
        actual: an array of any library, a number, a nested dictionary, list or dataclass of these, the path of a file
            of tensors, or a model, of which constants and nodes are compared. Of a file counts what counts for
            ``compare``.
        expected: what it should be.
        equal_nan: whether a NaN equals a NaN, whatever its bits.
        check_dtype: whether element types must be equal too; otherwise values are compared.
        err_msg: the first lines of the message.

    Raises:
        AssertionError: where they differ: what, where, by how much and why, in at most 25 lines.
        EltwiseError: for what cannot be compared.

    >>> assert_same(np.float32([1, 2]), np.float32([1, 2]))
    >>> assert_same(np.float32([0.0]), np.float32([-0.0]))
    Traceback (most recent call last):
    AssertionError: 1 of 1 value differs
    float32(1), zero_sign
      only the signs of zeros differ
      1 of 1 differs; relative norm 0, max abs 0, max rel 0, max ULP 0, 1 zero of the other sign
      worst [0]: -0 (0x80000000) and 0 (0x00000000)
    A is the expected side, B the actual one
    """
    if equal_nan and type(actual) is type(expected) is np.ndarray and actual.dtype == expected.dtype:
        is_alike = actual.shape == expected.shape and is_run(actual.dtype)
        if is_alike and has_same_bits(actual, expected):
            return
    from eltwise.testing.differences import Rule
    from eltwise.testing.sides import check_sides

    check_sides(actual, expected, (), Rule(None, equal_nan, check_dtype), err_msg)


@public
def assert_close(
    actual: object,
    expected: object,
    tolerance: ToleranceLike = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: int | None = None,
    equal_nan: bool = True,
    check_dtype: bool = True,
    err_msg: str = "",
) -> None:
    """Fail unless two sides have the same names, element types and shapes, and values within a tolerance.

    Relative tolerances are relative to the larger of two values, so that the order of the sides does not matter.

    Args:
        actual: what ``assert_same`` takes.
        expected: what it should be.
        tolerance: what is forgiven: a text such as ``"ulp<=1"`` or ``"rtol=1e-3, atol=1e-5"``, or these by the pattern
            of names: ``{"logits*": "ulp<=4"}``. Without any, ``ulp<=1`` of floats, and nothing of other types.
        rtol: the largest relative difference.
        atol: the largest absolute one; both together forgive ``atol + rtol * max(abs(actual), abs(expected))``.
        ulp: the largest distance in units of the last place.
        equal_nan: whether a NaN is close to a NaN.
        check_dtype: whether element types must be equal; otherwise values are compared.
        err_msg: the first lines of the message.

    Raises:
        AssertionError: where something is beyond the tolerance: what, where, by how much and why.
        EltwiseError: for what cannot be compared, and for what is no tolerance.

    >>> assert_close(np.float32([1, 2]), np.float32([1, 2.0000002]))
    >>> assert_close({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]}, rtol=0.1)
    """
    if equal_nan and type(actual) is type(expected) is np.ndarray and tolerance is None:
        is_alike = actual.dtype == expected.dtype and actual.shape == expected.shape
        if is_alike and is_run(actual.dtype) and has_same_bits(actual, expected):
            parse_tolerances(None, rtol=rtol, atol=atol, ulp=ulp)
            return
    from eltwise.testing.differences import Rule
    from eltwise.testing.sides import DEFAULT, check_sides

    tolerances = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
    check_sides(actual, expected, tolerances, Rule(None if tolerances else DEFAULT, equal_nan, check_dtype), err_msg)
