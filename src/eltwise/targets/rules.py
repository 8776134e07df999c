"""Measured rules: what a runtime does otherwise than specified, at which op sites, and how severe that is.

``rules.toml`` holds them, a table for each runtime and in it a table for each rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, get_args

from eltwise.core.errors import UnsupportedError, unknown_name
from eltwise.core.fields import Form, Natural, from_toml, one_of, plain, toml_text
from eltwise.faults.families import CRASHES, HANGS, REFUSED, sentence_of
from eltwise.formats import files

SHIPPED = Path(__file__).with_name("rules.toml")

Severity = Literal["sign of zero or NaN", "precision", "wrong values", "refused"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""What a finding means for a model, from the least to the most severe."""

DEFAULT_SEVERITY: Severity = "wrong values"
"""From this severity on a finding counts."""

MEASURED_FACTS = ("op", "version", "broadcast", "type", "source", "pattern")
FACTS = (*MEASURED_FACTS, "producer", "reader", "constant", "upcast")
"""What a rule may be about; those beyond the measured ones are for rules that a person writes."""

Facts = Mapping[Annotated[str, one_of(FACTS)], frozenset[str]]
"""What may hold for an op site: the possible values of each fact."""

REFUSALS = (REFUSED, HANGS, CRASHES)
"""Faults that cannot be allowed, since there is no result."""

_LARGEST_FILE = 1 << 24
_HEADER = """# What runtimes do otherwise than specified: measured by `eltwise targets --refresh`, reviewed by people.
#
# A rule has a severity, a fault, and the facts for which it holds, each with its values. Several rules may hold for a
# node. If none does, and the operator version was measured with the type, the runtime gives the exact bits. A rule with
# `by_hand = true` stays when the runtime is measured again. docs/guides/check-and-repair.md explains the facts.
"""


@dataclass(frozen=True)
class _Scope:
    """What was measured: every one of these operator versions with every type and every broadcast rule."""

    op: frozenset[str]
    type: frozenset[str]
    broadcast: frozenset[str]


def _scope_keys(scopes: Iterable[_Scope]) -> frozenset[tuple[str, ...]]:
    return frozenset(key for each in scopes for key in product(each.op, each.type, each.broadcast))


def _scopes(keys: Iterable[tuple[str, ...]]) -> list[_Scope]:
    return [_Scope(*box) for box in boxes(sorted(keys), (1, 0, 2))]


def _fault(slug: str) -> str:
    sentence_of(slug)  # Raises for an unknown one.
    return slug


@dataclass(frozen=True)
class Rule:
    """One thing that a runtime does otherwise than specified.

    Attributes:
        severity: what it means for a model.
        fault: the slug of the family of faults.
        where: by fact, the values for which the rule applies; a fact that is not named may have any value.
        message: what the runtime itself says if it refuses; ``{op}`` stands for the operator.
        by_hand: whether a person wrote it; ``eltwise targets --refresh`` keeps it as it is.
    """

    severity: Severity
    fault: Annotated[str, Form(str, _fault, str)]
    where: Facts = field(default_factory=dict)
    message: str = ""
    by_hand: bool = False

    def applies(self, facts: Facts) -> bool:
        """Whether a site may be one that the rule is about."""
        return all(not values.isdisjoint(facts.get(name, ())) for name, values in self.where.items())


@dataclass(frozen=True)
class RuleSet:
    """All that is known of one version of a runtime.

    Attributes:
        runtime: its name.
        version: the version that was measured, with the settings that change results.
        machine: the processor.
        date: when.
        file_versions: the versions of the file format that it loads: ONNX's ir_version, or that of OpenVINO's IR.
        opsets: the ONNX opsets that it loads; none for IR.
        measured: the operator version, type and broadcast rule of everything that was measured.
        rules: what it does otherwise than specified.
    """

    runtime: str = ""
    version: str = ""
    machine: str = ""
    date: str = ""
    file_versions: tuple[Natural, ...] = ()
    opsets: tuple[Natural, ...] = ()
    measured: Annotated[frozenset[tuple[str, ...]], Form(tuple[_Scope, ...], _scope_keys, _scopes)] = frozenset()
    rules: tuple[Rule, ...] = ()

    @property
    def number(self) -> str:
        """The version without what is said of settings."""
        return self.version.partition(" ")[0]

    def matches(self, facts: Facts) -> tuple[Rule, ...]:
        """The rules that apply, the most severe first, one for each fault."""
        applying = sorted((rule for rule in self.rules if rule.applies(facts)), key=lambda rule: -level(rule.severity))
        merged: dict[str, Rule] = {}
        for rule in applying:
            merged.setdefault(rule.fault, rule)
        return tuple(merged.values())

    def without(self, allowed: Collection[str]) -> RuleSet:
        """The same without the faults that are allowed."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.fault not in allowed))


def level(severity: Severity | None) -> int:
    """A severity as a number, -1 for none."""
    return -1 if severity is None else SEVERITIES.index(severity)


def severity_named(name: str) -> Severity:
    """Find a severity by its name or the beginning of it.

    Raises:
        NameUnknownError: naming those that there are.
    """
    matches = [known for known in SEVERITIES if name and known.startswith(name)]
    if len(matches) != 1:
        raise unknown_name("severity", name, SEVERITIES)
    return matches[0]


def span(numbers: Sequence[int]) -> str:
    """Numbers that follow each other as a span.

    >>> span((1, 2, 3)), span((1, 3)), span(())
    ('1 to 3', '1, 3', 'none')
    """
    if len(numbers) > 2 and [*numbers] == [*range(numbers[0], numbers[-1] + 1)]:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


def boxes(keys: Iterable[tuple[str, ...]], order: Iterable[int]) -> list[tuple[frozenset[str], ...]]:
    """Group tuples into products of sets that hold exactly these tuples, joining along one position after another.

    >>> [list(map(sorted, box)) for box in boxes([("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"), ("a", "3")], (0, 1))]
    [[['a', 'b'], ['1', '2']], [['a'], ['3']]]
    """
    boxes = [tuple(frozenset({value}) for value in key) for key in keys]
    for axis in order:
        joined: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        for box in boxes:
            rest = (*box[:axis], *box[axis + 1 :])
            joined[rest] = joined.get(rest, frozenset()) | box[axis]
        boxes = [(*rest[:axis], values, *rest[axis:]) for rest, values in joined.items()]
    return boxes


@cache
def shipped_rules(runtime: str) -> RuleSet:
    """The rules that come with the package, of one runtime.

    Raises:
        UnsupportedError: if nothing was measured of it.
    """
    return read_rules(SHIPPED, runtime)


def runtimes_in(path: Path) -> tuple[str, ...]:
    """The runtimes of which a file has rules.

    Raises:
        FileFormatError: if there is no such file, or it is not TOML.
    """
    return tuple(_read(path))


def read_rules(path: Path, runtime: str) -> RuleSet:
    """Read the rules of one runtime.

    Raises:
        EltwiseError: if there is no such file, or it holds something else, with the path of the field.
        UnsupportedError: if the file has nothing of this runtime.
    """
    by_runtime = _read(path)
    if runtime not in by_runtime:
        hint = f"measure it: eltwise targets --refresh --runtime {runtime}"
        raise UnsupportedError(f"nothing was measured of {runtime}", where=path.name, hint=hint)
    return by_runtime[runtime]


def write_rules(path: Path, rule_set: RuleSet) -> None:
    """Write the rules of one runtime into a file; what it has of other runtimes stays as it is.

    Raises:
        FileFormatError: if the file cannot be written.
    """
    by_runtime = {**(_read(path) if path.exists() else {}), rule_set.runtime: rule_set}
    text = "\n\n".join([_HEADER.strip(), *map(_table, by_runtime.values())]) + "\n"
    files.write_atomically(path, [text.encode()])


def _read(path: Path) -> dict[str, RuleSet]:
    by_runtime = from_toml(Mapping[str, RuleSet], files.read_bytes(path, _LARGEST_FILE), str(path))  # type: ignore[type-abstract]
    return {name: replace(rules, runtime=name) for name, rules in by_runtime.items()}


def _table(rules: RuleSet) -> str:
    """A table of TOML, in which each item of a list of tables has a line."""
    lines = [f"[{toml_text(rules.runtime)}]"]
    for name, value in plain(replace(rules, runtime="")).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{name} = [", *(f"    {_inline(each)}," for each in value), "]"]
        elif name != "runtime":
            lines.append(f"{name} = {_inline(value)}")
    return "\n".join(lines)


def _inline(value: object) -> str:
    """A value as TOML; fields that are empty or false are left out of tables."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_inline(item)}' for name, item in value.items() if item)}}}"
    return f"[{', '.join(map(_inline, value))}]" if isinstance(value, list) else toml_text(value)
