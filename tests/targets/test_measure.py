"""Runtimes are measured: every situation is asked for, what is wrong is found, and what was known stays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from eltwise.targets.cases import node_cases, pair_cases
from eltwise.targets.rules_file import read_rules, shipped_rules, write_rules

import eltwise
from eltwise import oracle, runtimes
from eltwise.cli.targets import targets
from eltwise.conformance.cases import Case
from eltwise.conformance.suite import Variant, variants
from eltwise.core.errors import AttributeValueError, NameUnknownError
from eltwise.runtimes import Host
from eltwise.runtimes.eltwise import Eltwise
from eltwise.targets import measure as measure_module
from eltwise.targets.check import TARGETS
from eltwise.targets.measure import Outcome, Request, measure, measure_variant, requested
from eltwise.targets.rules import Rule, RuleSet, Scope
from eltwise.targets.sites import Pair

OWN = runtimes.find("eltwise-numpy")
RULES = {"numpy": "Sub-14", "legacy": "Sub-6", "none": "Subtract-1", "pdpd": "SquaredDifference-1"}


def variant_of(op: str, element_type: str, rule: str) -> Variant:
    return next(
        found
        for found in variants()
        if (str(found.schema), found.element_type.name, found.rule) == (op, element_type, rule)
    )


class Saturating(Eltwise):
    """Runs everything right, but for results of uint32 below zero, which become zero."""

    def load(self, data: bytes, weights: bytes = b"") -> object:
        return _Saturated(super().load(data, weights))


class _Saturated:
    def __init__(self, right: object) -> None:
        self._right = right

    def bind(self, inputs: Sequence[np.ndarray], outputs: object = None) -> Callable[[], object]:
        run = self._right.bind(inputs, outputs)  # type: ignore[attr-defined]
        self._inputs = inputs
        return run  # type: ignore[no-any-return]

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


@pytest.mark.parametrize(("rule", "op"), RULES.items())
def test_every_pattern_is_asked_for_with_every_operand_source(rule: str, op: str) -> None:
    cases: dict[tuple[str, str], list[Case]] = {}
    for (source, pattern), case in node_cases(variant_of(op, "uint32", rule), 0):
        assert case.is_valid
        cases.setdefault((source, pattern), []).append(case)
    wanted = {"equal", "high-rank"} | ({"broadcast"} if rule != "none" else set())
    wanted |= {"inside"} if rule in ("legacy", "pdpd") else set()
    sources = {source for source, _pattern in cases}
    assert sources == {
        *("static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours"),
        "a-plain",
        "b-plain",
        "read-wider",
    }
    for source in sources:
        assert {pattern for found, pattern in cases if found == source} >= wanted
        assert ((source, "empty") in cases) == (source != "dynamic")
        # Every pair of hard numbers is asked for in some case of each pattern.
        for pattern in wanted:
            assert max(case.expected().size for case in cases[source, pattern]) >= 100


@pytest.mark.slow
def test_the_cases_of_a_pair_are_what_its_name_says() -> None:
    several = [
        variant_of("Sub-6", "float16", "legacy"),
        variant_of("Add-14", "float32", "numpy"),
        variant_of("Mul-14", "float64", "numpy"),
    ]
    for variant in several:
        seen: set[Pair] = set()
        for pair, case in list(pair_cases(variant, 0))[::3]:
            seen.add(pair)
            index = "ab".index(pair.operand)
            own, other = case.operands[index], case.operands[1 - index]
            producer = case.context.producer
            assert (producer == "Cast") == (pair.producer == "cast")
            assert (producer == "") == (pair.producer == "none")
            assert (1 - index in case.context.constants) == (pair.other != "run-time")
            assert (3 in case.context.constants) == pair.producer.endswith("-constant")
            assert (case.context.is_dynamic, case.context.is_shared) == (
                pair.sizes == "unknown",
                pair.readers == "several",
            )
            assert (pair.other in ("zero", "-zero", "zeros", "-zeros")) == (not other.astype(float).any())
            if producer == "Cast":
                assert oracle.same_bits(own, case.around[0].astype(own.dtype))
            elif producer:
                function = pair.producer.removesuffix("-constant")
                assert oracle.same_bits(own, oracle.evaluate(function, *case.around, rule="numpy"))
        assert {pair.producer.removesuffix("-constant") for pair in seen} >= {"none", "add", "multiply", "subtract"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "element_type", "rule"),
    [
        ("Sub-14", "float32", "numpy"),
        ("Add-6", "float16", "legacy"),
        ("Multiply-1", "int8", "pdpd"),
        ("SquaredDifference-1", "float16", "none"),
    ],
)
def test_eltwise_itself_is_right_in_every_situation(op: str, element_type: str, rule: str) -> None:
    """So that the models hold what the cases say."""
    with Host(OWN, 60.0) as host:
        nodes, pairs = measure_variant(host, variant_of(op, element_type, rule), 0)
    assert len(nodes) > 20
    assert len(pairs) > 40
    assert [key for key, seen in (nodes | pairs).items() if seen.severity] == []


@pytest.mark.slow
def test_what_a_runtime_gets_wrong_becomes_a_rule_and_what_was_known_stays() -> None:
    request = Request(("Sub-14",), ("uint32",))
    outcome = measure(planted("Saturating"), request, silent, None, only_missing=False)
    rules = outcome.rules
    assert (outcome.left, rules.opsets, rules.is_measured("Sub-14", "uint32", "numpy")) == (0, (14,), True)
    situation = {"op": "Sub", "version": "14", "broadcast": "numpy", "type": "uint32", "rewrite": "none"}
    (match, *_more) = rules.matches([{**situation, "source": "static", "pattern": "equal"}])
    assert match.rule.severity == "wrong values"
    by_hand = Rule("refused", "by a person", {"op": frozenset({"Add"})}, by_hand=True)
    other = Scope(frozenset({"Mul-14"}), frozenset({"uint32"}), frozenset({"numpy"}), frozenset({"none"}))
    slow = Rule("precision", "float32 arithmetic", {"op": frozenset({"Mul"})})
    of_sub = (replace(rule, where={**rule.where, "op": frozenset({"Sub"})}) for rule in rules.rules)
    known = replace(rules, rules=(*of_sub, slow, by_hand), scopes=(*rules.scopes, other))
    again = measure(planted("Saturating"), Request(("Add-14",), ("uint32",)), silent, known, only_missing=True).rules
    assert by_hand in again.rules
    for op, fault in (("Sub", match.rule.fault), ("Mul", "float32 arithmetic")):
        found = again.matches([{**situation, "op": op, "source": "static", "pattern": "equal"}])
        assert found[0].rule.fault == fault
    assert again.is_measured("Add-14", "uint32", "numpy")
    assert requested(planted("Saturating"), Request(("Add-14",), ("uint32",)), again) == []


@pytest.mark.slow
def test_what_was_measured_is_kept_when_it_is_interrupted() -> None:
    def stop(done: int, _total: int, _text: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    request = Request(("Sub-13", "Sub-14"), ("int32",))
    outcome = measure(replace(OWN, domains=("ai.onnx",)), request, stop, None, only_missing=False)
    assert (outcome.left, [scope.ops for scope in outcome.rules.scopes]) == (1, [{"Sub-13"}])


def test_ctrl_c_says_what_became_of_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rules.toml"
    scope = Scope(frozenset({"Sub-14"}), frozenset({"int8"}), frozenset({"numpy"}), frozenset({"none"}))
    monkeypatch.setattr(runtimes, "find", lambda name: next(one for one in runtimes.RUNTIMES if one.name == name))

    def interrupted(outcome: Outcome) -> str:
        monkeypatch.setattr(measure_module, "measure", lambda *_arguments, **_named: outcome)
        with pytest.raises(typer.Exit) as caught:
            targets(refresh=True, runtime=["onnxruntime"], table=path)
        assert caught.value.exit_code == 130
        return capsys.readouterr().err

    nothing = Outcome(RuleSet("onnxruntime", "1"), 7)
    assert interrupted(nothing) == f"interrupted: nothing was measured of onnxruntime, and {path} is as it was\n"
    assert not path.exists()
    said = interrupted(Outcome(RuleSet("onnxruntime", "1", scopes=(scope,)), 5))
    assert said == f"interrupted: what was measured of onnxruntime is in {path}; 5 tests were not run\n"
    assert read_rules(path, "onnxruntime").scopes == (scope,)


def test_what_nothing_has_is_not_measured(tmp_path: Path) -> None:
    for runtime, op, kind in (("onnxruntime", "Sub-1", "int8"), ("openvino", "Sub-14", "int8")):
        with pytest.raises(AttributeValueError, match="nothing is left to measure"):
            targets(refresh=True, runtime=[runtime], op=[op], type_=[kind], table=tmp_path / "rules.toml")
    with pytest.raises(NameUnknownError, match="there is no runtime 'ort'"):
        targets(refresh=True, runtime=["ort"], table=tmp_path / "rules.toml")
    with pytest.raises(AttributeValueError, match="add --refresh"):
        targets(op=["Sub-14"])


def test_what_was_measured_is_told(cli: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, printed, _said = cli("targets")
    assert code == 0
    assert "openvino-onnx" in printed
    write_rules(tmp_path / "rules.toml", shipped_rules("openvino"))
    code, printed, _said = cli("targets", "--table", tmp_path / "rules.toml", "--json")
    (told,) = json.loads(printed)
    assert (told["runtime"], told["version"]) == ("openvino", shipped_rules("openvino").version)
    assert sum(told["rules"].values()) == len(shipped_rules("openvino").rules)
    assert cli("targets", "--table", tmp_path / "nothing.toml")[0] == 2


def test_every_runtime_of_a_target_is_one_that_loads_models() -> None:
    names = {runtime.name: runtime for runtime in runtimes.RUNTIMES}
    for of_target in TARGETS.values():
        for domain, name in of_target.items():
            assert names[name].loads_models
            assert domain in names[name].domains
