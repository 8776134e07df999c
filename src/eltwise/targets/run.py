"""A model run on a runtime, in a process of its own, and compared bit for bit with what it means here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, ManyProblemsError, UnsupportedError, counted
from eltwise.ir.graph import Graph
from eltwise.model import Model
from eltwise.passes.report import Comparison
from eltwise.passes.scopes import all_graphs
from eltwise.passes.verify import runs_of
from eltwise.runtimes import Answer, Host, Runtime
from eltwise.runtimes import Model as Program
from eltwise.targets.report import Finding, Kind
from eltwise.targets.rules import SEVERITIES, Severity

LARGEST = 1 << 28
"""The most bytes of a model that is run."""

_LIMIT = 120.0
"""How many seconds one run may take."""

_MOST_ROUNDS = 6
"""How often inputs of one size are drawn."""

_MOST_SENT = 1 << 30
"""How many bytes of models are sent to a runtime's process, beside the first one."""

_MOST_NAMED = 6
_KINDS: dict[str, Kind] = {"refused": "refused", "crashed": "crashes", "hung": "hangs"}
_CLOSE = 2.0**-6
"""Ordinary numbers that differ by less than this part of the largest in the result differ in precision only."""


@dataclass(frozen=True)
class Observed:
    """What came of running a model.

    Attributes:
        version: the version of the runtime that ran it; empty where none did.
        findings: the outputs that differ, or that the model is refused.
        comparison: what was equal, or why nothing could be compared; None where something differs.
    """

    version: str = ""
    findings: tuple[Finding, ...] = ()
    comparison: Comparison | None = None

    @property
    def is_compared(self) -> bool:
        """Whether the runtime loaded the model, and values were compared or the model was refused."""
        return bool(self.findings) or (self.comparison is not None and self.comparison.is_proof)


def observe(runtime: Runtime, graph: Graph, reference: Callable[[], Model], seed: int = 0) -> Observed:
    """Load a model on a runtime, run it there and here, and compare the bits; any NaN equals any NaN.

    Args:
        runtime: the runtime.
        graph: the model that it is given.
        reference: gives the model that is right, which may raise where eltwise does not run it; then the model is only
            loaded.
        seed: of the drawn values.
    """
    if not runtime.is_installed:
        return Observed(comparison=Comparison(0, 0, f"{' and '.join(runtime.packages)} is not installed here"))
    try:
        program = program_of(graph)  # First, since it refuses what is too large.
    except EltwiseError as error:
        return Observed(comparison=Comparison(0, 0, str(error)))
    with Host(runtime, _LIMIT) as host:
        try:
            version = host.version()
            loaded = host.run(program, (), only_load=True)
            if loaded.kind != "result":
                return Observed(version, (_refused(loaded),))
            if foreign := foreign_operators(graph):
                return Observed(
                    version, comparison=Comparison(0, 0, f"it is loaded, and eltwise does not run {foreign}")
                )
            model = reference()
        except EltwiseError as error:
            return Observed(version, comparison=Comparison(0, 0, _first_line(error)))
        return _compared(host, program, model, version, seed)


def foreign_operators(graph: Graph) -> str:
    """The operators of a model that eltwise does not run, the most frequent ones by name; empty for none."""
    counts = Counter(node.schema.name for one in all_graphs(graph) for node in one.nodes if node.is_foreign)
    names = [name for name, _count in counts.most_common(_MOST_NAMED)]
    more = f" and {len(counts) - _MOST_NAMED} more" if len(counts) > _MOST_NAMED else ""
    return f"{', '.join(names)}{more}" if names else ""


def program_of(graph: Graph) -> Program:
    """The model as a runtime is given it: the bytes of its file, with external data inside.

    Raises:
        UnsupportedError: where it is too large to be handed over.
    """
    size = sum(_bytes_of(graph))
    if size > LARGEST:
        raise UnsupportedError("the model is too large to be run", got=f"{size} bytes", allowed=f"{LARGEST} bytes")
    if graph.origin.domain == "ai.onnx":
        from eltwise.formats.onnx.writer import write_onnx

        return Program(write_onnx(graph))
    from eltwise.formats.openvino.writer import write_openvino

    return Program(*write_openvino(graph))


def _bytes_of(graph: Graph) -> Iterator[int]:
    """About how many bytes each constant has, of which none is read."""
    for _name, tensor in graph.constants:
        shape, element_type = tensor.type.shape, tensor.type.element_type
        if shape.is_known:
            bits = element_type.bits if element_type is not None else 8
            yield int(np.prod(shape.sizes(), dtype=object)) * bits // 8
    for node in graph.nodes:
        for _name, inner in node.graphs:
            yield from _bytes_of(inner)


def _compared(host: Host, program: Program, model: Model, version: str, seed: int) -> Observed:
    worst: dict[str, Finding] = {}
    runs = elements = 0
    refusal = ""
    most_runs = _MOST_SENT // max(1, len(program.data) + len(program.weights))
    for run in runs_of(model, seed, _MOST_ROUNDS):
        if isinstance(run, str):
            refusal = refusal or run
            continue
        if runs and runs >= most_runs:
            break
        answer = host.run(program, list(run.feeds.values()))
        if answer.kind != "result":
            return Observed(version, (*worst.values(), _refused(answer)))
        runs += 1
        elements += sum(array.size for array in run.expected.values())
        for (name, exact), got in zip(run.expected.items(), answer.arrays, strict=False):
            severity = severity_of(got, exact, run.is_ordinary)
            known = worst.get(name)
            if severity and (known is None or SEVERITIES.index(severity) > SEVERITIES.index(known.severity)):
                worst[name] = _different(name, got, exact, severity)
    if worst:
        return Observed(version, tuple(worst.values()))
    return Observed(version, comparison=Comparison(runs, elements, "" if runs else refusal))


def severity_of(got: np.ndarray | None, exact: np.ndarray, is_ordinary: bool) -> Severity | None:
    """How severe it is that a runtime gives an array in place of the exact one; None where the bits are equal.

    Of ordinary numbers a difference that is large beside the largest result is a wrong value. Numbers at the limits of
    their type differ that much where a step is rounded once instead of twice, so that they count as precision.
    """
    if got is None or got.dtype != exact.dtype or got.shape != exact.shape:
        return "wrong values"
    if oracle.same_bits(got, exact):
        return None
    if of_numpy(exact.dtype).kind != "float":
        return "wrong values"
    with np.errstate(all="ignore"):
        mine, theirs = exact.astype(np.float64).reshape(-1), got.astype(np.float64).reshape(-1)
        is_odd = np.isnan(mine) | np.isnan(theirs) | ((mine == 0) & (theirs == 0))
        both_finite = np.isfinite(mine) & np.isfinite(theirs)
        largest = float(np.max(np.abs(mine[both_finite]), initial=0))
        is_far = ~is_odd & ~(np.abs(mine - theirs) <= _CLOSE * largest)
        is_far &= mine != theirs
        differs = ~is_odd & (mine != theirs)
    if is_ordinary and is_far.any():
        return "wrong values"
    return "precision" if differs.any() else "sign of zero or NaN"


def _different(name: str, got: np.ndarray | None, exact: np.ndarray, severity: Severity) -> Finding:
    words = f"gives other values: {difference(got, exact)}"
    return Finding(
        "",
        f"the model, output {name!r}",
        "",
        "",
        severity,
        "differs",
        (),
        words,
        "seen when it was run there",
        is_seen=True,
    )


def difference(got: np.ndarray | None, exact: np.ndarray) -> str:
    """The first element that differs, or what else does, in words."""
    wanted = f"{exact.dtype}{list(exact.shape)}"
    if got is None or got.shape != exact.shape or got.dtype != exact.dtype:
        return f"{'nothing' if got is None else f'{got.dtype}{list(got.shape)}'} for {wanted}"
    pairs = enumerate(zip(got.reshape(-1), exact.reshape(-1), strict=True))
    index, pair = next((index, pair) for index, pair in pairs if not oracle.same_bits(*map(np.asarray, pair)))
    return f"{pair[0]} for {pair[1]} at the flat index {index}"


def _refused(answer: Answer) -> Finding:
    kind = _KINDS.get(answer.kind, "refused")
    return Finding(
        "", "the model", "", "", "refused", kind, (), answer.words, "seen when it was run there", is_seen=True
    )


def _first_line(error: EltwiseError) -> str:
    if not isinstance(error, ManyProblemsError):
        return str(error)
    first, *others = error.problems
    return f"{first} and {counted(len(others), 'problem')} more"
