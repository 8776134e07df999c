"""Which constants of two models stand for one another, so that how their nodes are connected can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b

from eltwise.comparison.matching import Pairs
from eltwise.core.errors import EltwiseError
from eltwise.ir.tensor_sets import Labels, TensorSet
from eltwise.ir.tensors import Tensor

_READ = 1 << 20
"""So many elements are read at a time."""


def labels_of(a: TensorSet, b: TensorSet, pairs: Pairs, by_content: bool) -> tuple[Labels, Labels]:
    """The labels of the constants of two sets; those without a partner have none.

    Args:
        a: one set.
        b: the other one.
        pairs: what belongs together.
        by_content: whether constants of one set with the same elements have one label, since it does not matter which
            of them a node reads. All elements of constants of one type and shape are read for it.
    """
    labels = _Labels()
    for one, other in pairs:
        labels.join(("A", one.name), ("B", other.name))
    if by_content:
        for side, tensors in (("A", a), ("B", b)):
            for name, other_name in _alike(tensors):
                labels.join((side, name), (side, other_name))
    return labels.of("A"), labels.of("B")


class _Labels:
    """Sets of names that grow together; each is called by one of its names."""

    def __init__(self) -> None:
        self._parents: dict[tuple[str, str], tuple[str, str]] = {}

    def _first(self, name: tuple[str, str]) -> tuple[str, str]:
        path = [name]
        while (parent := self._parents.setdefault(path[-1], path[-1])) != path[-1]:
            path.append(parent)
        self._parents.update(dict.fromkeys(path, path[-1]))
        return path[-1]

    def join(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """Let two names have one label."""
        self._parents[self._first(other)] = self._first(one)

    def of(self, side: str) -> Labels:
        """The labels of a side's names."""
        return {name: repr(self._first((each, name))) for each, name in list(self._parents) if each == side}


def _alike(tensors: TensorSet) -> Iterator[tuple[str, str]]:
    """Pairs of names of tensors with the same type, shape and elements."""
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, tensor in tensors.items():
        groups.setdefault((tensor.element_type.name, tensor.shape), []).append(name)
    for names in groups.values():
        first: dict[bytes, str] = {}
        for name in names if len(names) > 1 else ():
            with suppress(EltwiseError):  # The comparison of the tensor itself says what cannot be read.
                yield first.setdefault(_digest(tensors[name]), name), name


def _digest(tensor: Tensor) -> bytes:
    digest, step = blake2b(digest_size=16), max(tensor.grain, _READ - _READ % tensor.grain)
    for start in range(0, tensor.size, step):
        digest.update(tensor.read(start, min(start + step, tensor.size)).tobytes())
    return digest.digest()
