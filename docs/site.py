"""Hooks of the documentation site: pages made from the package, and the check that every public name is documented."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path
from typing import Any

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import eltwise
from eltwise.cli import COMMANDS, app
from eltwise.cli.ops import FORMATS, opset_range
from eltwise.core.exit_codes import ExitCode
from eltwise.engine.functions import FUNCTIONS
from eltwise.faults.catalog import faults_of
from eltwise.faults.families import FAMILIES, OF_RUNS, OTHER_SHAPE, OTHER_TYPE, WRONG_ALIGNMENT
from eltwise.faults.record import Operation
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.opset_changes import STEPS

ROOT = Path(__file__).parent.parent
OPERATORS_MARK = "<!-- operators -->"
FAULTS_MARK = "<!-- converter faults -->"
FAMILIES_MARK = "<!-- fault families -->"
_PAGE = "reference/python.md"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not written by hand."""
    pages = {
        "reference/operators.md": operators_page(),
        "reference/command-line.md": command_line_page(),
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_rest: object) -> str:
    """Replace the marks of the pages by tables that are made from the package."""
    del page
    markdown = markdown.replace(OPERATORS_MARK, functions_table()).replace(FAULTS_MARK, faults_table())
    return markdown.replace(FAMILIES_MARK, families_table())


def families_table() -> str:
    """The families of faults that conformance findings and the rules of targets name, and what they do."""
    operations = [Operation(schema.expression(), each) for schema in registry.ELEMENTWISE for each in schema.types]
    of_values = {fault.family for operation in operations for fault in faults_of(operation).values()}
    lines = ["| family | what happens |", "|---|---|", "| `TYPE_arithmetic` | values are held or computed in TYPE |"]
    for family, sentence in FAMILIES.items():
        is_shown = family in of_values or family in OF_RUNS or family in (OTHER_SHAPE, OTHER_TYPE, WRONG_ALIGNMENT)
        if is_shown and not family.endswith("_arithmetic"):
            lines.append(f"| `{family}` | {sentence} |")
    return "\n".join(lines)


def faults_table() -> str:
    """The steps between opsets that are refused, since no converter is known to be right."""
    lines = ["| operators | between opsets | direction | reason |", "|---|---|---|---|"]
    for step in STEPS:
        if not step.by_converter:
            operators, between = ", ".join(step.operators), f"{step.opset - 1} and {step.opset}"
            lines.append(
                f"| {operators} | {between} | {step.direction} | [{step.reason}]({step.source(step.operators[0])}) |"
            )
    return "\n".join(lines)


def functions_table() -> str:
    """The operators' functions, and what their arguments mean, from their docstrings."""
    lines, arguments = ["| function | |", "|---|---|"], {}
    for name in FUNCTIONS:
        function = getattr(eltwise, name)
        shown = ", ".join(map(_parameter, inspect.signature(function).parameters.values()))
        documentation = inspect.getdoc(function) or ""
        summary = documentation.partition("\n")[0].replace("|", "&#124;")
        lines.append(f'| <span id="eltwise.{name}">`{name}({shown})`</span> | {summary} |')
        arguments |= dict(re.findall(r"^    (\w+): (.*)$", documentation, re.MULTILINE))
    arguments = {name: meaning for name, meaning in arguments.items() if not name.endswith("Error")}
    return "\n".join([*lines, "", *(f"- `{name}`: {meaning}" for name, meaning in arguments.items())])


def _parameter(parameter: inspect.Parameter) -> str:
    is_required = parameter.default is inspect.Parameter.empty
    return parameter.name if is_required else f"{parameter.name}={parameter.default!r}"


def on_post_page(output: str, page: Any, **_rest: object) -> str:
    """Fail if a public name has no entry or no docstring.

    Raises:
        PluginError: with the names.
    """
    if page.file.src_uri == _PAGE:
        missing = undocumented(output)
        if missing:
            raise PluginError(f"public names without documentation: {', '.join(missing)}")
    return output


def undocumented(html: str) -> list[str]:
    """The public names that the page has no entry for, or that have no docstring of their own."""
    return [
        name
        for name in dict.fromkeys((*eltwise.__all__, *FUNCTIONS))
        if not name.startswith("__")
        and (not re.search(rf'id="eltwise\.([\w.]+\.)?{name}"', html) or not inspect.getdoc(getattr(eltwise, name)))
    ]


def from_root(name: str) -> str:
    """A file of the root folder; its links into docs/ start from there instead."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def operators_page() -> str:
    """Every operator version with its types, from the registry."""
    lines = [
        "# Operators",
        "",
        "Every operator version that eltwise runs. An ONNX model's opset selects the version. Types are written as in",
        "OpenVINO: `f16` is float16, `u8` is uint8. [Semantics](../semantics.md) defines what each operator computes;",
        "`eltwise show NAME` prints one version with its attributes.",
        "",
    ]
    for domain, title in FORMATS.items():
        lines += [f"## {title}", ""]
        of_domain = [schema for schema in registry.ELEMENTWISE if schema.domain == domain]
        for name, schemas in itertools.groupby(of_domain, key=lambda schema: schema.name):
            lines += _operator_lines(name, list(schemas))
    lines += ["## Data movement", "", "These may be part of a model too, in the version of its opset.", ""]
    lines += ["| operator | format | types |", "|---|---|---|"]
    for schema in registry.DATA_MOVEMENT:
        types = " ".join(element_type.ir or element_type.name for element_type in schema.types)
        lines.append(f"| {schema.versioned_name} | {FORMATS[schema.domain]} | {types} |")
    return "\n".join(lines) + "\n"


def _operator_lines(name: str, schemas: list[ElementwiseSchema]) -> list[str]:
    lines = [f"### {name}", "", f"`{schemas[0].expression()}`", "", "| version | opsets | types | broadcasting |"]
    lines.append("|---|---|---|---|")
    for schema in schemas:
        types = " ".join(element_type.ir or element_type.name for element_type in schema.types)
        lines.append(f"| {schema.versioned_name} | {opset_range(schema)} | {types} | {schema.broadcasting} |")
    attributes = {attribute.name: attribute.meaning for schema in schemas for attribute in schema.attributes}
    return [*lines, "", *(f"- `{attribute}`: {meaning}" for attribute, meaning in attributes.items()), ""]


def command_line_page() -> str:
    """Every command with its arguments and options, from the command line itself."""
    lines = [
        "# Command line",
        "",
        str(app.help),
        "",
        "Results go to stdout, messages to stderr. A command whose output nobody reads any more, as behind `| head`,",
        "ends with the same exit code.",
        "",
        "| exit code | meaning |",
        "|---|---|",
        *(f"| {code} | {code.meaning} |" for code in ExitCode),
        "",
        'With `--json` an error is an object on stdout, too: `{"error": [...]}` with one entry a problem, which has',
        "the known [fields of the error](errors.md) and the whole `sentence`.",
        "",
    ]
    for name in COMMANDS:
        lines += _command_lines(name, app.get_command(click.Context(app), name))
    return "\n".join(lines) + "\n"


def _command_lines(name: str, command: Any) -> list[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter for parameter in command.params if parameter not in arguments and "--help" not in parameter.opts
    ]
    usage = " ".join(["eltwise", name, *map(_metavar, arguments), "[OPTIONS]"])
    lines = [f"## {name}", "", command.help, "", "```text", usage, "```", "", "| argument | meaning |", "|---|---|"]
    lines += [f"| `{_metavar(argument)}` | {argument.help or ''} |" for argument in arguments]
    for option in options:
        value = "" if option.is_flag else f" {option.metavar or 'NUMBER'}"
        lines.append(f"| `{', '.join(option.opts)}{value}` | {option.help or ''} |")
    return [*lines, ""]


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())
