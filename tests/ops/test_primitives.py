"""The table of primitives against the oracle: what a record states is true, and what it leaves out raises."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from eltwise import oracle
from eltwise.conformance.cases import Case
from eltwise.conformance.compare import wrong_indices
from eltwise.core.dtypes import BOOL, FLOAT16, FLOAT32, INT4, INT32, TYPES, UINT4, UINT8, ElementType
from eltwise.ops import primitives, registry
from eltwise.ops.expression import COMPOSITES, Expression, Step, expression_of
from eltwise.ops.primitive import Interval, Primitive
from eltwise.ops.primitives import PRIMITIVES
from eltwise.oracle import same_bits
from eltwise.oracle.hard_values import hard_values, ordinary
from support.operands import NUMBERS, pool

NUMERIC = [each for each in TYPES if each.is_numeric and each.bits <= 16]


def takes(primitive: Primitive, element_type: ElementType) -> bool:
    """Whether operands and results may have this type, which can be tested here."""
    return element_type.kind in primitive.kinds and not is_tested_alone(primitive)


def is_tested_alone(primitive: Primitive) -> bool:
    """Whether it gives another type, or takes any number of operands."""
    return primitive.result == "to" or primitive.is_variadic


def pairs(primitive: Primitive, element_type: ElementType) -> list[np.ndarray]:
    """Every pair of hard values that the primitive is defined for."""
    return combined(primitive, element_type, hard_values(element_type))


def combined(primitive: Primitive, element_type: ElementType, values: np.ndarray) -> list[np.ndarray]:
    """Every pair of some values; a condition is true for every other one."""
    a, b = np.repeat(values, values.size), np.tile(values, values.size)
    if primitive.divides and element_type.is_integer:
        a, b = a[b != 0], b[b != 0]
    if primitive.name == "power" and element_type.is_integer:
        a, b = a[(a != 0) | (b >= 0)], b[(a != 0) | (b >= 0)]
    shuffled = np.random.default_rng(0).permutation
    numbers = iter((a, b, shuffled(a), shuffled(b), shuffled(a)))
    return [np.arange(a.size) % 2 == 0 if kind == "boolean" else next(numbers) for kind in primitive.operands]


def exact(primitive: Primitive, *operands: np.ndarray) -> np.ndarray:
    parameters = {name: NUMBERS[name] for name in primitive.parameters}
    return oracle.evaluate(primitive.name, *operands, rule="none", parameters=parameters)


def of_ints(values: np.ndarray, element_type: ElementType) -> list[int]:
    return [int(value) for value in values.astype(element_type.storage)]


def test_whether_operands_may_change_places_is_true() -> None:
    for primitive, element_type in product(PRIMITIVES.values(), NUMERIC):
        if primitive.arity != 2 or not takes(primitive, element_type) or primitive.divides or primitive.is_real:
            assert not primitive.commutes or primitive.arity == 2
            continue
        a, b = pairs(primitive, element_type)
        assert oracle.same_bits(exact(primitive, a, b), exact(primitive, b, a)) == primitive.commutes


def test_the_range_holds_every_exact_result_and_is_tight() -> None:
    """In int32 nothing of 4 bits wraps, so that the oracle's results there are the exact ones."""
    for primitive, element_type in product(PRIMITIVES.values(), (INT4, UINT4)):
        if not takes(primitive, element_type) or primitive.result == "boolean":
            continue
        operands = all_of(primitive, element_type)
        results = exact(primitive, *(each if each.dtype == bool else each.astype(np.int32) for each in operands))
        own = Interval(*element_type.limits)
        found = primitive.value_range(*[own] * primitive.arity)
        assert found.low <= results.min()
        assert results.max() <= found.high
        if not primitive.name.startswith(
            ("bitwise", "shift", "power", "limit")
        ):  # Of these it is what a few more bits hold.
            assert found.high - found.low <= 2 * (int(results.max()) - int(results.min())) + 1


def test_what_is_modular_does_not_see_what_wrapped() -> None:
    for primitive, element_type in product(PRIMITIVES.values(), (INT4, UINT4)):
        if not takes(primitive, element_type) or primitive.name.startswith("shift"):  # They count bits.
            continue
        operands = all_of(primitive, element_type)
        wide = [
            operand if operand.dtype == bool else operand.astype(np.int32) + 16 * (1 + index)
            for index, operand in enumerate(operands)
        ]
        if primitive.divides:
            wide = [np.where(operand == 0, 16, operand) for operand in wide]
        narrow = exact(primitive, *operands)
        seen = exact(primitive, *wide)
        same = seen if primitive.result == "boolean" else seen.astype(np.int8).astype(element_type.storage)
        is_trivial = primitive.name in ("absolute", "relu", "prelu", "limit") and element_type.kind == "unsigned"
        assert oracle.same_bits(same, narrow) == (primitive.is_modular or is_trivial)


def test_what_rounds_is_what_a_wider_type_shows() -> None:
    """A result that needs rounding differs from the wide one somewhere, one that does not is equal everywhere."""
    for primitive in PRIMITIVES.values():
        if not takes(primitive, FLOAT16) or primitive.is_real:
            assert primitive.rounds == ((primitive.is_real or is_tested_alone(primitive)) and not primitive.widens)
            continue
        operands = pairs(primitive, FLOAT16)
        with np.errstate(all="ignore"):
            wide = exact(primitive, *(each if each.dtype == bool else each.astype(np.float32) for each in operands))
            narrow = exact(primitive, *operands)
            assert oracle.same_bits(narrow.astype(wide.dtype), wide) == (not primitive.rounds)
            if primitive.result == "same":
                assert FLOAT32.digits >= 2 * FLOAT16.digits + 2
                assert oracle.same_bits(wide.astype(np.float16), narrow) >= primitive.widens


def all_of(primitive: Primitive, element_type: ElementType) -> list[np.ndarray]:
    low, high = element_type.limits
    return combined(primitive, element_type, np.arange(low, high + 1).astype(element_type.storage))


def test_what_is_not_stated_raises() -> None:
    with pytest.raises(LookupError, match="negative states no LLVM instructions for uint8"):
        primitives.find("negative").instructions(UINT8)
    with pytest.raises(LookupError, match="divide states no function of torch for int32"):
        primitives.find("divide").library_name("torch", INT32)
    with pytest.raises(LookupError, match="there is no primitive 'cube'; there are add, subtract"):
        primitives.find("cube")
    with pytest.raises(LookupError, match="no primitive 'cube'"):
        expression_of("cube")


def test_an_expression_is_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="subtract takes 2 operands"):
        Expression(2, (Step("subtract", (0,)),))
    for absent in (-1, 2):
        with pytest.raises(ValueError, match="not there yet"):
            Expression(2, (Step("subtract", (0, absent)),))
    with pytest.raises(ValueError, match="elu has the parameters"):
        Expression(1, (Step("elu", (0,)),))
    with pytest.raises(ValueError, match="1 types of 2 operands"):
        Expression(2, (Step("less", (0, 1)),), (INT4,))


def test_types_follow_from_those_of_the_operands() -> None:
    """A choice between floats by a comparison of integers, in one expression."""
    steps = (Step("less", (0, 1)), Step("where", (4, 2, 3)), Step("is_nan", (5,)))
    expression = Expression(4, steps, (INT32, INT32, None, None))
    assert expression.types(FLOAT32) == (INT32, INT32, FLOAT32, FLOAT32, BOOL, FLOAT32, BOOL)
    assert not expression.has_one_type
    assert expression_of("less").has_one_type
    assert str(expression) == "is_nan(where(a < b, c, d))"


def test_the_notation() -> None:
    texts = {
        str(expression_of("maximum", 3)): "max(a, b, c)",
        str(expression_of("negative")): "-a",
        str(expression_of("floor_divide")): "a // b",
        str(expression_of("elu", None, (("alpha", 0.5),))): "elu(a, alpha=0.5)",
        str(COMPOSITES["squared_difference"]): "(a - b) * (a - b)",
        str(Expression(2, (Step("negative", (0,)), Step("less", (2, 1))))): "(-a) < b",
        str(Expression(2, (Step("add", (0, 1)), Step("absolute", (2,)), Step("add", (3, 0))))): "abs(a + b) + a",
        str(Expression(3, (Step("maximum", (0, 1)), Step("minimum", (3, 2))))): "min(max(a, b), c)",
    }
    assert all(text == expected for text, expected in texts.items()), texts


OF_TWO = [one.name for one in PRIMITIVES.values() if one.operands == ("T", "T")]


def test_one_operand_of_a_primitive_of_two_is_the_result_or_refused() -> None:
    for name, element_type in product(OF_TWO, filter(lambda each: each.is_numeric, TYPES)):
        if not PRIMITIVES[name].idempotent:
            with pytest.raises(ValueError, match=f"{name} takes at least 2 operands"):
                expression_of(name, 1)
            continue
        if not takes(PRIMITIVES[name], element_type):
            continue
        values = hard_values(element_type)
        (step,) = expression_of(name, 1).steps
        with np.errstate(all="ignore"):
            result = step.definition.numpy_function(element_type)(values, values)
        assert same_bits(result.astype(values.dtype), values)  # NumPy computes types of 4 bits in 8.


def test_conformance_reads_from_the_record_what_is_undefined_and_which_zeros_are_right() -> None:
    """A zero divisor of any operator that divides may give anything, and a zero of either sign is right of extrema."""
    zero, one = np.zeros(1, np.int32), np.ones(1, np.int32)
    zeros = np.array([0.0], np.float32), np.array([-0.0], np.float32)
    for schema in registry.ELEMENTWISE:
        divides = schema.expression().divides
        if schema.expression().operands == 2 and INT32 in schema.types:
            assert Case(schema, (), (one, zero)).is_defined == (not divides), schema
        if schema.expression().operands == 2 and FLOAT32 in schema.types:
            case, ignores = (
                Case(schema, (), zeros),
                PRIMITIVES[schema.expression().steps[-1].primitive].ignores_zero_sign,
            )
            if case.computed.result_type is FLOAT32:
                assert (wrong_indices(case, *zeros) == ()) == ignores, schema


@pytest.mark.parametrize("name", [name for name, primitive in PRIMITIVES.items() if not primitive.is_real])
def test_the_numpy_function_gives_the_results_of_the_oracle(name: str) -> None:
    """Of real functions it is another library's, which need not round to the nearest float."""
    primitive = PRIMITIVES[name]
    parameters = {name: NUMBERS[name] for name in primitive.parameters}
    for element_type in (each for each in TYPES if each.runs and takes(primitive, each)):
        if parameters and element_type.kind == "unsigned":
            continue  # Some of the numbers are negative.
        values = pool(element_type)
        values = np.append(values, ordinary(element_type, 19, 0)) if element_type.is_numeric else values
        operands = combined(primitive, element_type, values)
        with np.errstate(all="ignore"):
            actual = primitive.numpy_function(element_type)(*operands, **parameters)
        expected = exact(primitive, *operands)
        assert not oracle.differences(actual.astype(expected.dtype), expected)[:3], element_type


STEPS = (1, 2, 4, 8, -1, -2, -4)


def strided(values: np.ndarray, step: int) -> np.ndarray:
    """The same values with zeros between them in memory."""
    view = np.zeros(values.size * abs(step), values.dtype)[::step]
    view[...] = values
    return view


def test_numpy_functions_give_the_same_bits_on_strided_operands_and_results() -> None:
    """NumPy has loops for some strides, which may be wrong: its ``negative`` reads other elements of ``x[::4]``."""
    for primitive, element_type in product(PRIMITIVES.values(), filter(lambda each: each.is_numeric, TYPES)):
        if not takes(primitive, element_type) or primitive.parameters or primitive.is_real:
            continue
        function = primitive.numpy_function(element_type)
        operands = [each[:: each.size // 19 or 1][:19].copy() for each in pairs(primitive, element_type)]
        with np.errstate(all="ignore"):
            expected = np.asarray(function(*operands))
            for step, step_of_result in product(STEPS, STEPS):
                result = strided(np.zeros_like(expected), step_of_result)
                function(*[strided(each, step) for each in operands], out=result)
                assert same_bits(result, expected), (primitive.name, element_type.name, step, step_of_result)
