"""The inputs that a model is run on: those of which a runtime takes the sizes and the values, found by running it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.ir.graph import Graph, Port
from eltwise.runtimes import Answer, Host
from eltwise.runtimes import Model as Program
from eltwise.tracing.choices import BEST, choices, chosen_ports, described, fitness
from eltwise.tracing.inputs import SIZES, Drawn, InputRequest, reference_feeds
from eltwise.tracing.model_program import program_of
from eltwise.tracing.runner import Values, file_inputs

_REFUSED, _HUNG = -1, -2


@dataclass(frozen=True)
class _Taker:
    """A runtime and the model that it may take inputs of.

    Attributes:
        host: the process of the runtime.
        graph: the model.
        first: the model that the inputs are of, if that is another one.
    """

    host: Host
    graph: Graph
    first: Graph

    @cached_property
    def loads(self) -> bool:
        """Whether the runtime loads the model, so that a refusal may be one of the inputs."""
        return self._program is not None and self.host.run(self._program, (), only_load=True).kind == "result"

    def answer(self, feeds: Values) -> Answer:
        """What the runtime says to some inputs."""
        if self._program is None:
            return Answer("refused")
        if self.graph is not self.first:
            feeds = reference_feeds(self.graph, feeds, self.first)
        return self.host.run(self._program, [*file_inputs(self.graph, feeds).values()])

    @cached_property
    def _program(self) -> Program | None:
        """The model; None where it is not run as a whole."""
        with suppress(EltwiseError):
            return program_of(self.graph)
        return None


def fitting_feeds(hosts: Sequence[Host], request: InputRequest, second: Graph | None = None) -> Drawn:
    """Draw inputs that a runtime takes.

    The first ones stay where it takes them. Else sizes that the model leaves open are tried, those that the other
    runtime takes where it takes none or does not load the model, and then other values of integers, short lists and
    flags, which a runtime refuses where they are no index, axis or size. These count only if both runtimes run the
    model on them, and what only the tested one refuses is a finding.
    """
    first = request.draw()
    ports = chosen_ports(request, first.feeds)
    if not ports and not _leaves_sizes_open(request, first):
        return first
    tested, reference = _takers(hosts, request.graph, second or request.graph)
    base, kind = _of_fitting_sizes([tested, *([reference] if reference else [])], request, first)
    if not ports or not _are_refused(kind, base, tested, reference):
        return base
    best, highest = None, _REFUSED
    for drawn, feeds in _with_choices(request, None if kind == "refused" else base):
        fit = _fit(feeds, tested, reference)
        if fit > highest:
            best, highest = (drawn, feeds), fit
        if fit in (BEST, _HUNG):
            break
    if best is None:
        return base
    return _with_fewest_changes(ports, *best, lambda feeds: _fit(feeds, tested, reference) >= highest)


def _with_fewest_changes(ports: Sequence[Port], drawn: Drawn, feeds: Values, fits: Callable[[Values], bool]) -> Drawn:
    """The inputs with the values that were drawn first, which are more than 0 and 1, where these were not refused."""
    for port in ports:
        first_values = {**feeds, port.value: drawn.feeds[port.value]}
        feeds = first_values if fits(first_values) else feeds
    changed = [port for port in ports if feeds[port.value] is not drawn.feeds[port.value]]
    return drawn._replace(feeds=feeds, source=f"{drawn.source}; values chosen: {described(changed, feeds)}")


def _fit(feeds: Values, tested: _Taker, reference: _Taker | None) -> int:
    """How well inputs fit a model, as ``fitness``; less than 0 where a runtime does not run the model on them."""
    answer = tested.answer(feeds)
    if answer.kind != "result" or (reference is not None and reference.answer(feeds).kind != "result"):
        return _HUNG if answer.kind == "hung" else _REFUSED
    return fitness(tested.graph, feeds, answer.arrays)


def _are_refused(kind: str, drawn: Drawn, tested: _Taker, reference: _Taker | None) -> bool:
    """Whether it is the inputs that are refused: by the reference, or where there is none by the tested runtime."""
    if kind not in ("result", "refused") or (kind == "refused" and not tested.loads):
        return False
    if reference is None:
        return kind == "refused"
    return reference.answer(drawn.feeds).kind == "refused" and reference.loads


def _takers(hosts: Sequence[Host], graph: Graph, second: Graph) -> tuple[_Taker, _Taker | None]:
    """The tested runtime, and the other one unless it is the same and runs the same model."""
    takers = [_Taker(host, each, graph) for host, each in zip(hosts, (graph, second), strict=False)]
    is_same = len(takers) < 2 or (second is graph and hosts[0].runtime.name == hosts[1].runtime.name)
    return takers[0], None if is_same else takers[1]


def _leaves_sizes_open(request: InputRequest, first: Drawn) -> bool:
    with suppress(UnsupportedError):  # Where other sizes make them too large, there are sizes to choose.
        return first.sizes != request.draw((SIZES[-1][1],) * 3).sizes
    return True


def _of_fitting_sizes(takers: Sequence[_Taker], request: InputRequest, first: Drawn) -> tuple[Drawn, str]:
    """The inputs of the first sizes that are not refused, or else the first of all, and the kind of their answer.

    Where the tested runtime refuses all, those that the reference takes show that it is not the inputs.
    """
    for taker in takers:
        for drawn in request.of_each_size():
            kind = taker.answer(drawn.feeds).kind
            if kind != "refused":
                return drawn, kind
            if not taker.loads:
                break
    return first, "refused"


def _with_choices(request: InputRequest, base: Drawn | None) -> Iterator[tuple[Drawn, Values]]:
    """Inputs, of the sizes that fit or of each of those that are tried first, and the same with other values."""
    for drawn in [base] if base else islice(request.of_each_size(), len(SIZES)):
        for feeds in choices(request, drawn.feeds):
            yield drawn, feeds
