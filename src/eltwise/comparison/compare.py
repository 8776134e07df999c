"""Two sets of tensors compared: matched, measured one after the other, explained."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from eltwise.comparison.alike import explain_alike
from eltwise.comparison.arrays import compare_tensors
from eltwise.comparison.hypotheses import ComparisonSettings
from eltwise.comparison.intake import as_in_file, attributes_of, in_memory, parts_of
from eltwise.comparison.matching import Copies, Pairs, match
from eltwise.comparison.naming import Renaming, exchanged, renamings
from eltwise.comparison.others import compare_parameters, compare_values, missing_values, notes
from eltwise.comparison.report import ComparisonReport
from eltwise.comparison.tensor_report import TensorReport
from eltwise.comparison.tolerance import ToleranceLike, Tolerances, check_patterns, parse_tolerances, tolerance_of
from eltwise.core.border import public, stripped
from eltwise.core.containers import dotted, items_of, leaves
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, FileFormatError
from eltwise.core.progress import Meter, Progress, no_progress
from eltwise.engine.pandas_objects import check_labels
from eltwise.formats import registry
from eltwise.formats.file_states import check_unchanged, states_of
from eltwise.formats.tensor_sets import constants_of, open_tensors
from eltwise.ir.graph import Graph
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Tensor
from eltwise.kernels.float_mode import default_mode


@public
def compare(
    a: object,
    b: object,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: int | None = None,
    tolerance: ToleranceLike = None,
    causes: bool = True,
    order: object = None,
    progress: Progress = no_progress,
) -> ComparisonReport:
    """Compare two sets of tensors: which differ, where, by how much, and why.

    Each side is a path, an array, a nested dictionary or list of arrays, an ``onnx.ModelProto`` or a loaded model. A
    path is a .npy, .npz, .pb, .safetensors, .onnx or .xml file, the index of a checkpoint in shards, a zarr store, or a
    folder of these; or what an installed library reads: .pth, .gguf, .h5, .nc, ``hf://ORGANISATION/MODEL``. Files may
    be larger than memory.

    Args:
        a: the reference.
        b: what is compared with it.
        rtol: the largest difference relative to A that is forgiven.
        atol: the largest absolute one. An element is within both if ``abs(a - b) <= atol + rtol * abs(a)``.
        ulp: the largest distance in units of the last place.
        tolerance: what is forgiven of some tensors: ``{"logits*": "ulp<=4"}``; or a text such as ``"ulp<=1"`` or
            ``"logits*: rtol=1e-3, atol=1e-5"``, several of these, of which the last one that is for a tensor counts, or
            ``"@FILE"`` with one a line. What it names has no other limit.
        causes: whether the causes of differences are looked for.
        order: a model, or the path of one, in whose order the tensors are reported; by default it is that of A.
        progress: receives how many bytes have been read, and the name of the tensor.

    Returns:
        The report: its fields, as text with ``str``, as JSON and HTML, and ``assert_within`` for tests.

    Raises:
        EltwiseError: for what cannot be read, for what is no tolerance, for a tolerance that is for no tensor, and for
            a file that changes while it is read.

    >>> import numpy as np
    >>> compare({"w": np.float32([1, 2])}, {"w": np.float32([1, 2.5])})["w"].max_abs
    0.5
    """
    with default_mode():
        tolerances = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
        graph = None if order is None else graph_of(order)
        a, b = as_in_file(a, b), as_in_file(b, a)
        sets = tensors_of(a, "A"), tensors_of(b, "B")
        check_labels(a, b)
        report = compare_sets(*sets, tolerances, causes, progress, graph)
        _check_labels_of_renamed(a, b, report)
        return report


def _check_labels_of_renamed(a: object, b: object, report: ComparisonReport) -> None:
    """Refuse objects that were compared though they have other names, where they have other labels."""
    renamed = [each for each in report if each.name != each.other_name]
    of_a, of_b = ({dotted(keys): leaf for keys, leaf in leaves(side, "")} if renamed else {} for side in (a, b))
    for each in renamed:
        check_labels(of_a.get(each.name), of_b.get(each.other_name))


def tensors_of(source: object, side: str, raw_type: ElementType | None = None) -> TensorSet:
    """Take in one side of a comparison."""
    if isinstance(source, TensorSet):
        return source
    if isinstance(source, str | os.PathLike):
        return open_tensors(source, raw_type)
    if hasattr(source, "graph"):
        from eltwise.formats.onnx.reader import is_model_proto
        from eltwise.model import Model

        if isinstance(source, Model) or is_model_proto(source):
            return constants_of(graph_of(source), side)
    if hasattr(source, "state_dict"):
        hint = "compare its tensors: state_dict()"
        raise ElementTypeError("a module is no set of tensors", operand=side, got=type(source).__name__, hint=hint)
    if items_of(source) is None and len(parts_of("", source)) > 1:
        source = {"array": source}  # Both sides call its parts so.
    tensors = replace(attributes_of(source, side), is_one=items_of(source) is None)
    for keys, value in leaves(source, side):
        for part, content in parts_of(dotted(keys) or side, value).items():
            tensors.add(part, in_memory, part, content, side, f"tensor {part!r}")
    if tensors.unreadable and not (tensors.tensors or tensors.others):
        raise next(iter(tensors.unreadable.values()))
    return tensors


def graph_of(source: object) -> Graph:
    """The graph of a loaded model, of an ``onnx.ModelProto``, or of the file at a path; elements are not read."""
    from eltwise.model import Model

    if isinstance(source, Model):
        return source.graph
    return registry.read(source, reads_weights=False).graph  # type: ignore[arg-type]  # It refuses what is no model.


def _positions(a: TensorSet, graph: Graph) -> dict[str, int]:
    """The names of tensors that a model uses, by their names there or by content, in the order of its nodes."""
    used = dict.fromkeys(name for node in graph.nodes for name in (*node.inputs, *node.outputs))
    position = {name: number for number, name in enumerate(used)}
    pairs = match(a, constants_of(graph, "order"))[0]
    return {one.name: position[other.name] for one, other in pairs if other.name in position}


def compare_sets(
    a: TensorSet,
    b: TensorSet,
    tolerances: Tolerances = (),
    causes: bool = True,
    progress: Progress = no_progress,
    order: Graph | None = None,
) -> ComparisonReport:
    """Compare two sets that are opened already; the arguments are those of ``compare``.

    What cannot be read on the way is said in ``unreadable``, and the other tensors are compared.
    """
    for side in (a, b):
        if not (side or side.others or side.models or side.unreadable):
            raise FileFormatError("there are no tensors to compare", where=side.where)
    states = states_of([a, b])
    pairs, missing, extra, unread = match(a, b)
    names = Counter(name for one, other in pairs for name in {(one.name, ""), ("", other.name)})
    errors = [*a.unreadable.values(), *b.unreadable.values(), *unread]
    values = list(compare_values(a, b, errors))
    replaced = {each.name for each in values}
    check_patterns(tolerances, [*a, *a.unreadable, *b, *b.unreadable])
    meter, copies = Meter(sum(_bytes(one) + _bytes(other) for one, other in pairs), progress), Copies(a)
    settings_of = cache(lambda tolerance: ComparisonSettings(tolerance, causes, meter, copies))
    reports, compared = _compared(pairs, lambda *names: settings_of(tolerance_of(tolerances, *names)), meter, errors)
    if causes:
        explain_alike(compared, reports)
    rules, renamed = list[tuple[Renaming, int]](), list[tuple[str, str]]()
    if not (a.is_one or b.is_one):
        reports = [_named(report, names) for report in reports]
        renamed = [(each.name, each.other_name) for each in reports if each.cause != "shared"]
        rules = renamings(renamed)
    check_unchanged(states)
    if order is not None:
        positions = _positions(a, order)
        reports.sort(key=lambda each: positions.get(each.name, math.inf))
    return ComparisonReport(
        tensors=tuple(reports),
        missing=(*(name for name in missing if name not in replaced), *missing_values(a, b)),
        extra=(*(name for name in extra if name not in replaced), *missing_values(b, a)),
        unreadable=tuple(dict.fromkeys(map(str, errors))),
        tolerances=tolerances,
        sources=(a.where, b.where),
        renamings=tuple((str(rule), count) for rule, count in rules),
        notes=tuple(dict.fromkeys([*a.notes, *b.notes, *notes(a, b)])),
        others=(*values, *compare_parameters(a, b, pairs)),
        exchanged=() if a.models and b.models else tuple(exchanged(renamed)),  # Nodes tell what each tensor is.
    )


def _compared(
    pairs: Pairs, settings_of: Callable[..., ComparisonSettings], meter: Meter, errors: list[EltwiseError]
) -> tuple[list[TensorReport], list[tuple[Tensor, Tensor]]]:
    """The records of pairs that can be read, and these pairs; an error is added for each other one."""
    reports, compared = list[TensorReport](), list[tuple[Tensor, Tensor]]()
    for one, other in pairs:
        meter.text, end = one.name, meter.done + _bytes(one) + _bytes(other)
        settings = settings_of(one.name, other.name)
        try:
            reports.append(compare_tensors(one, other, settings))
            compared.append((one, other))
        except EltwiseError as error:
            errors.append(stripped(error))
        meter.add(end - meter.done)  # Not all is read of other shapes, or of a file that turns bad.
    return reports, compared


def _bytes(tensor: Tensor) -> int:
    return tensor.size * tensor.storage.itemsize


def _named(report: TensorReport, names: Mapping[tuple[str, str], int]) -> TensorReport:
    """Say of a tensor that it has another name in B, or that one side has it once for several names."""
    if report.name == report.other_name:
        return report
    side = "B" if names["", report.other_name] > 1 else "A" if names[report.name, ""] > 1 else ""
    if report.status == "equal" and side:
        name = report.other_name if side == "B" else report.name
        text = f"{side} has it once for several names, as {name!r}, with the same content"
        return replace(report, cause="shared", cause_share=1.0, explanation=text)
    text = f"it is called {report.other_name!r} in B"
    if report.status == "equal":
        return replace(report, cause="renamed", cause_share=1.0, explanation=f"{text}, with the same content")
    return replace(report, explanation=f"{text}; {report.explanation}".removesuffix("; "))
