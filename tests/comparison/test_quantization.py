"""Quantization is named exactly where A and B are of types between which values are quantized."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.pairs import common_type
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, TYPES, ElementType

FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
INTEGERS = tuple(each for each in TYPES if each.is_integer and each.runs)
SCALE = np.float32(0.25)
KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4")
"""The types of GGUF to which its library quantizes."""


def planted(a_type: ElementType, b_type: ElementType, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and the multiples of a scale that are nearest to them, as such or as integers."""
    if a_type.is_integer:
        low, high = max(a_type.limits[0], -100), min(a_type.limits[1], 100)
        a = rng.integers(low, high, (30, 40), endpoint=True).astype(a_type.storage)
    else:
        a = (rng.standard_normal((30, 40)) * 4).astype(a_type.storage)
    values = a.astype(np.float32)
    if b_type.is_integer:
        levels = np.rint(values / SCALE) if not a_type.is_integer else np.rint(values * SCALE)
        return a, np.clip(levels, *b_type.limits).astype(b_type.storage)
    levels = values * 3 if a_type.is_integer else np.rint(values / SCALE)
    return a, (levels * SCALE).astype(b_type.storage)


@pytest.mark.parametrize("shape", [(64, 48), (500, 700)])
@pytest.mark.parametrize("levels", [7, 127])
def test_one_scale_is_named_where_the_largest_element_is_equal(shape: tuple[int, int], levels: int, seed: int) -> None:
    """The scale comes from it, so that it is a multiple as it is: no element that differs is as large."""
    a = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    largest = np.argmax(np.abs(a))
    a.reshape(-1)[largest] = np.float32(levels * 0.03125)  # Which a float32 times levels gives exactly.
    a = np.clip(a, -levels * 0.03125, levels * 0.03125)
    found = compare_arrays(a, np.rint(a / np.float32(0.03125)) * np.float32(0.03125))
    kind = {7: "int4", 127: "int8"}[levels]
    assert found.explanation == f"B is A quantized to {kind} with scale 0.03125 and zero point 0, and back"
    a.reshape(-1)[largest] *= 2  # Beyond all others, and equal as well.
    found = compare_arrays(a, np.rint(a / np.float32(0.03125)) * np.float32(0.03125))
    assert found.cause_share == 1
    assert "with scale 0.03125 and zero point" in found.explanation


@pytest.mark.parametrize(("a_type", "b_type"), list(product((*FLOATS, *INTEGERS), repeat=2)), ids=str)
def test_quantization_is_named_exactly_between_the_types_that_allow_it(
    a_type: ElementType, b_type: ElementType, seed: int
) -> None:
    common = common_type(a_type, b_type)
    is_quantized = not a_type.is_integer and (b_type.is_integer or a_type is b_type)
    is_dequantized = a_type.is_integer and not b_type.is_integer
    found = compare_arrays(*planted(a_type, b_type, np.random.default_rng(seed)))
    if common is None:
        assert found.cause == "other_type"
    elif is_quantized or (is_dequantized and a_type.bits >= 8):
        # A factor is simpler than a scale and no zero point, where both predict everything.
        assert found.cause in ("quantized", *(("scaled",) if is_dequantized else ())), found.explanation
        assert found.cause_share == 1.0
    else:
        assert found.cause != "quantized", found.explanation


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64], ids=str)
def test_lost_digits_are_no_quantization(element_type: ElementType, seed: int) -> None:
    """What is left of numbers near 1 has their last digit, whatever chose it."""
    for low, high, whole in [(0, 1, 1), (-1, 0, 1), (-1, 1, 1), (-1, 1, -1), (-1, 1, 8), (-99, 99, 1), (-999, 999, 1)]:
        number = element_type.storage.type(whole)
        small = np.random.default_rng(seed).uniform(low, high, 400) * 2.0 ** (14 - element_type.digits)
        small = small.astype(element_type.storage)
        report = compare_arrays(small, (number + small) - number)
        assert (report.cause, report.cause_share) == ("cancellation", 1.0), report.explanation
        assert report.explanation.endswith(f"as left where numbers near {abs(whole)} cancel out")


@pytest.mark.parametrize("rounding", [np.floor, np.trunc, np.ceil])
def test_the_sentence_says_how_a_quantization_rounds(rounding: np.ufunc, seed: int) -> None:
    a = np.random.default_rng(seed).standard_normal(1000).astype(np.float32)
    report = compare_arrays(a, rounding(a * 1024) / np.float32(1024))
    assert f", {report.explanation_details['rounding']}, and back" in report.explanation
    assert report.explanation_details["rounding"] != "rounded"


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("b_type", [np.int8, np.float32])
def test_a_channel_of_zeros_has_the_scale_0(b_type: type, axis: int, seed: int) -> None:
    """It shows no grid, which makes the others' scales no less known; one other element in it is not explained."""
    a = np.random.default_rng(seed).standard_normal((24, 24)).astype(np.float32)
    a, a_rows = (a, a) if axis == 0 else (a, a.T)
    a_rows[5] = 0
    scales = np.abs(a).max(1 - axis, keepdims=True) / np.float32(127)
    levels = np.rint(a / np.where(scales == 0, np.float32(1), scales))
    b = (levels if b_type is np.int8 else levels * scales).astype(b_type)
    found = compare_arrays(a, b)
    assert (found.cause, found.cause_share) == ("quantized", 1.0), found.explanation
    scales_found = found.explanation_details["scales"]
    assert isinstance(scales_found, list)
    assert [index for index, scale in enumerate(scales_found) if scale == 0] == [5]
    (b if axis == 0 else b.T)[5, 3] = 1
    assert compare_arrays(a, b).cause_share != 1.0


@pytest.mark.parametrize("element_type", [FLOAT32, BFLOAT16, FLOAT64], ids=str)
def test_what_a_file_quantizes_in_blocks_is_named(element_type: ElementType, tmp_path: Path, seed: int) -> None:
    """Both ways, and not where one element is another number than the library of the format computes."""
    gguf: Any = pytest.importorskip("gguf")
    a = np.random.default_rng(seed).standard_normal((3, 30, 256)).astype(element_type.storage)
    writer, kinds = gguf.GGUFWriter(tmp_path / "m.gguf", "llama"), gguf.GGMLQuantizationType
    for kind in KINDS:
        packed = gguf.quantize(a.astype(np.float32), kinds[kind])
        writer.add_tensor(kind, packed, raw_dtype=kinds[kind])
    changed = gguf.quantize(a.astype(np.float32), kinds.Q8_0)
    changed[2, 23, 40] ^= 1
    writer.add_tensor("changed", changed, raw_dtype=kinds.Q8_0)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    original = dict.fromkeys((*KINDS, "changed"), a)
    for sides in ((original, tmp_path / "m.gguf"), (tmp_path / "m.gguf", original)):
        report = eltwise.compare(*sides)
        for kind in KINDS:
            assert (report[kind].cause, report[kind].cause_share) == ("quantized", 1.0), report[kind].explanation
            assert f"quantized to {kind} in blocks" in report[kind].explanation
        assert report["changed"].cause_share < 1


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("shift", [0, 3, -5])
@pytest.mark.parametrize("bits", [4, 8])
def test_levels_that_are_stored_in_few_digits_are_found_with_both_zero_points(
    element_type: ElementType, shift: int, bits: int, seed: int
) -> None:
    """The steps between levels of 8 and 11 digits differ by more than a tenth."""
    rng = np.random.default_rng([seed, bits, shift + 5])
    last = (1 << bits) - 1
    for _number in range(3):
        a = rng.standard_normal((60, 40)).astype(element_type.storage)
        x = a.astype(np.float32)
        scale = np.float32((x.max() - x.min()) / last)
        zero_point = int(np.rint(-x.min() / scale))
        levels = np.clip(np.rint(x / scale) + zero_point, 0, last)
        b = ((levels - (zero_point + shift)) * scale).astype(element_type.storage)
        result = compare_arrays(a, b)
        details = result.explanation_details
        assert (result.cause, (result.cause_share or 0) > 0.999) == ("quantized", True), result.explanation
        assert details["scale"] == pytest.approx(scale, rel=1e-2)
        if shift:
            assert int(details["zero_point_back"]) - int(details["zero_point"]) == shift  # type: ignore[call-overload]
            assert f"zero point {details['zero_point']}, and back with zero point" in result.explanation
        else:
            assert "zero_point_back" not in details


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_unrelated_values_of_few_digits_are_on_no_grid(element_type: ElementType, seed: int) -> None:
    rng, kind = np.random.default_rng(seed), element_type.storage
    for size in (20, 100, 1000):
        for _number in range(20):
            a, b = rng.standard_normal((2, size)).astype(kind)
            assert compare_arrays(a, b).cause == "unexplained"
            assert compare_arrays(a, (a.astype(np.float32) + b / 8 + 3).astype(kind)).cause != "quantized"
            few = rng.choice(rng.standard_normal(6).astype(kind), size)
            assert compare_arrays(a, few).cause != "quantized"


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_numbers_at_the_limits_of_their_type_are_compared(element_type: ElementType, seed: int) -> None:
    """Half of the smallest one is 0, and twice the largest one infinite."""
    rng, least = np.random.default_rng(seed), element_type.least_normal * 2.0 ** (1 - element_type.digits)
    numbers = np.array([0.0, least, 3 * least, element_type.largest_finite, element_type.largest_finite / 2, 1.0])
    for _number in range(60):
        values = np.concatenate([numbers, -numbers, [np.inf, np.nan]])[rng.permutation(14)[: int(rng.integers(2, 12))]]
        a, b = rng.choice(values, (2, 300)).astype(element_type.storage)
        assert compare_arrays(a, b).status == "differs"
