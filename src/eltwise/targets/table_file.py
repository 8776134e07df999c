"""The table as a file: JSON, a line a subject; what is read is checked.

Each answer and each circumstance of a measurement is written once, and a subject says by their numbers what it was
asked in: the answer that most of its circumstances have, and for the other answers which have those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar, get_args

from eltwise.conformance.json_fields import Fields, read_object
from eltwise.core.errors import EltwiseError
from eltwise.formats import files
from eltwise.passes.company import Company, all_companies
from eltwise.passes.places import Layout, Surroundings
from eltwise.targets.spans import numbers_of, spans_of
from eltwise.targets.table import KINDS, SHIPPED, WAYS, Answer, Circumstance, Measurement, Subject, Table

_HEADER = ("runtime", "version", "machine", "date", "seed", "extent")
_SURROUNDINGS: tuple[Surroundings, ...] = get_args(Surroundings)
_LAYOUTS: tuple[Layout, ...] = get_args(Layout)
_COMPANIES: dict[str, Circumstance] = {str(company): company for company in all_companies()}
Known = TypeVar("Known")


@cache
def shipped_table() -> Table:
    """The table that comes with the package.

    Raises:
        FileFormatError: where it is not there or cannot be read.
    """
    return read_table(SHIPPED)


def read_table(path: Path) -> Table:
    """Read a table.

    Raises:
        FileFormatError: where there is no such file or it holds no table, with the place in it.
    """
    try:
        return Table(tuple(_measurement(item) for item in read_object(path).items("measurements", "measurement")))
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def write_table(table: Table, path: Path) -> None:
    """Write a table, beside its place first; the same table gives the same bytes.

    Raises:
        FileFormatError: where it cannot be written.
    """
    parts = ",\n".join(_text(measurement) for measurement in table.measurements)
    files.write_atomically(path, [f'{{"measurements": [\n{parts}\n]}}\n'.encode()])


def _text(measurement: Measurement) -> str:
    answers: dict[Answer, int] = {}
    circumstances: dict[Circumstance, int] = {}
    subjects = [
        json.dumps(_subject(subject, found, answers, circumstances))
        for subject, found in measurement.answers.items()
        if found
    ]
    head = {name: getattr(measurement, name) for name in _HEADER}
    head |= {"file_versions": list(measurement.file_versions), "opsets": list(measurement.opsets)}
    parts = {
        "answers": [_answer_text(answer) for answer in answers],
        "circumstances": [json.dumps(_named(circumstance)) for circumstance in circumstances],
        "subjects": subjects,
    }
    lines = (f'"{name}": [\n' + ",\n".join(texts) + "\n]" for name, texts in parts.items())
    return f"{json.dumps(head)[:-1]}, {', '.join(lines)}}}"


def _answer_text(answer: Answer) -> str:
    return json.dumps({"kind": answer.kind, "reasons": list(answer.reasons), "words": answer.words})


def _subject(
    subject: Subject,
    found: Mapping[Circumstance, Answer],
    answers: dict[Answer, int],
    circumstances: dict[Circumstance, int],
) -> dict[str, object]:
    """A subject's line; answers and circumstances that were not there before get a number."""
    places: dict[int, list[int]] = {}
    for circumstance, answer in found.items():
        number = answers.setdefault(answer, len(answers))
        places.setdefault(number, []).append(circumstances.setdefault(circumstance, len(circumstances)))
    usual = max(places, key=lambda number: len(places[number]))
    return {
        "op": subject.op,
        "dtype": subject.element_type,
        "broadcast": subject.rule,
        "way": subject.way,
        "asked": spans_of(circumstances[circumstance] for circumstance in found),
        "answer": usual,
        "others": {str(number): spans_of(of_it) for number, of_it in places.items() if number != usual},
    }


def _named(circumstance: Circumstance) -> str:
    return str(circumstance) if isinstance(circumstance, Company) else "/".join(circumstance)


def _measurement(fields: Fields) -> Measurement:
    answers = [
        Answer(item.choice("kind", KINDS), item.words("reasons"), item.text("words"))
        for item in fields.items("answers", "answer")
    ]
    circumstances = tuple(_circumstance(text, fields) for text in fields.words("circumstances"))
    found = {}
    for item in fields.items("subjects", "subject"):
        subject = Subject(item.text("op"), item.text("dtype"), item.text("broadcast"), item.choice("way", WAYS, ""))
        found[subject] = _answers(item, answers, circumstances)
    return Measurement(
        runtime=fields.text("runtime"),
        version=fields.text("version"),
        machine=fields.text("machine", ""),
        date=fields.text("date", ""),
        seed=fields.count("seed", 0),
        extent=fields.text("extent", ""),
        file_versions=fields.counts("file_versions"),
        opsets=fields.counts("opsets"),
        answers=found,
    )


def _answers(
    fields: Fields, answers: Sequence[Answer], circumstances: Sequence[Circumstance]
) -> dict[Circumstance, Answer]:
    asked = _numbers(fields, "asked", circumstances)
    found = dict.fromkeys(asked, _numbered(fields, "answer", str(fields.count("answer")), answers))
    others = fields.inner("others")
    for name in others:
        answer = _numbered(others, name, name, answers)
        for circumstance in _numbers(others, name, circumstances):
            if circumstance not in found:
                raise others.error(name, "circumstances that were asked")
            found[circumstance] = answer
    return found


def _numbers(fields: Fields, name: str, known: Sequence[Known]) -> list[Known]:
    """What stands at the numbers that a field spans."""
    numbers = numbers_of(fields.text(name), len(known))
    if numbers is None:
        raise fields.error(name, f"numbers below {len(known)}, such as 0-2,5")
    return [known[number] for number in numbers]


def _numbered(fields: Fields, name: str, text: str, known: Sequence[Known]) -> Known:
    numbers = numbers_of(text, len(known))
    if numbers is None or len(numbers) != 1:
        raise fields.error(name, f"a number below {len(known)}")
    return known[numbers[0]]


def _circumstance(text: str, fields: Fields) -> Circumstance:
    if text in _COMPANIES:
        return _COMPANIES[text]
    surroundings, _slash, layout = text.partition("/")
    if surroundings not in _SURROUNDINGS or layout not in _LAYOUTS:
        raise fields.error(text, "a way in and a layout, such as static/equal")
    return _SURROUNDINGS[_SURROUNDINGS.index(surroundings)], _LAYOUTS[_LAYOUTS.index(layout)]
