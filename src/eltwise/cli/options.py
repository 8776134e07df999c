"""What commands share: their class, the types of their arguments, and options that several have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from eltwise.cli import printing
from eltwise.core.errors import AttributeValueError, EltwiseError, FileFormatError, UnsupportedError
from eltwise.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from eltwise.engine.api import Operator

Callback = Callable[..., ExitCode | None]
"""The function of a command."""

PATH = click.Path(path_type=Path)

_MAY_BE_EMPTY = ("shapes",)
"""Parameters of which an empty text is a value: the shape of a scalar."""


class OutputPath(click.Path):
    """The path of what is written and is no text, which alone goes to stdout where the path is ``-``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse ``-``."""
        if str(value) == "-":
            raise FileFormatError("this is stdout, which takes text only", where="-", hint="name a file or a folder")
        return super().convert(value, param, ctx)


OUTPUT_PATH = OutputPath(path_type=Path)

SEVERITIES = "sign of zero or NaN, precision, wrong values, refused"
"""Those of ``targets.rules``, which is loaded by the commands that need it; the beginning of a name is enough."""


class Integer(click.IntRange):
    """An integer within limits."""

    name = "integer"


class Number(click.FloatRange):
    """A number within limits."""

    name = "number"


source = click.argument("source", type=PATH, metavar="IN", help="An .onnx file, or an .xml file with its .bin.")
in_place = click.option("--in-place", is_flag=True, help="Allow OUT to be IN.")
json = click.option("--json", is_flag=True, help="Print JSON.")
summary = click.option("--summary", is_flag=True, help="Print one line.")
json_file = click.option("--json", type=PATH, metavar="FILE", help="Write the report as JSON; - for stdout.")
html_file = click.option("--html", type=PATH, metavar="FILE", help="Write the report as an HTML page; - for stdout.")
sarif_file = click.option("--sarif", type=PATH, metavar="FILE", help="Write the findings as SARIF 2.1.0; - for stdout.")
markdown_file = click.option(
    "--markdown", type=PATH, metavar="FILE", help="Append a summary in Markdown, as for $GITHUB_STEP_SUMMARY."
)


def _tolerances(_context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> Sequence[object]:
    """The tolerances as texts; those of the project's configuration may be for no tensor of this command."""
    if is_on_command_line(str(parameter.name)) or not texts:
        return texts
    from eltwise.comparison.tolerance import default_tolerances

    return default_tolerances({pattern: each for pattern, _colon, each in (text.rpartition(": ") for text in texts)})


def complete_runtime(_context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The runtimes whose names begin so, for a shell."""
    from eltwise.runtimes.registry import RUNTIMES

    references = ["exact", "float64"] if parameter.name == "against" else []
    return [name for name in (*references, *(each.name for each in RUNTIMES)) if name.startswith(incomplete)]


def runtime(text: str, name: str = "--runtime") -> Callable[[Callback], Callback]:
    """The required option of a runtime, with its help."""
    return click.option(name, required=True, metavar="NAME", shell_complete=complete_runtime, help=text)


def is_on_command_line(name: str) -> bool:
    """Whether the option of the command that runs was given there, not by the project's configuration."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_on_command_line(names: Iterable[str], problem: str, hint: str) -> None:
    """Refuse options, by the names of their parameters, that would have no effect.

    Raises:
        AttributeValueError: for the first of them that is on the command line.
    """
    for parameter in click.get_current_context().command.params:
        if parameter.name in names and is_on_command_line(parameter.name):
            raise AttributeValueError(
                problem, operand="/".join((parameter.opts[0], *parameter.secondary_opts)), hint=hint
            )


tolerance = click.option(
    "--tolerance",
    multiple=True,
    metavar="TOLERANCE",
    callback=_tolerances,
    help="What is forgiven: ulp<=1, or rtol=1e-3, atol=1e-5; NAME: TOLERANCE for some tensors; @FILE for a file.",
)


def _inputs(text: str) -> Callable[[Callback], Callback]:
    return click.option("--input", "-i", "inputs", multiple=True, metavar="NAME=FILE", help=text)


files_of_inputs = _inputs("An input, by name or position, and its tensor file, or an .npz file of inputs by name.")
inputs = _inputs("An input and its tensor file, or an .npz file of inputs by their names. Others are drawn at random.")
input_sets = _inputs(
    "An input and its tensor file, an .npz file of inputs, or a folder of such sets. Others are drawn at random."
)


def seed_of(text: str) -> Callable[[Callback], Callback]:
    """The option of a seed, with its help."""
    return click.option("--seed", type=Integer(0), default=0, help=text)


seed = seed_of("Of the inputs that are drawn.")
attributes = click.option(
    "--attr", "attributes", multiple=True, metavar="NAME=VALUE", help="An attribute, for example axis=1."
)
output = click.option("--output", "-o", metavar="FILE", help="The file to write the result to.")
force = click.option("--force", is_flag=True, help="Replace a file that is there.")
element_type = click.option(
    "--type", "element_type", metavar="TYPE", help="The element type of raw bytes in .npy files, for example int4."
)


class Limits(NamedTuple):
    """What a job on files may use, as options say it."""

    memory: int
    scheduler: str | None
    wait: int


def limits(function: Callback) -> Callback:
    """Add the options of ``Limits``, and give a function all of them as ``limits``."""

    @click.option(
        "--memory",
        metavar="SIZE",
        default="2GiB",
        callback=lambda _context, _parameter, text: parse_bytes(text),
        help="How much memory may be used, such as 2GiB.",
    )
    @click.option("--scheduler", metavar="ADDRESS", help="A Dask cluster, such as tcp://host:8786, for zarr stores.")
    @click.option(
        "--wait", type=Integer(0), metavar="SECONDS", default=300, help="How long a cluster may be without workers."
    )
    @wraps(function)
    def command(memory: int, scheduler: str | None, wait: int, **arguments: object) -> ExitCode | None:
        return function(limits=Limits(memory, scheduler, wait), **arguments)

    return command


def parse_bytes(text: str) -> int:
    """Parse a size as it is written at the shell.

    >>> parse_bytes("2GiB"), parse_bytes("500 MB"), parse_bytes("4096")
    (2147483648, 500000000, 4096)

    Raises:
        AttributeValueError: where it is none, or less than a byte.
    """
    units = {"": 1, "b": 1}
    for power, prefix in enumerate("kmgt", start=1):
        units |= {f"{prefix}ib": 1 << (10 * power), f"{prefix}b": 1000**power, prefix: 1 << (10 * power)}
    number = text.strip().lower().rstrip("bikmgt").rstrip()
    unit = text.strip().lower()[len(number) :].strip()
    try:
        size = int(float(number) * units[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size < 1:
        problem, allowed = "not a size of memory", "for example 2GiB"
        raise AttributeValueError(problem, operand="--memory", got=repr(text), allowed=allowed)
    return size


def volume(*, is_hidden: bool) -> list[click.Option]:
    """The options that all commands have, before or after the name of the command."""
    helps = {"quiet": "Print errors only.", "verbose": "Print progress where there is no terminal, too."}
    return [
        click.Option([f"--{name}"], is_flag=True, expose_value=False, callback=_set_volume, help=text, hidden=is_hidden)
        for name, text in helps.items()
    ]


def _set_volume(_context: click.Context, parameter: click.Parameter, is_chosen: bool) -> None:
    if is_chosen:
        printing.set_volume("quiet" if parameter.name == "quiet" else "verbose")


class Command(click.Command):
    """A command whose last line of help says what to do about too many arguments."""

    allow_extra_args = True

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, with those that all commands have, which the help of ``eltwise`` lists."""
        return [*super().get_params(ctx), *volume(is_hidden=True)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what no argument takes, but where a shell asks for completions of what is not complete."""
        if not ctx.resilient_parsing and any(not text or text.endswith("=") for text in args):
            self._refuse_empty(ctx, args)
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            hint = self.epilog or f"see `{ctx.command_path} --help`"
            raise EltwiseError("there are more arguments than this command has", got=" ".join(rest), hint=hint)
        return rest

    def _refuse_empty(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Refuse an empty text before it is a path, which would be that of the current folder."""
        texts, _rest, _order = self.make_parser(ctx).parse_args(list(args))
        for parameter in self.get_params(ctx):
            value = texts.get(parameter.name or "")
            each = value if isinstance(value, list | tuple) else (value,)
            is_empty = any(
                text == "" or (parameter.metavar == "NAME=FILE" and text.endswith("="))
                for text in each
                if isinstance(text, str)
            )
            if is_empty and parameter.name not in _MAY_BE_EMPTY:
                operand = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(ctx)
                hint = "leave it out, or see whether a variable of the shell is set"
                raise AttributeValueError("an empty text is no value", operand=operand, hint=hint)


def bound_operator(name: str, texts: Iterable[str]) -> Operator:
    """Bind an operator version to attributes written as NAME=VALUE; the schema refuses what it does not know."""
    from eltwise.engine.api import Operator
    from eltwise.ops import registry

    schema = registry.find(name)
    kinds = {attribute.name: attribute.kind for attribute in schema.attributes}
    values: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise AttributeValueError("this option needs NAME=VALUE", operand="--attr", got=repr(text))
        if key in values:
            raise AttributeValueError("this attribute is given twice", operand=f"attribute {key}")
        values[key] = _value(kinds.get(key, "string"), value)
    return Operator(schema.bind(values))


def _value(kind: str, text: str) -> object:
    """Parse a value; a text of the wrong kind is returned as it is, for the schema to refuse."""
    match kind:
        case "int":
            return _integer(text)
        case "ints":
            return tuple(_integer(part) for part in text.split(",") if part)
        case "boolean":
            return {"true": True, "1": True, "false": False, "0": False}.get(text.casefold(), text)
        case "string" | "element type":
            return text
    raise UnsupportedError(f"attributes of the kind {kind!r} are not supported on the command line")


def _integer(text: str) -> object:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text
