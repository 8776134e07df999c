"""The text file of rules: a section a runtime, a line a rule; only the section that is asked for is parsed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError, unknown_name
from eltwise.formats import files
from eltwise.targets.rules import FACTS, SEVERITIES, Rule, RuleSet, Scope

SHIPPED = Path(__file__).with_name("rules.toml")

_HEADER = """# What runtimes do otherwise than specified: measured by `eltwise targets --refresh`, read by people.
#
# A line is a rule: how severe | which fault | the facts for which it holds, each with the values that it may have.
# Several rules may hold for one node. Where none does, and the operator version was measured with the type, the
# runtime gives the exact bits. A rule that ends with `by = hand` is kept when the runtime is measured anew.
# docs/guides/check-and-repair.md explains the facts.

"""
_LARGEST_FILE = 1 << 24
_SECTION = re.compile(r"^\[([a-z][a-z-]*)\][ \t]*$", re.MULTILINE)
_SCOPE = ("op", "type", "broadcast", "rewrite")
_BAR = " | "


@cache
def shipped_rules(runtime: str) -> RuleSet:
    """The rules that come with the package, of one runtime.

    Raises:
        UnsupportedError: where nothing was measured of it.
    """
    return read_rules(SHIPPED, runtime)


def runtimes_in(path: Path) -> tuple[str, ...]:
    """The runtimes of which a file has rules.

    Raises:
        FileFormatError: where there is no such file.
    """
    return tuple(name for name in _sections(path) if name != "faults")


def read_rules(path: Path, runtime: str) -> RuleSet:
    """Read the rules of one runtime.

    Raises:
        FileFormatError: where there is no such file, or it holds something else, with the place in it.
        UnsupportedError: where the file has nothing of this runtime.
    """
    sections = _sections(path)
    if runtime not in sections:
        hint = f"measure it: eltwise targets --refresh --runtime {runtime}"
        raise UnsupportedError(f"nothing was measured of {runtime}", where=path.name, hint=hint)
    try:
        faults = tomllib.loads(sections.get("faults", "[faults]"))["faults"]
        values = tomllib.loads(sections[runtime])[runtime]
        return _rule_set(runtime, values, {name: _text(text, name) for name, text in faults.items()})
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError("not TOML", where=f"{path}, [{runtime}]", got=str(error)) from None
    except EltwiseError as error:
        raise error.located(where=f"{path}, [{runtime}]") from None


def write_rules(path: Path, rule_set: RuleSet) -> None:
    """Write the rules of one runtime into a file; what it has of other runtimes stays as it is.

    Raises:
        FileFormatError: where the file cannot be written.
    """
    sections = _sections(path) if path.exists() else {}
    faults = tomllib.loads(sections.get("faults", "[faults]"))["faults"] | dict(rule_set.faults)
    sections["faults"] = "\n".join(
        ["[faults]", *(f"{json.dumps(name)} = {json.dumps(faults[name])}" for name in sorted(faults))]
    )
    sections[rule_set.runtime] = _section(rule_set)
    text = _HEADER + "\n\n".join(section.strip() for section in sections.values()) + "\n"
    files.write_atomically(path, [text.encode()])


def _sections(path: Path) -> dict[str, str]:
    text = files.read_bytes(path, _LARGEST_FILE).decode(errors="replace")
    starts = [*_SECTION.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(starts, ends, strict=True)}


def _rule_set(runtime: str, values: Mapping[str, object], faults: Mapping[str, str]) -> RuleSet:
    texts = {name: _text(values.get(name, ""), name) for name in ("version", "machine", "date")}
    return RuleSet(
        runtime,
        **texts,
        file_versions=_numbers(values, "file_versions"),
        opsets=_numbers(values, "opsets"),
        scopes=tuple(_scope(_facts(line)) for line in _lines(values, "measured")),
        rules=tuple(_rule(line) for line in _lines(values, "rules")),
        faults=faults,
    )


def _scope(facts: Mapping[str, str]) -> Scope:
    ops, types, broadcasts, rewrites = (frozenset(facts.get(name, "").split()) for name in _SCOPE)
    return Scope(ops, types, broadcasts, rewrites)


def _rule(line: str) -> Rule:
    severity, _bar, rest = line.partition(_BAR)
    fault, _bar, rest = rest.partition(_BAR)
    for known in SEVERITIES:
        if known == severity:
            facts = _facts(rest)
            where = {name: frozenset(facts[name].split()) for name in FACTS if name in facts}
            return Rule(known, fault, where, facts.get("words", ""), by_hand=facts.get("by") == "hand")
    raise unknown_name("severity", severity, SEVERITIES)


def _facts(text: str) -> dict[str, str]:
    found = {}
    for part in text.split(_BAR) if text else ():
        name, equals, value = part.partition(" = ")
        if not equals or name not in (*FACTS, "words", "by"):
            raise unknown_name("fact", name, (*FACTS, "words", "by"))
        found[name] = value
    return found


def _section(found: RuleSet) -> str:
    fields = ("version", "machine", "date", "file_versions", "opsets")
    heads = (f"{name} = {json.dumps(getattr(found, name))}" for name in fields)
    measured = (_line({name: getattr(scope, f"{name}s") for name in _SCOPE}) for scope in found.scopes)
    parts = [("measured", measured), ("rules", map(_rule_line, found.rules))]
    texts = (f"{name} = '''\n" + "\n".join(lines) + "\n'''" for name, lines in parts)
    return "\n".join([f"[{found.runtime}]", *heads, *texts])


def _rule_line(rule: Rule) -> str:
    last = {"words": rule.words.replace("'''", '"').replace(_BAR, " "), "by": "hand" if rule.by_hand else ""}
    where = {name: rule.where[name] for name in FACTS if name in rule.where}
    return _BAR.join(filter(None, (rule.severity, rule.fault, _line({**where, **last}))))


def _line(facts: Mapping[str, str | frozenset[str]]) -> str:
    texts = ((name, text if isinstance(text, str) else " ".join(sorted(text))) for name, text in facts.items())
    return _BAR.join(f"{name} = {text}" for name, text in texts if text)


def _lines(values: Mapping[str, object], name: str) -> Iterator[str]:
    return (line.strip() for line in _text(values.get(name, ""), name).splitlines() if line.strip())


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise FileFormatError("not a text", operand=name, got=repr(value))
    return value


def _numbers(values: Mapping[str, object], name: str) -> tuple[int, ...]:
    found = values.get(name, [])
    if not isinstance(found, list) or not all(isinstance(number, int) for number in found):
        raise FileFormatError("not a list of whole numbers", operand=name, got=repr(found))
    return tuple(found)
