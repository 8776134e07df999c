"""Runtimes are measured: every context is asked for, what is wrong becomes rules, and what was known stays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import eltwise
from eltwise import runtimes
from eltwise.conformance.compare import References
from eltwise.conformance.variants import Variant, variants
from eltwise.core.progress import no_progress
from eltwise.runtimes import Host
from eltwise.runtimes.eltwise import Eltwise
from eltwise.runtimes.registry import BOTH, adapter_of
from eltwise.targets import measure as measure_module
from eltwise.targets.measure import cases_of, measure, measure_variant, requested
from eltwise.targets.plan import TargetName
from eltwise.targets.rule_search import Key, Seen, rules_from
from eltwise.targets.rules import (
    MEASURED_FACTS,
    SEVERITIES,
    SHIPPED,
    Rule,
    RuleSet,
    Severity,
    level,
    read_rules,
    runtimes_in,
    shipped_rules,
    write_rules,
)

OWN = runtimes.find("eltwise-numpy")


def variant_of(op: str, element_type: str, rule: str) -> Variant:
    wanted = (op, element_type, rule)
    return next(one for one in variants() if (str(one.schema), one.element_type.name, one.rule) == wanted)


class Saturating(Eltwise):
    """Runs everything right, but for results of uint32 below zero, which become zero."""

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> object:  # type: ignore[override]
        return _Saturated(super().load(data, weights, path))


class _Saturated:
    def __init__(self, right: object) -> None:
        self._right = right

    def bind(self, inputs: Sequence[np.ndarray], outputs: object = None) -> Callable[[], object]:
        return self._right.bind(inputs, outputs)  # type: ignore[attr-defined]

    def arrays(self, result: object) -> list[np.ndarray]:
        arrays = [np.asarray(array) for array in self._right.arrays(result)]  # type: ignore[attr-defined]
        half = np.uint32(1) << np.uint32(31)
        return [np.where(array >= half, np.uint32(0), array) if array.dtype == np.uint32 else array for array in arrays]


def planted(adapter: str) -> runtimes.Runtime:
    folders = (Path(eltwise.__file__).parent.parent, Path(__file__).parents[1], Path(__file__).parent)
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    return replace(OWN, adapter=f"test_measure:{adapter}", environment=environment, domains=("ai.onnx",))


@pytest.fixture(autouse=True)
def _no_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are loaded one by one; another test does that."""
    monkeypatch.setattr(measure_module, "_loaded_versions", lambda _host: ((7,), (14,)))


def silent(_done: int, _total: int, _text: str) -> None: ...


@pytest.mark.parametrize(
    ("rule", "op"), {"numpy": "Sub-14", "legacy": "Sub-6", "none": "Subtract-1", "pdpd": "SquaredDifference-1"}.items()
)
def test_every_pattern_is_asked_for_with_every_operand_source(rule: str, op: str) -> None:
    wanted = {"equal", "high-rank"} | ({"broadcast"} if rule != "none" else set())
    wanted |= {"inside"} if rule in ("legacy", "pdpd") else set()
    found: dict[str, set[str]] = {}
    for (source, pattern), case in cases_of(variant_of(op, "uint32", rule)):
        assert case.is_valid
        found.setdefault(source, set()).add(pattern)
        # Every pair of hard numbers is asked for in equal shapes.
        assert pattern != "equal" or case.expected().size >= 1000
    plain = {"a-plain", "b-plain", "read-wider"}
    assert found.keys() == {"static", "dynamic", "a-constant", "b-constant", "both-constant", *plain}
    for source, patterns in found.items():
        assert patterns >= wanted
        assert patterns.issuperset(("empty", "empty-list")) == (source != "dynamic")


@pytest.mark.slow
def test_eltwise_itself_is_right_in_every_context() -> None:
    """So that the models hold what the cases say."""
    asked = [("Sub-14", "float32", "numpy"), ("Add-6", "float16", "legacy"), ("Multiply-1", "int8", "pdpd")]
    with Host(OWN, 60.0) as host:
        for op, element_type, rule in [*asked, ("Less-13", "int32", "numpy"), ("Max-13", "float64", "numpy")]:
            found = measure_variant(host, variant_of(op, element_type, rule), References())
            assert len(found) > 20
            assert [key for key, seen in found.items() if seen.severity] == []


@pytest.mark.slow
def test_what_a_runtime_gets_wrong_becomes_a_rule_and_what_was_known_stays() -> None:
    runtime = planted("Saturating")
    rules, left = measure(runtime, requested(runtime, ["Sub-14"], ["uint32"]), silent, None)
    assert (left, rules.opsets, rules.measured) == (0, (14,), {("Sub-14", "uint32", "numpy")})
    facts = {
        "op": "Sub",
        "version": "14",
        "broadcast": "numpy",
        "type": "uint32",
        "source": "static",
        "pattern": "equal",
    }

    def told(rules: RuleSet, op: str) -> tuple[Severity, str]:
        found = rules.matches({name: frozenset({value}) for name, value in {**facts, "op": op}.items()})
        return found[0].severity, found[0].fault

    assert told(rules, "Sub")[0] == "wrong values"
    by_hand = Rule("refused", "by a person", {"op": frozenset({"Add"}), "producer": frozenset({"cast"})}, by_hand=True)
    slow = Rule("precision", "float32_arithmetic", {"op": frozenset({"Mul"})})
    of_sub = (replace(rule, where={**rule.where, "op": frozenset({"Sub"})}) for rule in rules.rules)
    known = replace(rules, rules=(*of_sub, slow, by_hand), measured=rules.measured | {("Mul-14", "uint32", "numpy")})
    again, _left = measure(runtime, requested(runtime, ["Add-14"], ["uint32"]), no_progress, known)
    assert by_hand in again.rules
    assert told(again, "Sub") == told(rules, "Sub")
    assert told(again, "Mul") == ("precision", "float32_arithmetic")
    assert ("Add-14", "uint32", "numpy") in again.measured


@pytest.mark.parametrize("version", ["another", None])
def test_rules_written_by_hand_survive_a_refresh_as_such(version: str | None, tmp_path: Path) -> None:
    """They stay what they were and become no measurement, whether or not the version is the one that was measured."""
    by_hand = Rule("wrong values", "saturation", {"op": frozenset({"Sub"})}, by_hand=True)
    measured = Rule("precision", "float32_arithmetic", {"op": frozenset({"Sub"})})
    before, _left = measure(OWN, [], silent, None)
    scopes = frozenset({("Sub-14", "uint8", "numpy")})
    known = replace(before, version=version or before.version, measured=scopes, rules=(measured, by_hand))
    write_rules(tmp_path / "rules.toml", known)
    again, _left = measure(OWN, [], silent, read_rules(tmp_path / "rules.toml", OWN.name))
    assert [rule for rule in again.rules if rule.by_hand] == [by_hand]
    assert {rule.fault for rule in again.rules if not rule.by_hand} == ({measured.fault} if version is None else set())
    write_rules(tmp_path / "rules.toml", again)
    assert read_rules(tmp_path / "rules.toml", OWN.name) == again


@pytest.mark.slow
def test_what_was_measured_is_kept_when_it_is_interrupted() -> None:
    def stop(done: int, _total: int, _text: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    rules, left = measure(OWN, requested(OWN, ["Sub-13", "Sub-14"], ["int32"]), stop, None)
    assert (left, rules.measured) == (1, {("Sub-13", "int32", "numpy")})


def test_any_measurements_are_told_in_few_rules(seed: int) -> None:
    """Every severity is told exactly, but that values are as wrong in other shapes as in equal ones."""
    generator, sources, patterns = np.random.default_rng(seed), ("static", "dynamic"), ("equal", "broadcast", "inside")
    head, types = ("Sub", "14", "numpy"), ("uint8", "int8", "float32")
    for number in range(22):
        seen: dict[Key, Seen] = {}
        for kind, source, pattern in product(types, sources, patterns):
            choice = int(generator.integers(2 * len(SEVERITIES)))
            severity = SEVERITIES[choice] if choice < len(SEVERITIES) else None
            if number < 2:  # A fault everywhere, and a fault of a type.
                severity = "refused" if number == 0 or kind == "uint8" else None
            faults = frozenset({"a fault" if number == 0 else f"fault of {kind}"}) if severity else frozenset[str]()
            seen[(*head, kind, source, pattern)] = Seen(severity, faults, "no kernel" if severity == "refused" else "")
        made = RuleSet("r", rules=tuple(rules_from(seen)))
        if number < 2:
            (rule,) = made.rules
            assert (rule.where, rule.message) == ({} if number == 0 else {"type": {"uint8"}}, "no kernel")
        for key, one in seen.items():
            facts = {name: frozenset({value}) for name, value in zip(MEASURED_FACTS, key, strict=True)}
            worst = max((level(rule.severity) for rule in made.matches(facts)), default=-1)
            equal = seen[(*key[:-1], "equal")].severity
            most = -1 if equal == "refused" else level(equal)
            assert level(one.severity) <= worst <= max(level(one.severity), most)


def test_ctrl_c_says_what_became_of_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "rules.toml"
    monkeypatch.setattr(runtimes, "find", lambda name: next(one for one in runtimes.RUNTIMES if one.name == name))

    def interrupted(rules: RuleSet, left: int) -> str:
        monkeypatch.setattr(measure_module, "measure", lambda *_arguments, **_named: (rules, left))
        code, _out, err = cli("targets", "--refresh", "--runtime", "onnxruntime", "--table", path)
        assert code == 130
        return err

    said = interrupted(RuleSet("onnxruntime", "1"), 7)
    assert said == f"interrupted: nothing was measured of onnxruntime, and {path} is as it was\n"
    assert not path.exists()
    measured = frozenset({("Sub-14", "int8", "numpy")})
    said = interrupted(RuleSet("onnxruntime", "1", measured=measured), 5)
    assert said == f"interrupted: what was measured of onnxruntime is in {path}; not run: 5 tests\n"
    assert read_rules(path, "onnxruntime").measured == measured


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--refresh", "--runtime", "onnxruntime", "--op", "Sub-1", "--type", "int8"],
            "has nothing of this to measure",
        ),
        (["--refresh", "--runtime", "openvino", "--op", "Sub-14", "--type", "int8"], "has nothing of this to measure"),
        (["--refresh", "--runtime", "ort"], "there is no runtime 'ort'"),
        (["--op", "Sub-14"], "add --refresh"),
    ],
)
def test_what_nothing_has_is_not_measured(
    arguments: list[str], words: str, tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    code, _out, err = cli("targets", *arguments, "--table", tmp_path / "rules.toml")
    assert code == 2
    assert words in err


def test_what_was_measured_is_told(cli: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, printed, _said = cli("targets")
    assert code == 0
    assert "openvino-onnx" in printed
    write_rules(tmp_path / "rules.toml", shipped_rules("openvino"))
    code, printed, _said = cli("targets", "--table", tmp_path / "rules.toml", "--json")
    (told,) = json.loads(printed)["runtimes"]
    assert (told["runtime"], told["version"]) == ("openvino", shipped_rules("openvino").version)
    assert sum(told["rules"].values()) == len(shipped_rules("openvino").rules)
    assert cli("targets", "--table", tmp_path / "nothing.toml")[0] == 2


def test_the_runtimes_that_rules_are_of_are_those_of_the_targets() -> None:
    """Each format of a target has a runtime that loads it, and rules."""
    names = set()
    for target in get_args(TargetName):
        for domain in BOTH:
            runtime = adapter_of(target, domain)
            if runtime is not None and domain in runtime.domains:
                assert runtime.loads_models
                names.add(runtime.name)
    assert names == {*runtimes_in(SHIPPED)} == {"onnxruntime", "openvino", "openvino-onnx"}
