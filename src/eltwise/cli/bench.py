"""``eltwise bench``: the benchmarks are not part of the package; this says where they are."""

from __future__ import annotations

import typer

from eltwise.core.errors import UnsupportedError

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def bench(context: typer.Context) -> None:
    """Say how the benchmarks are run."""
    del context
    raise UnsupportedError("the benchmarks are in the source checkout, not in the package", hint="`make bench`")
