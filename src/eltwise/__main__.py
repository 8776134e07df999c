"""The command ``eltwise``, also as ``python -m eltwise``."""

from __future__ import annotations

import sys

from eltwise.core.exit_codes import ExitCode


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it while it is imported, too."""
    try:
        from eltwise.cli import main as run
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
