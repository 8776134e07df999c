"""Compare two results of ``operators --json``: the rows whose time beside the best other library changed.

Times of two runs say little on a shared machine; ratios to a library that took turns with eltwise are comparable.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str]) -> int:
    """Print what became slower or faster; 1 if something became slower."""
    parser = argparse.ArgumentParser(prog="benchmarks.run changes", description=__doc__)
    parser.add_argument("before", type=Path, help="JSON of the older commit")
    parser.add_argument("after", type=Path, help="JSON of the newer commit")
    parser.add_argument("--least", type=float, default=0.1, help="the least change that is shown; 0.1 is 10 %%")
    options = parser.parse_args(arguments)
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.after))
    print(f"{before['commit'] or options.before} -> {after['commit'] or options.after}")
    changed = changes(before, after, options.least)
    print("\n".join(f"{share:+6.0%}  {name}" for name, share in changed.items()) or "no change")
    return int(any(share < 0 for share in changed.values()))


def changes(before: dict[str, Any], after: dict[str, Any], least: float) -> dict[str, float]:
    """How much faster each row of both results became beside the same other library, the slowest first."""
    ratios = {_name(row): row["ratios"] for row in before["rows"]}
    shares = {
        _name(row): row["ratios"][row["best_peer"]] / ratios[_name(row)][row["best_peer"]] - 1
        for row in after["rows"]
        if row["best_peer"] in ratios.get(_name(row), ())
    }
    return {name: share for name, share in sorted(shares.items(), key=lambda pair: pair[1]) if abs(share) >= least}


def _name(row: dict[str, Any]) -> str:
    return f"{row['workload']} of {row['type']}"
