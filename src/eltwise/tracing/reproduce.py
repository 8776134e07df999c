"""The node that a trace blames as a folder: its model, its inputs, and a script that runs it with its runtime alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eltwise.conformance.reproduce import files_of_case, write_case
from eltwise.formats.registry import of_bytes
from eltwise.tracing.blame import Isolated


def write_blamed(blamed: Isolated, about: Sequence[str], against: str, folder: Path) -> tuple[str, ...]:
    """Write what shows a node with its runtime alone.

    Args:
        blamed: the node with its inputs and results.
        about: what the script prints first, a line each.
        against: the reference.
        folder: the folder, new or empty.

    Returns:
        The names of the files.

    Raises:
        FileFormatError: if the folder is not empty or cannot be written.
    """
    is_ir = of_bytes(blamed.program.data).domain == "openvino"
    model = "model.xml" if is_ir else "model.onnx"
    inputs = {f"input_{number}": array for number, array in enumerate(blamed.inputs.values())}
    names = ", ".join(f"input_{number} is {value!r}" for number, value in enumerate(blamed.inputs))
    expected, gives = (blamed.wanted, against) if blamed.exact is None else (blamed.exact, "the specification")
    lines = [*about, f"The output is {blamed.value!r}; {names}.", f"Expected is what {gives} gives."]
    files = files_of_case(blamed.adapter, lines, inputs, expected, blamed.got, output=blamed.position, model=model)
    contents = {model: blamed.program.data} | ({"model.bin": blamed.program.weights} if is_ir else {})
    return write_case(contents | files, folder)
