"""Which switch makes a wrong model right: an option, an optimizer, a version. One search, whoever judges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TypeVar

from eltwise.core.errors import named
from eltwise.core.escaping import on_one_line
from eltwise.ir.graph import Graph
from eltwise.runtimes.specification import Settings, Specification, split
from eltwise.tracing.records import Verdict
from eltwise.tracing.search import smallest

_T = TypeVar("_T", bound=Hashable)

_OPTIMIZERS = """AttentionFusion Avx2WeightS8ToU8Transformer BiasDropoutFusion BiasGeluFusion BiasSkipLayerNormFusion
BiasSoftmaxFusion CastChainElimination CastElimination ClipQuantRewrite CommonSubexpressionElimination ConstantFolding
ConstantFoldingDQ ConstantSharing ConvActivationFusion ConvAddActivationFusion ConvAddFusion ConvBNFusion ConvMulFusion
DivMulFusion DoubleQDQPairsRemover DQMatMulNBitsFusion DynamicQuantizeMatMulFusion EliminateDropout EliminateIdentity
EliminateSlice EmbedLayerNormFusion EnsureUniqueDQForNodeUnit ExpandElimination FastGeluFusion FuseReluClip
GatherSliceToSplitFusion GatherToSliceFusion GatherToSplitFusion GeluApproximation GeluFusionL1 GeluFusionL2
GemmActivationFusion GemmSumFusion GemmTransposeFusion GroupQueryAttentionFusion IsInfReduceSumFusion LabelEncoderFusion
LayerNormFusionL1 LayerNormFusionL2 MatMulActivationFusion MatMulAddFusion MatMulIntegerToFloatFusion MatMulScaleFusion
MatMulNBitsFusion MatMul_BatchNormalization_Fusion MatmulTransposeFusion NchwcTransformer NhwcTransformer
NoopElimination NotWhereFusion Pad_Fusion PreShapeNodeElimination QDQFinalCleanupTransformer QDQPropagationTransformer
QDQS8ToU8Transformer QDQSelectorActionTransformer QuickGeluFusion ReluQuantRewrite RemoveDuplicateCastTransformer
ReshapeFusion RocmBlasAltImpl SimplifiedLayerNormFusion SkipLayerNormFusion SliceConcatToSpaceToDepthFusion
TransposeOptimizer UnsqueezeElimination WeightBiasQuantization WhereDummyDq"""


@dataclass(frozen=True)
class Ladder:
    """Settings that are tried.

    Attributes:
        steps: the settings, from those that change a model least; the last ones are the default.
        parts: what the options switch on as a whole, which another option, a list, switches off one by one.
        parts_option: that other option.
        of_bytes: options of which one may make a model right that has products of bytes.
    """

    steps: tuple[Settings, ...]
    parts: tuple[str, ...] = ()
    parts_option: str = ""
    of_bytes: Settings = ()


_LEVELS = ("disabled", "basic", "extended", "layout", "all")
_FULL_PRECISION = ("precision", "f32")
_NOT_QUANTIZED = ("config.DYNAMIC_QUANTIZATION_GROUP_SIZE", "0")
_NOT_IN_INTEGERS = ("config.session.qdq_matmulnbits_accuracy_level", "1")
"""Activations that meet integer weights are quantized at run time otherwise, in OpenVINO and in onnxruntime."""

_NOT_SATURATED = ("config.session.x64quantprecision", "1")
_NOT_IN_BYTES = ("config.LP_TRANSFORMS_MODE", "NO")
"""Sums of two products of bytes saturate in int16 otherwise, on processors without VNNI: what each runtime reads."""

_OF_BYTES = ("Quantize", "Integer", "NBits")
"""In the names of operators that multiply bytes, or make them, as those that start with Q do."""

LADDERS: Mapping[str, tuple[Ladder, ...]] = {
    "onnxruntime": (
        Ladder(
            tuple((("optimization", level),) for level in _LEVELS),
            tuple(_OPTIMIZERS.split()),
            "disabled_optimizers",
            (_NOT_SATURATED, _NOT_IN_INTEGERS),
        ),
    ),
    **dict.fromkeys(
        ("openvino", "openvino-onnx"),
        (Ladder(((_NOT_QUANTIZED, _FULL_PRECISION), (_FULL_PRECISION,), ()), of_bytes=(_NOT_IN_BYTES,)),),
    ),
}
"""The switches of each runtime. onnxruntime ignores the names of optimizers that a version does not have."""


@dataclass(frozen=True)
class Trial:
    """A run of a model that was tried because another one is wrong.

    Attributes:
        name: the specification of the runtime, or the command that makes the model.
        verdict: what came of it.
        error: the largest error of an output, as a part of its largest value; None where it was not measured.
        exception: what is wrong although the outputs are right, as special values of a node that runs alone.
    """

    name: str
    verdict: Verdict
    error: float | None = None
    exception: str = ""

    def __str__(self) -> str:
        if self.verdict == "agree":
            return on_one_line(f"with {self.name} it does")
        if self.verdict == "not_established":
            return on_one_line(f"with {self.name} whether it does is not established")
        if self.exception:
            return on_one_line(f"with {self.name} it does, {self.exception}")
        by = "" if self.error is None else f", by at most {self.error:.2g} of the largest value of an output"
        return on_one_line(f"with {self.name} it does not either{by}")

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return dict(vars(self))


Judge = Callable[[str], Trial]
"""Runs a model with a specification; its outputs are right where the verdict is ``agree``."""


@dataclass(frozen=True)
class Switches:
    """What came of the search.

    Attributes:
        trials: every run, in order.
        sentences: which switches make the model right, and which make it wrong.
        remedies: the specifications that make it right and change the least.
    """

    trials: tuple[Trial, ...] = ()
    sentences: tuple[str, ...] = ()
    remedies: tuple[Trial, ...] = ()

    def __str__(self) -> str:
        return on_one_line("; ".join(self.sentences))

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {
            "sentence": str(self),
            "remedies": [trial.to_dict() for trial in self.remedies],
            "trials": [trial.to_dict() for trial in self.trials],
        }


class _Search:
    """Runs each specification once, and keeps what came of it and what follows from that."""

    def __init__(self, judge: Judge) -> None:
        self.trials: dict[str, Trial] = {}
        self.sentences, self.remedies = list[str](), list[str]()
        self._judge = judge

    def is_right(self, specification: str) -> bool | None:
        """Whether a specification makes the model right; None where that is not established."""
        if specification not in self.trials:
            self.trials[specification] = self._judge(specification)
        verdict = self.trials[specification].verdict
        return None if verdict == "not_established" else verdict == "agree"

    def was_wrong(self, specification: str) -> bool:
        """Whether a specification was run and is wrong."""
        return specification in self.trials and self.trials[specification].verdict == "disagree"

    def change(self, items: Sequence[_T], specification: Callable[[_T], str]) -> tuple[_T, _T] | None:
        """Find two neighbours of which one is right and one is wrong, by halving; None if the ends are alike."""

        @cache
        def is_right(item: _T) -> bool | None:
            return self.is_right(specification(item))

        left = list(items)
        while len(left) > 1 and is_right(left[-1]) is None:
            left.pop()
        while len(left) > 1 and is_right(left[0]) is None:
            left.pop(0)
        if len(left) < 2 or is_right(left[0]) == is_right(left[-1]):
            return None
        while len(left) > 2:
            middle = len(left) // 2
            if is_right(left[middle]) is None:
                del left[middle]
            else:
                left = left[middle:] if is_right(left[middle]) == is_right(left[0]) else left[: middle + 1]
        return left[0], left[1]


def find_switches(
    specification: str, judge: Judge, versions: Sequence[str] = (), *, has_bytes: bool = False
) -> Switches:
    """Find what makes a model right that is wrong with a run specification.

    Its options are tried step by step, then their parts one by one, then versions; each search halves what is left.

    Args:
        specification: what the model is wrong with.
        judge: runs the model with another specification.
        versions: of the runtime, the oldest first, among which the change is sought.
        has_bytes: whether the model may have products of bytes.
    """
    current, search = split(specification), _Search(judge)
    search.trials[specification] = Trial(specification, "disagree")
    for ladder in LADDERS.get(current.name, ()):
        _climb(search, current, ladder, has_bytes=has_bytes)
    if versions:
        _of_versions(search, current, versions)
    del search.trials[specification]
    remedies = tuple(search.trials[one] for one in search.remedies if one in search.trials)
    return Switches(tuple(search.trials.values()), tuple(search.sentences), remedies)


def multiplies_bytes(graph: Graph) -> bool:
    """Whether a model may have products of bytes, or of fewer bits."""
    names = {node.schema.name for node in graph.nodes}
    return any(name.startswith("Q") or any(part in name for part in _OF_BYTES) for name in names)


def _climb(search: _Search, specification: Specification, ladder: Ladder, *, has_bytes: bool) -> None:
    """Try the steps below the present one, and where one is right, the parts of what is above.

    OpenVINO may be wrong at the lowest step and right above it, where the reference quantizes operands as well.
    """
    options = {option for step in ladder.steps for option, _value in step}
    others = {option: value for option, value in specification.settings if option not in options}
    chosen = tuple(pair for pair in specification.settings if pair[0] in options) or ladder.steps[-1]
    below = ladder.steps.index(chosen) if chosen in ladder.steps else len(ladder.steps) - 1
    steps = [*ladder.steps[:below], chosen]

    def specified(settings: Settings) -> str:
        return str(specification._replace(settings=tuple(sorted({**others, **dict(settings)}.items()))))

    def of_step(step: Settings) -> str:
        return str(specification) if step == chosen else specified(step)

    starts = range(1 if ladder.parts else below)  # Where parts are switched off one by one, the lowest has none.
    changes = (search.change(steps[start:], of_step) for start in starts)
    change = next((change for change in changes if change is not None), None)
    with_option = {option: specified((*specification.settings, option)) for option in ladder.of_bytes if has_bytes}
    option = next((option for option, text in with_option.items() if search.is_right(text)), None)
    if option is not None:
        search.remedies.append(with_option[option])
        search.sentences.append(f"right with {_written((option,))}")
    if change is None:
        wrong = (step for step in steps[:-1] if search.was_wrong(of_step(step)))
        search.sentences += [f"{_written(step)} does not help" for step in islice(wrong, 1)]
        return
    right, above = change
    search.remedies.append(of_step(right))
    search.sentences.append(f"right with {_written(right)}")
    search.sentences.append(f"wrong with {_written(above)}" if above else "wrong without")

    def without(parts: Sequence[str]) -> str:
        return specified((*specification.settings, (ladder.parts_option, "+".join(sorted(parts)))))

    off = smallest(ladder.parts, lambda parts: bool(search.is_right(without(parts))))
    if off and search.is_right(without(off)):
        search.remedies.append(without(off))
        search.sentences.append(f"right with {named(off)} disabled")


def _written(settings: Settings) -> str:
    return ",".join(f"{option}={value}" for option, value in settings)


def _of_versions(search: _Search, specification: Specification, versions: Sequence[str]) -> None:
    """Find the versions between which it changes."""

    def of_version(version: str) -> str:
        return str(specification._replace(version=version, python=""))

    name, change = specification.name, search.change(versions, of_version)
    if change is None:
        ends = [of_version(version) for version in versions]
        kind = "wrong" if all(map(search.was_wrong, (ends[0], ends[-1]))) else "the same as far as that is established"
        search.sentences.append(f"{kind} with {name} {versions[0]} and {versions[-1]}")
        return
    older, newer = change
    is_mended = bool(search.is_right(of_version(newer)))
    search.remedies.append(of_version(newer if is_mended else older))
    states = ("wrong", "right") if is_mended else ("right", "wrong")
    search.sentences.append(f"{states[0]} with {name} {older}, {states[1]} from {newer} on")
