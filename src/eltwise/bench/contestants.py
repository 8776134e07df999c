"""What takes part in a measurement: something that is made ready for a workload, then run again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eltwise.bench.onnx_models import INPUT_NAMES, OUTPUT_NAME, model_bytes
from eltwise.bench.results import OWN
from eltwise.bench.tensors import Tensors
from eltwise.bench.workloads import OWN_OUT, Workload
from eltwise.engine import api
from eltwise.model import load


class Refusal(Exception):  # noqa: N818 - a peer that cannot do a workload has not gone wrong
    """A peer cannot do a workload; the text says why."""


@dataclass(frozen=True)
class Ready:
    """A contestant that is ready for one workload.

    Attributes:
        name: who it is.
        run: computes the result once.
        fetch: gives the array of what ``run`` returned.
    """

    name: str
    run: Callable[[], Any]
    fetch: Callable[[Any], np.ndarray]


class Peer(Protocol):
    """A runtime that is measured beside this project."""

    @property
    def name(self) -> str:
        """What it is called, which is also the name of its package."""
        ...

    def version(self) -> str:
        """Its version."""
        ...

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready for a workload.

        Raises:
            Refusal: where it cannot do that.
        """
        ...


def own_contestants(workload: Workload, tensors: Tensors) -> tuple[Ready, ...]:
    """This project for a workload; where the call makes its result, also the same call with ``out``."""
    if workload.call == "model":
        return (_own_model(workload, tensors),)
    functions = {"subtract": api.subtract, "squared_difference": api.squared_difference}
    function = functions[workload.formula]
    a, b = tensors.operands
    out = tensors.out
    with_out = Ready(OWN, lambda: function(a, b, out=out), np.asarray)
    if workload.call == "out":
        return (with_out,)
    making = Ready(OWN, lambda: function(a, b), np.asarray)
    if any(target.than == OWN_OUT for target in workload.targets):
        return making, Ready(OWN_OUT, with_out.run, np.asarray)
    return (making,)


def _own_model(workload: Workload, tensors: Tensors) -> Ready:
    model = load(model_bytes(workload))
    feeds: dict[str, object] = dict(zip(INPUT_NAMES, tensors.operands, strict=False))
    return Ready(OWN, lambda: model.run(feeds), lambda results: np.asarray(results[OUTPUT_NAME]))
