"""Two sides compared leaf by leaf: the part of an assertion that runs where arrays are not plainly equal."""

from __future__ import annotations

from dataclasses import replace

from eltwise.comparison.intake import as_in_file, attributes_of
from eltwise.comparison.numbers import is_float
from eltwise.comparison.others import compare_parameters
from eltwise.comparison.tolerance import Tolerance, Tolerances, check_patterns, tolerance_of
from eltwise.core.containers import CONTAINERS
from eltwise.core.errors import EltwiseError
from eltwise.engine.pandas_objects import check_labels
from eltwise.formats.file_states import check_unchanged, states_of
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.values import Values
from eltwise.kernels.float_mode import default_mode
from eltwise.testing.differences import Failure, Rule, differing
from eltwise.testing.leaves import Leaf, as_tensors, described, leaves_of, opened

__tracebackhide__ = True  # In pytest the line of the test is shown, not those of this module.

DEFAULT = Tolerance(ulp=1)
"""Of floats, where no tolerance is given; other types must be equal."""


def check_sides(
    actual: object,
    expected: object,
    tolerances: Tolerances,
    rule: Rule | None = None,
    err_msg: str = "",
    labels: tuple[object, object] | None = None,
) -> None:
    """Fail if two sides differ.

    Args:
        actual: what ``assert_same`` takes.
        expected: what it should be.
        tolerances: what is forgiven, by name.
        rule: what counts as a difference where no tolerance is given.
        err_msg: the first lines of the message.
        labels: of both sides, as ``check_labels`` takes them; by default those that the sides have.

    Raises:
        AssertionError: where they differ.
        EltwiseError: for what cannot be compared.
    """
    with default_mode():
        rule = rule or Rule()
        actual, expected = as_in_file(actual, expected), as_in_file(expected, actual)
        sets = opened(actual, "actual"), opened(expected, "expected")
        states = states_of(each for each in sets if isinstance(each, TensorSet))
        sides = leaves_of(sets[0], "actual"), leaves_of(sets[1], "expected")
        names = [name for name in sides[1] if name in sides[0]]
        check_patterns(tolerances, [*sides[1], *sides[0]])
        failures = _labels(*(labels or (actual, expected)), rule)
        for name in names:
            of_name = replace(rule, tolerance=tolerance_of(tolerances, name)) if tolerances else rule
            failure = _compared(name, sides[0][name], sides[1][name], of_name)
            failures += [failure] if failure is not None else []
        one, other = (each if isinstance(each, TensorSet) else attributes_of(each, "A") for each in sets[::-1])
        pairs = tuple((tensor, other[name]) for name, tensor in one.items() if name in other)
        others = compare_parameters(one, other, pairs)  # A is the expected side, as in all messages.
        different = [each for each in others if each.status == "differs"]
        if sides[0].keys() != sides[1].keys():  # Other names have other containers.
            different = [each for each in different if each.name != CONTAINERS]
        failures += [Failure(each.label, rule, text=each.explanation, is_value=False) for each in different]
        check_unchanged(states)
        missing, extra = ([name for name in one if name not in other] for one, other in (sides[::-1], sides))
        if failures or missing or extra:
            from eltwise.testing.messages import message  # The search for causes is loaded where something differs.

            raise AssertionError(message(failures, missing, extra, len(names), err_msg))


def _compared(name: str, actual: Leaf, expected: Leaf, rule: Rule) -> Failure | None:
    tensors = as_tensors(actual, expected)
    if isinstance(actual, Values) and isinstance(expected, Values):
        difference = expected.difference(actual, rule.equal_nan)
        return Failure(name, rule, text=difference) if difference else None
    if tensors is None:
        return Failure(name, rule, text=f"{described(actual)} instead of {described(expected)}")
    if rule.tolerance is DEFAULT and not all(is_float(each.element_type) for each in tensors):
        rule = replace(rule, tolerance=None)
    count = differing(*tensors, rule)
    return Failure(name, rule, (tensors[1], tensors[0]), count) if count != 0 else None


def _labels(actual: object, expected: object, rule: Rule) -> list[Failure]:
    """The labels and names of pandas' and xarray's objects, which must be equal, too."""
    try:
        check_labels(expected, actual, with_facts=True)
    except EltwiseError as error:
        return [Failure("", rule, text=error.problem, is_value=False)]
    return []
