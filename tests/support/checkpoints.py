"""A transformer's checkpoint and what becomes of it: tuned, merged with an adapter, rounded, renamed, exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import ml_dtypes
import numpy as np

Rng = np.random.Generator
Arrays = dict[str, np.ndarray]

LARGEST_STEP, RANK = 3e-5, 4
RENAMED = "model.layers.* -> transformer.h.*"


def _tensors(rng: Rng, layers: int, width: int) -> Iterator[tuple[str, np.ndarray]]:
    yield "model.embed_tokens.weight", rng.standard_normal((5 * width, width)) / 20
    sizes = {
        **{f"attn.{one}.weight": (width, width) for one in "qkvo"},
        "mlp.up.weight": (4 * width, width),
        "mlp.down.weight": (width, 4 * width),
        "mlp.up.bias": (4 * width,),
        "mlp.down.bias": (width,),
    }
    for layer in range(layers):
        for name, shape in sizes.items():
            yield f"model.layers.{layer}.{name}", rng.standard_normal(shape) / 20
        for norm in ("norm1", "norm2"):
            yield f"model.layers.{layer}.{norm}.weight", 1 + rng.standard_normal(width) * 1e-5
            yield f"model.layers.{layer}.{norm}.bias", np.zeros(width)
    yield "model.norm.weight", 1 + rng.standard_normal(width)


def transformer(rng: Rng, layers: int = 24, width: int = 32) -> Arrays:
    """290 tensors of float32."""
    return {name: array.astype(np.float32) for name, array in _tensors(rng, layers, width)}


def tuned(a: Arrays, rng: Rng) -> Arrays:
    """Steps of at most 3e-5 in the matrices and biases of the layers."""
    return {
        name: array + rng.uniform(-LARGEST_STEP, LARGEST_STEP, array.shape).astype(np.float32)
        if "mlp" in name or "attn" in name
        else array
        for name, array in a.items()
    }


def merged(a: Arrays, rng: Rng) -> Arrays:
    """Adapters of rank 4 for queries and values."""
    return {
        name: array
        + (rng.standard_normal((len(array), RANK)) @ rng.standard_normal((RANK, len(array)))).astype("f4") / 500
        if ".q." in name or ".v." in name
        else array
        for name, array in a.items()
    }


def rounded(a: Arrays, _rng: Rng) -> Arrays:
    return {name: array.astype(ml_dtypes.bfloat16) for name, array in a.items()}


def rounded_in_float32(a: Arrays, _rng: Rng) -> Arrays:
    return {name: array.astype(np.float16).astype(np.float32) for name, array in a.items()}


def renamed(a: Arrays, _rng: Rng) -> Arrays:
    return {name.replace("model.layers.", "transformer.h."): array for name, array in a.items()}


def exported(a: Arrays, _rng: Rng) -> Arrays:
    """As converters do: matrices transposed under other names, the others as they are, and constants of the graph."""
    names = {
        name: f"onnx::MatMul_{number}" if "attn" in name or "mlp" in name else name for number, name in enumerate(a)
    }
    b = {names[name]: np.ascontiguousarray(array.T) if names[name] != name else array for name, array in a.items()}
    return b | {f"/Constant_{number}_output_0": np.array([number, -1]) for number in range(30)}


def noisy(a: Arrays, rng: Rng) -> Arrays:
    """As of sums in another order: within 4 eps of the largest value."""
    eps = 2.0**-23
    return {
        name: (array + rng.uniform(-4, 4, array.shape) * eps * np.abs(array).max()).astype(np.float32)
        for name, array in a.items()
    }


CHANGES: Mapping[str, tuple[Callable[[Arrays, Rng], Arrays], set[str]]] = {
    "unexplained": (tuned, {"unexplained"}),
    "low_rank": (merged, {"low_rank"}),
    "bfloat16_rounding": (rounded, {"bfloat16_rounding"}),
    "float16_rounding": (rounded_in_float32, {"float16_rounding"}),
    "renamed": (renamed, {"renamed"}),
    "transposed": (exported, {"transposed", "renamed"}),
    "noise": (noisy, {"noise", "last_bit"}),
}
"""Changes by their cause, with all causes that may be named."""
