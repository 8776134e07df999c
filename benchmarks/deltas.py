"""How large the delta of a fine-tuned checkpoint is, and how fast it is made.

A small transformer learns the text of Python's standard library byte by byte and is
then tuned on another part of it, both with AdamW; the checkpoints are saved as float32 and as bfloat16, as is usual
after training in mixed precision. Needs torch.
"""

from __future__ import annotations

import argparse
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import eltwise
from eltwise.scale.checksum import crc32c
from eltwise.scale.delta_file import to_planes

_LENGTH, _BATCH = 64, 8


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.run deltas", description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args(arguments).steps
    print("| type | learning rate | tuned, MB | zstd of tuned | delta | made in | restored in |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rate in (1e-5, 1e-4):
            for kind in _trained(Path(folder), steps, rate):
                print(_row(Path(folder), kind, rate))
    print(f"before compression, one core: {_rate():.2f} GB/s of tuned bytes")


def _trained(folder: Path, steps: int, rate: float) -> list[str]:
    """Write base and tuned checkpoints of both types."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    text = np.frombuffer(b"".join(path.read_bytes() for path in library), np.uint8)
    layer = torch.nn.TransformerEncoderLayer(384, 6, 1536, dropout=0.0, batch_first=True, norm_first=True)
    network = torch.nn.Sequential(
        torch.nn.Embedding(256, 384),
        torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False),
        torch.nn.Linear(384, 256),
    )
    for name, part, speed in (("base", text[: text.size // 2], 1e-3), ("tuned", text[text.size // 2 :], rate)):
        _train(network, part, steps, speed)
        for kind, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            tensors = {key: value.to(dtype).contiguous() for key, value in network.state_dict().items()}
            save_file(tensors, folder / f"{name}-{kind}.safetensors")
    return ["f32", "bf16"]


def _train(network: Any, text: np.ndarray, steps: int, rate: float) -> None:
    import torch

    optimizer = torch.optim.AdamW(network.parameters(), lr=rate)
    draw = np.random.default_rng(0)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(_LENGTH)
    for _step in range(steps):
        starts = draw.integers(0, text.size - _LENGTH - 1, _BATCH)
        rows = torch.from_numpy(np.stack([text[start : start + _LENGTH + 1] for start in starts]).astype(np.int64))
        hidden = network[1](network[0](rows[:, :-1]), mask=mask)
        loss = torch.nn.functional.cross_entropy(network[2](hidden).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _row(folder: Path, kind: str, rate: float) -> str:
    import zstandard

    tuned, base = folder / f"tuned-{kind}.safetensors", folder / f"base-{kind}.safetensors"
    start = time.perf_counter()
    report = eltwise.delta(tuned, base, folder / "d.eltd")
    made = time.perf_counter()
    eltwise.restore(base, folder / "d.eltd", folder / "back.safetensors", force=True)
    restored = time.perf_counter()
    data = tuned.read_bytes()
    assert (folder / "back.safetensors").read_bytes() == data
    plain = len(zstandard.ZstdCompressor(level=3).compress(data))
    shares = f"{plain / len(data):.1%} | {report.delta_bytes / len(data):.1%}"
    times = f"{made - start:.2f} s | {restored - made:.2f} s"
    return f"| {kind} | {rate:g} | {len(data) / 1e6:.0f} | {shares} | {times} |"


def _rate() -> float:
    """Differences, planes and both checksums of bfloat16 in memory, in GB of tuned bytes a second."""
    draw = np.random.default_rng(0)
    base = draw.integers(0, 256, 4 << 20, np.uint8)
    tuned = (base.view(np.uint16) + draw.integers(-2, 3, 2 << 20).astype(np.uint16)).view(np.uint8)
    best = float("inf")
    for _turn in range(20):
        start = time.perf_counter()
        to_planes(tuned, base, 2)
        crc32c(tuned)
        crc32c(base)
        best = min(best, time.perf_counter() - start)
    return tuned.size / best / 1e9
