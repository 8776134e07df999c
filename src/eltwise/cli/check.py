"""``eltwise check``: report the problems of a model, or what a runtime computes differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.exceptions import Exit

from eltwise.cli import options, printing
from eltwise.cli.progress import waiting
from eltwise.cli.run import read_inputs
from eltwise.core.errors import (
    AttributeValueError,
    EltwiseError,
    GraphError,
    ManyProblemsError,
    UnsupportedError,
    counted,
)

RUNNING = "running the model"
_MOST_NAMED = 6


@click.command(cls=options.Command)
@click.argument("model", type=options.PATH, help="An .onnx or .xml file.")
@click.option("--target", metavar="RUNTIME", help="Check for a runtime: onnxruntime or openvino.")
@click.option("--run/--no-run", default=True, help="With --target: run the model there if the runtime is installed.")
@click.option(
    "--severity",
    metavar="LEAST",
    help="With --target: the least severity that counts: refused, wrong, precision or sign.",
)
@options.inputs
@options.tolerance
@options.seed
@options.json
def check(
    *,
    model: Path,
    target: str | None,
    run: bool,
    severity: str | None,
    inputs: Sequence[str],
    tolerance: Sequence[str],
    seed: int,
    json: bool,
) -> None:
    """Report every problem of a model, or whether it computes the same on a runtime.

    Exit 1 if there is a problem, and 3 if nothing was found and the outputs could not be compared.
    """
    options_of_runs = {
        "--no-run": not run,
        "--severity": severity is not None,
        "--input": bool(inputs),
        "--tolerance": bool(tolerance),
    }
    if target is not None:
        _check_target(model, target, run, severity, (inputs, tolerance, seed), json)
        return
    for option, is_given in options_of_runs.items():
        if is_given:
            raise AttributeValueError("nothing is run without a runtime", operand=option, hint="add --target RUNTIME")
    examined = _examined(model)
    if json:
        fields = [problem.fields() for problem in examined.problems]
        assumptions = list(examined.assumptions)
        not_checked = dict(examined.not_checked or examined.not_read)
        printing.json_text({"problems": fields, "assumptions": assumptions, "not_checked": not_checked})
    else:
        for problem in examined.problems:
            printing.line(str(problem))
        for assumption in examined.assumptions:
            printing.line(f"assumed: {assumption}")
        for line in examined.lines_of_not_checked():
            printing.line(line)
        problems, nodes = counted(len(examined.problems), "problem"), counted(examined.nodes, "node")
        printing.line(f"{model.name}: {problems}, {nodes} read")
    if examined.problems:
        raise Exit(1)


def _check_target(
    path: Path,
    target: str,
    run: bool,
    severity: str | None,
    run_inputs: tuple[Sequence[str], Sequence[str], int],
    json: bool,
) -> None:
    """Print what a runtime does with a model; exit 1 if it differs from what the model means."""
    from eltwise.model import read
    from eltwise.targets.check import check as check_on
    from eltwise.targets.rules import DEFAULT_SEVERITY

    texts, tolerance, seed = run_inputs
    arrays = read_inputs(read(path, reads_weights=False).graph, texts) if texts else None
    with waiting(RUNNING) if run else nullcontext():
        report = check_on(
            path,
            target,
            run=run,
            severity=severity or DEFAULT_SEVERITY,
            inputs=arrays,
            tolerance=tolerance,
            seed=seed,
        )
    printing.report(report, json)
    if not report.is_good:
        raise Exit(3 if report.verdict == "not_established" else 1)


@dataclass(frozen=True)
class _Examined:
    """What was found of a model: its problems, what was assumed, how many nodes were read, and what was not checked."""

    problems: Sequence[EltwiseError] = ()
    assumptions: Sequence[str] = ()
    nodes: int = 0
    not_checked: Mapping[str, int] = field(default_factory=dict)
    not_read: Mapping[str, int] = field(default_factory=dict)

    def lines_of_not_checked(self) -> list[str]:
        """One line of the operators that eltwise does not run."""
        names = list(self.not_checked or self.not_read)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        what = f"{counted(sum(self.not_checked.values()), 'node')} of operators that eltwise does not run"
        listed = f"({', '.join(names[:_MOST_NAMED])}{more})"
        return [f"not checked: {what if self.not_checked else 'in part'} {listed}"] if names else []


def _examined(path: Path) -> _Examined:
    from eltwise.model import read
    from eltwise.ops import registry
    from eltwise.passes.unintended import unintended_constants, unintended_nodes

    try:
        analysis = read(path).analysis
    except GraphError as error:
        return _Examined((error,))  # A graph whose parts cannot even be put in order is a finding, not a broken file.
    except ManyProblemsError as error:
        return _Examined(error.problems)
    graph = analysis.graph
    # What eltwise does not run is no problem of the model.
    not_read = Counter(problem.problem for problem in analysis.problems if isinstance(problem, UnsupportedError))
    problems = [problem for problem in analysis.problems if not isinstance(problem, UnsupportedError)]
    foreign = [node.schema for node in graph.nodes if node.is_foreign]
    # One that eltwise runs and could not read is a problem of the model.
    names = [one.versioned_name for one in foreign if not registry.resolve(one.domain, one.name, graph.origin.opset)]
    if not_read and not foreign:
        # Values that only layers make which were not read are missing in the graph.
        problems = [problem for problem in problems if not isinstance(problem, GraphError)]
    if not problems and foreign:
        problems = [problem.located(where=path.name) for problem in analysis.invalidities]
    if not problems:
        unintended = (*unintended_nodes(graph), *unintended_constants(graph))
        problems = [problem.located(where=path.name) for problem in unintended]
    not_checked = dict(Counter(names).most_common())
    return _Examined(
        problems, analysis.inference.assumptions, len(graph.nodes), not_checked, {} if foreign else not_read
    )
