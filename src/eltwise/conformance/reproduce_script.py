"""Runs the case in this folder with its runtime alone, and compares the result with the reference, bit for bit.

case.json says what the case is; adapter.py speaks to the runtime. Exit code 0: the result is right; 1: it is not.
"""

import importlib
import json
import os
from pathlib import Path

import ml_dtypes
import numpy as np

HERE = Path(__file__).parent
CASE = json.loads((HERE / "case.json").read_text(encoding="utf-8"))


def read(name: str, dtype: str) -> np.ndarray:
    """Read an array; .npy files have no name for the types of ml_dtypes and hold them as raw bytes."""
    stored: np.ndarray = np.load(HERE / f"{name}.npy")
    return stored.view(np.dtype(getattr(ml_dtypes, dtype, dtype)))


def run() -> object:
    """Run the case and give the output that is compared."""
    os.environ.update(CASE["environment"])
    adapter = getattr(importlib.import_module("adapter"), CASE["adapter"])(*CASE["arguments"], **CASE["options"])
    inputs = [read(name, dtype) for name, dtype in CASE["inputs"].items()]
    if CASE["model"]:
        weights = HERE / "model.bin"
        data = (HERE / CASE["model"]).read_bytes()
        loaded = adapter.load(data, weights.read_bytes() if weights.exists() else b"")
    else:
        loaded = adapter.compile(CASE["op"], CASE["steps"], CASE["attributes"])
    before = [array.tobytes() for array in inputs]
    output = loaded.arrays(loaded.bind(inputs)())[CASE["output"]]
    if [array.tobytes() for array in inputs] != before:
        raise SystemExit("it wrote to its inputs")
    return output


def is_right(got: object, expected: np.ndarray) -> bool:
    """Whether the type, the shape and every bit are right; any NaN equals any NaN."""
    if not isinstance(got, np.ndarray) or (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return False
    bits = [np.frombuffer(array.tobytes(), f"u{array.dtype.itemsize}") for array in (got, expected)]
    both_nan = ((got != got) & (expected != expected)).reshape(-1)  # noqa: PLR0124
    return bool(((bits[0] == bits[1]) | both_nan).all())


def main() -> None:
    """Print what came beside what is expected."""
    for line in CASE["about"]:
        print(line)  # noqa: T201
    got = run()
    described = f"{got.dtype} {list(got.shape)} {got.ravel()[:8]}" if isinstance(got, np.ndarray) else repr(got)
    print(f"got      {described}")  # noqa: T201
    if CASE["expected"] is None:
        raise SystemExit("the specification requires an error")
    expected = read("expected", CASE["expected"])
    print(f"expected {expected.dtype} {list(expected.shape)} {expected.ravel()[:8]}")  # noqa: T201
    raise SystemExit(0 if is_right(got, expected) else "the bits differ")


if __name__ == "__main__":
    main()
