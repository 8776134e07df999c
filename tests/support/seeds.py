"""The seed of all random data of the tests, and how many examples a property is tried on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, seed, settings

SEED = int(os.environ.get("ELTWISE_SEED", "20261121"))


def examples(count: int) -> Callable[[Any], Any]:
    """A property is tried on so many examples, or on as many as ``ELTWISE_EXAMPLES`` says."""
    chosen = int(os.environ.get("ELTWISE_EXAMPLES", count))
    healthy = [HealthCheck.too_slow, HealthCheck.data_too_large]
    limits = settings(max_examples=chosen, deadline=None, suppress_health_check=healthy)
    return lambda test: seed(SEED)(limits(test))
