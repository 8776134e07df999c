"""The short script that shows one case with one runtime alone: what it loads, how it asks, what it prints. Pure.

Everything that comes from a results file stands in a script as a literal or, on one line, in a comment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import unknown_name


@dataclass(frozen=True)
class Request:
    """What a script is to show.

    Attributes:
        runtime: the runtime's name, or ``FILE.py:FUNCTION``.
        case: the case.
        inputs: the arrays that lie beside the script, by the names of the model's inputs.
        model: the name of the model's file; empty for a runtime that takes arrays.
        result: the type and the shape of the exact result; None where the case must be refused.
        about: what it shows, a line each.
        output: which output of the model.
    """

    runtime: str
    case: Case
    inputs: Mapping[str, np.ndarray]
    model: str
    result: np.ndarray | None
    about: tuple[str, ...]
    output: int = 0


def script(request: Request) -> str:
    """Write the script.

    Raises:
        NameUnknownError: for a runtime that no script can be written for.
    """
    file, _colon, function = request.runtime.rpartition(":")
    if file.endswith(".py"):
        body = _callable(request, file, function)
    elif request.runtime in _BODIES:
        body = _BODIES[request.runtime](request)
    else:
        raise unknown_name("runtime", request.runtime, [*_BODIES, "FILE.py:FUNCTION"])
    imports = ["from pathlib import Path", "", "import numpy as np", *_imports_of_types(request)]
    lines = [*map(_comment, request.about), *imports, *body.imports, "", "here = Path(__file__).parent", *body.lines]
    return "\n".join([*lines, *_comparison(request, body.holds_bytes)]) + "\n"


@dataclass(frozen=True)
class _Body:
    """The lines that end with ``got``; ``holds_bytes`` where that is bytes as the runtime lays them out."""

    imports: tuple[str, ...]
    lines: tuple[str, ...]
    holds_bytes: bool = False


def _comment(text: str) -> str:
    """A text on one line of a comment, whatever is in it."""
    line = " ".join(text.split())
    return f"# {''.join(sign if sign.isprintable() else '?' for sign in line)}"


def _is_of_ml_dtypes(element_type: ElementType) -> bool:
    return element_type.storage.isbuiltin == 2


def _foreign_types(request: Request) -> list[ElementType]:
    """The element types among operands and result that NumPy has only with ml_dtypes."""
    arrays = [*request.inputs.values(), *([] if request.result is None else [request.result])]
    types = dict.fromkeys(of_numpy(array.dtype) for array in arrays)
    return [element_type for element_type in types if _is_of_ml_dtypes(element_type)]


def _imports_of_types(request: Request) -> list[str]:
    wanted = _foreign_types(request) and not request.runtime.startswith("openvino")
    return ["import ml_dtypes"] if wanted else []


def _load(name: str, array: np.ndarray) -> str:
    """The expression for an array as NumPy holds it; .npy files have no name for the types of ml_dtypes."""
    element_type = of_numpy(array.dtype)
    view = f".view(ml_dtypes.{element_type.name})" if _is_of_ml_dtypes(element_type) else ""
    return f'np.load(here / "{name}.npy"){view}'


def _fed(request: Request) -> str:
    return ", ".join(f'"{name}": {_load(name, array)}' for name, array in request.inputs.items())


def _operands(request: Request) -> list[str]:
    return [f"{name} = {_load(name, array)}" for name, array in request.inputs.items()]


def _attributes(case: Case) -> str:
    """Attributes as arguments; their names may be anything, so that they stand as texts."""
    return f", **{dict(case.attributes)!r}" if case.attributes else ""


def _onnxruntime(request: Request) -> _Body:
    return _Body(
        ("import onnxruntime",),
        (
            f'session = onnxruntime.InferenceSession(here / "{request.model}", providers=["CPUExecutionProvider"])',
            f"got = session.run(None, {{{_fed(request)}}})[{request.output}]",
        ),
    )


def _onnx_reference(request: Request) -> _Body:
    return _Body(
        ("from onnx.reference import ReferenceEvaluator",),
        (
            f'evaluator = ReferenceEvaluator(str(here / "{request.model}"))',
            f"got = np.asarray(evaluator.run(None, {{{_fed(request)}}})[{request.output}])",
        ),
    )


_AS_BYTES = """
def held(name, kind):
    data = np.frombuffer(np.load(here / f"{name}.npy").tobytes(), np.uint8)
    if kind in ("i4", "u4"):  # two elements a byte, the first one low
        data = np.append(data & 15, np.uint8(0))[: data.size + data.size % 2]
        data = data[::2] | data[1::2] << 4
    return data

def tensor(name, kind, shape):
    made = openvino.Tensor(getattr(openvino.Type, kind), shape)
    made.data.reshape(-1).view(np.uint8)[:] = held(name, kind)
    return made
"""
"""How OpenVINO gets arrays of types that NumPy does not have: as the bytes that it holds them in."""


def _tensors(request: Request) -> list[str]:
    """Lines that make ``tensors``: arrays as they are, or from bytes where NumPy does not have a type."""
    if not _foreign_types(request):
        loads = ", ".join(f'openvino.Tensor(np.load(here / "{name}.npy"))' for name in request.inputs)
        return [f"tensors = [{loads}]"]
    made = [
        f'tensor("{name}", "{of_numpy(array.dtype).ir}", {list(array.shape)})' for name, array in request.inputs.items()
    ]
    return [*_AS_BYTES.splitlines(), "", f"tensors = [{', '.join(made)}]"]


def _openvino(request: Request) -> _Body:
    lines = (
        *_tensors(request),
        f'compiled = openvino.Core().compile_model(here / "{request.model}", "CPU")',
        f"got = compiled(tensors)[{request.output}]",
    )
    return _Body(("import openvino",), lines, holds_bytes=bool(_foreign_types(request)))


def _openvino_evaluate(request: Request) -> _Body:
    sizes = [0] if request.result is None else list(request.result.shape)
    others = "".join(f"openvino.Tensor(model.output({place}).element_type, [0]), " for place in range(request.output))
    lines = (
        *_tensors(request),
        f'model = openvino.Core().read_model(here / "{request.model}")',
        f"result = openvino.Tensor(model.output({request.output}).element_type, {sizes})",
        f"assert model.evaluate([{others}result], tensors)",
        "got = result.data",
    )
    return _Body(("import openvino",), lines, holds_bytes=bool(_foreign_types(request)))


def _numpy(request: Request) -> _Body:
    return _Body((), (*_operands(request), f"got = np.asarray({request.case.schema.expression()})"))


def _torch(request: Request) -> _Body:
    """Arrays of types that NumPy does not have travel as bits."""
    lines = [
        f'{name} = torch.from_numpy(np.load(here / "{name}.npy").view("u{array.itemsize}")).view(torch.{array.dtype})'
        for name, array in request.inputs.items()
    ]
    storage = request.case.a.dtype
    view = f"ml_dtypes.{storage}" if _foreign_types(request) else f'"{storage}"'
    lines.append(f"result = {request.case.schema.expression()}")
    lines.append(f"got = result.view(torch.uint{8 * storage.itemsize}).numpy().view({view})")
    return _Body(("import torch",), tuple(lines))


def _jax(request: Request) -> _Body:
    lines = (
        'jax.config.update("jax_enable_x64", True)',
        *_operands(request),
        "a, b = jax.numpy.asarray(a), jax.numpy.asarray(b)",
        f"got = np.asarray({request.case.schema.expression()})",
    )
    return _Body(("import jax",), lines)


def _eltwise(kernels: str) -> Callable[[Request], _Body]:
    def body(request: Request) -> _Body:
        if request.model:
            loads = [_load(name, array) for name, array in request.inputs.items()]
            fed = ", ".join(f'"{place}": {load}' for place, load in enumerate(loads))
            results = f'eltwise.load(here / "{request.model}").run({{{fed}}})'
            lines = [f"got = list({results}.values())[{request.output}]"]
        else:
            call = f"eltwise.operator({request.case.schema.versioned_name!r}{_attributes(request.case)})(a, b)"
            lines = [*_operands(request), f"got = {call}"]
        return _Body(("import os", f'os.environ["ELTWISE_KERNELS"] = "{kernels}"', "import eltwise"), tuple(lines))

    return body


def _callable(request: Request, file: str, function: str) -> _Body:
    place = str(Path(file).absolute())
    call = f"run({request.case.schema.versioned_name!r}, a, b{_attributes(request.case)})"
    lines = (
        f"sys.path.insert(0, {str(Path(place).parent)!r})",
        f"run = runpy.run_path({place!r})[{function!r}]",
        *_operands(request),
        f"got = np.asarray({call})",
    )
    return _Body(("import runpy", "import sys"), lines)


def _comparison(request: Request, holds_bytes: bool) -> list[str]:
    """The lines that print what came beside what is exact, and exit with 1 where the bits differ."""
    if request.result is None:
        return ['raise SystemExit(f"got {got.ravel()[:8].tolist()}, where the specification refuses")']
    if holds_bytes:
        element_type = of_numpy(request.result.dtype)
        odd = element_type.bits == 4 and request.result.size % 2
        return [
            f'expected = held("expected", "{element_type.ir}")',
            "got = np.frombuffer(np.ascontiguousarray(got).tobytes(), np.uint8).copy()",
            *(["got[-1] &= 15  # the rest of the last byte is not used"] if odd else []),
            'print("expected bytes", expected[:32].tobytes().hex(), "got", got[:32].tobytes().hex())',
            'raise SystemExit(0 if np.array_equal(got, expected) else "the bits differ")',
        ]
    return [
        f"expected = {_load('expected', request.result)}",
        'print("expected", expected.dtype, expected.shape, expected.ravel()[:8].tolist())',
        'print("got     ", got.dtype, got.shape, got.ravel()[:8].tolist())',
        "same = got.shape == expected.shape and got.dtype == expected.dtype and got.tobytes() == expected.tobytes()",
        'raise SystemExit(0 if same else "the bits differ")',
    ]


_BODIES: dict[str, Callable[[Request], _Body]] = {
    "eltwise": _eltwise("compiled"),
    "eltwise-numpy": _eltwise("numpy"),
    "onnxruntime": _onnxruntime,
    "onnx-reference": _onnx_reference,
    "openvino": _openvino,
    "openvino-onnx": _openvino,
    "openvino-evaluate": _openvino_evaluate,
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
}
