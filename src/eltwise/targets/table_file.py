"""The table as a file: JSON, a line a subject, each answer written once; what is read is checked."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import get_args

from eltwise.conformance.json_fields import Fields, read_object
from eltwise.conversion.places import Layout, Surroundings
from eltwise.errors import EltwiseError
from eltwise.formats import files
from eltwise.targets.table import KINDS, SHIPPED, WAYS, Answer, Circumstance, Measurement, Subject, Table

_HEADER = ("runtime", "version", "machine", "date", "seed", "extent")
_SURROUNDINGS: tuple[Surroundings, ...] = get_args(Surroundings)
_LAYOUTS: tuple[Layout, ...] = get_args(Layout)


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
    numbers: dict[Answer, int] = {}
    subjects = []
    for subject, answers in measurement.answers.items():
        found = {"/".join(key): numbers.setdefault(answer, len(numbers)) for key, answer in answers.items()}
        subjects.append(
            json.dumps(
                {
                    "op": subject.op,
                    "dtype": subject.element_type,
                    "broadcast": subject.rule,
                    "way": subject.way,
                    "answers": found,
                }
            )
        )
    head = {name: getattr(measurement, name) for name in _HEADER}
    head |= {"file_versions": list(measurement.file_versions), "opsets": list(measurement.opsets)}
    answers_text = ",\n".join(
        json.dumps({"kind": answer.kind, "reasons": list(answer.reasons), "words": answer.words}) for answer in numbers
    )
    subjects_text = ",\n".join(subjects)
    return f'{json.dumps(head)[:-1]}, "answers": [\n{answers_text}\n], "subjects": [\n{subjects_text}\n]}}'


def _measurement(fields: Fields) -> Measurement:
    answers = [
        Answer(item.choice("kind", KINDS), item.words("reasons"), item.text("words"))
        for item in fields.items("answers", "answer")
    ]
    found = {}
    for item in fields.items("subjects", "subject"):
        subject = Subject(item.text("op"), item.text("dtype"), item.text("broadcast"), item.choice("way", WAYS, ""))
        found[subject] = _answers(item, answers)
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


def _answers(fields: Fields, answers: list[Answer]) -> dict[Circumstance, Answer]:
    written = fields.inner("answers")
    found: dict[Circumstance, Answer] = {}
    for key in written:
        surroundings, _slash, layout = key.partition("/")
        if surroundings not in _SURROUNDINGS or layout not in _LAYOUTS or written.count(key) >= len(answers):
            raise written.error(key, f"the number of one of {len(answers)} answers, by way in and layout")
        circumstance = (
            _SURROUNDINGS[_SURROUNDINGS.index(surroundings)],
            _LAYOUTS[_LAYOUTS.index(layout)],
        )
        found[circumstance] = answers[written.count(key)]
    return found
