"""Tensors of PyTorch: what torch itself does with memory formats, ``out`` and compiled functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import INT4, TYPES, UINT4, ElementType
from eltwise.testing import assert_same

torch = pytest.importorskip("torch")

MODEL = Path(__file__).parent.parent.parent / "examples" / "models" / "sub14_uint8.onnx"

COMPILED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "function": (lambda x, y: eltwise.subtract(x * 2, y) + 1, lambda x, y: x * 2 - y + 1),
    "operator": (lambda x, y: eltwise.operator("Sub-14")(x * 2, y) + 1, lambda x, y: x * 2 - y + 1),
    "shorthand": (lambda x, y: eltwise.max_absolute_difference(x * 2, y) + 1, lambda x, y: (x * 2 - y).abs().max() + 1),
    "reduce": (lambda x, y: eltwise.reduce("max", "Sub-14", x, y, axis=0) + 1, lambda x, y: (x - y).amax(0) + 1),
    "compare": (lambda x, y: x * eltwise.compare(x, y).is_good, lambda x, _y: x * 0),
}


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace the builtin")
@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_a_call_is_a_graph_break_of_a_compiled_function(name: str) -> None:
    """It was an assertion inside of Dynamo, which traced into the package and took its NumPy for PyTorch."""
    function, expected = COMPILED[name]
    compiled = torch.compile(function, backend="eager")
    for shape in ((2, 3), (4, 5)):
        x, y = torch.randn(shape), torch.randn(shape)
        for _ in range(3):
            assert torch.equal(compiled(x, y), expected(x, y))
    with pytest.raises(eltwise.errors.ElementTypeError, match=r"operand A is float32|have other types|float64"):
        torch.compile(lambda x: eltwise.add(x, y.double()), backend="eager")(x)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace the builtin")
@pytest.mark.slow
def test_a_model_is_a_graph_break_too() -> None:
    model = eltwise.load(MODEL)
    inputs = {name: torch.from_numpy(np.load(MODEL.with_suffix(f".{name}.npy"))) for name in "xy"}
    expected = model.run(inputs)["z"] + 1
    for function in (
        lambda x, y: model.run({"x": x, "y": y})["z"] + 1,
        lambda x, y: model(x=x, y=y)["z"] + 1,
        lambda x, y: eltwise.load(MODEL)(x=x, y=y)["z"] + 1,
    ):
        assert torch.equal(torch.compile(function, backend="eager")(**inputs), expected)


FORMATS = (torch.contiguous_format, torch.channels_last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_results_have_the_memory_format_that_those_of_torch_have(dtype: Any) -> None:
    shapes = ((2, 3, 4, 5), (1, 3, 1, 1), (2, 1, 4, 5))
    for a_shape, b_shape in itertools.product(shapes, repeat=2):
        for a_format, b_format in itertools.product(FORMATS, repeat=2):
            a = torch.ones(a_shape).to(dtype).to(memory_format=a_format)
            b = torch.full(b_shape, 2).to(dtype).to(memory_format=b_format)
            if torch.Size(torch.broadcast_shapes(a_shape, b_shape)) not in (a.shape, b.shape):
                continue
            result, expected = eltwise.subtract(a, b), torch.sub(a, b)
            assert torch.equal(result, expected)
            for memory_format in FORMATS:
                is_contiguous = expected.is_contiguous(memory_format=memory_format)
                assert result.is_contiguous(memory_format=memory_format) == is_contiguous, (a.stride(), b.stride())
    last = torch.ones(2, 3, 4, 5, 6).to(dtype).to(memory_format=torch.channels_last_3d)
    assert eltwise.equal(last, last).is_contiguous(memory_format=torch.channels_last_3d)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.float64])
def test_out_may_be_a_tensor(dtype: Any) -> None:
    a, b = (torch.arange(each, each + 6).to(torch.uint8).reshape(2, 3).to(dtype) for each in (8, 2))
    expected = eltwise.subtract(a, b)
    for operands in ((a, b), (a.float().numpy(), b.float().numpy()) if dtype == torch.float32 else (a, b)):
        for out in (torch.empty(2, 3).to(dtype), torch.empty(3, 2).to(dtype).T, torch.empty(4, 6).to(dtype)[::2, ::2]):
            version = out._version
            for result in (eltwise.subtract(*operands, out), eltwise.operator("Sub-14")(*operands, out=out)):
                assert result is out
            assert torch.equal(out.float(), expected.float())
            assert out._version == version + 2  # Autograd sees that saved values are gone.
    array = np.empty((2, 3), np.float32)
    assert eltwise.subtract(a.float(), b.float(), array) is array
    assert (array == expected.float().numpy()).all()
    assert torch.equal(eltwise.negative(a, a).float(), -(b.float() + 6))


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs], ids=str)
def test_a_result_of_any_type_is_a_tensor_or_refused(element_type: ElementType) -> None:
    cast = eltwise.operator("Convert-1", destination_type=element_type.name)
    if element_type in (INT4, UINT4):
        with pytest.raises(eltwise.errors.UnsupportedError, match=f"torch does not hold {element_type}"):
            cast(torch.ones(3))
        return
    result = cast(torch.ones(3))
    assert str(result.dtype) == f"torch.{element_type.name}"
    assert result.float().tolist() == [1, 1, 1]


def test_an_out_that_cannot_hold_the_result_is_refused() -> None:
    a, leaf = torch.ones(3), torch.ones(3, requires_grad=True)
    for out, sentence in (
        (torch.ones(4), "out has another shape"),
        (torch.ones(3).double(), "out has another type"),
        (torch.ones(1).expand(3), "share memory"),
        (leaf, "requires grad"),
        (torch.ones(3, device="meta"), "has no data"),
        (torch.tensor([1 + 2j, 3 - 4j, 1j]).conj().imag, "negative bit"),
        (torch._neg_view(torch.ones(3, dtype=torch.bfloat16)), "negative bit"),
    ):
        with pytest.raises(eltwise.EltwiseError, match=sentence):
            eltwise.subtract(a, a, out=out)
    assert leaf.tolist() == [1, 1, 1]


def forward_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_dual(x: Any) -> Any:
        with torch.autograd.forward_ad.dual_level():
            return function(torch.autograd.forward_ad.make_dual(x, x))

    return of_dual


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    from torch.fx.experimental.proxy_tensor import make_fx

    return lambda x: make_fx(function)(x)(x + 1)


def exported(function: Callable[..., Any]) -> Callable[..., Any]:
    module = type("Exported", (torch.nn.Module,), {"forward": lambda _self, x: function(x)})
    return lambda x: torch.export.export(module(), (x,)).module()(x + 1)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "vmap": torch.vmap,
    "functionalize": torch.func.functionalize,
    "grad": lambda function: torch.func.grad(lambda x: function(x).sum()),
    "jvp": lambda function: lambda x: torch.func.jvp(function, (x,), (x,)),
    "forward mode": forward_mode,
    "make_fx": recorded,
    "export": exported,
    "jit.trace": lambda function: lambda x: torch.jit.trace(function, (x,))(x + 1),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_transformed_or_recorded_is_refused(name: str) -> None:
    """Some results were memory that nothing was written to, others lost gradients or became constants."""
    with pytest.raises(
        eltwise.errors.ElementTypeError, match=r"requires grad|torch\.library\.custom_op|no data that can be"
    ):
        TRANSFORMS[name](lambda x: eltwise.subtract(x * 1, x * 2))(torch.ones(2, 3))


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_the_type_of_a_reduction_may_be_one_of_torch(name: str) -> None:
    result = eltwise.mean_squared_difference(torch.ones(2), 3, dtype=getattr(torch, name))
    assert result.dtype == getattr(torch, name)
    assert result.item() == 4
    with pytest.raises(eltwise.errors.ElementTypeError, match="not an element type"):
        eltwise.mean_squared_difference(torch.ones(2), 3, dtype=torch.ones(2))


@pytest.mark.parametrize("operand", [0, 1, 2])
def test_a_tensor_that_pytorch_gives_no_data_of_now_is_refused(operand: int) -> None:
    """Its array was memory that nothing was written to."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    arrays: list[Any] = [np.ones(2, np.float32) for _ in range(3)]
    arrays[operand] = torch.ones(2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        with pytest.raises(eltwise.errors.ElementTypeError, match="PyTorch transforms or records"):
            eltwise.subtract(*arrays)
        with pytest.raises(eltwise.errors.ElementTypeError, match="FakeTensor has no data"):
            assert_same(torch.ones(2), arrays[operand])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_operator_of_a_library_can_be_transformed() -> None:
    tensors = "(Tensor a, Tensor b) -> Tensor"
    subtract = torch.library.custom_op("eltwise_tests::subtract", eltwise.subtract, mutates_args=(), schema=tensors)
    subtract.register_fake(lambda a, b: torch.empty_like(a))
    x = torch.ones(2, 3)
    for name in ("make_fx", "export", "jit.trace"):
        assert torch.equal(TRANSFORMS[name](lambda x: subtract(x, x * 3))(x), -2 * (x + 1))
    assert torch.equal(torch.func.functionalize(lambda x: subtract(x * 1, x * 3))(x), -2 * x)
    assert torch.equal(torch.compile(lambda x: subtract(x, x * 3) + 1, fullgraph=True, backend="eager")(x), -2 * x + 1)
