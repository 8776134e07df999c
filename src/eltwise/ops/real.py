"""The primitives that are functions of one real number: the real value, rounded once to the element type."""

from __future__ import annotations

from dataclasses import replace

from eltwise.ops.primitive import FLOATING, Primitive, library_names


def _real(name: str, *parameters: str, numpy: str = "", torch: str = "") -> Primitive:
    return Primitive(
        name=name,
        operands=("T",),
        notation=f"{name}({{}})",
        numpy={},
        llvm={},
        value_range=lambda a: a,
        rounds=True,
        widens=False,
        is_real=True,
        parameters=parameters,
        libraries=library_names(numpy, torch or name, FLOATING) if numpy else {},
    )


def _inverse(name: str) -> Primitive:
    return _real(f"a{name}", numpy=f"arc{name}", torch=f"a{name}")


REAL = (
    *(_real(name, numpy=name) for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")),
    *(_inverse(name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")),
    *map(_real, ("erf", "sigmoid", "softplus", "softsign", "mish", "gelu", "gelu_tanh", "hard_swish", "hsigmoid")),
    _real("swish", "alpha"),
    _real("elu", "alpha"),
    _real("celu", "alpha"),
    _real("selu", "alpha", "gamma"),
    _real("leaky_relu", "alpha"),
    _real("hard_sigmoid", "alpha", "beta"),
    replace(_real("power"), operands=("T", "any"), notation="power({})"),
)
