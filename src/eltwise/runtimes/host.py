"""The process of one runtime: started when first asked, ended when it hangs, replaced after a crash.

Runtimes disturb one another in one process, and some set the floating-point mode or break the memory.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, Self, cast

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.escaping import shortened
from eltwise.runtimes import wire
from eltwise.runtimes.environments import interpreter
from eltwise.runtimes.memory import SharedMemory
from eltwise.runtimes.processes import kill
from eltwise.runtimes.program import Answer, Model, Program
from eltwise.runtimes.registry import Runtime
from eltwise.runtimes.specification import arguments
from eltwise.runtimes.wire import Message

LIMIT = 30.0
"""How many seconds one answer may take, by default."""

_START_LIMIT = 120.0
"""How many seconds a start may take, if no answer may take more."""

_WATCH_INTERVAL = 0.05
_EXIT_LIMIT = 10.0
_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[1])
_START = f"""
import sys
if sys.version_info < (3, 11):
    sys.exit("eltwise needs Python 3.11 or newer there, and this is %d.%d" % sys.version_info[:2])
sys.path[:] = [path for path in sys.path if path]
from importlib import util
folder = {_PACKAGE_FOLDER!r}
spec = util.spec_from_file_location("eltwise", folder + "/__init__.py", submodule_search_locations=[folder])
package = sys.modules["eltwise"] = util.module_from_spec(spec)
spec.loader.exec_module(package)
from eltwise.runtimes.worker import main
main()
"""
"""Starts the worker in any interpreter: of ours it is given this package, and nothing that is installed beside it."""


class StoppedError(Exception):
    """The process was ended by another thread."""


def changed(runtime: Runtime, before: str, now: str) -> UnsupportedError:
    """The error for a runtime of which two versions answered: their results are not those of one runtime."""
    problem = f"the runtime {runtime.name!r} was changed while it was in use"
    return UnsupportedError(problem, got=now, allowed=before, hint="run it again, and leave it as it is until the end")


class Host:
    """Runs programs on one runtime, in a process of its own; a context manager that ends it. Threads take turns.

    Attributes:
        runtime: the runtime.
        limit: how many seconds one answer may take.
        memory: what it shares with the process, if anything. Then arrays of any size pass without a copy, and those of
            an answer are there until the next run.
        most_hung: after so many answers in a row that did not come in time, nothing more is run; 0 for no such number.
        hung: how many these are.
    """

    def __init__(
        self, runtime: Runtime, limit: float = LIMIT, *, shares_memory: bool = False, most_hung: int = 0
    ) -> None:
        self.runtime = runtime
        self.limit = limit
        self.most_hung = most_hung
        self.hung = 0
        self.memory = SharedMemory() if shares_memory else None
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._version = ""
        self._one_at_a_time = threading.Lock()
        self._stopped = False
        self._deadline = math.inf
        self._expired = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.end()
        if self.memory is not None:
            self.memory.close()

    @property
    def is_running(self) -> bool:
        """Whether the process has been started, and has not crashed or been ended."""
        return self._process is not None

    def version(self) -> str:
        """The runtime's version, with the settings that change results.

        Raises:
            UnsupportedError: if the runtime cannot be started, or was another version before.
        """
        with self._one_at_a_time:
            self._start()
        return self._version

    def run(
        self,
        program: Program,
        inputs: Sequence[np.ndarray],
        *,
        only_load: bool = False,
        results: Sequence[tuple[ElementType, tuple[int, ...]]] = (),
    ) -> Answer:
        """Run a program. After a crash or a hang, the next call starts a new process.

        Args:
            program: a model or a call.
            inputs: the arrays for its inputs, in order.
            only_load: load the program without running it; the inputs are not read.
            results: the types and shapes of all outputs where they are known. Where memory is shared, the runtime
                then writes its results there, if it can.

        Raises:
            UnsupportedError: if the runtime cannot be started, was another version before, or cannot be tried since a
                disk is full.
            FileFormatError: if the program and its inputs are larger than a frame may be.
            StoppedError: after ``stop``.
        """
        with self._one_at_a_time:
            if self.most_hung and self.hung >= self.most_hung:
                message = f"not run: {self.hung} answers in a row did not come within {self.limit:g} seconds"
                return Answer("hung", message=message)
            answer = self._run(program, tuple(inputs), only_load, results)
            self.hung = self.hung + 1 if answer.kind == "hung" else 0
            return answer

    def _run(
        self,
        program: Program,
        arrays: tuple[np.ndarray, ...],
        only_load: bool,
        results: Sequence[tuple[ElementType, tuple[int, ...]]],
    ) -> Answer:
        self._start()
        fields: dict[str, object] = {"only_load": only_load}
        if self.memory is not None and results:
            fields["results"] = [[element_type.name, shape] for element_type, shape in results]
        if isinstance(program, Model):
            arrays = (np.frombuffer(program.data, np.uint8), np.frombuffer(program.weights, np.uint8), *arrays)
            fields["path"] = program.path
        else:
            fields |= {"op": program.op, "steps": program.steps, "attributes": program.attributes}
        if self.memory is not None:
            self.memory.clear()
        request = wire.encode(Message(fields, arrays), self.memory)
        try:
            reply, timed_out = self._exchange(request, self.limit)
        except FileFormatError as error:
            answer = Answer("crashed", message=f"its answer could not be read: {error}")
        else:
            if reply is not None and reply.fields.get("kind") == "untried":
                problem = f"the runtime {self.runtime.name!r} could not be tried: {reply.fields['message']}"
                hint = "make room in the folder of temporary files, or name another one by TMPDIR"
                raise UnsupportedError(problem, hint=hint)
            if reply is not None:
                return _answer(reply)
            answer = Answer("hung", message=f"no answer within {self.limit:g} seconds")
            answer = answer if timed_out else Answer("crashed", message=self._last_message())
        self.end()
        return answer

    def leave(self) -> str:
        """Let the process end by itself; returns how it ended if that was not well.

        A runtime that has broken its memory often crashes only here.
        """
        if self._process is None:
            return ""
        _close(self._process.stdin)
        try:
            ended_well = self._process.wait(_EXIT_LIMIT) == 0
        except subprocess.TimeoutExpired:
            ended_well = True  # Slow is not broken.
        message = "" if ended_well else self._last_message()
        self.end()
        return message

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        kill(process)
        process.wait()
        for stream in (process.stdin, process.stdout, self._stderr):
            _close(stream)

    def restart(self) -> None:
        """End the process when nobody uses it; the next call starts a new one."""
        with self._one_at_a_time:
            self.end()

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Within the block, no answer may take longer than this, as far as the limit allows more."""
        before, self.limit = self.limit, min(self.limit, seconds)
        try:
            yield
        finally:
            self.limit = before

    def stop(self) -> None:
        """End the process from another thread than the one that uses it; nothing can be run afterwards."""
        self._stopped = True
        process = self._process
        if process is not None:
            kill(process)

    def _start(self) -> None:
        if self._stopped:
            raise StoppedError
        if self._process is not None:
            return
        python = interpreter(self.runtime)
        chosen = json.dumps(arguments(self.runtime.settings))
        command = [self.runtime.adapter, self.runtime.name, chosen, *([self.memory.path] if self.memory else [])]
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(  # noqa: S603 - an interpreter that was named, with a module of ours
            [python, "-c", _START, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(self.runtime),
            start_new_session=True,  # Ctrl-C is for the caller, which ends the process itself.
        )
        self._deadline = math.inf
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()
        limit = max(_START_LIMIT, self.limit)
        try:
            reply, timed_out = self._exchange(b"", limit)
            late = f"it was not ready within {limit:g} seconds" if timed_out else ""
            fields = {"failed": late} if reply is None else reply.fields
        except FileFormatError:
            fields = {"failed": "it printed something else"}
        if "ready" not in fields:
            reason = fields.get("failed") or self._last_message()
            self.end()
            packages = " ".join(("numpy", "ml_dtypes", *self.runtime.packages))
            hint = f"install what it needs: {python} -m pip install -U {packages}" if self.runtime.python else ""
            raise UnsupportedError(f"the runtime {self.runtime.name!r} cannot be started: {reason}", hint=hint)
        version, self._version = self._version, self._version or str(fields["ready"])
        if self._version != fields["ready"]:
            self.end()
            raise changed(self.runtime, version, str(fields["ready"]))

    def _exchange(self, request: bytes, limit: float) -> tuple[Message | None, bool]:
        """Write a request and read the reply; None if the process ended, and whether it was ended by the limit."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        self._expired, self._deadline = False, time.monotonic() + limit
        try:
            process.stdin.write(request)
            process.stdin.flush()
            reply = wire.receive(cast(BinaryIO, process.stdout), self.memory)
        except BrokenPipeError:
            reply = None
        finally:
            self._deadline = math.inf
        if reply is None and self._stopped:
            raise StoppedError
        return reply, reply is None and self._expired

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """End a process that takes too long for an answer; a timer for each answer would take longer than many do."""
        while self._process is process:
            if time.monotonic() > self._deadline:
                self._expired = True
                kill(process)
                return
            time.sleep(_WATCH_INTERVAL)

    def _last_message(self) -> str:
        """How the process ended, and the last line that it wrote to standard error."""
        assert self._process is not None
        assert self._stderr is not None
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its output and did not end"
        ended = f"exit code {code}" if code >= 0 else _signal_name(-code)
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(size - 4096, 0))
        lines = [line.strip() for line in self._stderr.read().decode(errors="replace").splitlines() if line.strip()]
        return f"the process ended with {ended}" + (f": {shortened(lines[-1], 200)}" if lines else "")


def _answer(reply: Message) -> Answer:
    message, mode = str(reply.fields.get("message", "")), str(reply.fields.get("mode", ""))
    if reply.fields.get("kind") != "result":
        return Answer("refused", message=message, mode=mode, writes_inputs=bool(reply.fields.get("writes_inputs")))
    arrays = iter(reply.arrays)
    present = reply.fields.get("present")
    values = [next(arrays, None) if is_array else None for is_array in (present if isinstance(present, list) else [])]
    return Answer("result", tuple(values), message, mode)


def _environment(runtime: Runtime) -> dict[str, str]:
    """The variables of a runtime's process: ours, without those that show another interpreter our packages."""
    ours = ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__") if runtime.version or runtime.python else ()
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return {**inherited, "PYTHONFAULTHANDLER": "", **runtime.environment}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        with suppress(BrokenPipeError):
            stream.close()
