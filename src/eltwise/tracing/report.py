"""The report of a trace: each node with its errors, the first that is wrong, and what could not be compared."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from eltwise.comparison.report import number
from eltwise.conformance.reproduce import files_of_case, write_case
from eltwise.core.errors import UnsupportedError, counted
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.formats.registry import of_bytes
from eltwise.report.written import Written
from eltwise.tracing.blame import Isolated
from eltwise.tracing.page import content

_MOST_SHOWN = 5


@dataclass(frozen=True)
class TracedNode:
    """What a trace found of one node.

    Attributes:
        name: its name, or the name of what it makes where it has none.
        op_type: its operator.
        status: ``equal``, ``within_tolerance`` or ``differs``; ``failed`` where a runtime did not run it, and
            ``not_compared`` where nothing could be compared.
        error_in: the largest absolute difference of what it reads; None where it has no size.
        error_out: the largest absolute difference of what it makes.
        own_error: that of the node run alone on what the reference reads; None where that was not needed.
        cause: the cause of its own difference, or that of what it makes.
        blame: of a node that differs, ``own`` where it is wrong alone too, ``inherited`` where it is not, and
            ``in_graph`` where it is right alone, its inputs are equal and it is wrong in the model, ``fused`` where it
            and those before it are right one by one, and wrong where only the last result is read, and
            ``not_isolated`` where it could not be run without others.
        value: the value that differs most.
        max_ulp: the largest distance in units in the last place.
        explanation: the cause in words.
        words: why it failed or could not be compared.
    """

    name: str
    op_type: str
    status: str
    error_in: float | None = 0.0
    error_out: float | None = 0.0
    own_error: float | None = None
    cause: str | None = None
    blame: str | None = None
    value: str = ""
    max_ulp: int | None = None
    explanation: str = ""
    words: str = ""

    def __str__(self) -> str:
        return on_one_line(f"{self.op_type} {self.name!r}")

    def fields(self) -> dict[str, object]:
        """Everything as plain values."""
        return dict(vars(self))

    def cells(self) -> tuple[str, ...]:
        """What a table shows of it: its name, its operator, its errors and the cause."""
        said = self.words or self.cause or ""
        if self.blame == "inherited":
            said = "inherited"
        elif self.blame == "in_graph":
            said = f"only in the model {said}".rstrip()
        own = "within" if self.blame in ("inherited", "in_graph") else number(self.own_error)
        return (self.name, self.op_type, number(self.error_in), number(self.error_out), own, said)


@dataclass(frozen=True)
class TraceReport(Written):
    """What came of a trace; ``str`` gives it in words.

    Attributes:
        nodes: the nodes in an order in which each finds its inputs made.
        first: the name of the first node that is wrong by itself; None if there is none.
        runtime: the runtime that was tested, with its version.
        against: the reference, with its version.
        inputs: where the inputs come from.
        tolerance: what counts as a difference.
        right: whose result of the first node has the bits of the exact one; None where that is not known.
        notes: what else is to be said: what was not matched, not run, or differs only in the whole model.
        blamed: the first node with its inputs and results.
        is_run: whether the runtime ran the whole model.
    """

    nodes: tuple[TracedNode, ...]
    first: str | None
    runtime: str
    against: str
    inputs: str = ""
    tolerance: str = ""
    right: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    blamed: Isolated | None = field(default=None, repr=False, compare=False)
    is_run: bool = True

    @property
    def is_good(self) -> bool:
        """Whether something was compared, nothing is beyond the tolerance, and every node and the whole model ran."""
        found = {node.status for node in self.nodes}
        is_compared = found != {"not_compared"}
        return self.is_run and is_compared and self.first is None and not found & {"differs", "failed"}

    @property
    def first_node(self) -> TracedNode | None:
        """The first node that is wrong by itself."""
        found = (node for node in self.nodes if node.name == self.first and node.blame not in (None, "inherited"))
        return next(found, None)

    def fields(self) -> dict[str, object]:
        """Everything as plain values, as ``--json`` writes it."""
        return {
            "nodes": [node.fields() for node in self.nodes],
            "first": self.first,
            "runtime": self.runtime,
            "against": self.against,
            "inputs": self.inputs,
            "tolerance": self.tolerance,
            "right": None if self.right is None else list(self.right),
            "notes": list(self.notes),
        }

    def assert_within(self) -> None:
        """Do nothing if no node is beyond the tolerance.

        Raises:
            AssertionError: with the report as its message.
        """
        if not self.is_good:
            raise AssertionError(str(self))

    def reproduce(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the first node as a model of its own, its inputs, and a script that runs it with its runtime alone.

        Args:
            folder: the folder, new or empty.

        Returns:
            The names of the files.

        Raises:
            UnsupportedError: if no node is wrong as a model of its own.
            FileFormatError: if the folder is not empty or cannot be written.
        """
        if self.blamed is None:
            raise UnsupportedError("no node is wrong as a model of its own: there is nothing to reproduce")
        blamed, program = self.blamed, self.blamed.program
        model = "model.xml" if of_bytes(program.data).domain == "openvino" else "model.onnx"
        inputs = {f"input_{number}": array for number, array in enumerate(blamed.inputs.values())}
        names = ", ".join(f"input_{number} is {value!r}" for number, value in enumerate(blamed.inputs))
        expected, gives = (blamed.wanted, self.against) if blamed.exact is None else (blamed.exact, "the specification")
        lines = [
            f"{self.runtime}: {self.first_node or self.first}, on {self.inputs}.",
            f"The output is {blamed.value!r}; {names}.",
            f"Expected is what {gives} gives.",
        ]
        files = files_of_case(blamed.adapter, lines, inputs, expected, blamed.got, output=blamed.position, model=model)
        weights = {"model.bin": program.weights} if model == "model.xml" else {}
        return write_case({model: program.data} | weights | files, Path(folder))

    def __str__(self) -> str:
        return as_lines([*self.summary(), *self._table(), *self.notes]).rstrip("\n")

    def page_content(self) -> tuple[str, str]:
        """The title of its page and the content."""
        return f"{self.first or 'nothing'}: {self.runtime}", content(self)

    def summary(self) -> list[str]:
        """What was found, a sentence each."""
        counts = self.counts()
        lines = [
            f"{self.runtime} against {self.against}: {counted(len(self.nodes), 'node')}"
            + "".join(
                f", {count} {name.replace('differs', 'different').replace('_', ' ')}" for name, count in counts.items()
            ),
            f"inputs: {self.inputs}; tolerance: {self.tolerance}",
        ]
        node = self.first_node
        if node is not None:
            lines.append(f"first: {node}: {self._said_of(node)}")
        elif found := [node for node in self.nodes if node.blame == "not_isolated"]:
            words = f"no node is wrong alone; first beyond the tolerance, by {number(found[0].error_out)}"
            lines.append(f"{words}: {found[0]}, {found[0].words}")
        elif counts.keys() == {"not_compared"}:
            lines.append("nothing was compared: see what is said of each node")
        elif counts.get("differs"):
            lines.append("no node is wrong alone: small errors add up to what is beyond the tolerance")
        return lines

    def _said_of(self, node: TracedNode) -> str:
        if node.blame == "in_graph":
            words = f"right alone and wrong in the model, by {number(node.error_out)}"
        elif node.blame == "fused":
            words = f"{node.words}, by {number(node.error_out)}"
        else:
            inputs = "equal inputs" if node.error_in == 0 else "the inputs of the reference"
            words = f"alone, on {inputs}, it differs by {number(node.own_error)}"
        if node.explanation or node.cause:
            words += f"; {self._wrong_one()}{node.explanation or node.cause}"
        if self.right is not None and not self.against.startswith("exact "):
            words += f"; {' and '.join(self.right) or 'neither'} has the exact result"
        return words

    def _wrong_one(self) -> str:
        """The runtime that a cause is about, where it is known that one of the two is right."""
        names = [text.partition(" ")[0] for text in (self.runtime, self.against)]
        wrong = [name for name in names if name not in (self.right or names)]
        return f"{wrong[0]}: " if wrong else ""

    def counts(self) -> dict[str, int]:
        """How many nodes have each status."""
        order = ("equal", "within_tolerance", "differs", "failed", "not_compared")
        found = {name: sum(node.status == name for node in self.nodes) for name in order}
        return {name: count for name, count in found.items() if count}

    def _table(self) -> list[str]:
        wrong = [node for node in self.nodes if node.status not in ("equal", "within_tolerance")]
        if not wrong:
            return []
        columns = ("node", "operator", "error in", "error out", "own error", "cause")
        rows = [columns, *(tuple(map(on_one_line, node.cells())) for node in wrong[:_MOST_SHOWN])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        left = [f"... and {len(wrong) - _MOST_SHOWN} more"] if len(wrong) > _MOST_SHOWN else []
        return ["", *lines, *left, ""]
