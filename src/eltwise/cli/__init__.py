"""The command line: one module a command. This module registers them and turns errors into exit codes.

Exit codes: 0 success, 1 a check found something, 2 bad input. Results go to stdout, messages to stderr. With ``--json``
an error is also printed as JSON on stdout.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from typing import NoReturn

import typer

from eltwise.cli import printing
from eltwise.cli.apply import apply
from eltwise.cli.check import check
from eltwise.cli.compare import compare
from eltwise.cli.conform import conform
from eltwise.cli.convert import convert
from eltwise.cli.delta import delta
from eltwise.cli.infer import infer
from eltwise.cli.ops import ops
from eltwise.cli.reduce import reduce
from eltwise.cli.repair import repair
from eltwise.cli.reproduce import reproduce
from eltwise.cli.restore import restore
from eltwise.cli.run import run
from eltwise.cli.show import show
from eltwise.cli.targets import targets
from eltwise.cli.trace import trace
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.version import VERSION

_HELP = "Run, check, repair and convert the element-wise operators of ONNX and OpenVINO models, bit for bit."

app = typer.Typer(
    rich_markup_mode=None,
    name="eltwise",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    *(run, apply, ops, show, infer, check, convert, repair, compare, trace),
    *(reduce, delta, restore, conform, reproduce, targets),
)
for _command in _COMMANDS:
    app.command()(_command)

_UsageError: type[Exception] = typer.BadParameter.__mro__[2]
"""What typer raises where the arguments are wrong; it has click's name, in a copy of click."""


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench() -> None:
    """Say where the benchmarks are."""
    raise UnsupportedError("the benchmarks are in the source checkout, not in the package", hint="`make bench`")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback(help=_HELP)
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Run the command line and exit."""
    try:
        try:
            code = app(standalone_mode=False)
        finally:
            sys.stdout.flush()
        _leave("", code or 0)
    except EltwiseError as error:
        _refuse(error, _exit_code(error))
    except MemoryError:
        _refuse(EltwiseError("not enough memory"), 2)
    except _UsageError as error:
        _refuse(EltwiseError(error.format_message().rstrip(".")), 2)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        _leave("", 130)
    except BrokenPipeError:
        _leave("", 0)
    except OSError as error:
        _leave(f"eltwise: cannot write the output ({error.strerror or error})", 2)


def _exit_code(error: EltwiseError) -> int:
    """2 for bad input, 1 where a comparison that was asked for has failed."""
    from eltwise.passes.verify import VerificationError

    return 1 if isinstance(error, VerificationError) else 2


def _refuse(error: EltwiseError, code: int) -> NoReturn:
    """Print an error and exit."""
    if _is_json_wanted(sys.argv[1:]):
        with contextlib.suppress(OSError):  # stdout may be closed; stderr still has the sentence.
            printing.error_json(error)
    _leave(f"eltwise: {error}" if error.problem else "", code)


def _is_json_wanted(arguments: list[str]) -> bool:
    """Whether the command was given the flag ``--json``; in ``conform`` that option is a file name instead."""
    given = list(itertools.takewhile(lambda argument: argument != "--", arguments))
    commands = getattr(typer.main.get_command(app), "commands", {})
    command = next((commands[argument] for argument in given if argument in commands), None)
    if command is None or "--json" not in given:
        return False
    return any("--json" in found.opts and getattr(found, "is_flag", False) for found in command.params)


def _leave(message: str, code: int) -> NoReturn:
    """Print a message and exit; drop what is left for a closed stdout, or Python would fail on it again."""
    if message:
        print(message, file=sys.stderr)  # noqa: T201
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.exit(code)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
