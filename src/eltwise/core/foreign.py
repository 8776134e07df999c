"""Other libraries: imported where they are installed, and what their errors say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eltwise.core.errors import UnsupportedError
from eltwise.core.escaping import shortened

SCALE = "'eltwise[scale]'"
"""What pip installs the libraries of files larger than memory by."""


def library(name: str, thing: str, where: str = "", package: str = "") -> Any:
    """Import a library that is optional.

    Args:
        name: its module.
        thing: what needs it, for the error.
        where: the file that is opened.
        package: what pip calls it, by default as the outermost package of the module.

    Raises:
        UnsupportedError: where it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        root = name.partition(".")[0]
        hint = f"pip install {package or root}"
        raise UnsupportedError(f"{thing} needs the package {root}", where=where, hint=hint) from None


def reason_of(error: BaseException) -> str:
    """What an error of a library or of the operating system says, on one line of at most 200 characters."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return shortened(" ".join(text.split()), 200) or type(error).__name__
