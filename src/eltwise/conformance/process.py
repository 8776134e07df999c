"""A runtime's process as the referee sees it: started when asked, ended when it hangs, replaced when it crashed."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from eltwise.conformance import wire
from eltwise.conformance.answers import Answer
from eltwise.conformance.cases import Case
from eltwise.conformance.runtimes import Runtime
from eltwise.core.errors import FileFormatError, UnsupportedError

START_LIMIT = 120.0
"""How many seconds a runtime may take to be imported."""

_LEAVE_LIMIT = 10.0

_MOST_AT_ONCE = 1 << 20

_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[2])


class StoppedError(Exception):
    """The process was ended by another thread, because nothing more is wanted of it."""


class _EndedError(Exception):
    """The process ended."""


class _SilentError(Exception):
    """No answer came within the limit."""


class Process:
    """The process of one runtime; a context manager that ends it.

    Attributes:
        runtime: the runtime.
        limit: how many seconds one answer may take.
        is_fresh: whether the last question was the first to its process.
    """

    def __init__(self, runtime: Runtime, limit: float) -> None:
        self.runtime = runtime
        self.limit = limit
        self._running: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self.is_fresh = True
        self._received = bytearray()
        self._questions = 0
        self._version = ""
        self._stopped = False

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_reason: object) -> None:
        self.end()

    def version(self) -> str:
        """The runtime's version, in its own words.

        Raises:
            UnsupportedError: where the runtime cannot be started.
        """
        self._start()
        return self._version

    def ask(self, path: str, groups: Sequence[Sequence[Case]], thrifty: bool = False) -> Iterator[Answer]:
        """Ask for cases on a path; one answer a case, in order.

        A crash or a hang ends the answers: the last one says so, and the next question gets a new process.

        Raises:
            UnsupportedError: where the runtime cannot be started.
            StoppedError: after ``stop``.
        """
        self._start()
        self.is_fresh = self._questions == 0
        self._questions += 1
        count = sum(map(len, groups))
        try:
            self._write(wire.encode(wire.question(path, groups, thrifty)))
            for _place in range(count):
                yield self._answer()
        except _SilentError:
            self.end()
            yield Answer("hung", words=f"no answer within {self.limit:g} seconds")
        except _EndedError:
            if self._stopped:
                raise StoppedError from None
            words = self._last_words()
            self.end()  # Before the answer is given: whoever takes it may not ask for more.
            yield Answer("crashed", words=words)
        except FileFormatError as error:
            self.end()
            yield Answer("crashed", words=f"its answer could not be read: {error}")

    def leave(self) -> str:
        """Let the process end by itself, as it should after its last answer; how it ended where that was not well.

        What has broken its memory is often noticed only then.
        """
        if self._running is None:
            return ""
        assert self._running.stdin is not None
        _close(self._running.stdin)
        try:
            ended_well = self._running.wait(_LEAVE_LIMIT) == 0
        except subprocess.TimeoutExpired:
            ended_well = True  # Slow to end is not broken.
        words = "" if ended_well else self._last_words()
        self.end()
        return words

    def end(self) -> None:
        """End the process, whatever it does."""
        running, self._running = self._running, None
        self._received.clear()
        self._questions = 0
        if running is None:
            return
        _kill(running)
        running.wait()
        for stream in (running.stdin, running.stdout, self._errors):
            if stream is not None:
                _close(stream)

    def stop(self) -> None:
        """End the process from another thread than the one that asks; nothing is asked of it any more."""
        self._stopped = True
        running = self._running
        if running is not None:
            _kill(running)

    def _start(self) -> None:
        if self._stopped:
            raise StoppedError
        if self._running is not None:
            return
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._running = subprocess.Popen(  # noqa: S603 - this interpreter, with a module of ours
            [sys.executable, "-P", "-m", "eltwise.conformance.worker", self.runtime.adapter, self.runtime.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment_of(self.runtime),
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the referee, which ends its processes itself.
        )
        for stream in (self._running.stdin, self._running.stdout):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
        message = self._first_message()
        self._version = str(message.fields.get("ready", ""))

    def _first_message(self) -> wire.Message:
        reason = f"it said nothing within {START_LIMIT:g} seconds"
        try:
            message = self._read(START_LIMIT)
            if "ready" in message.fields:
                return message
            reason = str(message.fields.get("failed", ""))
        except _EndedError:
            if self._stopped:
                raise StoppedError from None
            reason = self._last_words()
        except (_SilentError, FileFormatError):
            pass
        self.end()
        raise UnsupportedError(f"the runtime {self.runtime.name!r} cannot be started: {reason}")

    def _answer(self) -> Answer:
        message = self._read(self.limit)
        words, mode = str(message.fields.get("words", "")), str(message.fields.get("mode", ""))
        match message.fields.get("kind"):
            case "result" if len(message.arrays) == 1:
                return Answer("result", message.arrays[0], mode=mode)
            case "refused" | "odd" | "not asked" as kind:
                return Answer(kind, words=words, mode=mode)
            case unknown:
                raise FileFormatError("an answer is none of those known", got=repr(unknown))

    def _read(self, limit: float) -> wire.Message:
        deadline = time.monotonic() + limit
        head, body = wire.lengths(self._take(wire.LENGTHS.size, deadline))
        return wire.decode(self._take(head, deadline), self._take(body, deadline))

    def _take(self, count: int, deadline: float) -> bytes:
        """Read so many bytes; the memory grows with what comes, not with what was announced."""
        assert self._running is not None
        assert self._running.stdout is not None
        while len(self._received) < count:
            try:
                part = os.read(self._running.stdout.fileno(), _MOST_AT_ONCE)
            except BlockingIOError:
                self._wait(self._running.stdout, selectors.EVENT_READ, deadline)
                continue
            if not part:
                raise _EndedError
            self._received += part
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _write(self, data: bytes) -> None:
        assert self._running is not None
        assert self._running.stdin is not None
        rest = memoryview(data)
        deadline = time.monotonic() + self.limit
        while rest:
            self._wait(self._running.stdin, selectors.EVENT_WRITE, deadline)
            try:
                written = self._running.stdin.write(rest)
            except BrokenPipeError:
                raise _EndedError from None
            rest = rest[written or 0 :]

    @staticmethod
    def _wait(stream: IO[bytes], event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            if not selector.select(max(deadline - time.monotonic(), 0)):
                raise _SilentError

    def _last_words(self) -> str:
        """How the process ended, and the last line that it wrote to its standard error."""
        assert self._running is not None
        assert self._errors is not None
        try:
            code = self._running.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its output and did not end"
        ended = f"exit code {code}" if code >= 0 else _signal_name(-code)
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(size - 4096, 0))
        lines = [line.strip() for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        return f"the process ended with {ended}" + (f": {lines[-1][:200]}" if lines else "")


def environment_of(runtime: Runtime) -> dict[str, str]:
    """The variables of a runtime's process: ours, with this package where it is found."""
    known = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(part for part in (_PACKAGE_FOLDER, known) if part)
    return {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "", **runtime.environment}


def _kill(running: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started, which are in its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    running.kill()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return
