"""The table ``[tool.eltwise]`` of a project's ``pyproject.toml``: the defaults of commands and goldens."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from eltwise.core import fields
from eltwise.core.errors import AttributeValueError, EltwiseError, FileFormatError
from eltwise.formats import files

FILE = "pyproject.toml"
_LARGEST = 1 << 24


@dataclass(frozen=True)
class Configuration:
    """What a project chooses.

    Attributes:
        tolerances: what is forgiven, by the pattern of the names of tensors; the last one that is for a tensor counts.
        runtimes: specifications of runtimes: all of them for ``conform``, and the first that reads a model for goldens.
        severity: the least severity of findings of ``check`` that counts; empty for the default.
    """

    tolerances: Mapping[str, str] = field(default_factory=dict)
    runtimes: tuple[str, ...] = ()
    severity: str = ""


def read_configuration(folder: Path) -> Configuration:
    """Read the configuration of the nearest project: of a folder, or of one above it.

    Raises:
        EltwiseError: for a file that is not TOML, and for unknown keys and wrong values in the table.
    """
    for path in (each / FILE for each in (folder, *folder.parents)):
        if path.is_file():
            content = files.read_bytes(path, _LARGEST)
            try:
                tools = _tools(content)
            except ValueError as error:
                raise FileFormatError(f"not TOML ({error})", where=str(path)) from None
            if isinstance(tools, dict) and "eltwise" in tools:
                where = f"{path}: [tool.eltwise]"
                configuration = fields.read(Configuration, tools["eltwise"], where)
                if configuration.tolerances:
                    _check_tolerances(configuration.tolerances, where)
                if configuration.severity:
                    _check_severity(configuration.severity, where)
                return configuration
    return Configuration()


@lru_cache(maxsize=1)
def _tools(content: bytes) -> object:
    """The tables of tools in a project's file; one test after another asks for the same."""
    return tomllib.loads(content.decode()).get("tool")


def _check_tolerances(tolerances: Mapping[str, str], where: str) -> None:
    from eltwise.comparison.tolerance import parse_tolerances  # It loads NumPy, which no help needs.

    for pattern, text in tolerances.items():
        try:
            parse_tolerances({pattern: text})
        except AttributeValueError as error:
            problem = f"tolerances.{pattern}: {error.problem}"
            raise FileFormatError(problem, where=where, got=error.got, hint=error.hint) from None


def _check_severity(severity: str, where: str) -> None:
    from eltwise.targets.rules import severity_named  # As above.

    try:
        severity_named(severity)
    except EltwiseError as error:
        raise error.located(where=where, operand="severity") from None
