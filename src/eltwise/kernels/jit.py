"""LLVM IR text to callables: the only module that imports llvmlite.

The target is the host's processor; ``ELTWISE_CPU`` forces a lesser one, so that what runs there can be tested here.
On Linux LLVM is loaded only to compile: what is in the
disk cache is mapped without it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from eltwise.core.errors import AttributeValueError
from eltwise.core.machine import is_x86, processor_identity
from eltwise.kernels import disk_cache, image
from eltwise.kernels.structure import Target
from eltwise.version import VERSION

Kernel = Callable[..., None]
"""``kernel(arguments, first, last)``: an array of 64-bit integers, and a range of runs; see ``structure``."""

LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": ("sse4.2",),
    "x86-64-v3": ("sse4.2", "avx2", "f16c"),
    "x86-64-v4": ("sse4.2", "avx2", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"),
}
"""The processor levels that can be forced, with the features that decide how kernels are written."""

_SEPARATOR = "\0"
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_lock = threading.RLock()  # A signal handler or a finalizer may call while its thread compiles.
_kernels: dict[tuple[object, ...], Kernel] = {}
"""The kernels by what wrote their text, and of what: machine code is never freed, so that each is built once. Nothing
else in the package keeps one, and no text is written for a kernel that is there."""


@cache
def target() -> Target:
    """The processor to compile for.

    Raises:
        AttributeValueError: where ``ELTWISE_CPU`` names none, or one that this host is not.
    """
    identity = processor_identity()
    key = _key("target", identity, os.environ.get("ELTWISE_CPU", ""))
    known = disk_cache.load(key) if identity else None
    if known is not None:
        name, features, width, *flags = known.decode().split(_SEPARATOR)
        return Target(name, features, int(width), *(flag == "True" for flag in flags))
    target = _found_target()
    if identity:
        disk_cache.store(key, _SEPARATOR.join(map(str, target)).encode())
    return target


def _key(*parts: str) -> bytes:
    """The key in the disk cache of what is built from these texts by these versions."""
    import llvmlite  # Not LLVM itself, which takes long to load.

    return _SEPARATOR.join([*parts, llvmlite.__version__, VERSION, disk_cache.COMPILER]).encode()


@cache
def _llvm() -> Any:
    """LLVM, ready to compile for this processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _found_target() -> Target:
    """What LLVM says of this processor."""
    llvm = _llvm()
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know them of every processor.
        features = llvm.FeatureMap()
    present = {name for name, is_present in features.items() if is_present}
    level = os.environ.get("ELTWISE_CPU", "")
    if not level:
        return _described(llvm.get_host_cpu_name(), features.flatten(), present)
    if level not in LEVELS:
        raise AttributeValueError(
            "unknown processor level", operand="ELTWISE_CPU", got=repr(level), allowed=", ".join(LEVELS)
        )
    missing = [name for name in LEVELS[level] if name not in present]
    if missing:
        raise AttributeValueError(
            f"this machine has no {', '.join(missing)}", operand="ELTWISE_CPU", got=level, allowed="a lesser level"
        )
    return _described(level, "", set(LEVELS[level]))


def _described(name: str, features: str, present: set[str]) -> Target:
    has_masks = {"avx512bw", "avx512vl"} <= present
    wide = 64 if has_masks else 32
    vector_bytes = wide if "avx2" in present else 16
    has_half = "f16c" in present or not is_x86()
    return Target(name, features, vector_bytes, has_masks, has_half, has_mode=is_x86())


def compiled(write: Callable[..., str], *arguments: Hashable) -> Kernel:
    """The function ``kernel`` of an LLVM module, compiled once, or read from the disk.

    Args:
        write: writes the module: a pure function.
        *arguments: of that function.
    """
    key = (write, *arguments)
    kernel = _kernels.get(key)
    if kernel is None:
        with _lock:
            kernel = _kernels.get(key) or _compile(write(*arguments))
            _kernels[key] = kernel
    return kernel


def _forget_lock() -> None:
    """After a fork nobody is there to open the old lock."""
    global _lock  # noqa: PLW0603 - a lock cannot be released for another thread
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def assembly(text: str) -> str:
    """The target's instructions for a module, as text."""
    module, machine = _parsed(text)
    code: str = machine.emit_assembly(module)
    return code


def _parsed(text: str) -> tuple[Any, Any]:
    """A module, and a new target machine: it belongs to the engine that it is given to."""
    llvm, chosen = _llvm(), target()
    module = llvm.parse_assembly(text)
    module.verify()
    relocatable = {"reloc": "pic", "codemodel": "small"} if image.can_be_mapped() else {}
    default = llvm.Target.from_default_triple()
    return module, default.create_target_machine(cpu=chosen.name, features=chosen.features, opt=3, **relocatable)


def _compile(text: str) -> Kernel:
    chosen = target()
    key = _key(text, chosen.name, chosen.features)
    if not image.can_be_mapped():
        return _loaded_by_compiler(text, key)
    code = disk_cache.load(key)
    if code is None:
        from eltwise.kernels import linking  # Only what was not compiled before needs it.

        module, machine = _parsed(text)
        code = linking.link(machine.emit_object(module))
        disk_cache.store(key, code)
    return _SIGNATURE(image.map_image(code))


def _loaded_by_compiler(text: str, key: bytes) -> Kernel:
    module, machine = _parsed(text)
    engine = _llvm().create_mcjit_compiler(module, machine)
    if disk_cache.folder() is not None:  # Asked here, since a warning that is an error gets lost in a callback.
        engine.set_object_cache(lambda _module, code: disk_cache.store(key, code), lambda _module: disk_cache.load(key))
    engine.finalize_object()
    image.keep_for_ever(engine)
    return _SIGNATURE(engine.get_function_address("kernel"))
