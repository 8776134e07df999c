"""The command line: one room a group of commands; this one joins them and turns errors into exit codes.

Exit codes: 0 good, 1 the check found something, 2 bad input. Results go to stdout, messages to stderr; where a command
was asked for JSON, an error is printed as JSON too, so that a program that reads stdout finds an object there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from typing import NoReturn

import typer

from eltwise.cli import (
    benching,
    conforming,
    converting,
    examining,
    listing,
    measuring,
    printing,
    reproducing,
    running,
    targeting,
)
from eltwise.core.errors import EltwiseError
from eltwise.passes.verifying import VerificationError
from eltwise.version import VERSION

app = typer.Typer(
    name="eltwise",
    help="Element-wise subtraction of ONNX and OpenVINO models: every version, type and broadcast, bit for bit.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(running.run)
app.command()(running.apply)
app.command()(listing.ops)
app.command()(listing.show)
app.command()(examining.infer)
app.command()(examining.check)
app.command()(converting.convert)
app.command()(targeting.repair)
app.command()(benching.bench)
app.command()(conforming.conform)
app.command()(reproducing.reproduce)
app.command()(measuring.targets)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Element-wise subtraction of ONNX and OpenVINO models: every version, type and broadcast, bit for bit."""


def main() -> None:
    """Run the command line; the one place where an ``EltwiseError`` becomes a sentence and an exit code."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except VerificationError as error:
        _refuse(error, 1)
    except EltwiseError as error:
        _refuse(error, 2)
    except MemoryError:
        _refuse(EltwiseError("this needs more memory than the machine gives"), 2)
    except KeyboardInterrupt:
        _leave("", 130)
    except BrokenPipeError:
        _leave("", 0)
    except OSError as error:
        _leave(f"eltwise: the output cannot be written ({error.strerror or error})", 2)


def _refuse(error: EltwiseError, code: int) -> NoReturn:
    """Say an error and exit."""
    if _is_json_wanted(sys.argv[1:]):
        with contextlib.suppress(OSError):  # Nobody reads it any longer; the sentence may still be read.
            printing.error_json(error)
    _leave(f"eltwise: {error}", code)


def _is_json_wanted(arguments: list[str]) -> bool:
    """Whether the command has a flag ``--json``, which in some is the name of a file instead, and was given it."""
    given = list(itertools.takewhile(lambda argument: argument != "--", arguments))
    commands = getattr(typer.main.get_command(app), "commands", {})
    command = next((commands[argument] for argument in given if argument in commands), None)
    if command is None or "--json" not in given:
        return False
    return any("--json" in found.opts and getattr(found, "is_flag", False) for found in command.params)


def _leave(message: str, code: int) -> NoReturn:
    """Say a last sentence and exit; what is left for stdout is dropped, so that Python does not try it again."""
    if message:
        print(message, file=sys.stderr)  # noqa: T201
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.exit(code)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
