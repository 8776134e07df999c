"""How a run was computed, as text: which nodes became one kernel, and what it looks like."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.helper import np_dtype_to_tensor_dtype as code_of

import eltwise
from eltwise.core.errors import NameUnknownError
from eltwise.kernels import jit
from support.onnx_models import model, node, value

A, B = np.zeros((300, 1000), np.float32), np.zeros(1000, np.float32)


@pytest.fixture
def nested() -> eltwise.Model:
    nodes = [
        node("Sub", ["a", "b"], ["x"]),
        node("Sub", ["x", "a"], ["y"], "last"),
        node("Identity", ["y"], ["z"]),
    ]
    return eltwise.load(model(nodes, [value("a", (300, 1000)), value("b", (1000,))], [value("z", (300, 1000))]))


def test_the_plan_names_nodes_operands_and_loops(nested: eltwise.Model) -> None:
    assert nested.explain({"a": A, "b": B}).startswith(
        "step 1: 'y' (300, 1000) = (a - b) - a, in float32\n"
        "nodes: Sub-13 'x', Sub-13 'last'\n"
        "operands: a is 'a' (300, 1000), b is 'b' (1000)\n"
        "loop of 300: result +4000, a +4000, b +0\n"
        "innermost loop of 1,000: result +4, a +4, b +4\n"
        "walks: result vector, a vector, b vector\n"
    )
    assert nested.explain({"a": A, "b": B}).endswith("\nstep 2: Identity-13 node 'z', by itself\n")


def test_the_kernel_as_llvm_and_as_instructions(nested: eltwise.Model) -> None:
    text = nested.explain({"a": A, "b": B}, "llvm")
    assert text.startswith("; step 1: 'y'")
    assert text.count(" fsub ") % 2 == 0
    assert "define void @kernel(ptr" in text
    assert "kernel:" in nested.explain({"a": A, "b": B}, "asm")
    with pytest.raises(NameUnknownError, match=r"unknown dump kind, got 'c'; allowed: plan, llvm, asm"):
        nested.explain({"a": A, "b": B}, "c")  # type: ignore[arg-type]


def test_calls_without_a_kernel_say_why() -> None:
    pair = [value("a", None), value("b", None)]
    small = eltwise.load(model([node("Sub", ["a", "b"], ["z"])], pair, [value("z", None)]))
    text = small.explain({"a": B[:4], "b": B[:4]})
    assert "this result of 16 bytes came from NumPy's loops; the kernel below is for 1,048,576 and more, and " in text
    assert "no kernel: there are no elements" in small.explain({"a": B[:0], "b": B[:0]})


def test_an_operand_across_is_said_to_be_tiled() -> None:
    pair = [value("a", (600, 500)), value("b", (600, 500))]
    made = eltwise.load(model([node("Sub", ["a", "b"], ["z"])], pair, [value("z", (600, 500))]))
    across = np.zeros((500, 600), np.float32).T
    text = made.explain({"a": across, "b": np.zeros((600, 500), np.float32)})
    assert "tiles down 600 rows: result +2000, a +4, b +2000" in text
    assert "walks: result vector, a transposed, b vector" in text


TYPED = {"Sub": ("float32", "float16", "int8", "uint64"), "Div": ("float64", "int32", "uint8"), "Mod": ("int16",)}
TYPED |= {"Less": ("float32", "int64"), "And": ("bool",), "BitShift": ("uint32",), "Pow": ("float32",)}


@pytest.mark.parametrize("layout", ["contiguous", "across", "broadcast"])
@pytest.mark.parametrize(("operator", "kind"), [(name, kind) for name, kinds in TYPED.items() for kind in kinds])
def test_the_kernel_that_is_shown_is_the_one_that_ran(
    operator: str, kind: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = (1100, 1000)
    inputs = [np.full(shape, number, kind) for number in (7, 3)]
    if layout == "across":
        inputs[0] = np.asfortranarray(inputs[0])
    if layout == "broadcast":
        inputs[1] = inputs[1][:1]
    attributes = {"direction": "LEFT"} if operator == "BitShift" else {}
    operands = [value(name, one.shape, code_of(one.dtype)) for name, one in zip("ab", inputs, strict=True)]
    result = value("z", shape, code_of(np.dtype("bool" if operator in ("Less", "And") else kind)))
    loaded = eltwise.load(model([node(operator, ["a", "b"], ["z"], **attributes)], operands, [result], opset=14))
    compile_text, texts = jit._compile, list[str]()
    monkeypatch.setattr(jit, "_kernels", {})
    monkeypatch.setattr(jit, "_compile", lambda text: texts.append(text) or compile_text(text))
    loaded.run(dict(zip("ab", inputs, strict=True)))
    ran = tuple(texts)
    shown = loaded.explain(dict(zip("ab", inputs, strict=True)), "llvm")
    assert "".join(line for line in shown.splitlines(True) if not line.startswith("; ")) in ran
