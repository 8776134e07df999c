"""Which opsets and file versions a runtime loads: a smallest model of each, loaded in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from eltwise.conformance import ir_models, onnx_models
from eltwise.conformance.process import environment_of
from eltwise.conformance.runtimes import Runtime
from eltwise.ops import registry

_LIMIT = 120.0
_PROCESSES = 2
_EARLY_OPSET = 9
"""An opset that every version of the file format since 3 may have."""

_USUAL_IR_VERSION = 8
NEWEST_IR_VERSION = 14
"""The newest version of ONNX files that is tried."""

_OPENVINO_VERSIONS = range(7, 14)


def loaded_opsets(runtime: Runtime) -> tuple[int, ...]:
    """The ONNX opsets that a runtime loads; none for one that reads no ONNX."""
    if "ai.onnx" not in runtime.domains:
        return ()
    tried = range(1, registry.NEWEST_OPSET["ai.onnx"] + 1)
    return _loaded(runtime, ((opset, onnx_models.smallest(opset, _USUAL_IR_VERSION)) for opset in tried))


def loaded_file_versions(runtime: Runtime) -> tuple[int, ...]:
    """The versions of its file format that a runtime loads: ONNX's ir_version, or that of OpenVINO's IR."""
    if "ai.onnx" in runtime.domains:
        tried = range(3, NEWEST_IR_VERSION + 1)
        return _loaded(runtime, ((version, onnx_models.smallest(_EARLY_OPSET, version)) for version in tried))
    return _loaded(runtime, ((version, ir_models.smallest(version)) for version in _OPENVINO_VERSIONS))


def _loaded(runtime: Runtime, models: Iterable[tuple[int, bytes]]) -> tuple[int, ...]:
    tried = dict(models)
    with ThreadPoolExecutor(_PROCESSES) as threads:
        found = list(threads.map(lambda data: loads(runtime, data), tried.values()))
    return tuple(stamp for stamp, is_loaded in zip(tried, found, strict=True) if is_loaded)


def loads(runtime: Runtime, data: bytes) -> bool:
    """Whether a runtime loads a model; a crash and a hang are no."""
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, with a module of ours
            [sys.executable, "-P", "-m", "eltwise.targets.loading", runtime.adapter],
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment_of(runtime),
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
