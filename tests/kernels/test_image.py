"""Images of machine code: linked from object files for every processor, or refused."""

from __future__ import annotations

import ctypes
import struct
from itertools import product
from pathlib import Path

import pytest

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8
from eltwise.kernels import emit, entry, image, linking
from eltwise.kernels.linking import UnlinkableError
from eltwise.kernels.structure import Structure, Target
from eltwise.ops import registry
from support.pairwise import pairwise

llvm = pytest.importorskip("llvmlite.binding")
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

OUTSIDE = "declare void @other()\ndefine void @kernel() {\n  call void @other()\n  ret void\n}\n"


def compiled(text: str, triple: str, processor: str) -> bytes:
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, reloc="pic", codemodel="small")
    content: bytes = machine.emit_object(llvm.parse_assembly(text))
    return content


def kernel_texts(target: Target) -> list[str]:
    """A kernel with a table, and of all others so many that any two of these properties meet."""
    expressions = [registry.find(name).bind({}).expression() for name in ("SquaredDifference-1", "Less-13")]
    erf = registry.find("Erf-13").bind({}).expression()
    walks_of_one = ("vector", "vector")
    with_table = Structure(erf, FLOAT64, walks_of_one, 1, (False, False), False, False, target)
    others = "scalar", "transposed", "strided"
    return [emit.kernel_text(with_table)] + [
        emit.kernel_text(
            Structure(
                expression, element_type, ("vector", walk, "vector"), 1, (False, swapped, False), False, False, target
            )
        )
        for expression, element_type, walk, swapped in pairwise(
            row
            for row in product(expressions, (FLOAT32, FLOAT16, BFLOAT16, INT8), others, (False, True))
            if row[3] <= (row[1] is FLOAT32)
        )
    ]


@pytest.mark.parametrize(
    ("triple", "target"),
    [
        ("x86_64-unknown-linux-gnu", Target("x86-64-v3", "", 32, False, True, True)),
        ("x86_64-unknown-linux-gnu", Target("x86-64-v4", "", 64, True, True, True)),
        ("aarch64-unknown-linux-gnu", Target("neoverse-n1", "", 16, False, True, False)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_kernel_becomes_an_image(triple: str, target: Target) -> None:
    for text in [*kernel_texts(target), *(entry.entry_text(count, "aarch64" in triple) for count in (1, 2))]:
        content = compiled(text, triple, target.name)
        linked = linking.link(content)
        assert len(linked) > 16
        assert linked == linking.link(content)


def test_constants_of_arm64_are_found_in_the_image() -> None:
    """Each address that code makes of a page and 12 more bits lies behind the code, where the constants are."""
    text = """define <4 x float> @kernel(<4 x float> %x) nounwind {
  %y = fadd <4 x float> %x, <float 1.5, float 2.5, float 3.5, float 9.25>
  ret <4 x float> %y
}
"""
    linked = linking.link(compiled(text, "aarch64-unknown-linux-gnu", "neoverse-n1"))
    words = struct.unpack_from(f"<{len(linked) // 4}I", linked)
    page = next(word for word in words if word & 0x9F000000 == 0x90000000)
    load = next(word for word in words if word & 0xFFC00000 == 0x3DC00000)
    assert (page >> 29 & 3) | (page >> 5 & 0x7FFFF) << 2 == 0  # The same page.
    place = (load >> 10 & 0xFFF) * 16
    assert struct.unpack_from("<4f", linked, place) == (1.5, 2.5, 3.5, 9.25)


def test_calls_of_arm64_reach_the_function() -> None:
    text = """define i64 @kernel(i64 %x) nounwind {
  %y = call i64 @other(i64 %x)
  %z = add i64 %y, %x
  ret i64 %z
}
define internal i64 @other(i64 %x) noinline nounwind {
  %y = mul i64 %x, %x
  ret i64 %y
}
"""
    linked = linking.link(compiled(text, "aarch64-unknown-linux-gnu", "neoverse-n1"))
    words = struct.unpack_from(f"<{len(linked) // 4}I", linked)
    call = next(index for index, word in enumerate(words) if word & 0xFC000000 == 0x94000000)
    assert words[call + (words[call] & 0x3FFFFFF)] == 0x9B007C00  # mul x0, x0, x0


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_what_lies_outside_is_refused(triple: str) -> None:
    with pytest.raises(UnlinkableError, match="outside itself"):
        linking.link(compiled(OUTSIDE, triple, ""))


@pytest.mark.skipif(not image.can_be_mapped(), reason="images are mapped on Linux only")
def test_a_mapped_image_runs_and_cannot_be_written() -> None:
    text = "define i64 @kernel(i64 %x) {\n  %y = mul i64 %x, 3\n  ret i64 %y\n}\n"
    address = image.map_image(linking.link(compiled(text, llvm.get_default_triple(), "")))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(14) == 42
    lines = Path("/proc/self/maps").read_text(encoding="ascii").splitlines()
    (own,) = [line for line in lines if int(line.split("-")[0], 16) <= address < int(line.split("-")[1].split()[0], 16)]
    assert own.split()[1].startswith("r-x")
