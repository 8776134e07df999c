"""Processes that are ended with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session and, where the system has sessions, those that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
