"""``eltwise run``: run a model on tensor files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.blocks import is_in_blocks, resources_of, show_outcomes
from eltwise.core.errors import AttributeValueError, NameUnknownError, named

if TYPE_CHECKING:
    from eltwise.ir.graph import Graph, Port
    from eltwise.model import Model


@click.command(
    cls=options.Command,
    epilog="`eltwise apply` applies one operator to files; a model's inputs are given with --input NAME=FILE",
)
@click.argument("model", type=options.PATH, help="An .onnx file, or an .xml file with its .bin beside it.")
@options.files_of_inputs
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    metavar="NAME=FILE",
    help="The file to write an output to. Other outputs are printed.",
)
@click.option("--dump", metavar="KIND", help="Print how the model is computed: plan, llvm or asm.")
@options.limits
@options.json
def run(
    model: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    dump: str | None,
    limits: options.Limits,
    json: bool,
) -> None:
    """Run a model on tensor files; on zarr stores, checkpoints and large .npy files block by block."""
    from eltwise.formats.registry import files_of
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, read_tensor_file, write_tensor_files
    from eltwise.model import load

    if dump is not None and (outputs or json):
        raise AttributeValueError(
            "--dump prints how a model is computed, not its results",
            operand="--dump",
            hint="leave out --output and --json",
        )
    loaded = load(model)
    values, targets = _inputs(loaded.graph, inputs), _outputs(loaded, outputs)
    if dump is None and is_in_blocks([*values.values()], [*targets.values()], limits.scheduler):
        from eltwise.scale.models import run_files

        with resources_of(limits) as resources:
            outcomes = run_files(str(model), values, targets, resources, loaded)
        show_outcomes(outcomes, targets, json=json)
        return
    sources = {name: parse_tensor_file(text) for name, text in values.items()}
    types = {name: loaded.graph.find_input(name).type.element_type for name in values}
    feeds = {name: read_tensor_file(source, types[name]) for name, source in sources.items()}
    if dump is not None:
        printing.lines(loaded.explain(feeds, dump).expandtabs().removesuffix("\n"))  # type: ignore[arg-type]
        return
    places = {name: parse_tensor_file(text) for name, text in targets.items()}
    check_tensor_files(places, sources.values(), files_of(loaded.graph, model))
    results = loaded.run(feeds)
    write_tensor_files(results, places)
    rest = {name: array for name, array in results.items() if name not in places}
    printing.results(rest, json=json)


def _by_name(files: Iterable[tuple[Port, str]], kind: str) -> dict[str, str]:
    """The files of inputs or outputs by their names, of which each has one."""
    by_name: dict[str, str] = {}
    for port, file in files:
        if port.name in by_name:
            raise NameUnknownError(f"this {kind} is given twice", operand=f"{kind} {port.name!r}")
        by_name[port.name] = file
    return by_name


def _outputs(model: Model, texts: Sequence[str]) -> dict[str, str]:
    only = model.outputs[0].name if len(model.outputs) == 1 else ""
    pairs = (
        (only, text) if only and "=" not in text else assignment(text, model.outputs, "--output") for text in texts
    )
    return _by_name(((model.graph.find_output(name), file) for name, file in pairs), "output")


def assignment(text: str, ports: tuple[Port, ...], option: str) -> tuple[str, str]:
    """Split NAME=FILE, an ``option``; a name of the model may itself hold an equals sign."""
    for port in ports:
        for name in port.names:
            if text.startswith(f"{name}="):
                return name, text[len(name) + 1 :]
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise AttributeValueError("this option needs NAME=FILE", operand=option, got=repr(text))
    return name, file


def files_of_inputs(texts: Sequence[str]) -> list[Path]:
    """The files that options name."""
    from eltwise.formats.tensor_files import parse_tensor_file

    return [parse_tensor_file(text.partition("=")[2] or text).path for text in texts]


def read_inputs(graph: Graph, texts: Sequence[str]) -> dict[str, object]:
    """Read the arrays that options name: a tensor file an input, or .npz files of inputs by their names.

    Arrays of an .npz file that no input has the name of are left out and named on stderr.
    """
    from eltwise.formats.tensor_files import parse_tensor_file, read_tensor_file

    types = {port.name: port.type.element_type for port in (*graph.inputs, *graph.optional_inputs)}
    files = {name: parse_tensor_file(text) for name, text in _inputs(graph, texts).items()}
    return {name: read_tensor_file(file, types[name]) for name, file in files.items()}


def _inputs(graph: Graph, texts: Sequence[str]) -> dict[str, str]:
    return _by_name(_files_of(graph, texts), "input")


def _files_of(graph: Graph, texts: Sequence[str]) -> Iterator[tuple[Port, str]]:
    """The inputs that options name, each with its file or its array in one."""
    from eltwise.formats.tensor_sets import open_tensors

    ports = (*graph.inputs, *graph.optional_inputs)
    for text in texts:
        if text.endswith(".npz") and "=" not in text:
            names = list(open_tensors(Path(text)))
            extra = [name for name in names if not any(name in port.names for port in ports)]
            if extra and len(extra) < len(names):
                printing.note(f"{text}: no inputs of the model, left out: {named(extra)}")
                names = [name for name in names if name not in extra]
            yield from ((graph.find_input(name), f"{text}:{name}") for name in names)
        else:
            name, file = assignment(text, ports, "--input")
            yield graph.find_input(name), file


def read_input_sets(graph: Graph, texts: Sequence[str]) -> Mapping[str, object] | Mapping[str, Mapping[str, object]]:
    """Read the arrays that options name, or the sets of inputs of a folder, which is named alone."""
    from eltwise.formats.tensor_files import input_sets, read_tensor_file

    folders = [text for text in texts if "=" not in text and Path(text).is_dir()]
    if not folders:
        return read_inputs(graph, texts)
    if len(texts) > 1:
        raise AttributeValueError("a folder of sets of inputs is given alone", operand="--input", got=folders[0])
    types = {port.name: port.type.element_type for port in (*graph.inputs, *graph.optional_inputs)}
    return {
        name: {port: read_tensor_file(file, types[port]) for port, file in files.items()}
        for name, files in input_sets(graph, Path(folders[0])).items()
    }
