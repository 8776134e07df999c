"""Where the elements of tensors are: what is read of a source, in whatever order it has its axes."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from eltwise.ir.tensors import InMemory, Source, Transposed


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 1, 3)], ids=str)
def test_a_range_of_elements_is_that_of_the_array(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    axes = tuple(reversed(range(array.ndim)))
    sources: list[tuple[Source, np.ndarray]] = [
        (InMemory(array), array),
        (InMemory(array.transpose(axes)), array.transpose(axes)),
        (Transposed(InMemory(array), axes), array.transpose(axes)),
    ]
    for source, elements in sources:
        np.testing.assert_array_equal(source.array, elements, strict=True)
        for start, stop in combinations_with_replacement(range(array.size + 1), 2):
            for result in (source.read(start, stop), Source.read(source, start, stop)):
                np.testing.assert_array_equal(result, elements.reshape(-1)[start:stop], strict=True)
