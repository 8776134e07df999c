"""The cases that a runtime is asked about one subject alone, and in which circumstance each of them is. Pure.

They are the referee's own, without what must be refused, and a few that fill every layout: more dimensions than it
asks, every pair of hard values in each layout, single numbers, and operands without elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from eltwise.conformance.cases import Attributes, Case
from eltwise.conformance.paths import MODEL_PATHS, READ_WIDER, ModelPath
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.questions import groups, subjects
from eltwise.conformance.results import Extent
from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import of_numpy
from eltwise.core.shapes import of_sizes
from eltwise.oracle import array_of, hard_values
from eltwise.passes.places import HIGHEST_ORDINARY_RANK, Layout, Surroundings, is_narrow, layouts_of
from eltwise.passes.plain import has_others, plain_places
from eltwise.targets.table import Subject, Way

_HIGHEST_RANK = 8
_SINGLES = 16
_PLAIN: dict[Surroundings, ModelPath] = {"a-plain": "a-constant", "b-plain": "b-constant"}


@dataclass(frozen=True)
class Request:
    """What is asked.

    Attributes:
        ops: versioned names; empty for all.
        types: element types by their NumPy names; empty for all.
        extent: how much.
        seed: what random values are drawn with.
        is_for_missing: whether only what a table does not have yet is asked.
    """

    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    extent: Extent = "quick"
    seed: int = 0
    is_for_missing: bool = False

    def takes(self, question: Question) -> bool:
        """Whether a question is among what is asked."""
        asked = ((self.ops, str(question.schema)), (self.types, question.element_type.name))
        return all(name in names for names, name in asked if names)


def subject_of(question: Question, way: Way = "") -> Subject:
    """What the table calls a question of the referee, written in some way."""
    return Subject(str(question.schema), question.element_type.name, question.rule, way)


def question_of(subject: Subject) -> Question:
    """What the referee calls a subject, whatever its way."""
    return next(known for known in subjects() if subject_of(known, subject.way) == subject)


def asked_of(question: Question) -> tuple[Surroundings, ...]:
    """The ways in for a question: the referee's paths, and those that only some types have.

    Constants of plain numbers where the type has others; a reader of what may have been left in a wider type.
    """
    plain: tuple[Surroundings, ...] = tuple(_PLAIN) if has_others(question.element_type) else ()
    return (*MODEL_PATHS, *plain, *((READ_WIDER,) if is_narrow(question.element_type) else ()))


def path_of(surroundings: Surroundings) -> ModelPath:
    """The referee's path whose models have operands that reach a node so.

    >>> path_of("b-plain"), path_of("static")
    ('b-constant', 'static')
    """
    paths = (*MODEL_PATHS, READ_WIDER)
    return next((path for path in paths if path == surroundings), _PLAIN.get(surroundings, "static"))


def cases_of(question: Question, surroundings: Surroundings, request: Request) -> Iterator[tuple[Case, ...]]:
    """The groups of cases, each of which is asked in one model where the runtime takes it."""
    path = path_of(surroundings)
    for group in _cases(question, "static" if path == READ_WIDER else path, request):
        yield tuple(_with_plain_constant(case, surroundings, request.seed) for case in group)


def _with_plain_constant(case: Case, surroundings: Surroundings, seed: int) -> Case:
    """The case with other numbers in place of those that are not plain, where its constant has plain ones only."""
    if surroundings not in _PLAIN:
        return case
    operand = case.a if surroundings == "a-plain" else case.b
    element_type = of_numpy(operand.dtype)
    pool = hard_values.hard_values(element_type)
    pool = pool[plain_places(pool, element_type)]
    others = np.random.default_rng(seed).choice(pool, operand.shape)
    plain = np.asarray(np.where(plain_places(operand, element_type), operand, others))
    return replace(case, a=plain) if surroundings == "a-plain" else replace(case, b=plain)


def _cases(question: Question, path: ModelPath, request: Request) -> Iterator[tuple[Case, ...]]:
    for group in groups(question, path, request.extent, request.seed, checks=False):
        working = tuple(case for case in group if case.works)
        if working:
            yield working
    for ranks in (range(5, HIGHEST_ORDINARY_RANK + 1), range(HIGHEST_ORDINARY_RANK + 1, _HIGHEST_RANK + 1)):
        yield tuple(case for case in _of_ranks(question, ranks, request.seed) if case.works)
    yield tuple(case for case in _of_single_numbers(question) if case.works)
    for case in (*_of_values(question), *_of_no_elements(question)):
        if case.works:
            yield (case,)


def layout_of(case: Case, surroundings: Surroundings) -> Layout:
    """How the shapes of a case lie, as far as a model with such surroundings tells."""
    axis = dict(case.attributes).get("axis", -1)
    rule = Rule(case.rule, axis if isinstance(axis, int) else -1)
    # A model of unknown sizes does not tell that one is 0; any other size that is not 1 lies as that does.
    a, b = (
        (tuple(size or 2 for size in sizes) if surroundings == "dynamic" else sizes)
        for sizes in (case.a.shape, case.b.shape)
    )
    return layouts_of(rule, of_sizes(a), of_sizes(b))[0]


def _of_values(question: Question) -> Iterator[Case]:
    """Every pair of hard values, of 8 bits every pair there is, in the layouts where the referee has few values."""
    pool = _pool(question)
    grid_a, grid_b = np.tile(pool, pool.size), np.repeat(pool, pool.size)
    before = (1,) * HIGHEST_ORDINARY_RANK
    yield Case(question.schema, question.attributes, grid_a.reshape(*before, -1), grid_b.reshape(*before, -1))
    if question.rule == "none":
        return
    grid, switched = grid_a.reshape(pool.size, pool.size), _switched_on(question)
    # A size of 1 in B, and, where there is an axis, each element of B beside a row of A.
    yield Case(question.schema, switched, grid, pool.reshape(-1, 1))
    if question.rule == "numpy":
        yield Case(question.schema, (), pool.reshape(*before, 1, -1), pool.reshape(-1, 1))
    else:
        yield Case(question.schema, (*switched, ("axis", 0)), grid, pool)


def _of_single_numbers(question: Question) -> Iterator[Case]:
    """One number as an operand: runtimes have rules of their own for that, above all where it is a constant."""
    pool, switched = _pool(question), _switched_on(question)
    for number, shape in product(pool[:: max(1, pool.size // _SINGLES)], ((), (1,))):
        single = np.asarray(number).reshape(shape)
        yield Case(question.schema, switched, pool, single)
        yield Case(question.schema, switched, single, pool)


def _pool(question: Question) -> np.ndarray:
    """The hard values of a type, of 8 bits all that there are."""
    element_type = question.element_type
    if element_type.bits <= 8:
        return array_of(element_type, range(1 << element_type.bits))
    return hard_values.hard_values(element_type)


def _of_ranks(question: Question, ranks: range, seed: int) -> Iterator[Case]:
    pool = hard_values.hard_values(question.element_type)
    generator = np.random.default_rng(seed)
    attributes, switched = question.attributes, _switched_on(question)
    for rank in ranks:
        a, b = ((1, 2) * rank)[:rank], ((2, 1) * rank)[:rank]
        shapes = [((2,) * rank, (2,) * rank, attributes)]
        if question.rule == "numpy":
            shapes += [(a, b, attributes), (b, a, attributes), ((2,) * rank, (2, 1), attributes)]
        elif question.rule != "none":
            shapes += [((2,) * rank, (2, 2), switched), ((2,) * rank, (2, 2), (*switched, ("axis", 1)))]
        for shape_a, shape_b, given in shapes:
            first, second = (np.asarray(generator.choice(pool, size)) for size in (shape_a, shape_b))
            yield Case(question.schema, given, first, second)


def _of_no_elements(question: Question) -> Iterator[Case]:
    attributes, switched = question.attributes, _switched_on(question)
    shapes = [((0,), (0,), attributes), ((2, 0, 3), (2, 0, 3), attributes)]
    if question.rule == "numpy":
        shapes += [((2, 0, 3), (3,), attributes), ((1, 3), (0, 3), attributes)]
    elif question.rule != "none":
        shapes += [((2, 0, 3), (3,), switched), ((2, 0), (2,), (*switched, ("axis", 0)))]
    for shape_a, shape_b, given in shapes:
        a, b = (np.empty(sizes, question.element_type.storage) for sizes in (shape_a, shape_b))
        yield Case(question.schema, given, a, b)


def _switched_on(question: Question) -> Attributes:
    return (("broadcast", 1),) if question.rule == "legacy" else question.attributes
