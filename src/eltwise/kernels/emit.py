"""A kernel as LLVM IR text: the loops around a formula, with explicit vectors. Pure.

A kernel is made for a structure (types, formula, how the innermost loop walks, how many loops lie outside of it), never
for sizes: those come in an array of integers when it is called.

``kernel(out, a, b, geometry, first, last)`` computes the rows from ``first`` to before ``last``. A row is one run of
the innermost loop. ``geometry`` holds the row's length and its three strides, then for each outer loop, from the inside
out, its size and its three strides; strides are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.dtypes import ElementType
from eltwise.kernels.nest import Walk
from eltwise.kernels.scalar import element_name, formula_lines
from eltwise.spec import Formula

CACHE_LINE = 64
"""Streaming stores fill whole cache lines of this many bytes."""


@dataclass(frozen=True)
class Structure:
    """What a kernel is made for.

    Attributes:
        formula: what is computed.
        element_type: of all three arrays.
        walks: how the innermost loop walks the result, A and B.
        outer_loops: how many loops lie around it.
        streams: whether results bypass the cache, for results that are larger than it.
        vector_bytes: the width of the target's vectors.
        has_masks: whether the target loads and stores parts of a vector at full speed.
    """

    formula: Formula
    element_type: ElementType
    walks: tuple[Walk, Walk, Walk]
    outer_loops: int
    streams: bool
    vector_bytes: int
    has_masks: bool

    @property
    def is_vectorized(self) -> bool:
        """Whether the row is computed with vectors."""
        return self.walks[0] == "vector" and "strided" not in self.walks

    @property
    def lanes(self) -> int:
        """How many elements a vector holds."""
        return self.vector_bytes // self.element_type.storage.itemsize


def kernel_text(structure: Structure) -> str:
    """Write the LLVM module of a structure; its one function is ``kernel``."""
    row = _vector_row(structure) if structure.is_vectorized else _strided_row(structure)
    lines = [
        "define void @kernel(ptr %out0, ptr %a0, ptr %b0, ptr readonly %geometry, i64 %first, i64 %last) nounwind {",
        "entry:",
        *_geometry(structure.outer_loops),
        *_start(structure.outer_loops),
        "  br label %row",
        *_row_head(structure.outer_loops),
        *row,
        *_next_row(structure.outer_loops),
        "finish:",
        # Streaming stores are ordered by nothing else: another thread must see them when it is told of the end.
        *(["  fence seq_cst"] if structure.streams else []),
        "  ret void",
        "}",
        *_declarations(structure),
        "!0 = !{i32 1}",
    ]
    return "\n".join(lines) + "\n"


def _geometry(outer_loops: int) -> list[str]:
    names = ["n", "out.step", "a.step", "b.step"]
    for loop in range(outer_loops):
        names += [f"size.{loop}", f"out.stride.{loop}", f"a.stride.{loop}", f"b.stride.{loop}"]
    lines = []
    for index, name in enumerate(names):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %geometry, i64 {index}")
        lines.append(f"  %{name} = load i64, ptr %{name}.at, align 8")
    return lines


def _start(outer_loops: int) -> list[str]:
    """Find the indices and the addresses of the first row."""
    lines, rest = [], "%first"
    places = {array: f"%{array}0" for array in ("out", "a", "b")}
    for loop in range(outer_loops):
        lines.append(f"  %begin.{loop} = urem i64 {rest}, %size.{loop}")
        lines.append(f"  %rest.{loop} = udiv i64 {rest}, %size.{loop}")
        rest = f"%rest.{loop}"
        for array, place in places.items():
            lines.append(f"  %{array}.skip.{loop} = mul i64 %begin.{loop}, %{array}.stride.{loop}")
            lines.append(f"  %{array}.begin.{loop} = getelementptr i8, ptr {place}, i64 %{array}.skip.{loop}")
            places[array] = f"%{array}.begin.{loop}"
    return lines


def _row_head(outer_loops: int) -> list[str]:
    begin = {array: f"%{array}.begin.{outer_loops - 1}" if outer_loops else f"%{array}0" for array in ("out", "a", "b")}
    return [
        "row:",
        "  %r = phi i64 [%first, %entry], [%r.next, %row.done]",
        *(f"  %{array} = phi ptr [{place}, %entry], [%{array}.next, %row.done]" for array, place in begin.items()),
        *(
            f"  %index.{loop} = phi i64 [%begin.{loop}, %entry], [%index.next.{loop}, %row.done]"
            for loop in range(outer_loops)
        ),
        "  %more = icmp ult i64 %r, %last",
        "  br i1 %more, label %row.body, label %finish",
        "row.body:",
    ]


def _next_row(outer_loops: int) -> list[str]:
    """Step to the next row, as an odometer does: a loop that is through starts again and moves the next one outside."""
    lines = ["row.done:", "  %r.next = add i64 %r, 1"]
    places, moves = {array: f"%{array}" for array in ("out", "a", "b")}, "true"
    for loop in range(outer_loops):
        lines += [
            f"  %moved.{loop} = zext i1 {moves} to i64",
            f"  %index.up.{loop} = add i64 %index.{loop}, %moved.{loop}",
            f"  %through.{loop} = icmp eq i64 %index.up.{loop}, %size.{loop}",
            f"  %index.next.{loop} = select i1 %through.{loop}, i64 0, i64 %index.up.{loop}",
        ]
        for array, place in places.items():
            name = f"%{array}.move.{loop}"
            lines += [
                f"  {name}.forth = mul i64 %moved.{loop}, %{array}.stride.{loop}",
                f"  {name}.whole = mul i64 %size.{loop}, %{array}.stride.{loop}",
                f"  {name}.back = select i1 %through.{loop}, i64 {name}.whole, i64 0",
                f"  {name} = sub i64 {name}.forth, {name}.back",
                f"  {name}.to = getelementptr i8, ptr {place}, i64 {name}",
            ]
            places[array] = f"{name}.to"
        moves = f"%through.{loop}"
    lines += [f"  %{array}.next = getelementptr i8, ptr {place}, i64 0" for array, place in places.items()]
    return [*lines, "  br label %row"]


def _strided_row(structure: Structure) -> list[str]:
    """One element after the other, each array with its own stride."""
    element, width = element_name(structure.element_type), structure.element_type.storage.itemsize
    lines = [
        "  br label %one",
        "one:",
        "  %i = phi i64 [0, %row.body], [%i.next, %one]",
        *(
            line
            for array in ("out", "a", "b")
            for line in (
                f"  %{array}.by = mul i64 %i, %{array}.step",
                f"  %{array}.at = getelementptr i8, ptr %{array}, i64 %{array}.by",
            )
        ),
        f"  %x = load {element}, ptr %a.at, align {width}",
        f"  %y = load {element}, ptr %b.at, align {width}",
    ]
    text, result = formula_lines(structure.formula, structure.element_type, 1, ["%x", "%y"], "one")
    return [
        *lines,
        *text,
        f"  store {element} {result}, ptr %out.at, align {width}",
        "  %i.next = add i64 %i, 1",
        "  %i.more = icmp ult i64 %i.next, %n",
        "  br i1 %i.more, label %one, label %row.done",
    ]


def _vector_row(structure: Structure) -> list[str]:
    """Single elements up to the first whole cache line, whole vectors, and the rest."""
    element, width, lanes = (
        element_name(structure.element_type),
        structure.element_type.storage.itemsize,
        structure.lanes,
    )
    lines = []
    for operand, walk in zip(("a", "b"), structure.walks[1:], strict=True):
        if walk == "scalar":
            lines += _splat(operand, element, width, lanes)
    if structure.streams:
        lines += [
            "  %address = ptrtoint ptr %out to i64",
            "  %before = sub i64 0, %address",
            f"  %head.bytes = and i64 %before, {CACHE_LINE - 1}",
            f"  %head.long = udiv i64 %head.bytes, {width}",
            "  %head.count = call i64 @llvm.umin.i64(i64 %head.long, i64 %n)",
        ]
    head = "%head.count" if structure.streams else "0"
    lines += [
        *([] if not structure.streams else _elements(structure, "head", "row.body", "0", "%head.count", "vectors")),
        *(["  br label %vectors"] if not structure.streams else []),
        "vectors:",
        f"  %left = sub i64 %n, {head}",
        f"  %whole.part = and i64 %left, {-lanes}",
        f"  %whole = add i64 %whole.part, {head}",
        "  %any = icmp ne i64 %whole.part, 0",
        "  br i1 %any, label %vector, label %rest",
        "vector:",
        f"  %v = phi i64 [{head}, %vectors], [%v.next, %vector]",
        *_vector_body(structure, "vector", "%v", ""),
        f"  %v.next = add i64 %v, {lanes}",
        "  %v.more = icmp ult i64 %v.next, %whole",
        "  br i1 %v.more, label %vector, label %rest",
        "rest:",
    ]
    if structure.has_masks:
        return [*lines, *_masked_rest(structure)]
    return [*lines, *_elements(structure, "tail", "rest", "%whole", "%n", "row.done")]


def _splat(operand: str, element: str, width: int, lanes: int) -> list[str]:
    """Load an operand that stays the same in the whole row, into every lane of a vector."""
    vector = f"<{lanes} x {element}>"
    return [
        f"  %{operand}.same = load {element}, ptr %{operand}, align {width}",
        f"  %{operand}.lane = insertelement {vector} poison, {element} %{operand}.same, i64 0",
        f"  %{operand}.all = shufflevector {vector} %{operand}.lane, {vector} poison, <{lanes} x i32> zeroinitializer",
    ]


def _vector_body(structure: Structure, name: str, index: str, mask: str) -> list[str]:
    """Load, compute and store one vector; with a mask only the lanes in it."""
    element, width, lanes = (
        element_name(structure.element_type),
        structure.element_type.storage.itemsize,
        structure.lanes,
    )
    vector, lines, operands = f"<{lanes} x {element}>", [], []
    suffix = f"v{lanes}{'f16' if element == 'half' else {'float': 'f32', 'double': 'f64'}.get(element, element)}"
    for operand, walk in zip(("a", "b"), structure.walks[1:], strict=True):
        if walk == "scalar":
            operands.append(f"%{operand}.all")
            continue
        place, value = f"%{name}.{operand}.at", f"%{name}.{operand}"
        lines.append(f"  {place} = getelementptr {element}, ptr %{operand}, i64 {index}")
        lines.append(
            f"  {value} = call {vector} @llvm.masked.load.{suffix}.p0(ptr align {width} {place}, "
            f"<{lanes} x i1> {mask}, {vector} zeroinitializer)"
            if mask
            else f"  {value} = load {vector}, ptr {place}, align {width}"
        )
        operands.append(value)
    text, result = formula_lines(structure.formula, structure.element_type, lanes, operands, name)
    place = f"%{name}.out.at"
    lines += [*text, f"  {place} = getelementptr {element}, ptr %out, i64 {index}"]
    if mask:
        lines.append(
            f"  call void @llvm.masked.store.{suffix}.p0({vector} {result}, ptr align {width} {place}, "
            f"<{lanes} x i1> {mask})"
        )
    elif structure.streams:
        lines.append(f"  store {vector} {result}, ptr {place}, align {structure.vector_bytes}, !nontemporal !0")
    else:
        lines.append(f"  store {vector} {result}, ptr {place}, align {width}")
    return lines


def _masked_rest(structure: Structure) -> list[str]:
    lanes = structure.lanes
    numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
    return [
        "  %some = icmp ult i64 %whole, %n",
        "  br i1 %some, label %masked, label %row.done",
        "masked:",
        "  %rest.count = sub i64 %n, %whole",
        f"  %rest.lane = insertelement <{lanes} x i64> poison, i64 %rest.count, i64 0",
        f"  %rest.all = shufflevector <{lanes} x i64> %rest.lane, <{lanes} x i64> poison, "
        f"<{lanes} x i32> zeroinitializer",
        f"  %mask = icmp ult <{lanes} x i64> <{numbers}>, %rest.all",
        *_vector_body(structure, "masked", "%whole", "%mask"),
        "  br label %row.done",
    ]


def _elements(structure: Structure, name: str, before: str, begin: str, end: str, after: str) -> list[str]:
    """A loop over single elements from ``begin`` to before ``end``."""
    element, width = element_name(structure.element_type), structure.element_type.storage.itemsize
    lines, operands = [], []
    for operand, walk in zip(("a", "b"), structure.walks[1:], strict=True):
        if walk == "scalar":
            operands.append(f"%{operand}.same")
            continue
        place = f"%{name}.{operand}.at"
        lines.append(f"  {place} = getelementptr {element}, ptr %{operand}, i64 %{name}.i")
        lines.append(f"  %{name}.{operand} = load {element}, ptr {place}, align {width}")
        operands.append(f"%{name}.{operand}")
    text, result = formula_lines(structure.formula, structure.element_type, 1, operands, name)
    return [
        f"  %{name}.some = icmp ult i64 {begin}, {end}",
        f"  br i1 %{name}.some, label %{name}, label %{after}",
        f"{name}:",
        f"  %{name}.i = phi i64 [{begin}, %{before}], [%{name}.next, %{name}]",
        *lines,
        *text,
        f"  %{name}.out.at = getelementptr {element}, ptr %out, i64 %{name}.i",
        f"  store {element} {result}, ptr %{name}.out.at, align {width}",
        f"  %{name}.next = add i64 %{name}.i, 1",
        f"  %{name}.more = icmp ult i64 %{name}.next, {end}",
        f"  br i1 %{name}.more, label %{name}, label %{after}",
    ]


def _declarations(structure: Structure) -> list[str]:
    return ["declare i64 @llvm.umin.i64(i64, i64)"] if structure.streams and structure.is_vectorized else []
