"""The process that loads one model: run as ``python -m eltwise.targets.loading ADAPTER`` with the model on its input.

Exit code 0 where the runtime loads it, 1 where it refuses; anything else is a crash.
"""

from __future__ import annotations

import importlib
import sys
import warnings

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Runtime


def main() -> int:
    """Make the runtime and load the model."""
    module, _colon, kind = sys.argv[1].partition(":")
    warnings.simplefilter("ignore")
    runtime: Runtime = getattr(importlib.import_module(module), kind)()
    data = sys.stdin.buffer.read()
    dialect = "openvino" if data.startswith(b"<?xml") else "onnx"
    try:
        runtime.load(BuiltModel(dialect, data, b"", (), ()))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - whatever a runtime raises is its refusal
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
