"""Make two small checkpoints: one as it was trained, one as a converter with several faults wrote it.

Run ``python examples/make_checkpoints.py``; it writes the same files to ``examples/checkpoints`` every time.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

FOLDER = Path(__file__).parent / "checkpoints"


def trained() -> dict[str, np.ndarray]:
    """The weights of a small transformer block."""
    rng = np.random.default_rng(12)

    def weights(*sizes: int) -> np.ndarray:
        return np.asarray(rng.standard_normal(sizes) / np.sqrt(sizes[-1]), np.float32)

    return {
        "tokens.weight": weights(96, 16),
        "attention.qkv.weight": weights(48, 16),
        "attention.out.weight": weights(16, 16),
        "norm.weight": weights(16) + np.float32(1),
        "mlp.up.weight": weights(64, 16),
        "mlp.down.weight": weights(16, 64),
        "head.bias": weights(96),
    }


def converted(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same weights after a conversion that is wrong in five ways."""
    found = dict(weights)
    found["tokens.weight"] = weights["tokens.weight"].astype(ml_dtypes.bfloat16).astype(np.float32)
    query, key, value = np.split(weights["attention.qkv.weight"], 3)
    found["attention.qkv.weight"] = np.concatenate([key, query, value])
    found["attention.out.weight"] = np.ascontiguousarray(weights["attention.out.weight"].T)
    found["norm.weight"] = weights["norm.weight"].copy()
    found["norm.weight"][3:9:2] = np.nextafter(found["norm.weight"][3:9:2], np.float32(2))
    found["mlp.up.weight"] = weights["mlp.up.weight"].copy()
    found["mlp.up.weight"][:, 5] *= np.float32(1.125)
    found["lm_head.bias"] = found.pop("head.bias")
    return found


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    weights = trained()
    save_file(weights, FOLDER / "trained.safetensors")
    save_file(converted(weights), FOLDER / "converted.safetensors")


if __name__ == "__main__":
    main()
