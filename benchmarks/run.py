"""The command ``python -m benchmarks.run NAME``: run a benchmark; ``--help`` behind the name shows its options."""

from __future__ import annotations

import sys
from importlib import import_module

BENCHMARKS = {
    "operators": "operators and models beside the other libraries: a table, JSON, Markdown or pictures",
    "changes": "compare two results of operators --json, such as those of two commits",
    "assertions": "assertions of equal arrays, beside numpy.testing and torch.testing",
    "comparison": "figures of two arrays in one pass, beside NumPy and reading",
    "deltas": "size and speed of deltas of fine-tuned checkpoints",
    "functions": "functions of real numbers, such as Exp and Gelu, beside the other libraries",
    "planning": "what a job of many chunks costs Dask's scheduler",
    "progress_picture": "draw what a terminal shows of a resumed job",
    "reductions": "mean squared differences beside NumPy, Dask and reading",
    "stores": "differences of zarr arrays beside Dask and a copy of the files",
    "traces": "time and memory of a trace beside a script that keeps all values",
}
"""What each benchmark measures, by the name of its module, which has a function ``main``."""


def main() -> int:
    """Run the benchmark that the first argument names, with the arguments behind it."""
    name, arguments = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]
    if name not in BENCHMARKS:
        print("usage: python -m benchmarks.run NAME [OPTIONS]\n")
        print("\n".join(f"  {each:17} {text}" for each, text in BENCHMARKS.items()))
        return 2 if name and name not in ("-h", "--help") else 0
    status: int = import_module(f"benchmarks.{name}").main(arguments) or 0
    return status


if __name__ == "__main__":
    sys.exit(main())
