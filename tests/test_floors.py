"""The floors of the house: a room imports only from lower floors. The test is proved by planted faults."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import eltwise

ROOT = Path(eltwise.__file__).parent

# One row a floor, from the ground up. A package's own __init__ stands where its entry stands.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "machine", "version"),
    ("dtypes", "shapes", "conversion", "conversion.report"),
    ("broadcasting", "moves", "casting", "dlpack", "oracle_numbers", "conversion.plain"),
    ("arrays", "oracle", "spec"),
    ("catalog.elementwise", "catalog.neighbours"),
    ("catalog", "ir"),
    (
        "infer",
        "conversion.alignment",
        "conversion.building",
        "conversion.dropping",
        "conversion.exactness",
        "conversion.company",
    ),
    (
        "conversion.places",
        "infer_graph",
        "kernels",
        "kernels.addresses",
        "kernels.caches",
        "kernels.code",
        "kernels.disk_cache",
        "kernels.expression",
        "kernels.float_mode",
        "kernels.nest",
        "kernels.plan",
        "kernels.pool",
        "kernels.threads",
    ),
    ("conversion.elementwise", "conversion.neighbours", "conversion.graph_places", "targets"),
    ("conversion.wider", "conversion.aligned"),
    (
        "kernels.halves",
        "kernels.jit",
        "kernels.numpy_path",
        "formats",
        "formats.files",
        "formats.reading",
        "formats.npy_header",
    ),
    ("formats.npy_files", "formats.blobs", "formats.openvino_document", "formats.onnx_messages", "formats.folders"),
    ("formats.onnx_header", "formats.onnx_external", "formats.openvino_xml"),
    (
        "formats.onnx_tensors",
        "formats.openvino_elements",
        "formats.openvino_layers",
        "formats.onnx_versions",
        "formats.onnx_versions.schemas",
        "formats.onnx_versions.names",
        "formats.onnx_versions.file_versions",
        "formats.onnx_versions.written_otherwise",
        "formats.onnx_problems",
    ),
    ("formats.onnx_types", "formats.onnx_nodes", "formats.openvino_values", "formats.openvino_ports"),
    (
        "formats.tensor_files",
        "formats.openvino_wiring",
        "conversion.boundary",
        "formats.onnx_versions.tensors_held",
        "formats.onnx_problems.wiring",
        "formats.onnx_problems.nodes",
    ),
    (
        "formats.onnx_reader",
        "formats.openvino_reader",
        "formats.onnx_writer",
        "formats.openvino_writer",
        "formats.onnx_versions.inlined",
        "formats.onnx_problems.tensors",
        "formats.onnx_problems.runtime_rules",
    ),
    ("kernels.scalar",),
    ("kernels.structure",),
    ("kernels.access", "kernels.walks"),
    ("kernels.rows",),
    ("kernels.tiles",),
    ("formats.onnx_versions.inferring", "formats.onnx_versions.same_meaning", "formats.onnx_versions.carrying"),
    ("formats.onnx_versions.scopes",),
    (
        "formats.onnx_versions.rewriting",
        "formats.onnx_versions.types_allowed",
        "formats.onnx_versions.places",
        "formats.onnx_versions.counted_axes",
    ),
    ("formats.onnx_versions.upward", "formats.onnx_versions.converter_faults", "formats.onnx_versions.wider_nodes"),
    ("formats.onnx_versions.downward", "formats.onnx_versions.through_onnx", "formats.onnx_problems.types"),
    ("formats.onnx_versions.planning", "formats.onnx_problems.finding"),
    ("formats.onnx_versions.converting",),
    ("formats.onnx_versions.converted_files",),
    ("conversion.graphs",),
    ("kernels.emit",),
    ("kernels.compiled",),
    ("kernels.dispatch",),
    ("kernels.dump",),
    ("quick", "fusion"),
    ("execute",),
    ("program", "border"),
    ("runner", "operators"),
    ("explaining",),
    ("model",),
    ("backend", "conformance", "conformance.values", "conformance.shapes_of_rules"),
    ("conformance.cases", "conversion.verifying"),
    ("conversion.entry",),
    ("conversion.files",),
    ("conformance.answers", "conformance.floating_point", "conformance.paths", "conformance.wire"),
    ("conformance.onnx_models", "conformance.ir_models", "conformance.runtimes"),
    ("conformance.models", "conformance.process"),
    ("conformance.runtimes.asking",),
    (
        "conformance.runtimes.own",
        "conformance.runtimes.onnx_runtime",
        "conformance.runtimes.onnx_reference",
        "conformance.runtimes.open_vino",
        "conformance.runtimes.callables",
        "conformance.runtimes.libraries",
        "conformance.worker",
    ),
    ("conformance.number_arrays", "conformance.alignments"),
    ("conformance.steps", "conformance.evidence", "conformance.regions"),
    ("conformance.formulas", "conformance.facts"),
    ("conformance.arithmetic", "conformance.narrowing"),
    ("conformance.formula_deviations", "conformance.integer_deviations", "conformance.float_deviations"),
    ("conformance.deviations",),
    ("conformance.searching",),
    ("conformance.parting",),
    ("conformance.explaining",),
    ("conformance.judging", "conformance.cells", "conformance.json_fields"),
    ("conformance.results", "conformance.scripts"),
    ("conformance.results_reader", "conformance.strict", "conformance.known_file", "conformance.reproducing"),
    ("bench", "bench.workloads"),
    ("bench.results", "bench.tensors", "bench.onnx_models"),
    ("bench.contestants", "bench.first_call", "bench.texts", "bench.roofline"),
    ("bench.limit", "bench.libraries", "bench.runtimes", "bench.page"),
    ("bench.measuring", "bench.peers"),
    ("bench.session",),
    ("conformance.questions", "conformance.verdicts"),
    ("conformance.smallest", "conformance.asking_cells", "conformance.mixtures"),
    ("conformance.explainer",),
    ("conformance.companions",),
    ("conformance.summing",),
    ("conformance.referee", "conformance.kit", "report", "report.legend"),
    ("report.reasons",),
    ("report.findings",),
    ("report.page", "report.document", "targets.table", "targets.stamps", "targets.spans"),
    (
        "targets.table_file",
        "targets.circumstances",
        "targets.companies",
        "targets.answering",
        "targets.rewriting",
        "targets.judging",
        "targets.report",
    ),
    ("targets.examining", "targets.asking", "targets.running"),
    ("targets.proving",),
    ("targets.measuring", "targets.repaired"),
    ("targets.loading", "targets.stamping", "targets.malformed"),
    ("targets.checking",),
    ("targets.repairing",),
    ("targets.files",),
    ("cli.printing", "cli.attributes", "cli.progress"),
    (
        "cli.running",
        "cli.listing",
        "cli.benching",
        "cli.converting",
        "cli.conforming",
        "cli.reproducing",
        "cli.measuring",
    ),
    ("cli.targeting",),
    ("cli.examining",),
    ("cli",),
    ("__main__", "__init__"),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
HEAVY = {"onnx", "lxml", "llvmlite", "openvino", "onnxruntime"}
MAY_IMPORT = {
    "onnx": ("formats.onnx", "backend", "bench.onnx_models", "conformance.onnx_models"),
    "lxml": ("formats.openvino",),
    "llvmlite": ("kernels.jit",),
}


def sources() -> dict[str, str]:
    rooms = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        rooms[name] = path.read_text(encoding="utf-8")
    return rooms


def imports_of(source: str, rooms: set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            found.add(_room(name, rooms))
    return found - {""}


def _room(name: str, rooms: set[str]) -> str:
    """The room that an imported name lies in; for what is not ours, its top-level package."""
    top, _dot, rest = name.partition(".")
    if top != "eltwise":
        return f"outside:{top}"
    while rest and rest not in rooms:
        rest = rest.rpartition(".")[0]
    return rest or "__init__"


def faults(rooms: dict[str, str]) -> list[str]:
    """Every import that goes up or sideways, every room without a floor, every banned import."""
    found = [f"{room} has no floor" for room in rooms if room not in FLOOR_OF]
    for room, source in rooms.items():
        for target in imports_of(source, set(rooms)):
            if target.startswith("outside:"):
                package = target.removeprefix("outside:")
                allowed = MAY_IMPORT.get(package, ())
                typing_only = f"if TYPE_CHECKING:\n    from {package} import" in source
                if package in HEAVY and not room.startswith(allowed or ("-",)) and not typing_only:
                    found.append(f"{room} imports {package}")
            elif room in FLOOR_OF and target in FLOOR_OF and FLOOR_OF[target] >= FLOOR_OF[room]:
                found.append(f"{room} (floor {FLOOR_OF[room]}) imports {target} (floor {FLOOR_OF[target]})")
    return found


def test_every_room_imports_only_from_lower_floors() -> None:
    assert faults(sources()) == []


def test_every_floor_names_rooms_that_exist() -> None:
    assert set(FLOOR_OF) - set(sources()) == set()


@pytest.mark.parametrize(
    ("room", "planted"),
    [
        ("shapes", "from eltwise import execute"),
        ("errors", "import eltwise.cli.printing"),
        ("dtypes", "from eltwise.shapes import Shape"),
        ("infer", "def late() -> None:\n    from eltwise.model import load"),
        ("catalog.elementwise", "from eltwise import catalog"),
        ("execute", "import onnx"),
        ("ir", "from lxml import etree"),
        ("oracle", "from eltwise.execute import apply"),
    ],
)
def test_a_planted_fault_is_found(room: str, planted: str) -> None:
    rooms = sources()
    rooms[room] += f"\n{planted}\n"
    assert len(set(faults(rooms)) - set(faults(sources()))) == 1


def test_a_planted_cycle_is_found() -> None:
    rooms = sources() | {"left": "from eltwise import right", "right": "from eltwise import left"}
    FLOOR_OF.update({"left": 3, "right": 3})
    try:
        assert len(set(faults(rooms)) - set(faults(sources()))) == 2
    finally:
        del FLOOR_OF["left"], FLOOR_OF["right"]


def test_the_oracle_knows_nothing_of_the_engine() -> None:
    rooms = sources()
    reached, waiting = set(), {"oracle"}
    while waiting:
        room = waiting.pop()
        reached.add(room)
        waiting |= {name for name in imports_of(rooms[room], set(rooms)) if name in rooms} - reached
    assert reached == {"oracle", "oracle_numbers", "dtypes", "errors"}


ENGINE = ("execute", "kernels", "operators", "model", "infer", "infer_graph", "moves", "casting", "fuse")


@pytest.mark.parametrize("room", ["verdicts", "questions", "smallest", "models", "values", "judging", "kit"])
def test_the_judgement_knows_nothing_of_the_engine(room: str) -> None:
    rooms = sources()
    reached, waiting = set(), {f"conformance.{room}"}
    while waiting:
        reached.add(waiting.pop())
        waiting |= {name for one in reached for name in imports_of(rooms[one], set(rooms)) if name in rooms} - reached
    assert {name for name in reached if name.split(".")[0] in ENGINE or name.endswith(("_writer", "_reader"))} == set()
