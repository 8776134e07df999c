"""Differences of zarr arrays on disk beside plain Dask and a plain copy.

Each contestant runs in a process of its own, and all take turns. The copy reads the files of both operands and writes
as many bytes as the result has, with as many threads: the speed of the disk or of the memory that the folder is on.
``--workers`` measures mean squared differences on clusters of so many processes instead.
"""

from __future__ import annotations

import argparse
import logging
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr

from eltwise.core.machine import machine_name
from eltwise.kernels.threads import num_threads

_ROWS, _COLUMNS, _CHUNK = 256, 16384, (256, 4096)
_ROW_BYTES = 4 * _COLUMNS
_MEMORY = 1 << 30


def main(arguments: Sequence[str]) -> None:
    """Make the arrays, measure, and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.run stores", description=__doc__)
    parser.add_argument("--gib", type=float, default=1, help="size of each operand")
    parser.add_argument("--dense", type=float, default=1, help="share of the chunks that are there")
    parser.add_argument("--codec", choices=("zstd", "none"), default="zstd")
    parser.add_argument("--folder", default=None, help="where the arrays are made, such as /dev/shm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="*", default=None)
    parser.add_argument("--run", nargs=4, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run is not None:
        name, *files = options.run
        print(_resources_of(lambda: _CONTESTANTS[name](*files)))
        return
    print(f"{machine_name()}, {num_threads()} threads, {datetime.now(UTC):%Y-%m-%d}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in "ab":
            make_array(Path(folder) / f"{name}.zarr", options.gib, options.dense, options.codec)
        if options.workers is not None:
            _on_clusters(Path(folder), options.workers, options.rounds)
        else:
            _print(_measured(Path(folder), options.rounds), options.gib * (1 << 30))


def make_array(path: Path, gib: float, dense: float, codec: str) -> None:
    """Make an array of float32 with a share of its chunks, from the first on."""
    rows = int(gib * (1 << 30)) // _ROW_BYTES // _ROWS * _ROWS
    plain: dict[str, Any] = {"compressors": None} if codec == "none" else {}
    array = zarr.create_array(str(path), shape=(rows, _COLUMNS), chunks=_CHUNK, dtype="float32", **plain)
    generator = np.random.default_rng([rows, *path.name.encode()])
    for row in range(0, int(rows * dense), _ROWS):
        array[row : row + _ROWS] = generator.standard_normal((_ROWS, _COLUMNS), np.float32)


def _eltwise(*files: str) -> None:
    from eltwise import operator
    from eltwise.scale.apply import apply_files
    from eltwise.scale.jobs import Resources

    apply_files(operator("Subtract-1"), files[:2], files[2], Resources(_MEMORY))


def _dask(*files: str) -> None:
    import dask.array as da

    (da.from_zarr(files[0]) - da.from_zarr(files[1])).to_zarr(files[2])


def _copy(*files: str) -> None:
    """Read the operands' files and write as many bytes as the result of eltwise has."""
    found = sorted(file for file in Path(files[0]).rglob("*") if file.is_file())
    target = Path(files[2])
    target.mkdir()

    def copy(number: int) -> None:
        other = Path(files[1]) / found[number].relative_to(files[0])
        data = found[number].read_bytes()
        if other.is_file():
            other.read_bytes()
        (target / str(number)).write_bytes(data)

    with ThreadPoolExecutor(num_threads()) as pool:
        list(pool.map(copy, range(len(found))))


_CONTESTANTS: dict[str, Callable[..., None]] = {"eltwise": _eltwise, "Dask": _dask, "copy": _copy}


def _resources_of(run: Callable[[], None]) -> str:
    start = time.perf_counter()
    run()
    wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return f"{wall} {used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}"


def _measured(folder: Path, rounds: int) -> dict[str, list[tuple[float, ...]]]:
    """For each contestant and round the seconds, those of processors, and MiB of memory."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in _CONTESTANTS}
    files = [str(folder / f"{name}.zarr") for name in "abc"]
    for _round in range(rounds):
        for name, samples in found.items():
            shutil.rmtree(files[2], ignore_errors=True)
            line = [sys.executable, "-W", "ignore", "-m", "benchmarks.run", "stores", "--run", name, *files]
            text = subprocess.run(line, check=True, capture_output=True, text=True).stdout  # noqa: S603
            samples.append(tuple(map(float, text.split())))
    return found


def _print(measured: dict[str, list[tuple[float, ...]]], size: float) -> None:
    print(f"{'':8} {'s':>6} {'GB/s':>6} {'CPU s':>6} {'MiB':>6}   time / eltwise's, each round")
    for name, samples in measured.items():
        seconds, processors, memory = (median(values) for values in zip(*samples, strict=True))
        ratios = [theirs[0] / ours[0] for theirs, ours in zip(samples, measured["eltwise"], strict=True)]
        texts = " ".join(f"{ratio:.2f}" for ratio in ratios)
        rate = 3 * size / seconds / 1e9
        print(f"{name:8} {seconds:6.1f} {rate:6.2f} {processors:6.1f} {memory:6.0f}   {median(ratios):.2f} of {texts}")


def _on_clusters(folder: Path, counts: list[int], rounds: int) -> None:
    """Mean squared differences of the arrays on clusters of so many processes, each with one thread."""
    import dask.array as da
    from distributed import LocalCluster

    import eltwise

    logging.disable(logging.CRITICAL)
    files = [str(folder / f"{name}.zarr") for name in "ab"]
    for count in counts:
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
            cluster.get_client() as client,
        ):
            x, y = map(da.from_zarr, files)
            samples: dict[str, list[tuple[float, float]]] = {"eltwise": [], "Dask": []}
            bits: dict[str, set[str]] = {"eltwise": set(), "Dask": set()}
            lazy = {"eltwise": eltwise.mean_squared_difference(x, y), "Dask": ((x - y) ** 2).mean()}
            for number in range(rounds + 1):
                for name, value in lazy.items():
                    start, used = time.perf_counter(), sum(client.run(time.process_time).values())
                    bits[name].add(float(client.compute(value).result()).hex())
                    spent = time.perf_counter() - start, sum(client.run(time.process_time).values()) - used
                    samples[name] += [spent] if number else []
            pairs = [*zip(samples["Dask"], samples["eltwise"], strict=True)]
            wall, processors = (median(theirs[each] / ours[each] for theirs, ours in pairs) for each in range(2))
            seconds = median(each[0] for each in samples["eltwise"])
            results = ", ".join(f"{name}: {' '.join(sorted(found))}" for name, found in bits.items())
            print(f"{count} workers: {seconds:.2f} s, Dask {wall:.2f} times that, {processors:.2f} in processor time")
            print(f"    {results}")
