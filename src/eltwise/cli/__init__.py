"""The command line: one module a command. This module finds them and turns errors into exit codes.

A command returns an ``ExitCode``, or nothing where all that it can do is to succeed or to raise. Results go to stdout,
messages to stderr. With ``--json`` an error is also printed as JSON on stdout.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import click

from eltwise.cli import options, printing
from eltwise.core.errors import EltwiseError, FileFormatError, unknown_name
from eltwise.core.exit_codes import ExitCode
from eltwise.core.foreign import reason_of
from eltwise.version import VERSION

COMMANDS = (
    *("demo", "run", "apply", "ops", "show", "infer", "check", "convert", "repair", "compare", "trace", "record"),
    *("reduce", "delta", "restore", "conform", "reproduce", "accuracy", "targets", "report"),
)
"""In the order of the help. Each is a module of this package and the function in it."""


_CONFIGURED = {
    "check": ("tolerance", "severity"),
    "compare": ("tolerance",),
    "conform": ("runtime",),
    "record": ("runtime",),
    "trace": ("tolerance", "runtime"),
}
"""The options of commands that a project's configuration has defaults of."""

_COMPLETION = "_ELTWISE_COMPLETE"
"""The variable by which a shell asks for completions; its name is click's."""

_RARELY = 1000
"""So many collections of young objects precede one of all objects."""


class _Commands(click.Group):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:  # A shell asks for completions.
                return None
            raise unknown_name("command", cmd_name, COMMANDS)
        command: click.Command = getattr(importlib.import_module(f"eltwise.cli.{cmd_name}"), cmd_name)
        return command


app = _Commands(
    name="eltwise",
    help="Run, check, repair and convert the element-wise operators of ONNX and OpenVINO models, bit for bit.",
    epilog="Exit codes: " + "; ".join(f"{code} {code.meaning}" for code in ExitCode) + ".",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
app.params += options.volume(is_hidden=False)
click.version_option(VERSION, message="%(version)s", help="Print the version.")(app)


def main() -> None:
    """Run the command line and exit."""
    if _COMPLETION in os.environ:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(app, {}, "eltwise", _COMPLETION, os.environ[_COMPLETION]))
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores that the terminal is closed.
            signal.signal(number, _terminated)
    # A checkpoint may have 300,000 names; to look for cycles among all of them time and again took a third of the time.
    gc.set_threshold(*gc.get_threshold()[:2], _RARELY)
    with printing.escaping_streams():
        _main()


def _main() -> NoReturn:
    printing.set_volume("")
    try:
        try:
            with app.make_context("eltwise", sys.argv[1:], default_map=_defaults(sys.argv[1:])) as context:
                code = app.invoke(context)
        finally:
            printing.flush()
        _leave("", code or ExitCode.GOOD)
    except click.exceptions.Exit as ended:  # Of an option such as --help.
        _leave("", ended.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        _leave(error.format_message(), ExitCode.BAD_INPUT)
    except click.UsageError as error:
        sentence = f"{error.format_message().rstrip('.')}{_explained(error)}"
        command = " ".join(filter(None, ("eltwise", _command(sys.argv[1:]))))
        _refuse(EltwiseError(sentence, hint="" if sentence.endswith(("?", "?)")) else f"see `{command} --help`"))
    except (EltwiseError, MemoryError, KeyboardInterrupt) as error:
        if (interrupt := _interrupt(error)) is not None:
            _leave("", interrupt.args[0] if interrupt.args else ExitCode.INTERRUPTED)
        _refuse(error if isinstance(error, EltwiseError) else EltwiseError("not enough memory"))
    except OSError as error:
        if error.filename is not None:
            _refuse(FileFormatError(f"cannot be used ({reason_of(error)})", where=str(error.filename)))
        _leave(f"eltwise: cannot write the output ({error.strerror or error})", ExitCode.BAD_INPUT)


def _explained(error: click.UsageError) -> str:
    """What the parameter is that is missing, in parentheses; empty for other errors."""
    text = getattr(error.param, "help", None) if isinstance(error, click.MissingParameter) else None
    return f" ({text[0].lower()}{text[1:].rstrip('.')})" if text else ""


def _interrupt(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that an error came of: one inside of a library may leave as any error of that library."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


def _defaults(arguments: list[str]) -> dict[str, dict[str, object]]:
    """What the project's configuration says of the options of the command that is called, by command and option."""
    command = _command(arguments)
    if command not in _CONFIGURED:
        return {}
    from eltwise.configuration import read_configuration

    configuration = read_configuration(Path.cwd())
    tolerances = [f"{pattern}: {text}" for pattern, text in configuration.tolerances.items()]
    runtimes = configuration.runtimes if command == "conform" else "".join(configuration.runtimes[:1])
    values = {"tolerance": tolerances, "runtime": runtimes, "severity": configuration.severity}
    return {command: {option: values[option] for option in _CONFIGURED[command] if values[option]}}


def _terminated(number: int, _frame: object) -> NoReturn:
    """End as Ctrl-C does, so that what is temporary is removed."""
    raise KeyboardInterrupt(128 + number)


def _refuse(error: EltwiseError) -> NoReturn:
    """Print an error and exit; what it says of an argument, it says of the option."""
    for option in _options(sys.argv[1:]):
        error.operand = option.opts[0] if error.operand == option.name else error.operand
        error.hint = error.hint.replace(f"{option.name}=True", option.opts[0])
    if _is_json_wanted(sys.argv[1:]):
        with contextlib.suppress(OSError):  # stdout may be closed; stderr still has the sentence.
            printing.error_json(error)
    _leave(f"eltwise: {error}" if error.problem else "", error.exit_code)


def _is_json_wanted(arguments: list[str]) -> bool:
    """Whether JSON is for stdout: by the flag ``--json``, or by ``-`` where that option is a file name."""
    options = list(itertools.takewhile(lambda argument: argument != "--", arguments))
    for option in _options(options):
        if "--json" in option.opts:
            return (
                "--json" in options if option.is_flag else "--json=-" in options or ("--json", "-") in pairwise(options)
            )
    return False


def _options(arguments: list[str]) -> list[click.Option]:
    """The options of the command that is called."""
    name = _command(arguments)
    command = app.get_command(click.Context(app), name) if name else None
    return [each for each in command.params if isinstance(each, click.Option)] if command is not None else []


def _command(arguments: list[str]) -> str:
    return next((argument for argument in arguments if argument in COMMANDS), "")


def _leave(message: str, code: int) -> NoReturn:
    """Print a message and exit."""
    if message:
        printing.note_lines(message)
    try:
        printing.flush()
    except (OSError, ValueError):
        printing.drop_output()
    sys.exit(code)
