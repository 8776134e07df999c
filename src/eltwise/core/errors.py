"""The one family of errors that a caller can cause: fields first, one clear sentence made of them.

Each is also the error of Python that such a mistake raises elsewhere, so that ``except ValueError`` works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from eltwise.core.escaping import LONGEST_LINE, escape_lines, escaped, shortened
from eltwise.core.exit_codes import ExitCode

_FIELDS = ("where", "operator", "node", "operand", "got", "allowed", "hint")


class EltwiseError(Exception):
    """The base of every error that a caller can cause.

    Attributes:
        problem: what is wrong, without the place.
        where: the file or the part of one, for example ``model.onnx``.
        operator: the versioned name, for example ``Sub-6``.
        node: the node's or layer's name.
        operand: the operand, attribute or tensor, for example ``operand B ('y')``.
        got: what was found there.
        allowed: what would have been right.
        hint: what to do about it.

    An empty field is not known or does not apply.

    >>> print(ShapeError("not a shape", operand="axis", got="3", hint="give another one"))
    axis: not a shape, got 3; give another one
    """

    exit_code = ExitCode.BAD_INPUT
    """Of a command that ends with this error."""

    def __init__(
        self,
        problem: str,
        *,
        where: str = "",
        operator: str = "",
        node: str = "",
        operand: str = "",
        got: str = "",
        allowed: str = "",
        hint: str = "",
    ) -> None:
        self.problem = problem
        self.where = where
        self.operator = operator
        self.node = node
        self.operand = operand
        self.got = got
        self.allowed = allowed
        self.hint = hint
        super().__init__(problem)

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, EltwiseError) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.problem)

    def located(self, *, where: str = "", operator: str = "", node: str = "", operand: str = "") -> Self:
        """Fill the fields of place that are still empty; the raiser that is nearest to the cause wins."""
        self.where = self.where or where
        self.operator = self.operator or operator
        self.node = self.node or node
        self.operand = self.operand or operand
        return self

    def _place(self) -> str:
        node = f"node {self.node!r}" if self.node else ""
        subject = " ".join(_field(part) for part in (self.operator, node) if part)
        inner = ", ".join(filter(None, (subject, _field(self.operand))))
        prefix = ": ".join(part for part in (_field(self.where), inner) if part)
        return f"{prefix}: " if prefix else ""

    @property
    def sentence(self) -> str:
        """What is wrong and what to do about it, without the place."""
        sentence = _field(self.problem)
        if self.got:
            sentence += f", got {_field(self.got)}"
        for part in (f"allowed: {self.allowed}" if self.allowed else "", self.hint):
            sentence += f"; {_field(part)}" if part else ""
        return escaped(sentence)

    def __str__(self) -> str:
        return escaped(self._place()) + self.sentence

    def to_dict(self) -> dict[str, str]:
        """The fields that are set, with the kind and the sentence, for programs that read them."""
        present = {name: getattr(self, name) for name in _FIELDS if getattr(self, name)}
        return {"kind": type(self).__name__, "problem": self.problem, **present, "sentence": str(self)}


def _field(text: str) -> str:
    return shortened(text, LONGEST_LINE)


@contextmanager
def errors_located(*, where: str = "", operator: str = "", node: str = "", operand: str = "") -> Iterator[None]:
    """Fill the fields of place of errors; see ``EltwiseError.located``."""
    try:
        yield
    except EltwiseError as error:
        raise error.located(where=where, operator=operator, node=node, operand=operand) from None


class ArgumentTypeError(EltwiseError, TypeError):
    """An argument of a type that the function does not take."""


class NameUnknownError(EltwiseError, LookupError):
    """A name that is not one of those that exist here: an operator, an attribute, an input, a choice."""


class AttributeValueError(EltwiseError, ValueError):
    """An attribute that is there but has a type or value that its operator version does not allow."""


class ElementTypeError(EltwiseError, TypeError):
    """An element type that is forbidden, or that differs from the one that is required."""


class ShapeError(EltwiseError, ValueError):
    """Shapes that do not broadcast, do not match the declared one, or cannot be made."""


class ValueRangeError(EltwiseError, ValueError):
    """A value that the element type cannot hold exactly, where anything else would be a wrong number."""


class FileFormatError(EltwiseError, ValueError):
    """A file that cannot be read or written, or does not hold what its ending says."""


class FileMissingError(FileFormatError, FileNotFoundError):
    """A file that is not there."""

    def __new__(cls, *arguments: object, **_fields: object) -> Self:
        """Make what an ``OSError`` is, which ``ValueError.__new__`` refuses; libraries that copy errors call this."""
        return FileNotFoundError.__new__(cls, *arguments)


class ChangedInputError(FileFormatError):
    """An input that was changed while it was read."""


class GraphError(EltwiseError, ValueError):
    """A graph that is no graph: cycles, duplicate names, inputs that nothing makes."""


class UnsupportedError(EltwiseError, NotImplementedError):
    """Something valid that this package does not run, named so that it can be looked up."""


class VerificationError(EltwiseError, ArithmeticError):
    """A rewritten model that does not give the bits of the original: a defect of this package."""

    exit_code = ExitCode.FINDINGS


class ManyProblemsError(EltwiseError, ValueError):
    """Several problems of one model at once; ``problems`` holds each of them, or of very many the first ones.

    ``count`` is how many there are.
    """

    def __init__(self, problems: Sequence[EltwiseError], count: int = 0, *, where: str = "") -> None:
        self.problems = tuple(problems)
        self.count = count or len(self.problems)
        groups = _grouped(self.problems)
        lines = "".join(f"\n  {number}. {text}" for number, text in enumerate(groups, start=1))
        super().__init__(f"{self.count} problems:{lines}", where=where)
        self.args = (self.problems, count)  # Copies and pickles are made from them.

    def __str__(self) -> str:
        first, *lines = self.problem.split("\n")
        return escape_lines("\n".join([f"{escaped(self._place())}{first}", *lines]))


_MOST_NODES = 4
"""So many nodes of one problem are named."""


def _grouped(problems: Sequence[EltwiseError]) -> list[str]:
    """A sentence for each problem; those that differ only in the node share one."""
    groups: dict[tuple[str, ...], list[EltwiseError]] = {}
    for problem in problems:
        fields = (problem.where, problem.operand, problem.problem, problem.got, problem.allowed, problem.hint)
        key = fields if problem.node else (*fields, str(len(groups)))
        groups.setdefault(key, []).append(problem)
    return [str(group[0]) if len(group) == 1 else _of_several(group) for group in groups.values()]


def _of_several(problems: Sequence[EltwiseError]) -> str:
    first = problems[0]
    where, operand = f"{first.where}: " if first.where else "", f", {first.operand}" if first.operand else ""
    nodes = named([f"{problem.operator} {problem.node!r}".strip() for problem in problems], _MOST_NODES)
    return f"{where}{counted(len(problems), 'node')} ({nodes}){operand}: {first.sentence}"


def raise_all(problems: Sequence[EltwiseError], most: int | None = None) -> None:
    """Raise the one problem itself, several as one error, none not at all; of more than ``most`` the first ones."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        first = problems[:most]
        left = len(problems) - len(first)
        rest = [EltwiseError(f"and {left} more of this kind")] if left else []
        raise ManyProblemsError([*first, *rest], len(problems))


_MOST_NAMES, _LONGEST_NAME = 24, 200
"""So many names are listed, and so many characters of an unknown one are shown."""


def unknown_name(kind: str, got: str, known: Iterable[str], **location: str) -> NameUnknownError:
    """Make the error for a name that is not known, with the nearest known one as the hint.

    >>> print(unknown_name("attribute", "brodcast", ["axis", "broadcast"], operator="Sub-6"))
    Sub-6: there is no attribute 'brodcast'; allowed: axis, broadcast; did you mean 'broadcast'?
    """
    import difflib  # Here, since few calls go wrong.

    names = list(known)
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(got.casefold(), list(folded), n=1, cutoff=0.6)
    return NameUnknownError(
        f"there is no {kind} {shown(got, _LONGEST_NAME)}",
        allowed=", ".join(names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], f"... ({len(names)} in all)"])
        or "none",
        hint=f"did you mean {folded[near[0]]!r}?" if near else "",
        **location,
    )


def shown(value: object, longest: int = 80) -> str:
    """A value as an error shows it, of whatever type it is.

    >>> shown([1, 2]), shown("a" * 99, 9)
    ('[1, 2]', "'aaa...a'")
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - objects that are somebody else's may fail to show themselves
        text = type(value).__name__
    return shortened(text, longest)


def counted(count: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(0, "change"), counted(1, "node"), counted(2000, "layer")
    ('no changes', '1 node', '2,000 layers')
    """
    return f"{f'{count:,}' if count else 'no'} {thing}{'' if count == 1 else 's'}"


def named(names: Sequence[str], most: int = 6) -> str:
    """The first names, and how many more there are.

    >>> named(["a", "b", "c"], 2), named(["a"])
    ('a, b and 1 more', 'a')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
