"""``eltwise demo``: what the commands do, on a small model and two checkpoints that it makes."""

from __future__ import annotations

import contextlib
import shlex
from importlib.resources import files as package_files
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import click

from eltwise.cli import options, printing
from eltwise.core.exit_codes import ExitCode, exit_code

MODEL = """<ir_version: 8, opset_import: ["" : 14]>
motion (uint8[4, 6] frame) => (float[4, 6] motion)
<uint8[6] background = {0, 50, 100, 150, 200, 250}, float scale = {0.00390625}> {
    [subtract_background] difference = Sub (frame, background)
    [to_float] wide = Cast <to = 1> (difference)
    [normalize] motion = Mul (wide, scale)
}"""
"""How much a picture changed: an 8-bit difference that wraps around, brought to numbers below 1."""

TRACED = "--runtime runtime.py:load --against exact --input frame=frame.npy"
TARGETS = ("openvino", "onnxruntime")
EITHER = (ExitCode.GOOD, ExitCode.FINDINGS)


class Step(NamedTuple):
    """A command of the tour."""

    text: str  # What it is for.
    command: str  # As a user types it.
    exit_codes: tuple[ExitCode, ...] = (ExitCode.GOOD,)  # With which it may end.


NEXT = (
    ("eltwise check MODEL --target onnxruntime", "does a model compute the same there? Which node does not?"),
    ("eltwise trace MODEL --runtime openvino --against onnxruntime", "where do two runtimes begin to differ?"),
    ("eltwise compare A.safetensors B.safetensors", "what is different in two checkpoints, and why?"),
    ("eltwise --help", "all commands"),
)
WITHOUT_RUNTIMES = ("pip install onnxruntime openvino", "the runtimes that `check --target` runs")


@click.command(cls=options.Command)
@click.option("--folder", type=options.OUTPUT_PATH, help="A new folder for the files; a temporary one by default.")
def demo(*, folder: Path | None) -> ExitCode:
    """Make a small model, find what a wrong runtime does to it, and repair it: every command with its output.

    Exit 1 if a command ends otherwise than it should, which tells that the installation is not sound.
    """
    from eltwise.formats.files import check_new_folder
    from eltwise.runtimes import installed

    if folder is not None:
        check_new_folder(folder)
        folder.mkdir(exist_ok=True)
    folder = folder or Path(mkdtemp(prefix="eltwise-demo-"))
    targets = [name for name in TARGETS if name in {runtime.name for runtime in installed()}]
    with contextlib.chdir(folder):
        make_files()
        wrong = [step.command for step in steps(targets) if run(step) not in step.exit_codes]
    printing.line("Next")
    printing.pairs([*NEXT] if targets else [*NEXT[:1], WITHOUT_RUNTIMES, *NEXT[2:]])
    printing.line("")
    printing.line(f"The files are in {folder}; open {folder / 'weights.html'} in a browser.")
    for command in wrong:
        printing.note(f"eltwise: this command did not end as it should: {command}")
    return exit_code(findings=bool(wrong))


def steps(targets: list[str]) -> list[Step]:
    """The commands of the tour."""
    return [
        Step("Run a model, bit for bit as operators are defined.", "eltwise run motion.onnx --input frame=frame.npy"),
        Step(
            "The function `load` in runtime.py runs models, too, with one fault. Which node is wrong, and why?",
            f"eltwise trace motion.onnx {TRACED}",
            (ExitCode.FINDINGS,),
        ),
        Step(
            "OpenVINO is known for the same fault. Rewrite the node so that it gives the same bits in spite of it.",
            "eltwise repair motion.onnx repaired.onnx --target openvino",
        ),
        Step("Does the repaired model compute the same?", f"eltwise trace repaired.onnx {TRACED} --summary"),
        *(
            Step(f"And {target}, which is installed here?", f"eltwise check motion.onnx --target {target}", EITHER)
            for target in targets
        ),
        Step(
            "Two checkpoints: what is different, and why? The same as a page.",
            "eltwise compare trained.npz deployed.npz --html weights.html",
            (ExitCode.FINDINGS,),
        ),
    ]


def run(step: Step) -> ExitCode:
    """Print and run a command; returns its exit code."""
    from eltwise.cli import app

    printing.line(step.text)
    printing.line(f"$ {step.command}")
    printing.flush()
    with app.make_context("eltwise", shlex.split(step.command)[1:]) as context:  # click's main turns Ctrl-C into Abort.
        code: ExitCode | None = app.invoke(context)
    printing.line("")
    return code or ExitCode.GOOD


def make_files() -> None:
    """Make the model, its input, the faulty runtime and two checkpoints in the working directory."""
    import numpy as np
    from ml_dtypes import bfloat16
    from onnx import parser

    Path("motion.onnx").write_bytes(parser.parse_model(MODEL).SerializeToString(deterministic=True))
    np.save("frame.npy", (np.arange(24).reshape(4, 6) * 53 % 256).astype(np.uint8))
    Path("runtime.py").write_bytes((package_files("eltwise.cli") / "demo_runtime.py").read_bytes())
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal((32, 48)).astype(np.float32) for name in ("embed", "first", "second")}
    np.savez("trained.npz", **weights)  # type: ignore[arg-type]
    rounded = weights["embed"].astype(bfloat16).astype(np.float32)
    np.savez("deployed.npz", embed=rounded, first=weights["first"].T.copy(), second=weights["second"])
