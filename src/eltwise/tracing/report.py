"""The report of a trace: each node with its errors, the first that is wrong, and what could not be compared."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eltwise.comparison.tensor_report import number
from eltwise.core.border import public
from eltwise.core.errors import UnsupportedError, counted, named
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.core.exit_codes import ExitCode
from eltwise.faults.families import REFUSED, UNEXPLAINED
from eltwise.formats.reports import saved
from eltwise.ir.graph import Node
from eltwise.report.annotations import NOT_ESTABLISHED, Annotation
from eltwise.report.base import Written
from eltwise.tracing.isolated import Isolated
from eltwise.tracing.model_explorer import node_data
from eltwise.tracing.page import content
from eltwise.tracing.records import (
    EXIT_CODES,
    STATUSES,
    VERDICTS,
    WITHIN,
    CauseGroup,
    TracedNode,
    TracedOutput,
    Verdict,
    grouped,
)
from eltwise.tracing.switches import Switches
from eltwise.tracing.table import noisiest, table

_MOST_OUTPUTS = 12
_MOST_CAUSES = 12


@dataclass(frozen=True, repr=False)
class TraceReport(Written[TracedNode]):
    """The result of a trace; ``str`` gives it in words.

    Attributes:
        nodes: the nodes in topological order.
        outputs: the outputs of the whole model, on which the verdict rests.
        runtime: the runtime that was tested, with its version.
        against: the reference, with its version.
        inputs: where the inputs come from.
        tolerance: what counts as a difference.
        notes: what was matched by its contents, or has no partner, and what else restricts the report.
        blamed: the first node with its inputs and results.
        adapter: the name of the tested runtime, as the runtimes are found.
        is_pair: whether two models were compared.
        model: the name of the model.
        switches: the options that were tried because an output differs; None where none were.
        feeds: the inputs that the tested model was run on, by value.
        right_outputs: the right outputs of the whole model, of those that the reference gave, by value.
        in_other_type: the nodes that the reference computed in their own type, as no runtime has them in float64.
        not_run: the nodes in branches and loops that the inputs do not enter.
        not_opened: the nodes in those that were run as a whole, of which it is not known whether they ran.
    """

    json_kind = "trace"
    records_field = "nodes"

    nodes: tuple[TracedNode, ...]
    outputs: tuple[TracedOutput, ...]
    runtime: str
    against: str
    inputs: str = ""
    tolerance: str = ""
    notes: tuple[str, ...] = ()
    blamed: Isolated | None = field(default=None, compare=False)
    adapter: str = ""
    is_pair: bool = False
    model: str = ""
    switches: Switches | None = None
    feeds: Mapping[str, np.ndarray] = field(default_factory=dict, compare=False)
    right_outputs: Mapping[str, np.ndarray] = field(default_factory=dict, compare=False)
    in_other_type: tuple[Node, ...] = field(default=(), compare=False)
    not_run: tuple[Node, ...] = field(default=(), compare=False)
    not_opened: tuple[Node, ...] = field(default=(), compare=False)

    @property
    def verdict(self) -> Verdict:
        """Whether the outputs of the whole model are those of the reference.

        ``agree`` if every output was compared and is within the tolerance; ``disagree`` if one is not, or if one was
        not compared and a node failed or differs and is not right alone; otherwise ``not_established``.
        """
        outputs = {output.status for output in self.outputs}
        if outputs and outputs <= {*WITHIN}:
            return "agree"
        is_wrong = any(node.status in ("differs", "failed") and node.blame != "inherited" for node in self.nodes)
        return "disagree" if "differs" in outputs or is_wrong else "not_established"

    @property
    def is_refused(self) -> bool:
        """Whether the tested runtime does not run the whole model, or one of its nodes, and the reference does."""
        outputs = {output.status for output in self.outputs}
        return "failed" in outputs or (
            outputs == {"not_compared"} and any(node.status == "failed" for node in self.nodes)
        )

    @property
    def exit_code(self) -> ExitCode:
        """What the verdict comes to."""
        return EXIT_CODES[self.verdict]

    @property
    def right(self) -> tuple[str, ...] | None:
        """Whose result of the first node has the bits of the exact one; None where that is not known."""
        return None if self.blamed is None else self.blamed.right

    @property
    def is_reproducible(self) -> bool:
        """Whether the tested runtime gave a wrong result of the first node as a model of its own."""
        return self.blamed is not None and self.blamed.is_wrong

    @property
    def first_node(self) -> TracedNode | None:
        """The first node that is wrong by itself, or changed; None if there is none."""
        return next((node for node in self.nodes if node.is_wrong_itself), None)

    @property
    def first_name(self) -> str | None:
        """The name of that node."""
        return None if self.first_node is None else self.first_node.name

    @property
    def causes(self) -> list[CauseGroup]:
        """The nodes that are wrong themselves by operator and cause, in the order of the first of each."""
        return grouped(self.nodes)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, as ``--json`` writes it."""
        return {
            "model": self.model,
            "verdict": self.verdict,
            "outputs": [output.to_dict() for output in self.outputs],
            "first": self.first_name,
            "causes": [cause.to_dict() for cause in self.causes],
            "nodes": [node.to_dict() for node in self.nodes],
            "runtime": self.runtime,
            "against": self.against,
            "inputs": self.inputs,
            "tolerance": self.tolerance,
            "right": None if self.right is None else list(self.right),
            "notes": list(self.notes),
            "switches": None if self.switches is None else self.switches.to_dict(),
        }

    def annotations(self) -> list[Annotation]:
        """The nodes that are wrong themselves and the causes of outputs, for CI; else the verdict if it is not good."""
        wrong = [node for node in self.nodes if node.is_wrong_itself] if self.verdict == "disagree" else []
        results = [Annotation(_rule_of(node), "error", f"{node}: {self._finding(node)}", node.name) for node in wrong]
        causes = dict.fromkeys(output.cause for output in self.outputs if output.cause)
        for cause in causes:
            results.append(
                Annotation(cause, "error", "; ".join(str(one) for one in self.outputs if one.cause == cause))
            )
        if results or self.is_good:
            return results
        if self.verdict == "disagree":
            return [Annotation(REFUSED if self.is_refused else UNEXPLAINED, "error", self.summary)]
        return [Annotation(NOT_ESTABLISHED, "warning", self.summary)]

    @public
    def to_model_explorer(self, path: str | os.PathLike[str] | None = None) -> str:
        """The errors as node data of Model Explorer, written to a file if one is named."""
        return saved(node_data(self.nodes), path)

    def assert_within(self) -> None:
        """Do nothing if every output was compared and is within the tolerance.

        Raises:
            AssertionError: with the report as its message.
        """
        if not self.is_good:
            raise AssertionError(str(self))

    @public
    def reproduce(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the first node as a model of its own, its inputs, and a script that runs it with its runtime alone.

        Args:
            folder: the folder, new or empty.

        Returns:
            The names of the files.

        Raises:
            UnsupportedError: if the tested runtime gave no wrong result of a node as a model of its own.
            FileFormatError: if the folder is not empty or cannot be written.
        """
        from eltwise.conformance.reproduce import files_of_case, model_files, write_case

        if self.blamed is None or not self.is_reproducible:
            message = f"no node is wrong as a model of its own in {self.runtime}: there is nothing to reproduce"
            raise UnsupportedError(message)
        blamed, program = self.blamed, self.blamed.submodel.program
        contents = model_files(program.data, program.weights)
        inputs = {f"input_{number}": array for number, array in enumerate(blamed.submodel.inputs.values())}
        names = ", ".join(f"input_{number} is {value!r}" for number, value in enumerate(blamed.submodel.inputs))
        expected, gives = (
            (blamed.expected, self.against) if blamed.exact is None else (blamed.exact, "the specification")
        )
        lines = [
            f"{self.runtime}: {self.first_node}, on {self.inputs}.",
            f"The output is {blamed.value!r}; {names}.",
            f"Expected is what {gives} gives.",
        ]
        model, position = next(iter(contents)), blamed.position
        files = files_of_case(self.adapter, lines, inputs, expected, blamed.actual, output=position, model=model)
        return write_case(contents | files, Path(folder))

    @property
    def summary(self) -> str:
        """The result in a line."""
        worst = next((output for output in self._worst_first() if output.status == "differs"), None)
        lines = [self._headline(), *([] if worst is None else [str(worst)])]
        lines += [str(cause) for cause in self.causes[:1]] or self._findings()[:1]
        if len(lines) == 1:
            lines += self._not_established()[:1]
        return on_one_line("; ".join(lines))

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, all_nodes: bool = False, has_hint: bool = True) -> str:
        """The report in words: the outputs, what to do, causes, and the nodes, of which at most 30 lines are shown.

        Args:
            all_nodes: whether every node has a line.
            has_hint: whether it says how a case is written, which the caller may do anyway.
        """
        has_table = all_nodes or not all(node.is_within for node in self.nodes)
        blocks = [
            table(self.nodes, is_whole=all_nodes) if has_table else [],
            noisiest(self.nodes) if self.is_pair else [],
        ]
        tables = [line for block in blocks if block for line in ["", *block]]
        lines = [*self.comparison(), *self._to_do(has_hint=has_hint), *self._findings(), *self.notes, self._counted()]
        return as_lines([*lines, *tables])

    def page_content(self) -> tuple[str, str]:
        """The title of its page and the content."""
        facts = [("tested", self.runtime), ("reference", self.against)]
        facts += [("inputs", self.inputs), ("tolerance", self.tolerance)]
        leads, title = (
            [VERDICTS[self.verdict].capitalize(), *self._to_do(), *self._findings()[:1], self._counted()],
            self.model,
        )
        shown = content(title or "Trace", leads, facts, self.outputs, self.causes, self.notes, self.nodes)
        return f"{title or 'Trace'}: {self.runtime}", shown

    def comparison(self) -> list[str]:
        """The verdict, and what came of each output, in sentences."""
        return [self._headline(), *self.of_outputs(), f"inputs: {self.inputs}; tolerance: {self.tolerance}"]

    def sentences(self) -> list[str]:
        """The same with the first node that is wrong, and causes."""
        return [*self.comparison(), *self._findings()]

    def _headline(self) -> str:
        model = f"{self.model}: " if self.model else ""
        return f"{model}{self.runtime} against {self.against}: {VERDICTS[self.verdict]}"

    def _counted(self) -> str:
        return f"{counted(len(self.nodes), 'node')}{_listed(self.counts())}"

    def _worst_first(self) -> list[TracedOutput]:
        return sorted(self.outputs, key=lambda output: STATUSES.index(output.status), reverse=True)

    def of_outputs(self) -> list[str]:
        """A line for each output, the worst first, and for each reason one of those that were not compared."""
        compared = [output for output in self._worst_first() if output.status not in ("failed", "not_compared")]
        lines = list(map(str, compared[:_MOST_OUTPUTS]))
        if len(compared) > _MOST_OUTPUTS:
            rest = compared[_MOST_OUTPUTS:]
            lines.append(f"and {counted(len(rest), 'output')} more{_listed(_counts(rest))}")
        return [*lines, *self._not_established()]

    def _not_established(self) -> list[str]:
        """A line for each reason for which outputs were not compared."""
        reasons: dict[str, list[str]] = {}
        for output in self.outputs:
            if output.status in ("failed", "not_compared"):
                reasons.setdefault(output.message, []).append(output.name)
        return [f"not established: output {named(names)}: {reason}" for reason, names in reasons.items()]

    def _to_do(self, *, has_hint: bool = True) -> list[str]:
        """What makes the model right, as far as that was tried, and how to report what is wrong."""
        lines = (
            [f"{self.runtime.partition(' ')[0]}: {self.switches}"] if self.switches and self.switches.sentences else []
        )
        if has_hint and self.is_reproducible:
            lines.append(f"to report it: --reproduce FOLDER writes {self.first_node} as a case")
        return lines

    def _findings(self) -> list[str]:
        """The first node that is wrong and the causes of others, or why there is none though values differ."""
        node, counts, causes = self.first_node, self.counts(), self.causes
        if node is not None:
            lines = [f"first: {node}: {self._finding(node)}"]
            if sum(len(cause.nodes) for cause in causes) > 1:
                lines += [f"cause: {cause}" for cause in causes[:_MOST_CAUSES]]
            if len(causes) > _MOST_CAUSES:
                lines.append(f"and {counted(len(causes) - _MOST_CAUSES, 'cause')} more (--json lists all)")
            return lines
        isolated = next((node for node in self.nodes if node.blame == "not_isolated"), None)
        if isolated is not None:
            line = f"no node is shown to be wrong alone; first beyond the tolerance{_by(isolated.error_out)}"
            return [f"{line}: {isolated}, {isolated.message}"]
        if counts.keys() == {"not_compared"}:
            return ["nothing was compared: see the reason of each node"]
        if counts.get("differs"):
            first = next(node for node in self.nodes if node.status in ("within_tolerance", "differs"))
            beyond = next(node for node in self.nodes if node.status == "differs")
            line = f"no node is wrong alone: values first differ at {first}{_by(first.error_out)}"
            return [f"{line}, and are first beyond the tolerance at {beyond}{_by(beyond.error_out)}"]
        return []

    def _finding(self, node: TracedNode) -> str:
        if node.blame == "in_graph":
            message = f"right alone and wrong in the model{_by(node.error_out)}"
        elif node.blame in ("fused", "changed"):
            message = f"{node.message}{_by(node.error_out)}"
        else:
            inputs = "equal inputs" if node.error_in == 0 else "the inputs of the reference"
            message = f"alone, on {inputs}, it differs{_by(node.own_error).removeprefix(',')}"
        if node.explanation or node.cause:
            message += f"; {self._wrong_one()}{node.explanation or node.cause}"
        if self.right is not None and not self.against.startswith("exact "):
            message += f"; {' and '.join(self.right) or 'neither'} has the exact result"
        return message

    def _wrong_one(self) -> str:
        """The runtime that a cause is about, where it is known that one of the two is right."""
        names = [text.partition(" ")[0] for text in (self.runtime, self.against)]
        wrong = [name for name in names if name not in (self.right or names)]
        return f"{wrong[0]}: " if wrong else ""

    def counts(self) -> dict[str, int]:
        """How many nodes have each status."""
        return _counts(self.nodes)


def _by(error: float | None) -> str:
    """How large an error is; empty where it has no size, as of another shape."""
    return "" if error is None else f", by {number(error)}"


def _rule_of(node: TracedNode) -> str:
    """The rule that a node which is wrong itself breaks: the family of its fault, or how it is wrong."""
    rule = node.blame if node.blame in ("fused", "changed") else node.cause
    return rule or UNEXPLAINED


def _counts(results: Sequence[TracedNode | TracedOutput]) -> dict[str, int]:
    counts = {name: sum(result.status == name for result in results) for name in STATUSES}
    return {name: count for name, count in counts.items() if count}


def _listed(counts: Mapping[str, int]) -> str:
    names = {"differs": "different"}
    return "".join(f", {count:,} {names.get(name, name).replace('_', ' ')}" for name, count in counts.items())
