"""What arguments that many functions have may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest

import eltwise
from eltwise.core.border import check_limit, check_seed
from eltwise.core.errors import AttributeValueError, FileFormatError
from eltwise.tracing.recording import Recording
from eltwise.tracing.report import TraceReport


@pytest.mark.parametrize(
    ("check", "least", "most", "step"),
    [(check_seed, 0, 2**63, 1), (check_limit, 0.01, 1e6, 0.001)],
    ids=["seed", "limit"],
)
def test_a_range_ends_where_its_error_says(
    check: Callable[[float], None], least: float, most: float, step: float
) -> None:
    for value in (least, most, (least + most) / 2):
        check(value)
    for value in (least - step, most + step, float("nan")):
        with pytest.raises(AttributeValueError, match="out of range"):
            check(value)


def path_arguments() -> Iterator[tuple[str, Callable[..., object], str]]:
    """The public functions that take a path, each with the name of such an argument."""
    public = {name: getattr(eltwise, name) for name in eltwise.__all__}
    public["assert_same_model"] = eltwise.testing.assert_same_model
    for owner in (eltwise.Model, TraceReport, Recording):
        public |= {f"{owner.__name__}.{name}": function for name, function in inspect.getmembers(owner, callable)}
    for name, function in public.items():
        annotations = getattr(function, "__annotations__", {})
        yield from (
            (name, function, argument)
            for argument, annotation in annotations.items()
            if argument != "return" and any(kind in annotation for kind in ("PathLike", "Source"))
        )


def test_the_functions_that_take_a_path_are_known() -> None:
    names = {name for name, _function, _argument in path_arguments()}
    assert {"load", "save", "check", "delta", "TraceReport.reproduce", "Recording.save", "Model.save"} <= names


@pytest.mark.parametrize(("name", "function", "argument"), [*path_arguments()])
def test_an_empty_text_is_no_path(name: str, function: Callable[..., object], argument: str) -> None:
    """It would be the path of the current folder."""
    del name
    values = {"str": "exact", "Model": None}
    arguments = {
        other: values.get(str(parameter.annotation), "a.onnx")
        for other, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
    }
    with pytest.raises(FileFormatError, match="an empty text names no file"):
        function(**{**arguments, argument: ""})


def test_every_public_function_that_has_arguments_checks_them() -> None:
    """``public`` wraps it; the builtin ones check theirs in C."""
    public = [getattr(module, name) for module in (eltwise, eltwise.testing) for name in module.__all__]
    functions = [each for each in public if inspect.isfunction(each) and inspect.signature(each).parameters]
    assert len(functions) > 15
    assert [each.__name__ for each in functions if not hasattr(each, "__wrapped__")] == []
