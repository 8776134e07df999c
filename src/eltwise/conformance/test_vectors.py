"""Test vectors: the cases as files, for runtimes in any language.

ONNX cases have the layout of ONNX's backend tests, OpenVINO cases are IR with .npy files; a manifest says what is
expected. The same selection, extent and seed give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import References
from eltwise.conformance.models import build
from eltwise.conformance.results import Extent
from eltwise.conformance.suite import cases_of
from eltwise.conformance.variants import Variant
from eltwise.core.dtypes import of_numpy
from eltwise.core.progress import Progress
from eltwise.formats.files import new_folder, write_into
from eltwise.formats.npy import npy_bytes
from eltwise.formats.tensor_files import pb_bytes
from eltwise.version import VERSION

MANIFEST = "manifest.json"

_EXACT = b'{"rtol": 0.0, "atol": 0.0}\n'
"""What ONNX's backend tests read beside a model: no tolerance."""


def _name(variant: Variant, source: str, number: int) -> str:
    operator = str(variant.schema).lower().replace("-", "").replace(".", "_")
    return f"test_{operator}_{variant.element_type}_{variant.rule}_{source.replace('-', '_')}_{number:04d}"


def export(
    folder: Path,
    variants: Sequence[Variant],
    sources: Sequence[str],
    extent: Extent,
    seed: int,
    progress: Progress,
) -> int:
    """Write the cases of some variants into a folder, which must not exist or be empty; returns their number.

    Raises:
        FileFormatError: if the folder is not empty or cannot be written.
    """
    entries = []
    references = References()
    tests = [(variant, source) for source in sources for variant in variants if source in variant.sources]
    with new_folder(folder) as new:
        for done, (variant, source) in enumerate(tests):
            progress(done, len(tests), f"{variant}/{source}")
            # What has no defined result is left out.
            cases = [case for case in cases_of(variant, source, extent, seed, True) if case.is_defined]
            for number, case in enumerate(cases):
                origin = {"name": _name(variant, source, number), "op": str(variant.schema)}
                origin |= {"dtype": variant.element_type.name, "broadcast": variant.rule, "source": source}
                contents, entry = _files(origin, case, references.of(case))
                for name, data in contents.items():
                    write_into(new, name, data)
                entries.append(entry)
        about = {"made_by": f"eltwise {VERSION}", "extent": extent, "seed": seed}
        lines = ",\n".join(json.dumps(entry) for entry in entries)
        write_into(new, MANIFEST, f'{json.dumps(about)[:-1]}, "cases": [\n{lines}\n]}}\n'.encode())
        readme = package_files("eltwise.conformance") / "test_vectors.md"
        write_into(new, "README.md", readme.read_bytes())
    return len(entries)


def _files(
    origin: dict[str, str], case: Case, expected: np.ndarray | None
) -> tuple[dict[str, bytes], dict[str, object]]:
    """The files of a case by their paths in the folder, and its entry of the manifest."""
    model = build([case])
    folder = f"{model.format}/{'refuse' if expected is None else 'compute'}/{origin['name']}"
    outputs = {} if expected is None else {model.outputs[0]: expected}
    if model.format == "onnx":
        contents = {f"{folder}/model.onnx": model.data, f"{folder}/data.json": _EXACT}
        data = f"{folder}/test_data_set_0"
        names = {name: f"{data}/input_{number}.pb" for number, name in enumerate(model.inputs)}
        names |= {name: f"{data}/output_{number}.pb" for number, name in enumerate(outputs)}
        contents |= {names[name]: pb_bytes(name, array) for name, array in (model.inputs | outputs).items()}
    else:
        contents = {f"{folder}/model.xml": model.data, f"{folder}/model.bin": model.weights}
        names = {name: f"{folder}/{name}.npy" for name in model.inputs | outputs}
        contents |= {names[name]: npy_bytes(array) for name, array in (model.inputs | outputs).items()}
    entry: dict[str, object] = {
        **origin,
        "attributes": dict(case.attributes),
        "operands": [{"dtype": of_numpy(array.dtype).name, "shape": list(array.shape)} for array in case.operands],
        "expected": "refused" if expected is None else "ok",
        "model": next(iter(contents)),
        "inputs": {name: names[name] for name in model.inputs},
        "outputs": {name: names[name] for name in outputs},
    }
    return contents, entry | ({"why": case.refusal()} if expected is None else {})
