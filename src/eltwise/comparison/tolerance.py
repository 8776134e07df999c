"""Tolerances as text: ``ulp<=1``, ``rtol=1e-3, atol=1e-5``, and the same for some tensors by a pattern before a colon.

An element is within a tolerance when its distance is at most ``ulp``, or when ``|a - b| <= atol + rtol * |a|``, as in
NumPy's ``isclose`` with A as the reference, computed in float64. Any NaN is within of any NaN, and zeros of
each other; a NaN and a number, and an infinity and anything else, never are.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from numbers import Real
from pathlib import Path

from eltwise.core.border import check_range
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import AttributeValueError, shown, unknown_name
from eltwise.formats import files

_PART = re.compile(r"(ulp|rtol|atol)\s*(?:<=|=)\s*(\S+)")
_HINT = "write for example ulp<=1, or rtol=1e-3, atol=1e-5, or logits*: ulp<=4"
_MOST_ULP = 2**63 - 2
_LARGEST_FILE = 1 << 24


@dataclass(frozen=True)
class Tolerance:
    """What is forgiven of some tensors.

    Attributes:
        ulp: the largest distance; None for no such limit.
        rtol: the largest difference relative to A; None for no such limit.
        atol: the largest absolute difference; None for no such limit.
        pattern: the names that it is for, with ``*`` and ``?``; empty for all.
        is_default: whether it may be for no tensor at all, as one of a project's configuration.
    """

    ulp: int | None = None
    rtol: float | None = None
    atol: float | None = None
    pattern: str = ""
    is_default: bool = False

    def __str__(self) -> str:
        parts = [f"ulp<={self.ulp}"] if self.ulp is not None else []
        parts += [
            f"{name}={_shown(value)}" for name, value in (("rtol", self.rtol), ("atol", self.atol)) if value is not None
        ]
        return (f"{self.pattern}: " if self.pattern else "") + ", ".join(parts)

    @property
    def absolute(self) -> float:
        """The absolute limit of a kernel, negative for none: one of both says that numbers are compared."""
        return -1.0 if self.rtol is None and self.atol is None else self.atol or 0.0

    def near(self, element_type: ElementType) -> int:
        """The largest distance that is near, as far as a kernel counts: 0 is that of zeros, which always are."""
        return min(self.ulp or 0, (1 << (64 if element_type.bits == 64 else 32)) - 1)

    def is_for(self, *names: str) -> bool:
        """Whether it is for a tensor of one of these names."""
        pattern = self.pattern.replace("[", "[[]")  # Brackets in names stand for themselves.
        return not pattern or any(fnmatchcase(name, pattern) for name in names)


Tolerances = tuple[Tolerance, ...]
ToleranceLike = None | str | Tolerance | Mapping[str, str] | Collection[str | Tolerance]
"""How a caller gives tolerances."""


def parse_tolerances(
    tolerance: ToleranceLike = None, *, rtol: float | None = None, atol: float | None = None, ulp: int | None = None
) -> Tolerances:
    """Read tolerances.

    >>> [str(each) for each in parse_tolerances({"logits": "rtol=1e-3, atol=1e-5"}, ulp=1)]
    ['ulp<=1', 'logits: rtol=0.001, atol=1e-05']

    Args:
        tolerance: one text, several, or texts by the pattern of the names; ``@FILE`` is a file with one a line.
        rtol: the largest difference relative to A, of the tensors that ``tolerance`` does not name.
        atol: the largest absolute difference of these.
        ulp: the largest distance of these.

    Raises:
        AttributeValueError: for what is no tolerance.
        FileFormatError: for a file that cannot be read.
    """
    most = {"rtol": sys.float_info.max, "atol": sys.float_info.max, "ulp": _MOST_ULP}
    for name, value in (("rtol", rtol), ("atol", atol), ("ulp", ulp)):
        if value is not None:
            check_range(name, value, 0, most[name])
    relative, absolute = (None if value is None else float(value) for value in (rtol, atol))
    general = Tolerance(None if ulp is None else int(ulp), relative, absolute)
    if isinstance(tolerance, Mapping):
        tolerance = [_for_names(pattern, text) for pattern, text in tolerance.items()]
    elif tolerance is None or isinstance(tolerance, str | Tolerance):
        tolerance = () if tolerance is None else (tolerance,)
    elif isinstance(tolerance, Real):
        hint = "say rtol=, atol= or ulp=, or a text such as 'rtol=1e-3, atol=1e-5'"
        raise AttributeValueError(
            "a number alone is no tolerance", operand="tolerance", got=shown(tolerance), hint=hint
        )
    elif not isinstance(tolerance, Collection) or getattr(tolerance, "ndim", 1) == 0:
        raise _refused("a tolerance is a text", type(tolerance).__name__)
    parsed = (each for one in tolerance for each in _parsed(one))
    return (*([] if general == Tolerance() else [general]), *parsed)


def default_tolerances(texts: ToleranceLike) -> Tolerances:
    """Read the tolerances of a project's configuration, each of which may be for no tensor of a comparison."""
    return tuple(replace(one, is_default=True) for one in parse_tolerances(texts))


def tolerance_files(texts: Iterable[str | Tolerance]) -> list[str]:
    """The files that tolerances are read from."""
    return [text[1:] for text in texts if isinstance(text, str) and text.startswith("@")]


def _parsed(tolerance: object) -> Sequence[Tolerance]:
    if isinstance(tolerance, Tolerance):
        return [tolerance]
    if not isinstance(tolerance, str):
        raise _refused("a tolerance is a text", type(tolerance).__name__)
    if tolerance.startswith("@"):
        path = Path(tolerance[1:])
        text = files.read_bytes(path, _LARGEST_FILE).decode(errors="replace")
        lines = map(str.strip, text.splitlines())
        return [parse_tolerance(line) for line in lines if line and not line.startswith("#")]
    return [parse_tolerance(tolerance)]


def _for_names(pattern: object, text: object) -> Tolerance:
    """Read the tolerance of an entry of a mapping."""
    whole = f"{pattern}: {text}"
    if not (isinstance(text, str) and isinstance(pattern, str)):
        raise _refused("a tolerance and the names that it is for are texts", repr(whole))
    tolerance = parse_tolerance(text)
    if tolerance.pattern or not pattern.strip():
        raise _refused("the names stand before the tolerance, once", repr(whole))
    return replace(tolerance, pattern=pattern)


def parse_tolerance(text: str) -> Tolerance:
    """Read one tolerance."""
    pattern, colon, rest = text.rpartition(":")
    values: dict[str, str] = {}
    for part in rest.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or match[1] in values:
            raise _refused("this part is given twice" if match else "not a tolerance", repr(text))
        values[match[1]] = match[2]
    if colon and not pattern.strip():
        raise _refused("there is no name before the colon", repr(text))
    ulp = values.get("ulp")
    if ulp is not None and not (ulp.isascii() and ulp.isdigit() and len(ulp) < 20 and int(ulp) <= _MOST_ULP):
        raise _refused("ulp is a whole number from 0", repr(text))
    rtol, atol = (_number(values[name], text) if name in values else None for name in ("rtol", "atol"))
    return Tolerance(None if ulp is None else int(ulp), rtol, atol, pattern.strip())


def _number(text: str, whole: str) -> float:
    with suppress(ValueError):
        value = float(text) if text.isascii() and "_" not in text else -1.0
        if math.isfinite(value) and value >= 0:
            return value
    raise _refused("rtol and atol are numbers from 0", repr(whole))


def _shown(value: float) -> str:
    """A number in few digits, but all that it has: goldens keep tolerances as text."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _refused(problem: str, got: str) -> AttributeValueError:
    return AttributeValueError(problem, operand="tolerance", got=got, hint=_HINT)


def check_patterns(tolerances: Tolerances, names: Iterable[str]) -> None:
    """Refuse a pattern that is for no tensor, which would hide a mistyped name.

    Raises:
        NameUnknownError: with the nearest name.
    """
    present = list(dict.fromkeys(names))
    for tolerance in tolerances:
        if not (tolerance.is_default or tolerance.is_for(*present)):
            raise unknown_name("tensor", tolerance.pattern, present, operand=f"tolerance {str(tolerance)!r}")


def tolerance_of(tolerances: Tolerances, *names: str) -> Tolerance | None:
    """The last tolerance that is for a tensor, as later ones are more special."""
    return next((one for one in reversed(tolerances) if one.is_for(*names)), None)
