"""How every runtime is asked, in its own process: cases in, answers out, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from eltwise.conformance import models, paths
from eltwise.conformance.answers import Answer, words_of
from eltwise.conformance.cases import Case
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.paths import CHAINED, MODEL_PATHS, READ_WIDER, ModelPath
from eltwise.core.dtypes import BY_NAME, TYPES

Groups = Sequence[Sequence[Case]]
Loaded = Callable[[dict[str, np.ndarray]], list[np.ndarray]]
"""A model that is ready: arrays by input name give the results in the order of the outputs."""

_FEW = 4
"""So many cases of a refused group are asked one by one."""

_RUN = {each.numpy for each in TYPES if each.is_numeric}


class Runtime(Protocol):
    """What an adapter is: made in the process of its runtime, after which nothing is left to import."""

    def version(self) -> str:
        """The runtime's version, with what must be known of its settings."""

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **attributes: object) -> object:
        """Ask on the path ``call``; only for those that have it."""

    def load(self, model: BuiltModel) -> Loaded:
        """Load a model; only for those that take models."""


def answers(runtime: Runtime, path: str, groups: Groups, thrifty: bool) -> Iterator[Answer]:
    """Ask for each case of each group; whatever a runtime raises is its refusal.

    Where it refuses a group, and also some of its cases one by one, it is not asked for the others if ``thrifty``.
    """
    if path == "call":
        for case in (case for group in groups for case in group):
            yield _attempt(partial(runtime.call, case.schema.versioned_name, case.a, case.b, **dict(case.attributes)))
        return
    model_path = next(known for known in (*MODEL_PATHS, READ_WIDER, CHAINED) if known == path)
    kept: dict[object, Loaded] = {}
    for group in groups:
        yield from _ask_group(runtime, model_path, group, kept, thrifty)


def _ask_group(
    runtime: Runtime, path: ModelPath, group: Sequence[Case], kept: dict[object, Loaded], thrifty: bool
) -> Iterator[Answer]:
    """Ask for a group in one model; where that is refused, for its halves, down to a model for each case."""
    if len(group) > 1:
        try:
            results = _load(runtime, path, group, kept)(paths.feeds(group, path))
        except Exception:  # noqa: BLE001 - which case it does not take is found by asking for fewer
            results = []
        if len(results) == len(paths.output_names(group, path)):
            yield from map(_answer, results[: len(group)])
            return
    alone = {number: partial(_ask_alone, runtime, path, case, kept) for number, case in enumerate(group)}
    if len(group) <= _FEW:
        yield from (_attempt(ask) for ask in alone.values())
        return
    if thrifty:
        probed = {number: _attempt(alone[number]) for number in _spread(len(group))}
        if all(answer.kind == "refused" for answer in probed.values()):
            yield from (probed.get(number, Answer("not asked")) for number in alone)
            return
    middle = len(group) // 2
    for half in (group[:middle], group[middle:]):
        yield from _ask_group(runtime, path, half, kept, thrifty=False)


def _spread(count: int) -> list[int]:
    """The places of a few cases of a group, from the first to the last."""
    return [place * (count - 1) // (_FEW - 1) for place in range(_FEW)]


def _ask_alone(runtime: Runtime, path: ModelPath, case: Case, kept: dict[object, Loaded]) -> np.ndarray:
    results = _load(runtime, path, [case], kept)(paths.feeds([case], path))
    wanted = len(paths.output_names([case], path))
    if len(results) != wanted:
        raise ValueError(f"{len(results)} results came from a model with {wanted}")
    return results[0]


def _load(runtime: Runtime, path: ModelPath, group: Sequence[Case], kept: dict[object, Loaded]) -> Loaded:
    """Load a model, or take the one of a case before that differs in nothing but the values of its inputs."""
    if paths.has_constants(path):
        return runtime.load(models.build(group, path))
    key = tuple(
        (case.schema.versioned_name, case.attributes, *(_signature(array, path) for array in (case.a, case.b)))
        for case in group
    )
    if key not in kept:
        kept[key] = runtime.load(models.build(group, path))
    return kept[key]


def _signature(array: np.ndarray, path: ModelPath) -> tuple[object, ...]:
    return (array.dtype.name, array.ndim if path == "dynamic" else array.shape)


def _attempt(ask: Callable[[], object]) -> Answer:
    try:
        result = ask()
    except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its refusal, in its own words
        return Answer("refused", words=words_of(error))
    return _answer(result)


def _answer(result: object) -> Answer:
    """Take a result as it is: arrays of NumPy are not converted, and nothing else is made one."""
    if not isinstance(result, np.ndarray | np.generic):
        return Answer("odd", words=f"gave a {type(result).__name__}, no NumPy array")
    array = np.asarray(result)
    if array.dtype.newbyteorder("=") not in _RUN and array.dtype.name not in BY_NAME:
        return Answer("odd", words=f"gave an array of {array.dtype}")
    if array.dtype.newbyteorder("=") not in _RUN and array.dtype != np.bool_:
        return Answer("odd", words=f"gave an array of {array.dtype}")
    return Answer("result", array)
