"""What has more than numbers is refused by every public function: units, tensors without data, masks but in compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import ElementTypeError
from support.onnx_models import model, node, value

MODEL = model([node("Sub", "xy", "z")], [value("x", (2,)), value("y", (2,))], [value("z", (2,))]).SerializeToString()
PLAIN = np.array([1, 2], np.float32)


class Length(np.ndarray):
    """An array with a unit."""

    def __array_ufunc__(self, *_arguments: Any, **_options: Any) -> Any:
        return NotImplemented


class Wrapped:
    """An object that computes in a way of its own, and gives its numbers to who asks for an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(PLAIN, dtype)

    def __array_function__(self, *_arguments: Any) -> Any:
        return NotImplemented


class Masking:
    """An object that gives a masked array to who asks for one."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.ma.masked_array(PLAIN, [True, False])


class NoUfunc:
    """An object that NumPy's functions refuse, which is how NumPy says that of a class."""

    __array_ufunc__ = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return PLAIN


def of_astropy() -> Any:
    return np.array([1, 2], np.float32) * pytest.importorskip("astropy.units").km


def of_pint() -> Any:
    return pytest.importorskip("pint").UnitRegistry().Quantity(np.array([1, 2], np.float32), "km")


def fake_tensor() -> Any:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(2)


def tensor_with_a_unit() -> Any:
    torch = pytest.importorskip("torch")

    class Length(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(cls, *_arguments: Any) -> Any:
            return NotImplemented

    return torch.ones(2).as_subclass(Length)


MAKERS: dict[str, Callable[[], Any]] = {
    "subclass": lambda: PLAIN.view(Length),
    "wrapped": Wrapped,
    "astropy": of_astropy,
    "pint": of_pint,
    "masked": lambda: np.ma.masked_array(PLAIN, [True, False]),
    "masked by __array__": Masking,
    "__array_ufunc__ = None": NoUfunc,
    "FakeTensor": fake_tensor,
    "__torch_function__": tensor_with_a_unit,
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "first": lambda x: eltwise.subtract(x, PLAIN),
    "second": lambda x: eltwise.subtract(PLAIN, x),
    "both": lambda x: eltwise.subtract(x, x),
    "number": lambda x: eltwise.subtract(x, 1),
    "unary": eltwise.negative,
    "operator": lambda x: eltwise.operator("Sub-14")(x, x),
    "reduce": lambda x: eltwise.reduce("sum", "Sub-14", x, PLAIN),
    "mean_squared_difference": lambda x: eltwise.mean_squared_difference(x, x),
    "compare": lambda x: eltwise.compare(x, x),
    "compare of mappings": lambda x: eltwise.compare({"x": x}, {"x": x}),
    "model": lambda x: eltwise.load(MODEL).run({"x": x, "y": PLAIN}),
}


COMPARED = [("masked", "compare"), ("masked", "compare of mappings")]
"""A mask is a part of what is compared."""


@pytest.mark.parametrize(
    ("kind", "call"), [(kind, call) for kind in MAKERS for call in CALLS if (kind, call) not in COMPARED]
)
def test_it_is_refused(kind: str, call: str) -> None:
    x = MAKERS[kind]()
    eltwise.subtract(PLAIN, PLAIN)  # A call with plain arrays of these types is prepared already.
    with pytest.raises(ElementTypeError, match=r"would lose|no data|not give its data"):
        CALLS[call](x)


@pytest.mark.parametrize("kind", [np.memmap, np.matrix, np.recarray])
def test_subclasses_that_compute_as_arrays_do_are_taken(kind: type[np.ndarray]) -> None:
    x = np.array([[1, 2]], np.float32).view(kind)
    assert eltwise.subtract(x, PLAIN).tolist() == [[0, 0]]


def test_an_out_with_a_unit_is_refused() -> None:
    with pytest.raises(ElementTypeError, match="out must be a NumPy array"):
        eltwise.subtract(PLAIN, PLAIN, out=PLAIN.copy().view(Length))
