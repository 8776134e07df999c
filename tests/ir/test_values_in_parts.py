"""Values that are no elements of tensors: how two arrays of them differ, in whatever parts they are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.errors import FileFormatError
from eltwise.ir import values
from eltwise.ir.tensors import InMemory
from eltwise.ir.values import Values

EACH = 1 << 10
"""What each text counts as, in bytes."""


class InChunks(InMemory):
    """Elements of which a file holds so many together."""

    def __init__(self, elements: np.ndarray, grain: int) -> None:
        super().__init__(elements)
        self._grain = grain

    @property
    def grain(self) -> int:
        return self._grain


def texts(of: list[str], chunk: int = 1) -> Values:
    return Values(InChunks(np.array(of, object), chunk), "names", "a.npz")


LETTERS = st.lists(st.sampled_from("ab"), min_size=1, max_size=24)


@given(
    pair=LETTERS.flatmap(lambda one: st.tuples(st.just(one), st.permutations(one))),
    chunks=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    together=st.integers(1, 30),
    largest=st.integers(1, 30),
)
def test_the_difference_is_the_same_in_whatever_parts_it_is_found(
    pair: tuple[list[str], list[str]], chunks: tuple[int, int], together: int, largest: int
) -> None:
    one, other = pair
    unequal = [number for number, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(values, "_BYTES_AT_A_TIME", together * EACH)
        patched.setattr(values, "_LARGEST_GRAIN", largest * EACH)
        result = texts(one, chunks[0]).difference(texts(other, chunks[1]))
    if unequal:
        first = unequal[0]
        verb = "differs" if len(unequal) == 1 else "differ"
        counted = f"{len(unequal)} of {len(one)} {verb}; first "
        assert result == f"{counted}[{first}]: {other[first]!r} instead of {one[first]!r}"
    else:
        assert result == ""


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10, 11, 40])
def test_so_many_values_are_compared_as_the_error_allows(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_MOST_BYTES", 10 * EACH)
    pair = (texts(["a"] * count), texts(["a"] * count))
    if count <= 10:
        assert pair[0].difference(pair[1]) == ""
        return
    with pytest.raises(FileFormatError) as caught:
        pair[0].difference(pair[1])
    amount = f"got {count} of {EACH} bytes; allowed: {10 * EACH} bytes"
    assert str(caught.value) == f"a.npz: values 'names': the values are too many, {amount}"
