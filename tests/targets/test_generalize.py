"""Rules made of measurements tell every severity that was measured, in few boxes."""

from __future__ import annotations

from itertools import product

import numpy as np
from eltwise.targets.generalize import Key, Seen, rules_from

from eltwise.targets.rules import NODE_SELECTORS, PAIR_SELECTORS, SELECTORS, SEVERITIES, RuleSet, Severity

HEAD = ("Sub", "14", "numpy")
SOURCES = ("static", "a-constant", "neighbours")
PATTERNS = ("equal", "broadcast", "inside")


def told(rules: RuleSet, names: tuple[str, ...], key: Key) -> tuple[Severity | None, set[str]]:
    matches = rules.matches([dict(zip((*SELECTORS, *names), key, strict=True))])
    worst = matches[0].rule.severity if matches else None
    return worst, {match.rule.fault for match in matches if match.rule.severity == worst}


def nodes_of(severity: dict[tuple[str, str, str], Severity]) -> dict[Key, Seen]:
    found: dict[Key, Seen] = {}
    for kind, source, pattern in product(("uint8", "int8", "float32"), SOURCES, PATTERNS):
        worst = severity.get((kind, source, pattern))
        faults = frozenset({f"fault of {kind}"}) if worst else frozenset()
        found[(*HEAD, kind, "none", source, pattern)] = Seen(worst, faults)
    return found


def test_a_fault_everywhere_is_one_rule_and_a_fault_of_a_type_names_the_type() -> None:
    every = nodes_of(dict.fromkeys(product(("uint8", "int8", "float32"), SOURCES, PATTERNS), "refused"))
    one_fault = {key: Seen(seen.severity, frozenset({"refused"}), "no kernel") for key, seen in every.items()}
    (rule,) = rules_from(one_fault, {})
    assert (rule.where, rule.words) == ({}, "no kernel")
    (rule,) = rules_from(nodes_of({("uint8", *rest): "wrong values" for rest in product(SOURCES, PATTERNS)}), {})
    assert rule.where == {"type": {"uint8"}}


def test_any_measurements_are_told_exactly(seed: int) -> None:
    """What a node is beside must not be told twice: ``neighbours`` counts only where it is worse."""
    generator = np.random.default_rng(seed)
    for _number in range(20):
        choices: list[Severity | None] = [None, None, *SEVERITIES]
        severity = {
            key: choice
            for key in product(("uint8", "int8", "float32"), SOURCES, PATTERNS)
            if (choice := choices[int(generator.integers(len(choices)))])
        }
        nodes = nodes_of(severity)
        rules = RuleSet("r", rules=tuple(rules_from(nodes, {})))
        for key, seen in nodes.items():
            beside = [nodes[(*key[:-2], source, key[-1])].level for source in SOURCES[:2]]
            worst, faults = told(rules, NODE_SELECTORS, key)
            level = -1 if worst is None else SEVERITIES.index(worst)
            if key[-2] == "neighbours" and seen.level <= min(beside):
                assert level <= min(beside)
                continue
            assert worst == seen.severity
            assert bool(faults) == bool(worst)


def test_pairs_are_told_where_the_node_alone_is_less_severe() -> None:
    key = (*HEAD, "float32", "none")
    nodes = {(*key, source, "equal"): Seen() for source in ("static", "b-constant")}
    nodes[*HEAD, "int8", "none", "static", "equal"] = Seen("wrong values", frozenset({"saturation"}))
    left_out = Seen("sign of zero or NaN", frozenset({"constant left out"}))
    pairs = {(*key, "a", producer, "zero", "one", "known"): left_out for producer in ("none", "add")}
    pairs |= {(*key, "a", "add", "constant", "one", "known"): Seen()}
    pairs |= {(*HEAD, "int8", "none", "a", "add", "run-time", "one", "known"): Seen("precision", frozenset({"joined"}))}
    rules = RuleSet("r", rules=tuple(rules_from(nodes, pairs)))
    assert {rule.fault for rule in rules.rules} == {"saturation", "constant left out"}
    assert told(rules, PAIR_SELECTORS, (*key, "a", "none", "zero", "one", "known"))[0] == "sign of zero or NaN"
    assert told(rules, PAIR_SELECTORS, (*key, "a", "add", "constant", "one", "known"))[0] is None
    assert told(rules, NODE_SELECTORS, (*key, "static", "equal"))[0] is None
