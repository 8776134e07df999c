"""The table as a file: JSON, a line a subject; what is read is checked.

Each answer of a measurement is written once, and so is each list of circumstances that a subject was asked in. A
subject has the answer that most of its circumstances have, and the others by circumstance.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar, get_args

from eltwise.conformance.json_fields import Fields, read_object
from eltwise.conversion.company import Company, all_companies
from eltwise.conversion.places import Layout, Surroundings
from eltwise.errors import EltwiseError
from eltwise.formats import files
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
    asked: dict[tuple[Circumstance, ...], int] = {}
    subjects = [
        json.dumps(_subject(subject, found, answers, asked)) for subject, found in measurement.answers.items() if found
    ]
    head = {name: getattr(measurement, name) for name in _HEADER}
    head |= {"file_versions": list(measurement.file_versions), "opsets": list(measurement.opsets)}
    parts = {
        "answers": [_answer_text(answer) for answer in answers],
        "asked": [json.dumps({"circumstances": [_named(one) for one in circumstances]}) for circumstances in asked],
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
    asked: dict[tuple[Circumstance, ...], int],
) -> dict[str, object]:
    """A subject's line; answers and lists of circumstances that were not there before get a number."""
    numbers = {circumstance: answers.setdefault(answer, len(answers)) for circumstance, answer in found.items()}
    usual = Counter(numbers.values()).most_common(1)[0][0]
    return {
        "op": subject.op,
        "dtype": subject.element_type,
        "broadcast": subject.rule,
        "way": subject.way,
        "asked": asked.setdefault(tuple(found), len(asked)),
        "answer": usual,
        "others": {_named(circumstance): number for circumstance, number in numbers.items() if number != usual},
    }


def _named(circumstance: Circumstance) -> str:
    return str(circumstance) if isinstance(circumstance, Company) else "/".join(circumstance)


def _measurement(fields: Fields) -> Measurement:
    answers = [
        Answer(item.choice("kind", KINDS), item.words("reasons"), item.text("words"))
        for item in fields.items("answers", "answer")
    ]
    asked = [
        tuple(_circumstance(text, item) for text in item.words("circumstances"))
        for item in fields.items("asked", "list of circumstances")
    ]
    found = {}
    for item in fields.items("subjects", "subject"):
        subject = Subject(item.text("op"), item.text("dtype"), item.text("broadcast"), item.choice("way", WAYS, ""))
        found[subject] = _answers(item, answers, asked)
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
    fields: Fields, answers: Sequence[Answer], asked: Sequence[tuple[Circumstance, ...]]
) -> dict[Circumstance, Answer]:
    usual, others = _numbered(fields, "answer", answers), fields.inner("others")
    found = dict.fromkeys(_numbered(fields, "asked", asked), usual)
    for text in others:
        circumstance = _circumstance(text, others)
        if circumstance not in found:
            raise others.error(text, "a circumstance that was asked")
        found[circumstance] = _numbered(others, text, answers)
    return found


def _circumstance(text: str, fields: Fields) -> Circumstance:
    if text in _COMPANIES:
        return _COMPANIES[text]
    surroundings, _slash, layout = text.partition("/")
    if surroundings not in _SURROUNDINGS or layout not in _LAYOUTS:
        raise fields.error(text, "a way in and a layout, such as static/equal")
    return _SURROUNDINGS[_SURROUNDINGS.index(surroundings)], _LAYOUTS[_LAYOUTS.index(layout)]


def _numbered(fields: Fields, name: str, known: Sequence[Known]) -> Known:
    number = fields.count(name)
    if number >= len(known):
        raise fields.error(name, f"the number of one of {len(known)}")
    return known[number]
