"""Eltwise itself, under test like every other; which kernels it takes its process is told by the environment."""

from __future__ import annotations

import numpy as np

from eltwise import model
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.engine import api
from eltwise.version import VERSION


class Eltwise:
    """``eltwise.operator`` for arrays, ``eltwise.load`` for models of both dialects."""

    def version(self) -> str:
        """Its version."""
        return VERSION

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **attributes: object) -> np.ndarray:
        """Call the operator."""
        return api.operator(op, **attributes)(a, b)

    def load(self, built: BuiltModel) -> Loaded:
        """Load a model."""
        loaded = model.load(built.data, built.weights if built.dialect == "openvino" else None)

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            # An input of IR has no name but its position, for both dialects the order is the model's.
            results = loaded.run({str(position): array for position, array in enumerate(feeds.values())})
            return list(results.values())

        return run
