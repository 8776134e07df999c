"""Golden results: arrays and runs of models that a test compares with those recorded beside it.

A golden is a recorded run, as ``eltwise record`` writes it: a safetensors file with ``input/NAME`` and ``value/NAME``.
Its metadata has ``golden``, its version; of a model ``run``, ``version``, ``machine``, ``tolerance``, what was derived,
one a line, and ``bounds``, the terms that it comes from; of arrays with them ``labels``, ``parameters``, the attributes
that decode elements, and ``format``, whose attributes they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from eltwise.comparison.tolerance import ToleranceLike, Tolerances, default_tolerances, parse_tolerances
from eltwise.configuration import Configuration
from eltwise.core.border import public
from eltwise.core.errors import AttributeValueError, EltwiseError
from eltwise.formats import files
from eltwise.testing.golden_report import report_of
from eltwise.testing.meaning import NAMES as MEANING
from eltwise.testing.meaning import check_values
from eltwise.testing.sides import check_sides
from eltwise.testing.subjects import Subject, subject_of
from eltwise.tracing.recording import ENDING, Recording, RecordingError, read_recording
from eltwise.tracing.runner import Values

__tracebackhide__ = True  # In pytest the line of the test is shown, not those of this module.

FORMAT = "1"
"""The version of what a golden holds; it grows where a field gets another meaning."""

UPDATE = "--eltwise-update"
BOUNDS = "bounds"
"""The field of what derived tolerances come from."""

_NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Golden:
    """The fixture ``golden`` of one test.

    Attributes:
        folder: where its goldens are.
        test: what pytest calls the test, as in a command in ``root``.
        root: the folder in which pytest was called; paths in messages are relative to it.
        configuration: what the project forgives and runs by default.
        reports: the folder for reports of failures; None for no reports.
        written: where the processes of a session that writes goldens keep a copy of each; None where none is written.
    """

    folder: Path
    test: str
    root: Path
    configuration: Configuration
    reports: Path | None
    written: Path | None

    @public
    def check(
        self,
        name: str,
        actual: object,
        inputs: Mapping[str, object] | Sequence[object] | None = None,
        *,
        runtime: str = "",
        tolerance: ToleranceLike = None,
        rtol: float | None = None,
        atol: float | None = None,
        ulp: int | None = None,
        seed: int = 0,
    ) -> None:
        """Fail unless a result is the recorded one.

        Args:
            name: of the golden; its file is ``goldens/TEST_FILE/NAME.safetensors`` beside the file of the test.
            actual: a model (its path, an ``onnx.ModelProto`` or a loaded one) or a module of PyTorch, which is run; or
                arrays as ``assert_same`` takes them.
            inputs: of a model, by name. The others are drawn when the golden is written, and read from it afterwards.
                Of a module those of its ``forward``, by name or in order; without any, the recorded ones.
            runtime: the specification of the runtime that runs the model: by default eltwise where it runs all
                operators, else onnxruntime or OpenVINO.
            tolerance: what is forgiven. Without any it is what the project's configuration says of the name; else the
                bound that was derived when the golden of a model was written; else every bit counts.
            rtol: the largest relative difference.
            atol: the largest absolute one.
            ulp: the largest distance in units of the last place.
            seed: of the inputs that are drawn.

        Raises:
            AssertionError: where there is no golden yet, or the inputs or the result differ.
            EltwiseError: for a golden of another version, a model that cannot be run, bad arguments.
        """
        if not _NAME.fullmatch(name):
            allowed = "letters, digits, _, . and -, beginning with a letter, a digit or _"
            raise AttributeValueError("not the name of a golden", operand="name", got=repr(name), allowed=allowed)
        requested = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
        subject = subject_of(actual, name, inputs, (runtime, self.configuration.runtimes), seed)
        path = self.folder / f"{name}{ENDING}"
        copy = self._copy_of(path)
        if copy is not None and not copy.exists() and self._update(path, copy, subject, requested):
            return
        if copy is None and not path.exists():
            raise AssertionError(f"there is no golden {self._relative(path)}; write it with: {self._command()}")
        golden = self._read(path if copy is None else copy)
        result = _recording(subject, golden.inputs)
        tolerances = requested or (*_stored(golden), *default_tolerances(self.configuration.tolerances))
        head = self._head(path, actual, golden, result)
        forgiven: Tolerances = ()
        try:
            check_sides(result.inputs, golden.inputs, forgiven, err_msg=f"inputs of the {head}")
            forgiven = tolerances
            check_values(result, golden, forgiven, head)
        except AssertionError:
            self._write_report(path, golden, result, forgiven)
            raise

    def _copy_of(self, path: Path) -> Path | None:
        """The copy of a golden that was written in this session, which another process may have done."""
        if self.written is None:
            return None
        files.make_folder(self.written)
        return self.written / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}{ENDING}"

    def _update(self, path: Path, copy: Path, subject: Subject, requested: Tolerances) -> bool:
        """Write a golden, unless the one that is there holds the same; whether no other test has done so before."""
        try:
            previous = self._read(path)
        except EltwiseError:
            previous = None
        try:
            recording = _recording(subject, previous.inputs if previous else {})
        except EltwiseError:
            recording = _recording(subject, {})  # The model may take inputs of another shape or type than before.
        golden = previous if previous is not None and _is_same(previous, recording) else None
        if golden is None or not (requested or BOUNDS in golden.metadata):
            tolerances, described = ((), {}) if requested else subject.bounds(recording)
            if golden is None or described:
                metadata = {"golden": FORMAT, **recording.metadata, "tolerance": "\n".join(map(str, tolerances))}
                golden = Recording(recording.inputs, recording.values, metadata | described)
        is_first = _is_first(golden, copy)
        if is_first and golden is not previous:
            files.make_folder(path.parent)
            golden.save(path)
        return is_first

    def _read(self, path: Path) -> Recording:
        """Read a golden.

        Raises:
            EltwiseError: for a file that is none, for a golden of another version, and for a damaged tolerance.
        """
        golden = read_recording(path)
        version = golden.metadata.get("golden", "none")
        if version != FORMAT:
            problem, hint = "a golden of another version", f"write it anew with: {self._command()}"
            raise RecordingError(problem, where=self._relative(path), got=version, allowed=FORMAT, hint=hint)
        _stored(golden)
        return golden

    def _head(self, path: Path, actual: object, golden: Recording, result: Recording) -> str:
        """The first lines of a message: which golden it is, how to write it anew, and how to find the node."""
        lines = [f"golden {self._relative(path)}, {golden.metadata.get('run', 'arrays')}"]
        other = "another check of this run has written it; give each check a golden of its own name"
        lines.append(f"if the new result is right: {self._command()}" if self.written is None else other)
        if isinstance(actual, str | Path) and all("run" in one.metadata for one in (golden, result)):
            sides = ["--runtime", result.metadata["run"], "--against", self._relative(path)]
            lines.append(f"to compare the outputs: {shlex.join(['eltwise', 'trace', str(actual), *sides])}")
        return "\n".join(lines)

    def _write_report(self, path: Path, golden: Recording, result: Recording, tolerances: Tolerances) -> None:
        """Write the comparison as a page and as JSON, and the result as the golden that it would be."""
        if self.reports is None:
            return
        target = self.reports / self.folder.name / path.stem
        files.make_folder(target.parent)
        report = report_of(golden, result, tolerances)
        report.to_html(target.with_name(f"{path.stem}.html"))
        report.to_json(target.with_name(f"{path.stem}.json"))
        metadata = {name: text for name, text in golden.metadata.items() if name not in MEANING}
        metadata.update(result.metadata)
        Recording(result.inputs, result.values, metadata).save(target.with_name(path.name))

    def _command(self) -> str:
        return shlex.join(["pytest", UPDATE, self.test])

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def _is_first(golden: Recording, copy: Path) -> bool:
    """Whether a golden could be saved where no process of the session had saved another one, which is whole then."""
    descriptor, name = mkstemp(suffix=ENDING, dir=copy.parent)
    os.close(descriptor)
    draft = Path(name)
    try:
        golden.save(draft)
        os.link(draft, copy)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def _recording(subject: Subject, recorded: Values) -> Recording:
    """What is compared, of the inputs that were recorded.

    Raises:
        AttributeValueError: for what has no values, of which nothing could be compared.
    """
    recording = subject.recording(recorded)
    if not recording.values:
        allowed = "at least one array or number"
        raise AttributeValueError("there is nothing to compare", operand="actual", got="no values", allowed=allowed)
    return recording


def _stored(golden: Recording) -> Tolerances:
    """The tolerances that were derived when a golden was written: what a test gives counts in that test alone.

    Raises:
        RecordingError: for a text that is none.
    """
    try:
        tolerances = parse_tolerances(golden.metadata.get("tolerance", "").splitlines())
    except AttributeValueError as error:
        hint = "write the golden anew"
        raise RecordingError(f"its tolerance cannot be read: {error.problem}", where=golden.where, hint=hint) from None
    return tolerances if BOUNDS in golden.metadata else ()


def _is_same(golden: Recording, recording: Recording) -> bool:
    """Whether two recordings have the same inputs and values, bit for bit, of the same meaning."""
    try:
        check_sides(recording.inputs, golden.inputs, ())
        check_sides(recording.values, golden.values, ())
    except AssertionError:
        return False
    return all(golden.metadata.get(name) == recording.metadata.get(name) for name in MEANING)
