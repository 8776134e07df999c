"""What is wrong with a model by itself, whatever runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    GraphError,
    ManyProblemsError,
    UnsupportedError,
    counted,
    named,
)
from eltwise.core.escaping import as_lines
from eltwise.core.exit_codes import ExitCode, exit_code
from eltwise.formats.reports import BaseReport
from eltwise.model import Model, read
from eltwise.ops import registry
from eltwise.passes.unintended import unintended
from eltwise.report.annotations import Annotation, of_error

if TYPE_CHECKING:
    from eltwise.formats.registry import Source
    from eltwise.passes.analysis import Analysis


@dataclass(frozen=True, repr=False)
class ProblemsReport(BaseReport[EltwiseError]):
    """What was found of a model.

    Attributes:
        problems: what is wrong with it.
        assumptions: what must hold for a run, a sentence each.
        nodes: how many nodes were read.
        not_checked: the operators that eltwise does not run, with the number of their nodes.
        not_read: what could not be read as a node, with how often.
        name: the file's name; empty for a model that is not from a file.
    """

    json_kind = "problems"
    records_field = "problems"
    record_names = ("node", "operand")

    problems: tuple[EltwiseError, ...] = ()
    assumptions: tuple[str, ...] = ()
    nodes: int = 0
    not_checked: Mapping[str, int] = field(default_factory=dict)
    not_read: Mapping[str, int] = field(default_factory=dict)
    name: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """A problem is found."""
        return exit_code(findings=bool(self.problems))

    @property
    def summary(self) -> str:
        """The result in a line."""
        text = f"{counted(len(self.problems), 'problem')}, {counted(self.nodes, 'node')} read"
        return f"{self.name}: {text}" if self.name else text

    def __str__(self) -> str:
        lines: list[object] = [line for problem in self.problems for line in str(problem).split("\n")]
        lines += [f"assumed: {assumption}" for assumption in self.assumptions]
        return as_lines([*lines, *self._lines_of_not_checked(), self.summary])

    def _lines_of_not_checked(self) -> list[str]:
        """A line of the operators that eltwise does not run, and one of what else it does not."""
        what = f"{counted(sum(self.not_checked.values()), 'node')} of operators that eltwise does not run"
        parts = ((what, self.not_checked), ("in part", self.not_read))
        return [f"not checked: {text} ({named(list(counts))})" for text, counts in parts if counts]

    def annotations(self) -> list[Annotation]:
        """The problems, for CI."""
        return [of_error(problem) for problem in self.problems]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {
            "problems": [problem.to_dict() for problem in self.problems],
            "assumptions": list(self.assumptions),
            "not_checked": {**self.not_checked, **self.not_read},
        }


def problems_of(source: Source | Model, weights: bytes | None = None) -> ProblemsReport:
    """Read a model and find its problems; see ``eltwise.check``."""
    try:
        analysis = read(source, weights).analysis
    except GraphError as error:
        return ProblemsReport((error,))  # Parts that cannot be put in order are a finding, not a broken file.
    except ManyProblemsError as error:
        return ProblemsReport(error.problems)
    graph = analysis.graph
    unsupported, problems = _divided(analysis)
    # One that eltwise runs and could not read is counted by its problem.
    unread = {problem.node for problem in unsupported}
    foreign = [node for node in graph.nodes if node.is_foreign]
    names = [
        node.schema.versioned_name
        for node in foreign
        if node.label not in unread and not registry.resolve(node.schema.domain, node.schema.name, graph.origin.opset)
    ]
    if names:  # The error of all operators is the one that names neither a node nor an operand.
        unsupported = [problem for problem in unsupported if problem.node or problem.operand]
    if unsupported and graph.origin.domain == "openvino":
        # Values that only layers make which were not read are missing in the graph.
        problems = [problem for problem in problems if not isinstance(problem, GraphError)]
    if not problems and (foreign or unsupported):
        problems = [problem.located(where=analysis.name) for problem in analysis.invalidities]
    if not problems:
        problems = [problem.located(where=analysis.name) for problem in unintended(graph)]
    return ProblemsReport(
        tuple(problems),
        tuple(analysis.inference.assumptions),
        len(graph.nodes),
        dict(Counter(names).most_common()),
        dict(Counter(problem.problem for problem in unsupported)),
        analysis.name,
    )


def _divided(analysis: Analysis) -> tuple[list[EltwiseError], list[EltwiseError]]:
    """What of a model eltwise does not run, and what is wrong with it.

    A type that an operator of eltwise does not have here is one or the other, as ONNX's own schema says.
    """
    unsupported: list[EltwiseError] = [one for one in analysis.problems if isinstance(one, UnsupportedError)]
    problems = [problem for problem in analysis.problems if not isinstance(problem, UnsupportedError)]
    typed = [problem for problem in problems if isinstance(problem, ElementTypeError) and problem.node]
    if typed and analysis.graph.origin.domain == "ai.onnx":
        invalid = {problem.node for problem in analysis.invalidities}
        valid = [problem for problem in typed if problem.node not in invalid]
        unsupported += valid
        problems = [problem for problem in problems if not any(problem is one for one in valid)]
    return unsupported, problems
