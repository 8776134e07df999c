"""Measured rules: what a runtime does otherwise than specified, at which op sites, and how severe that is.

``rules.toml`` holds them, a section for each runtime and a line for each rule.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from eltwise.conformance.json_fields import Fields
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError, unknown_name
from eltwise.faults.families import CRASHES, HANGS, REFUSED, sentence_of
from eltwise.formats import files

SHIPPED = Path(__file__).with_name("rules.toml")

Severity = Literal["sign of zero or NaN", "precision", "wrong values", "refused"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""What a finding means for a model, from the least to the most severe."""

DEFAULT_SEVERITY: Severity = "wrong values"
"""From this severity on a finding counts."""

MEASURED_FACTS = ("op", "version", "broadcast", "type", "source", "pattern")
FACTS = (*MEASURED_FACTS, "producer", "constant", "upcast")
"""What a rule may be about; those beyond the measured ones are for rules that a person writes."""

Facts = Mapping[str, frozenset[str]]
"""What may hold for an op site: the possible values of each fact."""

REFUSALS = (REFUSED, HANGS, CRASHES)
"""Faults that cannot be allowed, since there is no result."""

_SCOPE = ("op", "type", "broadcast")
_HEADS = ("version", "machine", "date", "file_versions", "opsets")
_LARGEST_FILE = 1 << 24
_BAR = " | "
_HEADER = """# What runtimes do otherwise than specified: measured by `eltwise targets --refresh`, reviewed by people.
#
# A line is a rule: severity | fault | the facts for which it holds, each with its values. Several rules may hold for a
# node. If none does, and the operator version was measured with the type, the runtime gives the exact bits. A rule that
# ends with `by = hand` is kept when the runtime is measured again. docs/guides/check-and-repair.md explains the facts.
"""


@dataclass(frozen=True)
class Rule:
    """One thing that a runtime does otherwise than specified.

    Attributes:
        severity: what it means for a model.
        fault: the slug of the family of faults.
        where: by fact, the values for which the rule applies; a fact that is not named may have any value.
        words: what the runtime itself says if it refuses; ``{op}`` stands for the operator.
        by_hand: whether a person wrote it; ``eltwise targets --refresh`` keeps it as it is.
    """

    severity: Severity
    fault: str
    where: Facts = field(default_factory=dict)
    words: str = ""
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

    runtime: str
    version: str = ""
    machine: str = ""
    date: str = ""
    file_versions: tuple[int, ...] = ()
    opsets: tuple[int, ...] = ()
    measured: frozenset[tuple[str, ...]] = frozenset()
    rules: tuple[Rule, ...] = ()

    @property
    def number(self) -> str:
        """The version without what is said of settings."""
        return self.version.partition(" ")[0]

    def matches(self, facts: Facts) -> tuple[Rule, ...]:
        """The rules that apply, the most severe first, one for each fault."""
        applying = sorted((rule for rule in self.rules if rule.applies(facts)), key=lambda rule: -level(rule.severity))
        found: dict[str, Rule] = {}
        for rule in applying:
            found.setdefault(rule.fault, rule)
        return tuple(found.values())

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
    found = [known for known in SEVERITIES if name and known.startswith(name)]
    if len(found) != 1:
        raise unknown_name("severity", name, SEVERITIES)
    return found[0]


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
    found = [tuple(frozenset({value}) for value in key) for key in keys]
    for axis in order:
        joined: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        for box in found:
            rest = (*box[:axis], *box[axis + 1 :])
            joined[rest] = joined.get(rest, frozenset()) | box[axis]
        found = [(*rest[:axis], values, *rest[axis:]) for rest, values in joined.items()]
    return found


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
    return tuple(_document(path))


def read_rules(path: Path, runtime: str) -> RuleSet:
    """Read the rules of one runtime.

    Raises:
        FileFormatError: if there is no such file, or it holds something else, with the place in it.
        UnsupportedError: if the file has nothing of this runtime.
    """
    document = _document(path)
    if runtime not in document:
        hint = f"measure it: eltwise targets --refresh --runtime {runtime}"
        raise UnsupportedError(f"nothing was measured of {runtime}", where=path.name, hint=hint)
    try:
        values = Fields(document[runtime], f"[{runtime}]")
        return RuleSet(
            runtime,
            version=values.take("version", str, ""),
            machine=values.take("machine", str, ""),
            date=values.take("date", str, ""),
            file_versions=values.each("file_versions", int),
            opsets=values.each("opsets", int),
            measured=frozenset(key for line in _lines(values, "measured") for key in _scope_keys(_facts(line))),
            rules=tuple(map(_rule, _lines(values, "rules"))),
        )
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def write_rules(path: Path, rule_set: RuleSet) -> None:
    """Write the rules of one runtime into a file; what it has of other runtimes stays as it is.

    Raises:
        FileFormatError: if the file cannot be written.
    """
    known = {name: read_rules(path, name) for name in (runtimes_in(path) if path.exists() else ())}
    known[rule_set.runtime] = rule_set
    text = "\n\n".join([_HEADER.strip(), *map(_section, known.values())]) + "\n"
    files.write_atomically(path, [text.encode()])


def _document(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(files.read_bytes(path, _LARGEST_FILE).decode(errors="replace"))
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError("not TOML", where=str(path), got=str(error)) from None


def _scope_keys(facts: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    keys: list[tuple[str, ...]] = [()]
    for name in _SCOPE:
        keys = [(*key, value) for key in keys for value in facts.get(name, "").split()]
    yield from keys


def _rule(line: str) -> Rule:
    severity, fault, rest = [*line.split(_BAR, 2), "", ""][:3]
    if severity not in SEVERITIES:
        raise unknown_name("severity", severity, SEVERITIES)
    sentence_of(fault)
    facts = _facts(rest)
    where = {name: frozenset(facts[name].split()) for name in FACTS if name in facts}
    return Rule(severity_named(severity), fault, where, facts.get("words", ""), by_hand=facts.get("by") == "hand")


def _facts(text: str) -> dict[str, str]:
    found = {}
    for part in text.split(_BAR) if text else ():
        name, equals, value = part.partition(" = ")
        if not equals or name not in (*FACTS, "words", "by"):
            raise unknown_name("fact", name, (*FACTS, "words", "by"))
        found[name] = value
    return found


def _section(rules: RuleSet) -> str:
    heads = [f"{name} = {json.dumps(getattr(rules, name))}" for name in _HEADS]
    scopes = (dict(zip(_SCOPE, box, strict=True)) for box in boxes(sorted(rules.measured), (1, 0, 2)))
    measured = [_line(scope) for scope in scopes]
    lines = ["measured = '''", *measured, "'''", "rules = '''", *map(_rule_line, rules.rules), "'''"]
    return "\n".join([f"[{rules.runtime}]", *heads, *lines])


def _rule_line(rule: Rule) -> str:
    last = {"words": rule.words.replace("'''", '"').replace(_BAR, " "), "by": "hand" if rule.by_hand else ""}
    where = {name: rule.where[name] for name in FACTS if name in rule.where}
    return _BAR.join(filter(None, (rule.severity, rule.fault, _line({**where, **last}))))


def _line(facts: Mapping[str, str | frozenset[str]]) -> str:
    texts = ((name, text if isinstance(text, str) else " ".join(sorted(text))) for name, text in facts.items())
    return _BAR.join(f"{name} = {text}" for name, text in texts if text)


def _lines(values: Fields, name: str) -> list[str]:
    return [line.strip() for line in values.take(name, str, "").splitlines() if line.strip()]
