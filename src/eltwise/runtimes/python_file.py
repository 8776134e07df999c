"""A function of the user, in a Python file: ``run(op, *operands, **attributes)`` returns an array or raises."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

Step = tuple[str, tuple[int, ...]]


class PythonFunction:
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
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        value = getattr(module, function, None)
        if not callable(value):
            raise LookupError(f"there is no function {function!r} in {text}")
        self._run = value
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
        self._version = f"{getattr(module, '__version__', '')} (file {digest})".lstrip()

    def version(self) -> str:
        """The file's ``__version__``, if it has one, and a digest of the file, which tells when it changed."""
        return self._version

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> _Call:
        """The function knows the operator by its versioned name."""
        del steps
        return _Call(lambda operands: self._run(op, *operands, **attributes))


class _Call:
    def __init__(self, run: Callable[[Sequence[np.ndarray]], object]) -> None:
        self._run = run

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], object]:
        if outputs is not None:
            raise NotImplementedError("the function makes its own result")
        copies = [array.copy() for array in inputs]  # It may write into its operands.
        return lambda: self._run(copies)

    def arrays(self, result: object) -> Sequence[object]:
        return [result]
