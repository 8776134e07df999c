"""Runs of a whole model, as its file has it, with other specifications; outputs are compared with the right ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from eltwise.core.errors import EltwiseError
from eltwise.runtimes import Host
from eltwise.tracing.difference import largest, relative_error
from eltwise.tracing.runs import Runs
from eltwise.tracing.switches import Judge, Trial
from eltwise.tracing.whole import compare_output, run_whole


def judge_of(
    runs: Runs, right: Mapping[str, np.ndarray], start: Callable[[str], AbstractContextManager[Host]]
) -> Judge:
    """What runs the tested model as a whole with another specification.

    Args:
        runs: the runs of the trace.
        right: the right outputs by value.
        start: starts the process of a specification.
    """

    def judge(specification: str) -> Trial:
        names = [value for value in right if value in runs.model.producer]
        try:
            with start(specification) as host:
                runner = replace(runs.tested, host=host, name=specification)
                outcome = run_whole(runner, runs.feeds, names, runner)
                if outcome.message or not outcome.values.keys() >= {*names}:
                    return Trial(specification, "disagree")
                differences = {name: compare_output(runs, name, outcome.values, right) for name in names}
        except EltwiseError:  # As of an option that this version does not have.
            return Trial(specification, "not_established")
        error = largest(relative_error(one.error, right[name]) for name, one in differences.items() if one.differing)
        is_wrong = any(one.is_beyond for one in differences.values())
        return Trial(specification, "disagree" if is_wrong else "agree", error)

    return judge
