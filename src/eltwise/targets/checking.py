"""Whether a model loads on a runtime and means the same there: each node that does not, what happens, what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from eltwise.core.errors import UnsupportedError
from eltwise.model import Model, load
from eltwise.passes.exactness import exact_wider
from eltwise.passes.verifying import VerificationError
from eltwise.targets.examining import Examined, examined
from eltwise.targets.judging import Decision, decide, judged, to_allow
from eltwise.targets.malformed import malformed, refused
from eltwise.targets.proving import RefusedThereError, proved
from eltwise.targets.report import Finding, TargetReport
from eltwise.targets.stamping import Stamps, stamps_for
from eltwise.targets.table import RUNTIMES, Kind, Measurement, Target, target_named
from eltwise.targets.table_file import shipped_table

if TYPE_CHECKING:
    from eltwise.model import Source


def check(source: Source | Model, target: str, *, weights: bytes | None = None, verify: bool = False) -> TargetReport:
    """Tell whether a model loads on a runtime and means the same there, by what was measured of it.

    Args:
        source: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model. Other
            operators than those of the catalog may be in it; they are counted and not judged.
        target: ``onnxruntime`` or ``openvino``.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether it is also run there and here on hard values, and the bits are compared, where both can run it.

    Returns:
        The report; ``is_good`` says that nothing was found. Without ``verify`` the runtime need not be installed.

    Raises:
        EltwiseError: where there is no such target, or no model to read.
    """
    known = target_named(target)
    model = examined(source, weights)
    measurement, note = measured(known, model)
    if measurement is None:
        return TargetReport(known, "", findings=(_not_read(known, model),))
    if not model.uses_onnx:
        return TargetReport(known, measurement.version, note, not_judged=model.not_judged)
    stamps = stamps_for(model, measurement)
    wrong = [refused(problem) for problem in malformed(model, known)]
    said = {finding.node for finding in wrong}
    of_nodes = (found for found in _of_nodes(measurement, model, stamps, known) if found.node not in said)
    others_found = (*_of_stamps(stamps, model, known), *of_nodes)
    found = (*wrong, *map(_not_yet, others_found)) if wrong else others_found
    places = judged(measurement, model.places)
    unknown = [place for place in model.places if not measurement.knows(place.schema)]
    others = Counter(f"{place.schema.versioned_name} (not measured)" for place in unknown)
    others.update(model.not_judged)
    beside = sum(place.is_beside_others for place in places)
    named = {finding.node for finding in found}
    right = 0 if wrong else sum(1 for place in places if place.node not in named)
    report = TargetReport(known, measurement.version, note, found, len(places), right, beside, others)
    return _verified(report, model, lambda: here(source, weights)) if verify else report


def _verified(report: TargetReport, model: Examined, before: Callable[[], Model]) -> TargetReport:
    """The report with what came of running the model there."""
    try:
        return replace(report, comparison=proved(before, model, report.target))
    except VerificationError as error:
        kind: Kind = "refused" if isinstance(error, RefusedThereError) else "differs"
        subject = f"the model, {error.operand}" if error.operand else "the model"
        words = f"{error.problem}: {error.got}" if error.got else error.problem
        run = Finding("", subject, "", "", kind, (), words, "seen when it was run there", False)
        return replace(report, findings=(*report.findings, run))


def here(source: Source | Model, weights: bytes | None = None) -> Model:
    """The model that a source is, whole.

    Raises:
        EltwiseError: where it has problems or holds what is not run here.
    """
    return source if isinstance(source, Model) else load(source, weights)


def _not_yet(finding: Finding) -> Finding:
    """What is said of the rest of a model that is refused as a whole, so that ``repair`` refuses it too."""
    helps = "what the model is refused for comes first" if finding.is_repairable else finding.helps
    return replace(finding, helps=helps, is_repairable=False)


def measured(target: Target, model: Examined) -> tuple[Measurement | None, str]:
    """What is known of a target for models of a dialect, and what is to be said with it.

    Returns:
        The measurement, None where the target does not read the dialect; and a note, empty where there is none.

    Raises:
        UnsupportedError: where nothing was measured.
    """
    runtime = RUNTIMES[target].get(model.dialect)
    if runtime is None:
        return None, ""
    installed = _installed(target)
    found = shipped_table().find(runtime, installed)
    if found is None:
        raise UnsupportedError(
            f"nothing was measured of {runtime}", hint=f"measure it: eltwise targets --refresh --runtime {runtime}"
        )
    if installed in ("", found.number):
        return found, ""
    return found, (
        f"{target} {installed} is installed here and was not measured; this is what {found.number} does "
        f"(eltwise targets --refresh --runtime {runtime} measures it)"
    )


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _not_read(target: Target, model: Examined) -> Finding:
    helps = "convert it first: eltwise convert IN.xml OUT.onnx"
    return Finding(
        "", f"OpenVINO IR {model.origin.file_version}", "", "", "refused", (), "it reads ONNX only", helps, False
    )


def _of_stamps(stamps: Stamps, model: Examined, target: Target) -> Iterator[Finding]:
    for subject, allowed in stamps.refused:
        helps = (
            "no version that it loads can say this model"
            if stamps.reason
            else f"eltwise repair --target {target} lowers it"
        )
        words = stamps.reason or f"it loads {allowed}"
        yield Finding("", subject, "", "", "refused", (), words, helps, not stamps.reason)


def _of_nodes(measurement: Measurement, model: Examined, stamps: Stamps, target: Target) -> Iterator[Finding]:
    for place in judged(measurement, model.places):
        decision = decide(measurement, place, opset=stamps.opset)
        if decision.now.runs:
            continue
        yield Finding(
            place.node,
            place.schema.versioned_name,
            place.element_type.name if place.element_type else "",
            place.rule,
            decision.now.kind,
            decision.now.reasons,
            decision.now.words,
            _helps(decision, stamps, target, model),
            bool(decision.way) and not model.unread,
        )


def _helps(decision: Decision, stamps: Stamps, target: Target, model: Examined) -> str:
    if decision.way and model.unread:
        return "what would help cannot be written, since the IR has layers that are not known here"
    if decision.way:
        return f"eltwise repair --target {target} {in_words(decision, stamps.opset)}, which was measured to be exact"
    names = to_allow(decision.now)
    if decision.now.kind == "not measured" and "unknown rank" in decision.place.layouts:
        return "the rank of an operand is not known: declare the shapes of the model's inputs, and check again"
    allowed = " ".join(f"--allow {name!r}" for name in names)
    exact = "nothing was measured of it" if decision.now.kind == "not measured" else "no way to write it is exact there"
    return f"{exact}; eltwise repair {allowed} leaves it as it is" if names else exact


def in_words(decision: Decision, opset: int) -> str:
    """What a way to write a node does."""
    place, words = decision.place, []
    way = decision.way or ""
    if "newer" in way:
        words.append(f"carries the model to opset {opset}")
    if "aligned" in way:
        words.append("aligns B by its shape")
    if "wider" in way:
        assert place.element_type is not None
        wider = exact_wider(place.schema.expression(), place.element_type)
        words.append(f"computes it in {wider} and casts back")
    return " and ".join(words)
