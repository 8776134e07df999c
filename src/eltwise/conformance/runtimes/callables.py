"""A user's callable: ``run(op, a, b, **attributes)`` gives an array, or raises where it refuses."""

from __future__ import annotations

import hashlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.core.errors import FileFormatError, unknown_name


class Function:
    """A function out of a Python file, named ``FILE.py:FUNCTION``."""

    def __init__(self, name: str) -> None:
        text, _colon, function = name.rpartition(":")
        file = Path(text).absolute()
        sys.path.insert(0, str(file.parent))  # It may import what lies beside it, as a script may.
        # Under its own name, as if it were imported, unless that is the name of what is imported already.
        name = f"eltwise_runtime_{file.stem}" if file.stem in sys.modules else file.stem
        spec = spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise FileFormatError("this cannot be imported", where=text)
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        found = getattr(module, function, None)
        if not callable(found):
            known = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
            raise unknown_name("function", function, known, where=text)
        self._run = found
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
        self._version = f"{getattr(module, '__version__', '')} (file {digest})".lstrip()

    def version(self) -> str:
        """The file's ``__version__``, where it has one, and a digest of what it holds, since such files change."""
        return self._version

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **attributes: object) -> object:
        """Call it on copies, which it may overwrite."""
        return self._run(op, a.copy(), b.copy(), **attributes)

    def load(self, model: BuiltModel) -> Loaded:
        """It takes no models."""
        raise NotImplementedError("a callable takes arrays")
