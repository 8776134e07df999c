"""``eltwise run`` and ``eltwise apply``: tensors in from files, results out to files or to the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from eltwise.cli import printing
from eltwise.cli.attributes import bound_operator
from eltwise.core.dtypes import ElementType, by_name
from eltwise.core.errors import AttributeValueError, NameUnknownError
from eltwise.formats.tensor_files import (
    TensorFile,
    check_places,
    parse_place,
    read_tensor_file,
    write_tensor_files,
)
from eltwise.ir.graph import Port
from eltwise.model import Model, load

Json = Annotated[bool, typer.Option("--json", help="Print what a program can read.")]


def run(
    model: Annotated[Path, typer.Argument(help="An .onnx file, or an .xml file with its .bin beside it.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=FILE", help="An input by name or position, from a tensor file."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="NAME=FILE", help="Where an output goes; without it, it is printed."),
    ] = None,
    dump: Annotated[
        str | None,
        typer.Option("--dump", metavar="KIND", help="Print how it was computed instead: plan, llvm or asm."),
    ] = None,
    json: Json = False,
) -> None:
    """Run a model on tensor files (.npy, .npz:KEY or .pb)."""
    if dump is not None and (outputs or json):
        raise AttributeValueError("--dump prints how a model is run in place of its results", operand="--dump")
    loaded = load(model)
    everything = (*loaded.inputs, *loaded.optional_inputs)
    feeds = {}
    for text in inputs or []:
        name, place = _assignment(text, everything, "--input")
        port = loaded.graph.find_input(name)
        if name in feeds:
            raise NameUnknownError("this input is given twice", operand=f"input {name!r}")
        feeds[name] = read_tensor_file(parse_place(place), port.type.element_type)
    if dump is not None:
        typer.echo(loaded.explain(feeds, dump), nl=False)  # type: ignore[arg-type]
        return
    places = _places(loaded, outputs or [])
    check_places(places)
    results = loaded.run(feeds)
    write_tensor_files(results, places)
    rest = {name: array for name, array in results.items() if name not in places}
    printing.results(rest, json=json)


def _places(model: Model, outputs: Iterable[str]) -> dict[str, TensorFile]:
    places: dict[str, TensorFile] = {}
    for text in outputs:
        if "=" not in text and len(model.outputs) == 1:
            name, place = model.outputs[0].name, text
        else:
            name, place = _assignment(text, model.outputs, "--output")
        port = model.graph.find_output(name)
        if port.name in places:
            raise NameUnknownError("this output is given twice", operand=f"output {port.name!r}")
        places[port.name] = parse_place(place)
    return places


def _assignment(text: str, ports: tuple[Port, ...], option: str) -> tuple[str, str]:
    """Split NAME=FILE; a name of the model may itself hold an equals sign."""
    for port in ports:
        for name in (port.name, *port.aliases):
            if text.startswith(f"{name}="):
                return name, text[len(name) + 1 :]
    name, equals, place = text.partition("=")
    if not equals or not name or not place:
        raise AttributeValueError("this option needs NAME=FILE", operand=option, got=repr(text))
    return name, place


def apply(
    op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name, for example Sub-6.")],
    a: Annotated[str, typer.Argument(metavar="A", help="The tensor file of operand A.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The tensor file of operand B.")],
    attributes: Annotated[
        list[str] | None, typer.Option("--attr", metavar="NAME=VALUE", help="An attribute, for example axis=1.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Where the result goes.")] = None,
    element_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="What raw bytes in .npy files are, for example int4."),
    ] = None,
    json: Json = False,
) -> None:
    """Apply one operator version to two tensor files."""
    bound = bound_operator(op, attributes or [])
    wanted = by_name(element_type) if element_type else None
    place = {"result": parse_place(output)} if output else {}
    check_places(place)
    result = bound(_operand(a, wanted), _operand(b, wanted))
    write_tensor_files({"result": result}, place)
    if not place:
        printing.results({"result": result}, json=json)


def _operand(text: str, wanted: ElementType | None) -> np.ndarray:
    return read_tensor_file(parse_place(text), wanted)
