"""Machine code as one position-independent image: mapped, and run without a compiler.

Linux only; elsewhere LLVM loads its object files itself. An image begins with the one function of its module.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache

_READ, _WRITE, _EXECUTE = 1, 2, 4


def can_be_mapped() -> bool:
    """Whether this system maps images."""
    return sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8


def map_image(image: bytes) -> int:
    """Map an image so that it can be run and no longer written; gives its address.

    Raises:
        OSError: where the system does not allow that.
    """
    memory = mmap.mmap(-1, len(image), prot=_READ | _WRITE)
    memory.write(image)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _library().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(image)), _READ | _EXECUTE):
        raise OSError(ctypes.get_errno(), "this system does not run machine code that a program makes")
    keep_for_ever(memory)
    return address


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def keep_for_ever(owner: object) -> None:
    """Keep what owns machine code until the process ends: threads and finalizers may run it when modules are gone."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
