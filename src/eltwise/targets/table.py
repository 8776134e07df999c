"""The measured table: what each version of a runtime does with each operator version, type, rule, layout and way in.

It is data, made by ``eltwise targets`` out of questions to the runtimes themselves, and never written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal, get_args

from eltwise.core.errors import unknown_name
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.company import Company
from eltwise.passes.places import Layout, Place, Surroundings

Kind = Literal["runs", "not measured", "differs", "refused in part", "refused", "hangs", "crashes"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a runtime may do, from the best to the worst."""

Way = Literal["", "wider", "aligned", "aligned+wider", "newer", "newer+wider"]
"""How a node is written for a runtime: as it is; computed in a wider type; with B aligned by its shape; in a newer
opset; or two of these."""
WAYS: tuple[Way, ...] = get_args(Way)

Dialect = Literal["onnx", "openvino"]
Target = Literal["onnxruntime", "openvino"]
RUNTIMES: dict[Target, dict[Dialect, str]] = {
    "onnxruntime": {"onnx": "onnxruntime"},
    "openvino": {"onnx": "openvino-onnx", "openvino": "openvino"},
}
"""The targets, and the referee's runtime that stands for each dialect that they read."""

SHIPPED = Path(__file__).with_name("table.json")

Circumstance = tuple[Surroundings, Layout] | Company
"""How operands reach a node and how their shapes lie; or what stands around it, whatever the shapes are."""


@dataclass(frozen=True)
class Answer:
    """What a runtime does.

    Attributes:
        kind: in one word or two.
        reasons: the deviations that explain wrong values, by name.
        words: what happens, in words: a deviation's text or what the runtime itself says.
    """

    kind: Kind
    reasons: tuple[str, ...] = ()
    words: str = ""

    @property
    def runs(self) -> bool:
        """Whether it gives the exact result wherever it was asked."""
        return self.kind == "runs"


RUNS = Answer("runs")
NOT_MEASURED = Answer("not measured")


@dataclass(frozen=True)
class Subject:
    """What answers are about: an operator version with an element type and a broadcast rule, written in some way."""

    op: str
    element_type: str
    rule: str
    way: Way = ""

    def __str__(self) -> str:
        return f"{self.op}/{self.element_type}/{self.rule}"


@dataclass(frozen=True)
class Measurement:
    """All that was measured of one version of a runtime, with models of one dialect.

    Attributes:
        runtime: the referee's name of it.
        version: its version, with what must be known of its settings.
        machine: the processor.
        date: when.
        seed: what random values were drawn with.
        extent: how much was asked.
        file_versions: the versions of the file format that it loads: ONNX's ir_version, or that of OpenVINO's IR.
        opsets: the ONNX opsets that it loads; none for IR.
        answers: what it does, by subject and circumstance.
    """

    runtime: str
    version: str
    machine: str = ""
    date: str = ""
    seed: int = 0
    extent: str = "quick"
    file_versions: tuple[int, ...] = ()
    opsets: tuple[int, ...] = ()
    answers: Mapping[Subject, Mapping[Circumstance, Answer]] = field(default_factory=dict)

    def answer(self, place: Place, way: Way = "") -> Answer:
        """What happens to a node, written in some way: the worst of what may happen, where several may."""
        element_type = place.element_type.name if place.element_type else ""
        subject = Subject(place.schema.versioned_name, element_type, place.rule, way)
        alone = self.of(subject, product(place.surroundings, place.layouts))
        return worst([alone, *self._in_companies(subject, place.companies)])

    def _in_companies(self, subject: Subject, companies: Iterable[Company]) -> Iterator[Answer]:
        """What happens in some companies; where something does, the first is named that it happens in."""
        found: dict[Answer, list[Company]] = {}
        for company in companies:
            found.setdefault(self.of(subject, [company]), []).append(company)
        for answer, alike in found.items():
            more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
            differs = answer.kind == "differs"
            yield replace(answer, words=f"{answer.words} ({alike[0]}{more})") if differs else answer

    def of(self, subject: Subject, circumstances: Iterable[Circumstance]) -> Answer:
        """What happens to a subject in some circumstances; ``not measured`` where one of them was not asked."""
        known = self.answers.get(subject, {})
        return worst(known.get(circumstance, NOT_MEASURED) for circumstance in circumstances)

    def knows(self, schema: ElementwiseSchema) -> bool:
        """Whether anything was measured of an operator version."""
        return schema.versioned_name in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(subject.op for subject in self.answers)

    @property
    def number(self) -> str:
        """The version without what is said of settings."""
        return self.version.partition(" ")[0]


def worst(answers: Iterable[Answer]) -> Answer:
    """Put answers together: the worst kind, every reason, the words of the worst and those of every difference."""
    found = sorted(answers, key=lambda answer: KINDS.index(answer.kind), reverse=True)
    if not found:
        return NOT_MEASURED
    reasons = tuple(dict.fromkeys(reason for answer in found for reason in answer.reasons))
    texts = [found[0].words, *(answer.words for answer in found if answer.kind == "differs")]
    clauses = dict.fromkeys(clause for text in texts for clause in text.split("; ") if clause)
    return Answer(found[0].kind, reasons, "; ".join(clauses))


@dataclass(frozen=True)
class Table:
    """The measurements that are known."""

    measurements: tuple[Measurement, ...]

    def find(self, runtime: str, installed: str = "") -> Measurement | None:
        """The measurement of a runtime: of the installed version, else the last one; None where there is none."""
        known = [found for found in self.measurements if found.runtime == runtime]
        exact = [found for found in known if found.number == installed]
        return next(reversed(exact or known), None)

    def joined(self, new: Measurement) -> Table:
        """The table with a measurement added; of the same runtime and version it replaces the answers that it has."""
        for place, old in enumerate(self.measurements):
            if (old.runtime, old.number) == (new.runtime, new.number):
                both = replace(new, answers={**old.answers, **new.answers})
                return Table((*self.measurements[:place], both, *self.measurements[place + 1 :]))
        return Table((*self.measurements, new))


def target_named(name: object) -> Target:
    """Find a target by its name.

    Raises:
        NameUnknownError: naming those that there are.
    """
    for known in RUNTIMES:
        if known == name:
            return known
    raise unknown_name("target", name if isinstance(name, str) else repr(name), list(RUNTIMES))
