"""``eltwise.conform``: test runtimes against the specifications."""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import EXTENTS, Extent
from eltwise.conformance.run import RunSettings, run_tests
from eltwise.conformance.selection import select
from eltwise.core.border import check_limit, check_seed, public
from eltwise.core.errors import unknown_name
from eltwise.core.progress import Progress, no_progress
from eltwise.runtimes.host import LIMIT


@public
def conform(
    runtimes: str | Sequence[str] = (),
    *,
    ops: str | Sequence[str] = (),
    types: str | Sequence[str] = (),
    broadcast: str | Sequence[str] = (),
    sources: str | Sequence[str] = (),
    extent: Extent = "usual",
    seed: int = 0,
    limit: float = LIMIT,
    progress: Progress = no_progress,
) -> ConformanceReport:
    """Test runtimes on operator versions, compare the results bit for bit, and explain what differs.

    Args:
        runtimes: the names of runtimes, also with options; by default all that are installed.
        ops: operator versions such as ``"Sub-14"``; by default all.
        types: element types such as ``"uint8"``; by default all.
        broadcast: broadcast rules: ``"legacy"``, ``"numpy"``, ``"none"`` or ``"pdpd"``; by default all.
        sources: how operands reach the operator, such as ``"static"``; by default all.
        extent: how much is tested: ``"quick"`` takes one to four minutes a runtime, then ``"usual"``, ``"thorough"``.
        seed: of the random values.
        limit: how many seconds one answer of a runtime may take.
        progress: receives how many tests are done, and the one that is next.

    Returns:
        The report, with a record for each test.

    Raises:
        EltwiseError: for names that are not known, and where no test is of all of them.

    >>> conform("onnxruntime", ops="Sub-14", types="uint8", sources="static", extent="quick")
    <ConformanceReport: 1 test, 1 ok; quick, seed 0>
    """
    if extent not in EXTENTS:
        raise unknown_name("extent", extent, EXTENTS)
    check_seed(seed)
    check_limit(limit)
    choices = (runtimes, ops, types, broadcast, sources)
    selection = select(*((each,) if isinstance(each, str) else each for each in choices))
    return run_tests(selection, RunSettings(extent, seed, float(limit)), progress)
