"""The same graph in float64: what a runtime does not have in it is computed by a slower one, or in its own type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eltwise.core.dtypes import FLOAT32, of_numpy
from eltwise.tracing.run import Outcome, Side, Values


@dataclass(eq=False)
class WideSide(Side):
    """A model in float64.

    Attributes:
        slower: what computes the nodes that the runtime does not have in float64.
        narrow: what computes those that nothing has in it: the runtime, with the model as it is.
        not_widened: the nodes that were computed in their own type.
    """

    slower: Side = field(kw_only=True)
    narrow: Side = field(kw_only=True)
    not_widened: list[str] = field(default_factory=list)

    def run(self, numbers: Iterable[int], values: Mapping[str, np.ndarray], *given: Any, **options: Any) -> Outcome:
        """Run some nodes; of one that is refused, what it gives in its own type."""
        chosen = list(numbers)
        outcome = super().run(chosen, values, *given, **options)
        if not outcome.words or len(chosen) > 1:
            return outcome
        outcome = self.slower.run(chosen, values, *given, **options)
        if not outcome.words:
            return outcome
        types = self.narrow.model.types
        narrowed: Values = {}
        for name in self.narrow.model.reads[chosen[0]]:
            found = types.get(name)
            element_type = FLOAT32 if found is None or found.element_type is None else found.element_type
            is_wide = values[name].dtype == np.float64
            narrowed[name] = values[name].astype(element_type.storage) if is_wide else values[name]
        outcome = self.narrow.run(chosen, narrowed, *given, **options)
        if not outcome.words:
            node = self.model.nodes[chosen[0]]
            self.not_widened.append(f"{node.schema.name} {node.label!r}")
        return replace(outcome, values={name: widened(array) for name, array in outcome.values.items()})


def widened(array: np.ndarray) -> np.ndarray:
    """Floats with 64 bits; other types as they are."""
    return array.astype(np.float64) if is_float(array.dtype) else array


def is_float(dtype: np.dtype[np.generic]) -> bool:
    """Whether a type is a float, bfloat16 too."""
    return of_numpy(dtype).kind == "float"
