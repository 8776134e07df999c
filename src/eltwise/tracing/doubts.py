"""Blame between two models, where values of one name need not mean the same: a node is blamed once that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eltwise import oracle
from eltwise.tracing.blame import Blame, Isolated, named
from eltwise.tracing.pair import PairTracer
from eltwise.tracing.run import NodeRun, Values

UNPROVEN = "the other model has another value here, and that it should be the same was not shown"

OTHER_NODE = "what it reads differs too, and the other model has no node that is the same"


@dataclass(frozen=True)
class Doubt:
    """A node that gives another value alone than the reference has: it is wrong, or the value is not its own.

    Attributes:
        run: what is known of the node.
        isolated: its run alone; None where that was not possible.
    """

    run: NodeRun
    isolated: Isolated | None


@dataclass(eq=False)
class PairBlame(Blame):
    """Runs suspects alone, and tells nodes that are wrong from values that were matched wrongly.

    That a node's value belongs to the one that it is compared with is shown by one of these: the second model has the
    same node; the reference's value is the exact result; or what the node reads agrees, the second model has one node
    in its place, and it is an output, or a later node is right on the reference's value and wrong on the node's own. A
    later node that is wrong on the reference's shows the opposite: then both are run together.

    Nodes in doubt change for how long the tracer keeps values.
    """

    tracer: PairTracer
    _doubts: dict[str, Doubt] = field(default_factory=dict)
    _beyond: list[NodeRun] = field(default_factory=list)
    _is_certain: bool = False

    def judge(self, runs: Sequence[NodeRun], values: Values) -> None:
        """Say of the nodes of a segment that are beyond the tolerance which are wrong themselves."""
        owns = self.owns_of([run for run in runs if run.is_beyond], values)
        for run in runs:
            if run.has_failed:
                self._doubt(run, None)
            doubted, own = self._doubted(run, values), owns.get(run.number)
            is_right = own is not None and not own.is_beyond
            if is_right and not doubted and self.model.behind([run.number], values) == [run.number]:
                self._beyond.append(run)
                self.say(run, own, [run.number])
            elif run.is_beyond or doubted:
                self._judge(run, doubted, values)

    def finish(self) -> None:
        """Give up what nothing has shown; where all outputs are right, values in between are made in another way."""
        for value in list(self._doubts):
            self._give_up(value, {})
        found = [run for run in self._beyond if run.is_beyond]
        if not self._is_certain and not any(run.blame == "in_graph" or self._is_output(run) for run in found):
            for run in found:
                _not_compared(run)

    def _judge(self, run: NodeRun, doubted: list[str], values: Values) -> None:
        isolated = self.isolate([run.number], values)
        while doubted and isolated is not None and isolated.own.is_beyond:
            for value in doubted:
                self._give_up(value, values)
            doubted = self._doubted(run, values)
            isolated = self.isolate([run.number], values)
        if isolated is not None and not isolated.own.is_beyond and len(doubted) == 1:
            self._confirm(doubted[0], isolated, values)
        if not run.is_beyond:
            return
        self._beyond.append(run)
        self.say(run, isolated.own if isolated else None, isolated.numbers if isolated else [run.number])
        if isolated is None or isolated.own.is_beyond:
            self._weigh(run, isolated)

    def _doubted(self, run: NodeRun, values: Values) -> list[str]:
        """The values in doubt that are given to a node, or to those that it is run with."""
        if not self._doubts:
            return []
        group = self.model.behind([run.number], values)
        read = dict.fromkeys(self.model.read_by(group))
        return [value for value in read if value in self._doubts and value in values]

    def _weigh(self, run: NodeRun, isolated: Isolated | None) -> None:
        """Blame a node, if what it is compared with is its own value for certain; doubt it otherwise."""
        isolated = None if isolated is None else self.with_exact(isolated)
        is_certain = isolated is not None and self._is_its_own(isolated)
        self._is_certain |= is_certain
        words = self._told(run)
        if isolated is not None and (is_certain or (run.inputs_agree and self._is_output(run) and not words)):
            self.keep(run, isolated)
            return
        run.blame, run.words = "not_isolated", run.words or words or OTHER_NODE
        self._doubt(run, isolated)

    def _told(self, run: NodeRun) -> str:
        """Which nodes the second model has in place of a node, if these are several: any of them may be wrong."""
        others = [f"{node.schema.name} {node.label!r}" for node in self.tracer.matching.others(run.number)]
        return f"the other model has several nodes in its place: {named(others)}" if len(others) > 1 else ""

    def _doubt(self, run: NodeRun, isolated: Isolated | None) -> None:
        """Keep what a node was given, for as long as what it makes is read."""
        made = self.model.made[run.number]
        last = max((self.tracer.last_needed[value] for value in made), default=0)
        for value in (*(isolated.inputs if isolated else ()), *made):
            self.tracer.last_needed[value] = max(self.tracer.last_needed.get(value, 0), last)
        self._doubts.update(dict.fromkeys(made, Doubt(run, isolated)))

    def _is_its_own(self, isolated: Isolated) -> bool:
        """Whether the value that a node is compared with is its own for certain."""
        if len(isolated.numbers) > 1:
            return False
        is_exact = isolated.exact is not None and oracle.same_bits(isolated.wanted, isolated.exact)
        return is_exact or self.tracer.matching.is_same(isolated.numbers[-1])

    def _is_output(self, run: NodeRun) -> bool:
        return any(self.model.last_reader[value] == len(self.model.nodes) for value in self.model.made[run.number])

    def _confirm(self, value: str, reader: Isolated, values: Values) -> None:
        """Look whether a node that is right on the reference's value is wrong on that of the node in doubt."""
        doubt = self._doubts[value]
        if doubt.isolated is None or value != doubt.isolated.value:
            return
        other = self.isolate(reader.numbers[-1:], {**values, value: doubt.isolated.got})
        if other is None or not other.own.is_beyond:
            return
        self._doubts = {name: one for name, one in self._doubts.items() if one is not doubt}
        if doubt.run.inputs_agree and not self._told(doubt.run):
            self.say(doubt.run, doubt.isolated.own, doubt.isolated.numbers)
            self.keep(doubt.run, doubt.isolated)

    def _give_up(self, value: str, values: Values) -> None:
        """Match a value no more, so that what reads it is run together with what makes it."""
        doubt = self._doubts.pop(value, None)
        if doubt is not None and not doubt.run.has_failed and not self._is_output(doubt.run):
            _not_compared(doubt.run)
        values.pop(value, None)
        self.tracer.reference.values.pop(value, None)


def _not_compared(run: NodeRun) -> None:
    run.out, run.own, run.blame, run.words = None, None, None, UNPROVEN
