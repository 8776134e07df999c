"""A function of the user, in a Python file, that computes an operator or makes a runtime of a model."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

Step = tuple[str, tuple[int, ...]]

_INSTALLED = {"site-packages", "dist-packages"}
_MAPPED = Path("/proc/self/maps")


class _FromFile:
    """A function out of a Python file, named ``FILE.py:FUNCTION``."""

    def __init__(self, name: str) -> None:
        text, _colon, function = name.rpartition(":")
        file = Path(text).absolute()
        sys.path.insert(0, str(file.parent))  # It may import what is beside it, as a script may.
        # Under its own name, as if it were imported, unless that is the name of an imported module.
        name = f"eltwise_runtime_{file.stem}" if file.stem in sys.modules else file.stem
        spec = spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{text} cannot be imported")
        module, before = module_from_spec(spec), set(sys.modules)
        sys.modules[name] = module
        # What is run is what the digest is of: bytecode that is there may be of another file of this size and time.
        source = file.read_bytes()
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the file that was named
        value = getattr(module, function, None)
        if not callable(value):
            raise LookupError(f"there is no function {function!r} in {text}")
        self._run = value
        digest = hashlib.sha256(source)
        for path in _loaded_from(file.parent.resolve(), sys.modules.keys() - before - {name}):
            digest.update(path.read_bytes())
        self._version = f"{getattr(module, '__version__', '')} (file {digest.hexdigest()[:8]})".lstrip()

    def version(self) -> str:
        """The file's ``__version__``, if it has one, and a digest, which tells when it changed.

        It is that of the file, and of the modules and libraries from its folder that it loaded with itself.
        """
        return self._version


def _loaded_from(folder: Path, modules: Iterable[str]) -> list[Path]:
    """The files in a folder that some modules are, and whose code is mapped, as that of libraries; none installed."""
    names = {getattr(sys.modules.get(name), "__file__", None) or "" for name in modules}
    with suppress(OSError):
        fields = (line.split(maxsplit=5) for line in _MAPPED.read_text(errors="replace").splitlines())
        names |= {path for _range, mode, _offset, _device, _inode, *paths in fields if "x" in mode for path in paths}
    paths = {Path(name).resolve() for name in names if name}
    inside = (path for path in paths if path.is_relative_to(folder) and not _INSTALLED & {*path.parts})
    return sorted(path for path in inside if path.is_file())


class PythonFunction(_FromFile):
    """``run(op, *operands, **attributes)`` returns an array or raises."""

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> _Call:
        """The function knows the operator by its versioned name."""
        del steps
        return _Call(lambda operands: self._run(op, *operands, **attributes))


class PythonModel(_FromFile):
    """``load(model)`` takes the bytes of an ONNX model and returns a function of a dict of inputs to one of outputs."""

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> _Model:
        """Load a model; its names are read here, since the function need not know their order."""
        import onnx

        del weights
        if not data:
            raise ValueError(f"{path} is too large to be given as bytes")
        run, graph = self._run(data), onnx.load_from_string(data).graph
        if not callable(run):
            raise TypeError(f"the function gave a {type(run).__name__}, not a function of a dict of inputs")
        constants = {tensor.name for tensor in graph.initializer}
        inputs = [value.name for value in graph.input if value.name not in constants]
        kinds = {value.name: value.type.tensor_type.elem_type for value in graph.output}  # 0 where it is not declared.
        numbers = {name for name, kind in kinds.items() if kind not in (0, onnx.TensorProto.STRING)}
        return _Model(run, inputs, list(kinds), numbers)


class _Model:
    def __init__(
        self, run: Callable[[dict[str, np.ndarray]], Any], inputs: list[str], outputs: list[str], numbers: set[str]
    ) -> None:
        self._run, self._inputs, self._outputs, self._numbers = run, inputs, outputs, numbers

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        if outputs is not None:
            raise NotImplementedError("the function makes its own results")
        return lambda: self._checked(dict(zip(self._inputs, inputs, strict=True)))

    def _checked(self, inputs: dict[str, np.ndarray]) -> Mapping[str, object]:
        """What it gives, unless that has other names, or something else in place of an array of numbers."""
        results = self._run(inputs)
        if not isinstance(results, Mapping) or set(results) != set(self._outputs):
            got = ", ".join(map(repr, results)) if isinstance(results, Mapping) else f"a {type(results).__name__}"
            raise ValueError(f"it gave {got}, and the outputs are {', '.join(map(repr, self._outputs))}")
        for name, result in results.items():
            if not (_has_numbers(result) or (name not in self._numbers and _is_other_value(result))):
                array = f"an array of {result.dtype}" if type(result) is np.ndarray else f"a {type(result).__name__}"
                raise TypeError(f"it gave {array} for the output {name!r}, expected a NumPy array of numbers")
        return results

    def arrays(self, result: Mapping[str, object]) -> Sequence[object]:
        return [result[name] for name in self._outputs]


def _has_numbers(result: object) -> bool:
    """Whether it is an array of numbers. A masked array is another thing, with other contents."""
    is_array = isinstance(result, np.generic) or type(result) in (np.ndarray, np.memmap)
    return is_array and np.asarray(result).dtype.kind not in "OSUMm"


def _is_other_value(result: object) -> bool:
    """Whether it is what ONNX has beside arrays of numbers: strings, sequences, maps, and no value at all."""
    if isinstance(result, (list, tuple)):
        return all(isinstance(item, (np.ndarray, Mapping)) for item in result)
    if type(result) is np.ndarray:
        return all(isinstance(item, (str, bytes)) for item in result.flat)
    return result is None or isinstance(result, Mapping)


class _Call:
    def __init__(self, run: Callable[[Sequence[np.ndarray]], object]) -> None:
        self._run = run

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], object]:
        if outputs is not None:
            raise NotImplementedError("the function makes its own result")
        return lambda: self._run(inputs)

    def arrays(self, result: object) -> Sequence[object]:
        return [result]
