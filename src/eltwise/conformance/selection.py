"""The tests to run: which runtimes, operator versions, types, broadcast rules and operand sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eltwise import runtimes
from eltwise.conformance.cases import CALL, SOURCE_NAMES
from eltwise.conformance.operators import find_tested
from eltwise.conformance.results import Extent
from eltwise.conformance.variants import WHOLE_SOURCES, Variant, variants
from eltwise.core.dtypes import by_name
from eltwise.core.errors import AttributeValueError, unknown_name
from eltwise.runtimes import Runtime
from eltwise.runtimes.registry import RULES


@dataclass(frozen=True)
class Job:
    """One test: a runtime, a variant and an operand source; a thin one has the fewest cases."""

    runtime: Runtime
    variant: Variant
    source: str
    is_thin: bool = False

    @property
    def key(self) -> str:
        """The key of its result."""
        return f"{self.runtime.name}/{self.variant}/{self.source}"


@dataclass(frozen=True)
class Selection:
    """Which tests are run on which runtimes; an empty field means all."""

    runtimes: tuple[Runtime, ...]  # The runtimes.
    ops: tuple[str, ...] = ()  # Versioned names.
    types: tuple[str, ...] = ()  # Element types by their NumPy names.
    rules: tuple[str, ...] = ()  # Broadcast rules.
    sources: tuple[str, ...] = ()  # Operand sources.

    def jobs(self, extent: Extent = "usual") -> Iterator[Job]:
        """The work, in the order in which its results are shown.

        A quick run that names no types tests with some types only: rules that an attribute chooses, unless it names
        rules; operand sources beside the usual one, unless it names sources; and, where it names nothing at all, old
        versions of operators that compute what a newer one does, which it tests thinly.
        """
        has_shares = extent == "quick" and not self.types
        has_few_rules, has_few_sources = has_shares and not self.rules, has_shares and not self.sources
        has_thin_tests = has_few_rules and has_few_sources and not self.ops
        for runtime in self.runtimes:
            for variant in variants():
                selected = (
                    (self.ops, str(variant.schema)),
                    (self.types, variant.element_type.name),
                    (self.rules, variant.rule),
                )
                is_selected = all(name in names for names, name in selected if names)
                if not (is_selected and _has(runtime, variant)):
                    continue
                is_thin = has_thin_tests and variant.is_repeated
                has_share = is_thin or (has_few_rules and variant.has_chosen_rule)
                if has_share and not variant.is_in_turn:
                    continue
                usual = variant.quick_sources() if has_few_sources else variant.sources
                sources = WHOLE_SOURCES if is_thin else self.sources or usual
                for source in variant.sources:
                    if source in sources and _takes(runtime, source):
                        yield Job(runtime, variant, source, is_thin)

    def left_out(self, extent: Extent) -> str:
        """Which tests of the usual run a run of an extent leaves out, or shortens; empty if none."""
        jobs, usual = list(self.jobs(extent)), sum(1 for _job in self.jobs())
        thin = sum(job.is_thin for job in jobs)
        if not thin and len(jobs) == usual:
            return ""
        left_out = f"{extent}: {usual - len(jobs):,} of {usual:,} tests are left out"
        what, few = "broadcast rules and operand sources", ""
        if thin:
            what, few = f"old operator versions, {what}", f"; {thin:,} of old versions have few cases"
        return f"{left_out}, of {what} that are tested with some types only{few}"


def _has(runtime: Runtime, variant: Variant) -> bool:
    """Whether a runtime has the operator, the rule and, as a library, functions for it."""
    if variant.schema.domain not in runtime.domains or (variant.rule not in runtime.rules and variant.count > 1):
        return False
    steps = variant.schema.expression().steps if runtime.library else ()
    try:
        names = [step.definition.library_name(runtime.library, variant.element_type) for step in steps]
    except LookupError:
        return False
    return all(names) and not any(step.parameters for step in steps)


def _takes(runtime: Runtime, source: str) -> bool:
    return source in (runtime.only or (source,)) and (runtime.calls if source == CALL else runtime.loads_models)


def select(
    names: Sequence[str], ops: Sequence[str], types: Sequence[str], rules: Sequence[str], sources: Sequence[str]
) -> Selection:
    """The tests of some runtimes, operators, types, rules and sources; of each no names mean all that are installed.

    Raises:
        NameUnknownError: for a name that is not known, with the nearest.
        AttributeValueError: where no test is of all of them.
        UnsupportedError: for an operator version of which no text states the bits.
    """
    for kind, chosen, known in (("broadcast rule", rules, RULES), ("operand source", sources, SOURCE_NAMES)):
        for name in chosen:
            if name not in known:
                raise unknown_name(kind, name, known)
    selection = Selection(
        tuple(map(runtimes.find, dict.fromkeys(names))) if names else runtimes.installed(),
        tuple(str(find_tested(name)) for name in ops),
        tuple(by_name(name).name for name in types),
        tuple(rules),
        tuple(sources),
    )
    if not any(True for _job in selection.jobs()):
        hint = "`eltwise ops` lists the types and broadcast rules of each operator"
        raise AttributeValueError("no test matches the selection", hint=hint)
    return selection
