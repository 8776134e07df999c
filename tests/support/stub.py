"""The stub of the package: signatures for type checkers and editors, made of the tables of functions and names.

``PYTHONPATH=src:tests python -m support.stub`` writes it.
"""

from __future__ import annotations

from pathlib import Path

import eltwise
from eltwise.engine.functions import FUNCTIONS
from eltwise.engine.reduce import SHORTHANDS
from eltwise.ops import registry

PATH = Path(eltwise.__file__).with_name("__init__.pyi")

_HEAD = '''"""Signatures of the public names, made of the tables of the package by tests/support/stub.py."""

# Arrays of other libraries are told from NumPy's by methods that only they have, which type checkers cannot know.
# mypy: disable-error-code="overload-overlap"

from typing import Any, Literal, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

{imports}
{names}
_S = TypeVar("_S", bound=np.generic)
_Rule = Literal["numpy", "none", "pdpd"]

'''

Overloads = tuple[str, tuple[tuple[str, str], ...]]
"""A class of functions that are called alike, and how: the arguments and the result of each way."""

_RULE = 'auto_broadcast: _Rule = "numpy", axis: int = -1'


def stub() -> str:
    """The text of the stub."""
    modules: dict[str, list[str]] = {}
    for name, module in eltwise._MODULE_OF.items():  # type: ignore[attr-defined]
        if name not in FUNCTIONS and name.replace("_", "-") not in SHORTHANDS:
            modules.setdefault(module, []).append(name)
    modules.setdefault("eltwise.engine.arrays", []).extend(("Axis", "OtherT", "Plain"))
    private = ("Axis", "OtherT", "Plain")
    lines = ["from eltwise import backend as backend", "from eltwise import errors as errors"]
    lines.append("from eltwise import testing as testing")
    for module, names in sorted(modules.items()):
        lines += [f"from {module} import {each} as {'_' * (each in private)}{each}" for each in sorted(names)]
    public = "".join(f'    "{name}",\n' for name in dir(eltwise))
    overloads = {name: _of_function(name) for name in FUNCTIONS}
    overloads |= {each.replace("-", "_"): _of_reduction(each) for each in SHORTHANDS}
    text = _HEAD.format(imports="\n".join(lines), names=f"__all__ = [\n{public}]\n\n__version__: str\n")
    text += "".join(_protocol(*each) for each in dict.fromkeys(overloads.values()))
    return text + "\n".join(_variable(name, kind) for name, (kind, _signatures) in overloads.items())


def _of_function(name: str) -> Overloads:
    schema = registry.find(FUNCTIONS[name])
    is_boolean = schema.expression().gives_booleans
    array, scalar = ("NDArray[np.bool_]", "np.bool_") if is_boolean else ("NDArray[_S]", "_S")
    if len(schema.operands) == 1:
        return "_Unary", (
            ("x: _OtherT", "_OtherT"),
            (f"x: NDArray[_S], out: {array} | None = None", array),
            ("x: _S", scalar),
            ("x: object, out: np.ndarray | None = None", "Any"),
        )
    rest = _RULE + (", floor: bool = True" if schema.variants else "")
    return "_Division" if schema.variants else "_Comparison" if is_boolean else "_Binary", (
        (f"a: _OtherT, b: _OtherT | _Plain, *, {rest}", "_OtherT"),
        (f"a: _Plain, b: _OtherT, *, {rest}", "_OtherT"),
        (f"a: NDArray[_S], b: NDArray[_S] | _S | float, out: {array} | None = None, *, {rest}", array),
        (f"a: _S | float, b: NDArray[_S], out: {array} | None = None, *, {rest}", array),
        (f"a: _S, b: _S | float, *, {rest}", scalar),
        (f"a: float, b: _S, *, {rest}", scalar),
        (f"a: object, b: object, out: np.ndarray | None = None, *, {rest}", "Any"),
    )


def _of_reduction(shorthand: str) -> Overloads:
    is_mean = SHORTHANDS[shorthand][0] == "mean"
    more = f"{'' if is_mean else 'initial: object = None, '}where: object = True"
    of_all = f"axis: None = None, dtype: None = None, *, dim: None = None, keepdims: Literal[False] = False, {more}"
    of_some = f"axis: _Axis = None, dtype: object = None, *, dim: _Axis = None, keepdims: bool = False, {more}"
    return "_Mean" if is_mean else "_Maximum", (
        (f"a: _OtherT, b: _OtherT | _Plain, {of_some}", "_OtherT"),
        (f"a: _Plain, b: _OtherT, {of_some}", "_OtherT"),
        (f"a: _Plain, b: _Plain, {of_all}", "np.float64" if is_mean else "Any"),
        (f"a: object, b: object, {of_some}", "Any"),
    )


def _protocol(kind: str, signatures: tuple[tuple[str, str], ...]) -> str:
    lines = [f"class {kind}(Protocol):\n    __name__: str\n"]
    for arguments, result in signatures:
        lines.append(f"    @overload\n    def __call__(self, {arguments}) -> {result}: ...\n")
    return "".join(lines) + "\n"


def _variable(name: str, kind: str) -> str:
    document = (getattr(eltwise, name).__doc__ or "").partition("\n")[0]
    return f'{name}: {kind}\n"""{document}"""\n'


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
