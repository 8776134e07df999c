"""The errors: one sentence made of fields, the same for people and for programs."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest

from eltwise.core import errors
from eltwise.core.errors import (
    AttributeValueError,
    EltwiseError,
    ManyProblemsError,
    NameUnknownError,
    ShapeError,
    raise_all,
    unknown_name,
)

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EltwiseError)]
FIELDS = {
    "where": "model.onnx",
    "operator": "Sub-6",
    "node": "minus",
    "operand": "operand B ('y')",
    "got": "4",
    "allowed": "3",
    "hint": "reshape it first",
}


@pytest.mark.parametrize("sign", ["\n", "\r", "\x0b", "\x85", "\u2028", "\x1b"])
def test_a_name_with_a_line_break_stays_on_one_line(sign: str) -> None:
    for name in ("problem", *FIELDS):
        error = ShapeError(**{"problem": "it is wrong", name: f"a{sign}b"})
        assert len(str(error).splitlines()) == 1
        assert sign not in str(error)
        assert repr(sign)[1:-1] in str(error)
        both = ManyProblemsError([error, ShapeError("it is wrong, too")], where=f"a{sign}b")
        assert len(str(both).splitlines()) == 3
        assert error.to_dict()["sentence"] == str(error)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ("", "it is wrong"),
        ("operator node", "Sub-6 node 'minus': it is wrong"),
        ("operator operand", "Sub-6, operand B ('y'): it is wrong"),
        ("where operand", "model.onnx: operand B ('y'): it is wrong"),
        ("where operator node operand", "model.onnx: Sub-6 node 'minus', operand B ('y'): it is wrong"),
        ("got allowed hint", "it is wrong, got 4; allowed: 3; reshape it first"),
        (
            "where operator node operand got allowed hint",
            "model.onnx: Sub-6 node 'minus', operand B ('y'): it is wrong, got 4; allowed: 3; reshape it first",
        ),
    ],
)
def test_the_sentence_is_made_of_the_fields_that_are_there(fields: str, sentence: str) -> None:
    error = ShapeError("it is wrong", **{name: FIELDS[name] for name in fields.split()})
    assert str(error) == sentence


@pytest.mark.parametrize("name", ["problem", *FIELDS])
def test_a_name_of_any_length_makes_a_sentence_that_can_be_read(name: str) -> None:
    """Files hold names of megabytes; programs get all of them."""
    text = f"begin{'x' * 10**6}end"
    error = ShapeError(**{"problem": "it is wrong", name: text})
    assert error.to_dict()[name] == text
    for sentence in (str(error), error.to_dict()["sentence"]):
        assert len(sentence) < 2100
        assert "begin" in sentence
        assert "xend" in sentence


def test_every_set_of_fields_makes_one_line_that_says_each() -> None:
    for count in range(len(FIELDS) + 1):
        for names in itertools.combinations(FIELDS, count):
            chosen = {name: FIELDS[name] for name in names}
            error = EltwiseError("it is wrong", **chosen)
            sentence = str(error)
            assert all(value in sentence for value in chosen.values())
            assert not any(value in sentence for name, value in FIELDS.items() if name not in names and len(value) > 1)
            assert error.to_dict() == {"kind": "EltwiseError", "problem": "it is wrong", **chosen, "sentence": sentence}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not ManyProblemsError])
def test_every_kind_survives_copying_and_pickling(kind: type[EltwiseError]) -> None:
    assert kind.__doc__
    error = kind("it is wrong", where="a.npy", operand="axis", got="4")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(other) is kind
        assert other is not error
        assert other.to_dict() == error.to_dict()
        assert (str(other), other.args) == (str(error), error.args)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_made_without_its_arguments(kind: type[EltwiseError]) -> None:
    """So tblib does it, with which Dask passes errors on."""
    made = kind.__new__(kind)
    assert type(made) is kind


def test_the_place_that_is_nearest_to_the_cause_wins() -> None:
    error = ShapeError("it is wrong", operand="operand A")
    assert error.located(operator="Sub-6", operand="operand B") is error
    error.located(operator="Sub-7", node="minus", where="inner.onnx").located(where="outer.onnx")
    assert str(error) == "inner.onnx: Sub-6 node 'minus', operand A: it is wrong"


def test_problems_are_raised_alone_or_together() -> None:
    raise_all([])
    one, two = ShapeError("first", node="p"), AttributeValueError("second", got="3")
    with pytest.raises(ShapeError) as alone:
        raise_all([one])
    assert alone.value is one
    with pytest.raises(ManyProblemsError) as together:
        raise_all([one, two])
    error = together.value
    assert error.problems == (one, two)
    assert str(error) == "2 problems:\n  1. node 'p': first\n  2. second, got 3"
    assert str(error.located(where="model.onnx")).startswith("model.onnx: 2 problems:\n")


def test_many_problems_survive_pickling() -> None:
    error = ManyProblemsError([ShapeError("first", node="p"), EltwiseError("second")], where="model.onnx")
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301
        assert type(other) is ManyProblemsError
        assert [problem.to_dict() for problem in other.problems] == [problem.to_dict() for problem in error.problems]
        assert str(other) == str(error)
        assert other.to_dict() == error.to_dict()


@pytest.mark.parametrize(
    ("got", "known", "hint"),
    [
        ("brodcast", ["axis", "broadcast"], "did you mean 'broadcast'?"),
        ("AXIS", ["axis", "broadcast"], "did you mean 'axis'?"),
        ("sub-6", ["Sub-1", "Sub-6", "Sub-7"], "did you mean 'Sub-6'?"),
        ("Substract-1", ["Sub-1", "Subtract-1"], "did you mean 'Subtract-1'?"),
        ("zzz", ["axis", "broadcast"], ""),
        ("", ["axis"], ""),
        ("axis", [], ""),
    ],
)
def test_unknown_names_come_with_the_nearest_known_one(got: str, known: list[str], hint: str) -> None:
    error = unknown_name("attribute", got, iter(known), operator="Sub-6")
    assert isinstance(error, NameUnknownError)
    assert (error.problem, error.hint) == (f"there is no attribute {got!r}", hint)
    assert error.allowed == (", ".join(known) or "none")
    assert str(error).startswith(f"Sub-6: there is no attribute {got!r}; allowed: ")
