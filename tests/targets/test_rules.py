"""Rules: which of them apply, what a file of them may hold, and that the shipped ones are whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eltwise.core.errors import FileFormatError, NameUnknownError, UnsupportedError
from eltwise.faults.families import FAMILIES
from eltwise.ops import registry
from eltwise.targets.rules import (
    FACTS,
    MEASURED_FACTS,
    SEVERITIES,
    SHIPPED,
    Rule,
    RuleSet,
    read_rules,
    runtimes_in,
    severity_named,
    shipped_rules,
    write_rules,
)

SATURATES = Rule("wrong values", "saturation", {"op": frozenset({"Sub"}), "pattern": frozenset({"equal", "broadcast"})})
SIGN = Rule("sign of zero or NaN", "zero_sign", {"type": frozenset({"float32"})})
RULES = RuleSet(
    "somewhere",
    "1.0 (CPU)",
    "a machine",
    "2026-11-22",
    (7, 8),
    (13, 14),
    frozenset({("Sub-14", "uint8", "numpy"), ("Sub-14", "float32", "numpy"), ("Sub-6", "float32", "legacy")}),
    (SATURATES, SIGN),
)
RUNTIMES = runtimes_in(SHIPPED)


def facts(**values: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(text.split()) for name, text in values.items()}


def test_a_rule_applies_where_every_fact_may_have_one_of_its_values() -> None:
    assert SATURATES.applies(facts(op="Sub", type="uint8", pattern="equal high-rank"))
    assert not SATURATES.applies(facts(op="Add", pattern="equal"))
    assert not SATURATES.applies(facts(op="Sub", type="uint8"))
    assert Rule("refused", "refused").applies({})


def test_of_each_fault_the_most_severe_rule_counts_and_the_worst_comes_first() -> None:
    rules = RuleSet("r", rules=(SIGN, Rule("precision", "saturation"), SATURATES))
    found = facts(op="Sub", type="float32", pattern="inside equal")
    assert rules.matches(found) == (SATURATES, SIGN)
    assert rules.without(["saturation"]).matches(found) == (SIGN,)


def test_severities_are_named_by_their_beginning() -> None:
    assert [severity_named(name) for name in ("sign", "precision", "wrong", "refused")] == list(SEVERITIES)
    for name in ("", "severe", "Wrong"):
        with pytest.raises(NameUnknownError, match="there is no severity"):
            severity_named(name)


def test_rules_are_read_as_they_were_written_and_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    write_rules(path, RULES)
    assert read_rules(path, "somewhere") == RULES
    refused = Rule("refused", "crashes", {}, "says {op} | it's '''odd'''", by_hand=True)
    write_rules(path, RuleSet("elsewhere", rules=(refused,)))
    assert runtimes_in(path) == ("somewhere", "elsewhere")
    (found,) = read_rules(path, "elsewhere").rules
    assert found == refused
    assert read_rules(path, "somewhere").rules == RULES.rules
    before = path.read_bytes()
    write_rules(path, read_rules(path, "elsewhere"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"wrong values"', '"bad"', "severity: this value cannot be read, got 'bad'; allowed: one of sign of zero"),
        (
            'op = ["Sub"]',
            'operator = ["Sub"]',
            "rules.0..where.operator: .*got 'operator'; allowed: one of op, version",
        ),
        ('op = ["Sub"]', 'op = "Sub"', "rules.0..where.op: this value cannot be read, got 'Sub'; allowed: a list"),
        (
            'version = "1.0 (CPU)"',
            "version = 1",
            "somewhere.version: this value cannot be read, got 1; allowed: a stri",
        ),
        ("opsets = [13, 14]", 'opsets = ["a"]', "opsets.0.: .*allowed: an integer that is not negative"),
        ("opsets = [13, 14]", "opsets = [-1]", "opsets.0.: .*got -1; allowed: an integer that is not negative"),
        ("opsets = [13, 14]", "opsets = [", "not TOML"),
        ("opsets = [13, 14]", "opset = [13, 14]", "somewhere: there is no field 'opset'.*did you mean 'opsets'"),
        ('"saturation"', '"Saturation"', "rules.0..fault: there is no fault 'Saturation'.*did you mean 'satu"),
    ],
)
def test_nothing_in_a_file_is_taken_on_trust(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    write_rules(path, RULES)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises((FileFormatError, NameUnknownError), match=words) as caught:
        read_rules(path, "somewhere")
    assert "rules.toml" in caught.value.where


def test_a_runtime_without_rules_and_a_file_that_is_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"nothing was measured of nowhere.*--refresh --runtime nowhere"):
        read_rules(SHIPPED, "nowhere")
    with pytest.raises(FileFormatError, match="there is no such file"):
        runtimes_in(tmp_path / "rules.toml")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_shipped_rules_are_whole_and_loaded_at_once(runtime: str) -> None:
    rules = shipped_rules(runtime)
    assert 0 < len(rules.rules) <= 150
    assert {rule.fault for rule in rules.rules} <= FAMILIES.keys()
    names = {f"{schema.name}-{schema.version}": schema for schema in registry.ELEMENTWISE}
    for op, element_type, _broadcast in rules.measured:
        assert element_type in [kind.name for kind in names[op].types]
    for rule in rules.rules:
        assert rule.where.keys() <= set(FACTS if rule.by_hand else MEASURED_FACTS)
        assert all(rule.where.values())
    times = []
    for _number in range(5):
        start = time.process_time()
        read_rules(SHIPPED, runtime)
        times.append(time.process_time() - start)
    assert min(times) < 0.1
