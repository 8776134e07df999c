"""The public functions: what the table makes of the registry."""

from __future__ import annotations

import inspect
import re
import string

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.engine.functions import FUNCTIONS
from eltwise.ops import registry


def test_the_functions_are_operators_of_openvino() -> None:
    assert {registry.find(version).domain for version in FUNCTIONS.values()} == {"openvino"}
    assert set(FUNCTIONS) <= set(eltwise.__all__)


@pytest.mark.parametrize(("name", "version"), FUNCTIONS.items())
def test_a_function_computes_what_its_operator_does(name: str, version: str) -> None:
    function, operator = getattr(eltwise, name), eltwise.operator(version)
    operands = [np.array([1.5, -2, 3], np.float32), np.array([-2, -2, 5], np.float32)][
        : len(operator.operation.schema.operands)
    ]
    assert (function(*operands) == operator(*operands)).all()
    out = np.zeros_like(operator(*operands))
    assert function(*operands, out=out) is out
    assert (out == operator(*operands)).all()
    assert function.__doc__ is not None
    assert all(word in function.__doc__ for word in ("Args:", "out:", "Returns:", "Raises:", "EltwiseError"))
    assert (function.__module__, function.__name__) == ("eltwise", name)
    formula = function.__doc__.partition("Compute ")[2].partition(" by OpenVINO")[0]
    variables = set(re.findall(r"\b\w+\b", formula)) & {*string.ascii_lowercase}
    assert variables == {*inspect.signature(function).parameters} & {"a", "b", "x"}
    with pytest.raises(EltwiseError, match=version):
        function(*[np.array(["text"])] * len(operands))


def test_quotients_of_integers_are_rounded_as_asked() -> None:
    a, b = np.array([7, -7, 6], np.int8), np.array([-2, 2, 3], np.int8)
    assert eltwise.divide(a, b).tolist() == [-4, -4, 2]
    assert eltwise.divide(a, b, floor=False).tolist() == [-3, -3, 2]
    assert eltwise.divide(a, b, auto_broadcast="none", floor=False).tolist() == [-3, -3, 2]
    assert eltwise.divide(np.array([7], np.float32), np.array([-2], np.float32)).tolist() == [-3.5]
