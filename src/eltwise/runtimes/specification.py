"""Run specifications: a runtime, which one of its versions, and the options it runs with.

They are written ``NAME[==VERSION | @PYTHON][:OPTION=VALUE[,OPTION=VALUE...]]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eltwise.core.errors import AttributeValueError, unknown_name

Settings = tuple[tuple[str, str], ...]
"""The options that were chosen, each with its value, in the order of their names."""


@dataclass(frozen=True)
class Option:
    """An option of a runtime.

    Attributes:
        name: its name; one that ends in ``.`` is a prefix, and any name may follow.
        values: what it may be; empty for any text, which the runtime itself checks.
        most: the largest value of a count from 1 on; 0 for what is no count.
    """

    name: str
    values: tuple[str, ...] = ()
    most: int = 0

    def takes(self, value: str) -> bool:
        """Whether it may have a value."""
        if self.most:
            return (
                value.isascii()
                and value.isdigit()
                and len(value) <= len(str(self.most))
                and 0 < int(value) <= self.most
            )
        return not self.values or value in self.values


_THREADS = Option("threads", most=1024)

DEVICE = Option("device")

_YES_OR_NO = ("true", "false")

ONNXRUNTIME = (
    Option("optimization", ("disabled", "basic", "extended", "layout", "all")),
    _THREADS,
    Option("provider"),
    Option("deterministic", _YES_OR_NO),
    Option("disabled_optimizers"),
    Option("config."),
)
"""``disabled_optimizers`` are the names of graph optimizers, joined by ``+``; ``config.KEY`` is an entry of a session's
configuration. onnxruntime does not check the names."""

OPENVINO = (
    Option("precision", ("f32", "bf16", "f16")),
    DEVICE,
    Option("hint", ("latency", "throughput", "cumulative_throughput")),
    _THREADS,
    Option("config."),
)
"""``hint`` is the performance hint; ``config.KEY`` is a property of a compiled model."""


class Specification(NamedTuple):
    """The parts of a specification.

    Attributes:
        name: of the runtime.
        settings: the options that were chosen.
        version: of the runtime, for which an environment is made; empty for the one that is installed here.
        python: the interpreter that has the runtime; empty for this one.
    """

    name: str
    settings: Settings = ()
    version: str = ""
    python: str = ""

    def __str__(self) -> str:
        """The specification as it is written: the inverse of ``split``.

        >>> str(Specification("openvino", (("precision", "f32"),), "2024.6"))
        'openvino==2024.6:precision=f32'
        """
        origin = f"=={self.version}" if self.version else f"@{self.python}" if self.python else ""
        options = ",".join(f"{key}={value}" for key, value in self.settings)
        return f"{self.name}{origin}:{options}" if options else f"{self.name}{origin}"


_FORM = "RUNTIME[==VERSION | @PYTHON][:OPTION=VALUE,...]"
_PARTS = re.compile(
    r"(?P<name>[^=@:]*)(==(?P<version>[0-9][0-9A-Za-z.+]*)(?=:|$)|@(?P<python>.+?)(?=:[^:/\\=]+=|$))?(:(?P<options>.*))?",
    re.DOTALL,
)
"""A path may hold colons, as on Windows: what follows one are options only if they begin with a name and ``=``."""


def split(text: str) -> Specification:
    """Split a specification into its parts.

    Raises:
        AttributeValueError: for another form, an option without a value, and one that is given twice.

    >>> split("openvino:precision=f32,threads=1").settings
    (('precision', 'f32'), ('threads', '1'))
    >>> split("onnxruntime==1.20.1").version, split("onnxruntime@env/bin/python").python
    ('1.20.1', 'env/bin/python')
    """
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise AttributeValueError("not the specification of a run", got=repr(text), allowed=_FORM)
    name, options = parts["name"], parts["options"]
    settings: dict[str, str] = {}
    for part in () if options is None else options.split(","):
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise AttributeValueError(
                "an option of a runtime needs a value", operand=f"runtime {name!r}", got=repr(part), allowed=_FORM
            )
        if key in settings:
            raise AttributeValueError("this option is given twice", operand=f"runtime {name!r}", got=repr(key))
        settings[key] = value
    return Specification(name, tuple(sorted(settings.items())), parts["version"] or "", parts["python"] or "")


def check(name: str, settings: Settings, options: Sequence[Option]) -> None:
    """Refuse what is no option of a runtime, and values that an option does not have.

    Raises:
        NameUnknownError: naming the options, or the values of an option.
    """
    by_name = {option.name: option for option in options}
    for key, value in settings:
        prefix = f"{key.partition('.')[0]}."
        option = by_name.get(prefix if len(key) > len(prefix) else key) if key != prefix else None
        if option is None:
            names = [f"{one}KEY" if one.endswith(".") else one for one in by_name]
            raise unknown_name(f"option of {name}", key, names or ["none"])
        if not option.takes(value):
            allowed = option.values or (f"1 to {option.most}",)
            raise unknown_name(f"value of the option {key!r} of {name}", value, allowed)


def arguments(settings: Settings) -> Mapping[str, object]:
    """The arguments of an adapter: ``config.KEY`` as one dictionary, threads as a number.

    >>> arguments((("config.A", "1"), ("threads", "2")))
    {'config': {'A': '1'}, 'threads': 2}
    """
    chosen: dict[str, object] = {}
    config = {key.partition(".")[2]: value for key, value in settings if "." in key}
    if config:
        chosen["config"] = config
    for key, value in settings:
        if "." not in key:
            chosen[key] = int(value) if key == "threads" else value
    return chosen
