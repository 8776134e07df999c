"""Arrays of JAX: tracers are refused with a call that works, and reductions name a type that JAX holds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import ElementTypeError, UnsupportedError

jax = pytest.importorskip("jax")

A, B = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[1, 1, 1], [2, 2, 2]])
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "function": eltwise.subtract,
    "operator": eltwise.operator("Sub-14"),
    "shorthand": eltwise.mean_squared_difference,
    "compare": eltwise.compare,
    "number": lambda a, _b: eltwise.subtract(a, 1),
    "array": lambda a, _b: eltwise.subtract(a, B),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.grad(lambda a, b: f(a, b).sum())])
def test_a_tracer_is_refused(transform: Callable[..., Any], name: str) -> None:
    with pytest.raises(ElementTypeError, match=r"has no values while .* traces; .*jax\.pure_callback\("):
        transform(CALLS[name])(A, B)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f)), lambda f: f])
def test_the_call_that_the_refusal_shows_works(transform: Callable[..., Any]) -> None:
    with pytest.raises(ElementTypeError) as caught:
        jax.jit(eltwise.subtract)(A, B)
    shown = re.search(r"jax\.pure_callback\(.*\)$", str(caught.value))
    assert shown
    result = transform(lambda a, b: eval(shown[0], {"jax": jax, "eltwise": eltwise, "a": a, "b": b}))(  # noqa: S307
        jax.numpy.asarray(A), jax.numpy.asarray(B)
    )
    assert (np.asarray(result) == A - B).all()


@pytest.mark.parametrize("element_type", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_type_that_the_refusal_of_a_reduction_names_works(reduction: Any, element_type: str) -> None:
    a, b = jax.numpy.asarray(A.astype(element_type)), jax.numpy.asarray(B.astype(element_type))
    with pytest.raises(UnsupportedError, match="jax_enable_x64") as caught:
        eltwise.reduce(reduction, "Sub-14", a, b)
    named = re.search('dtype="(.*?)"', str(caught.value))
    assert named
    result = eltwise.reduce(reduction, "Sub-14", a, b, dtype=named[1])
    assert isinstance(result, jax.Array)
    assert result.dtype == named[1]
    assert result == getattr(A - B, reduction)()


DEVICES = """
import jax, numpy, eltwise

jax.config.update("jax_num_cpu_devices", 2)
host, other = jax.devices("cpu")
array = jax.numpy.ones(4)
for operand in (array, jax.device_put(array, host), jax.device_put(array, other)):
    for function in (eltwise.subtract, eltwise.max_absolute_difference, eltwise.operator("Max-13")):
        result, expected = function(operand, numpy.ones(4, numpy.float32)), operand - numpy.ones(4, numpy.float32)
        assert (result.devices(), result.committed) == (expected.devices(), expected.committed), (operand, function)
assert eltwise.subtract(jax.device_put(array, other), jax.device_put(array, host)).devices() == {host}
spread = jax.sharding.NamedSharding(jax.make_mesh((2,), ("d",)), jax.sharding.PartitionSpec("d"))
assert (eltwise.negative(jax.device_put(array, spread)) == -1).all()
"""


@pytest.mark.slow
def test_results_are_on_the_device_of_the_operands() -> None:
    """They were on the default one."""
    subprocess.run([sys.executable, "-c", DEVICES], check=True)  # noqa: S603 - it is the text above
