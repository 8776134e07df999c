"""``eltwise run``: run a model on tensor files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.core.errors import AttributeValueError, NameUnknownError

if TYPE_CHECKING:
    from eltwise.formats.tensor_files import TensorFile
    from eltwise.ir.graph import Port
    from eltwise.model import Model


@click.command(
    cls=options.Command,
    epilog="`eltwise apply` applies one operator to files; a model's inputs are given with --input NAME=FILE",
)
@click.argument("model", type=options.PATH, help="An .onnx file, or an .xml file with its .bin beside it.")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="An input, by name or position, and its tensor file.",
)
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    metavar="NAME=FILE",
    help="The file to write an output to. Other outputs are printed.",
)
@click.option("--dump", metavar="KIND", help="Print how the model is computed: plan, llvm or asm.")
@options.json
def run(model: Path, inputs: Sequence[str], outputs: Sequence[str], dump: str | None, json: bool) -> None:
    """Run a model on tensor files (.npy, .npz:KEY or .pb)."""
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, read_tensor_file, write_tensor_files
    from eltwise.model import load

    if dump is not None and (outputs or json):
        raise AttributeValueError(
            "--dump prints how a model is computed, not its results",
            operand="--dump",
            hint="leave out --output and --json",
        )
    loaded = load(model)
    everything = (*loaded.inputs, *loaded.optional_inputs)
    feeds, sources = {}, []
    for text in inputs:
        name, place = assignment(text, everything, "--input")
        port = loaded.graph.find_input(name)
        if name in feeds:
            raise NameUnknownError("this input is given twice", operand=f"input {name!r}")
        sources.append(parse_tensor_file(place))
        feeds[name] = read_tensor_file(sources[-1], port.type.element_type)
    if dump is not None:
        click.echo(loaded.explain(feeds, dump), nl=False)  # type: ignore[arg-type]
        return
    places = _places(loaded, outputs)
    check_tensor_files(places, sources)
    results = loaded.run(feeds)
    write_tensor_files(results, places)
    rest = {name: array for name, array in results.items() if name not in places}
    printing.results(rest, json=json)


def _places(model: Model, outputs: Sequence[str]) -> dict[str, TensorFile]:
    from eltwise.formats.tensor_files import parse_tensor_file

    places: dict[str, TensorFile] = {}
    for text in outputs:
        if "=" not in text and len(model.outputs) == 1:
            name, place = model.outputs[0].name, text
        else:
            name, place = assignment(text, model.outputs, "--output")
        port = model.graph.find_output(name)
        if port.name in places:
            raise NameUnknownError("this output is given twice", operand=f"output {port.name!r}")
        places[port.name] = parse_tensor_file(place)
    return places


def assignment(text: str, ports: tuple[Port, ...], option: str) -> tuple[str, str]:
    """Split NAME=FILE, an ``option``; a name of the model may itself hold an equals sign."""
    for port in ports:
        for name in (port.name, *port.aliases):
            if text.startswith(f"{name}="):
                return name, text[len(name) + 1 :]
    name, equals, place = text.partition("=")
    if not equals or not name or not place:
        raise AttributeValueError("this option needs NAME=FILE", operand=option, got=repr(text))
    return name, place
