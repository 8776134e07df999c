"""The command ``python -m benchmarks.run progress_picture``: what a terminal shows of a job that is killed and resumed.

The command of the guide runs in a terminal of its own on arrays of 1 GiB, is killed, and runs again; what it drew last
before each of these moments is drawn into docs/assets/progress.svg.
"""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from benchmarks.stores import make_array
from eltwise.formats import files

_TARGET = Path(__file__).parent.parent / "docs" / "assets" / "progress.svg"
_COMMAND = "eltwise apply Subtract-1 a.zarr b.zarr --output c.zarr"
_WIDTH = 86


def main(_arguments: Sequence[str]) -> None:
    """Run the command twice and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "ab":
            make_array(Path(folder) / f"{name}.zarr", 1, 1, "zstd")
        killed, _rest = _shown(folder, 0.4, signal.SIGKILL)
        again, end = _shown(folder, 0.8, None)
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    for lines in ([f"$ {_COMMAND}", killed, "Killed"], [f"$ {_COMMAND}", again, end]):
        for line in lines:
            console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    picture = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="eltwise apply"), flags=re.DOTALL)
    files.write_text(_TARGET, f"{picture}\n")  # Fonts of the reader's machine do; nothing is fetched.


def _shown(folder: str, share: float, ending: signal.Signals | None) -> tuple[str, str]:
    """What the terminal shows when so much is done, and what it shows at the end; the command may be killed then."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(_WIDTH), PYTHONPATH=os.pathsep.join(sys.path))
        os.execv(sys.executable, [sys.executable, "-m", *_COMMAND.split()])  # noqa: S606
    text, found = "", ""
    while True:
        try:
            text += os.read(terminal, 1 << 16).decode()
        except OSError:  # Linux says so when the other end is closed.
            break
        frames = re.split(r"\r|\x1b\[2K|\x1b\[1A|\n", text)
        for frame in frames if not found else ():
            done = re.search(r"([\d.]+)/([\d.]+) GB", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", frame))
            if done and float(done[1]) >= share * float(done[2]):
                found = frame
                if ending is not None:
                    os.kill(child, ending)
    os.waitpid(child, 0)
    return found, [frame for frame in frames if frame.strip("\x1b[?25hl ")][-1]
