"""What a job of many chunks costs Dask's scheduler, without any data.

A scheduler without workers processes the messages of a whole job: its own state machine runs, no network and no
arithmetic. Two processes run tasks that do nothing, and graphs of lazy differences are built and measured. All but the
tasks of processes is measured in processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import operator
import pickle
import resource
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dask
import dask.array as da
import zarr
from dask._task_spec import Task
from dask.order import order
from distributed import LocalCluster
from distributed.core import Status
from distributed.scheduler import ClientState, Scheduler, WorkerState

import eltwise
from eltwise.core.machine import machine_name
from eltwise.scale.apply import compute_chunk
from eltwise.scale.blocks import Application
from eltwise.scale.cluster import connected, run_on
from eltwise.scale.jobs import Resources
from eltwise.scale.sources import Sources

_SPEC = Task("chunk", operator.neg, 1)
_WINDOW = 8
"""Tasks of a thread that eltwise lets the scheduler know at a time."""


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.run planning", description=__doc__)
    parser.add_argument("--chunks", type=int, default=10**6)
    parser.add_argument("--tasks", type=int, default=10**4, help="that do nothing, on two processes")
    parser.add_argument("--workers", type=int, default=1000, help="that the simulated scheduler has")
    options = parser.parse_args(arguments)
    logging.disable(logging.INFO)
    chunks, workers = options.chunks, options.workers
    print(f"{machine_name()}, {datetime.now(UTC):%Y-%m-%d}")
    print(f"{chunks} chunks, {workers} workers")
    print(f"  a task of eltwise: {_task_bytes()} bytes")
    for known, name in ((_WINDOW * workers, "tasks in a window"), (chunks, "tasks at once")):
        seconds, memory = asyncio.run(simulated(chunks, workers, known))
        print(f"  simulated scheduler, {name}: {seconds / chunks * 1e6:.0f} µs a task, {memory / 1e6:.0f} MB")
    seconds, used = _without_work(options.tasks)
    texts = f"{seconds / options.tasks * 1e6:.0f} µs a task, {used / options.tasks * 1e6:.0f} of scheduler and client"
    print(f"  {options.tasks} tasks that do nothing on 2 processes: {texts}")
    for name, made in (("eltwise", eltwise.subtract), ("Dask", operator.sub)):
        for text in _graph_of(made, chunks):
            print(f"  graph of {name}: {text}")


def _graph_of(difference: Any, chunks: int) -> Iterator[str]:
    """The graph of the difference of two arrays of so many chunks: its building, its tasks, its bytes."""
    stores = [zarr.create_array({}, shape=(chunks,), chunks=(1,), dtype="float32") for _operand in "ab"]
    start = time.process_time()
    lazy = difference(*map(da.from_zarr, stores))
    yield f"built in {(time.process_time() - start) * 1e3:.0f} ms"
    start = time.process_time()
    optimized = dict(lazy.__dask_optimize__(lazy.__dask_graph__(), lazy.__dask_keys__()))
    yield f"{len(optimized)} tasks in {time.process_time() - start:.1f} s"
    start = time.process_time()
    size = len(pickle.dumps(optimized))
    yield f"{size / 1e6:.0f} MB pickled in {time.process_time() - start:.1f} s"
    start = time.process_time()
    order(optimized)
    yield f"ordered in {time.process_time() - start:.1f} s"


def _task_bytes() -> int:
    """How many bytes a client sends for a task, but for Dask's own envelope."""
    computation = Application(eltwise.operator("Subtract-1").operation)
    texts = "s3://bucket/folder/a.zarr", "s3://bucket/folder/b.zarr"
    sources = Sources(texts, (None, None), ()).named()
    return len(pickle.dumps(partial(compute_chunk, computation, sources, "s3://bucket/folder/c.zarr")))


class _Scheduler(Scheduler):  # type: ignore[misc]
    """Dask's scheduler, which is not started: messages to workers are kept, those to clients dropped."""

    sent: list[tuple[str, dict[str, Any]]]

    def send_all(self, client_msgs: Any, worker_msgs: dict[str, list[dict[str, Any]]]) -> None:
        """Keep what workers are to compute."""
        for worker, messages in worker_msgs.items():
            self.sent += [(worker, each) for each in messages if each["op"] == "compute-task"]

    def add(self, number: int) -> None:
        """Add a worker with one thread."""
        address = f"tcp://10.{number >> 16}.{number >> 8 & 255}.{number & 255}:1"
        own = {"address": address, "name": address, "server_id": address, "nanny": "", "local_directory": ""}
        worker = WorkerState(**own, status=Status.running, pid=0, nthreads=1, memory_limit=1 << 33, scheduler=self)
        self.workers[address] = worker
        self.running.add(worker)
        self.total_nthreads += 1
        self.check_idle_saturated(worker)
        for plugin in self.plugins.values():
            plugin.add_worker(scheduler=self, worker=address)

    def submit(self, number: int) -> None:
        """Take a task that nothing depends on."""
        task = self.new_task(f"chunk-{number}", _SPEC, "released")
        task.priority = (0, number, 0)
        task.who_wants = {self.clients["client"]}
        self.clients["client"].wants_what.add(task)
        self.transitions({task.key: "waiting"}, "submit")

    def finish(self, worker: str, message: dict[str, Any]) -> None:
        """Hear from a worker that a task is done, and from the client that it has the result."""
        key, times = message["key"], [{"action": "compute", "start": 0.0, "stop": 0.1}]
        done = {"nbytes": 64, "type": b"", "typename": "list", "startstops": times, "metadata": {}}
        self.handle_task_finished(key, worker, "done", run_id=message["run_id"], thread=1, **done)
        self.client_releases_keys([key], "client", "release")


async def simulated(tasks: int, workers: int, known: int) -> tuple[float, float]:
    """The seconds in which a scheduler takes tasks, gives them to workers, hears that they are done and forgets them.

    Args:
        tasks: how many; they do not depend on each other.
        workers: how many, each with one thread.
        known: so many tasks are submitted and not done at a time.

    Returns:
        The seconds, and the memory that the scheduler took for its tasks, in bytes.
    """
    with dask.config.set({"distributed.scheduler.active-memory-manager.start": False}):
        scheduler = _Scheduler(dashboard=False, host="127.0.0.1", port=0)
    scheduler.sent, before, submitted = [], _memory(), 0
    scheduler.clients["client"] = ClientState("client")
    for number in range(workers):
        scheduler.add(number)
    start, most = time.process_time(), 0
    running: deque[tuple[str, dict[str, Any]]] = deque()
    for done in range(tasks):
        while submitted < min(tasks, done + known):
            scheduler.submit(submitted)
            submitted += 1
        most = most if done else _memory() - before
        running.extend(scheduler.sent)
        scheduler.sent.clear()
        scheduler.finish(*running.popleft())
    assert not scheduler.tasks
    return time.process_time() - start, most


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _without_work(tasks: int) -> tuple[float, float]:
    """The seconds in which two processes run tasks that do nothing, and those of the scheduler and client."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        connected(cluster.scheduler_address) as client,
    ):
        [*run_on(client, operator.neg, range(100), 1 << 30, Resources())]
        start, used = time.perf_counter(), time.process_time()
        assert sum(1 for _result in run_on(client, operator.neg, range(tasks), 1 << 30, Resources())) == tasks
        return time.perf_counter() - start, time.process_time() - used
