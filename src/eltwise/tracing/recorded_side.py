"""Which of the two runs of a trace is one whose values are given: a recorded run, or a PyTorch program."""

from __future__ import annotations

from pathlib import Path

from eltwise.core.errors import UnsupportedError
from eltwise.tracing.program import ProgramRun, is_program
from eltwise.tracing.recording import RecordedRun, is_recording, read_recording
from eltwise.tracing.references import REFERENCES


def recorded_side(
    model: object, other: object, names: tuple[str, str], limit: float
) -> RecordedRun | ProgramRun | None:
    """The run whose values are given, if one is: a recorded one, or that of a PyTorch program.

    Args:
        model: the first model.
        other: the second one, if there is one.
        names: the specifications of the run that is tested and of the reference.
        limit: how many seconds a program may take.

    Raises:
        UnsupportedError: where there is nothing to compare it with.
    """
    runtime, against = names
    paths, programs = [is_recording(name) for name in names], [is_program(one) for one in (model, other)]
    if not any(paths) and not any(programs):
        return None
    if all(paths):
        hint = "compare two recorded runs with `eltwise compare`"
        raise UnsupportedError("one of the runs must be made by a runtime", got=f"{runtime} and {against}", hint=hint)
    if paths[0] and against in REFERENCES:
        hint = "name that run with against"
        raise UnsupportedError(f"a run whose values are given is not compared with {against}", hint=hint)
    if any(programs):
        if any(paths) or all(programs):
            hint = "eltwise trace PROGRAM.pt2 MODEL.onnx --runtime torch --against RUNTIME"
            raise UnsupportedError("an exported program is compared with a model that was exported from it", hint=hint)
        name = runtime if programs[0] else against
        return ProgramRun(Path(str(model if programs[0] else other)), name, limit, is_tested=programs[0])
    if other is not None:
        raise UnsupportedError("a recorded run is of one model", got="two models", hint="give the one that was run")
    return RecordedRun(read_recording(Path(runtime if paths[0] else against)), is_tested=paths[0])
