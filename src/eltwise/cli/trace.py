"""``eltwise trace``: the first node whose result differs between two runs of a model, although its inputs are equal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.compare import Html, Json, Tolerance
from eltwise.cli.progress import progress_of_many
from eltwise.cli.run import assignment
from eltwise.core.errors import NameUnknownError
from eltwise.ir.graph import Graph


def trace(
    model: Annotated[Path, typer.Argument(help="An .onnx or .xml file with any operators.")],
    other: Annotated[
        Path | None, typer.Argument(help="Another model that is to mean the same, for the reference.")
    ] = None,
    *,
    runtime: Annotated[str, typer.Option("--runtime", metavar="NAME", help="The runtime that is tested.")],
    against: Annotated[str, typer.Option("--against", metavar="NAME", help="The reference, exact or float64.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=FILE",
            help="An input and its tensor file, or an .npz file of inputs by their names. Others are drawn at random.",
        ),
    ] = None,
    tolerance: Tolerance = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the inputs that are drawn.")] = 0,
    segment: Annotated[
        int, typer.Option("--segment", metavar="MIB", min=1, help="How much memory the values of a segment may take.")
    ] = 64,
    limit: Annotated[float, typer.Option("--limit", metavar="SECONDS", min=0.1, help="Of one answer.")] = 120.0,
    reproduce: Annotated[
        Path | None, typer.Option("--reproduce", metavar="FOLDER", help="Write the node that is blamed as a case.")
    ] = None,
    json: Json = None,
    html: Html = None,
) -> None:
    """Run a model in two runtimes, compare every value and name the first node that is wrong by itself."""
    from eltwise.conformance.reproduce import SCRIPT
    from eltwise.formats.files import check_new_folder, check_outputs
    from eltwise.tracing.trace import read_graph
    from eltwise.tracing.trace import trace as trace_model

    is_json_printed = json == Path("-")
    written = [file for file in (json, html) if file is not None and file != Path("-")]
    check_outputs(written, [model, *([other] if other else [])])
    if reproduce is not None:
        check_new_folder(reproduce)
    graph = read_graph(model)
    with progress_of_many() as progress:
        report = trace_model(
            graph,
            other,
            runtime=runtime,
            against=against,
            inputs=_read_inputs(graph, inputs or []),
            tolerance=tolerance,
            seed=seed,
            segment=segment << 20,
            limit=limit,
            progress=progress,
        )
    if json is not None and not is_json_printed:
        report.to_json(json)
    if html is not None:
        report.to_html(html)
    printing.line(report.to_json() if is_json_printed else str(report))
    if reproduce is not None and report.blamed is not None:
        report.reproduce(reproduce)
        printing.note(f"run: python {shlex.quote(str(reproduce / SCRIPT))}")
    if not report.is_good:
        raise typer.Exit(1)


def _read_inputs(graph: Graph, texts: list[str]) -> dict[str, object]:
    from eltwise.formats.npy import names_in_npz
    from eltwise.formats.tensor_files import TensorFile, parse_tensor_file, read_tensor_file

    ports, found = (*graph.inputs, *graph.optional_inputs), dict[str, TensorFile]()
    for text in texts:
        if text.endswith(".npz") and "=" not in text:
            places = {name: TensorFile(Path(text), name) for name in names_in_npz(Path(text))}
        else:
            name, place = assignment(text, ports, "--input")
            places = {name: parse_tensor_file(place)}
        for name, file in places.items():
            port = graph.find_input(name)
            if port.name in found:
                raise NameUnknownError("this input is given twice", operand=f"input {port.name!r}")
            found[port.name] = file
    types = {port.name: port.type.element_type for port in ports}
    return {name: read_tensor_file(file, types[name]) for name, file in found.items()}
