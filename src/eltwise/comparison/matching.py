"""Which tensor of B belongs to which of A: by name, then by shape and content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from eltwise.comparison.numbers import bits_of, values_of
from eltwise.core.errors import EltwiseError
from eltwise.ir.tensors import Tensor, TensorSet

_SAMPLED = 64
_LEAST_DISTINCT = 8
_LEAST_NEAR = 0.9
_NEAR = 0.05
_SHARED, _MOST_COPIES = 4, 4


Pairs = tuple[tuple[Tensor, Tensor], ...]


def match(a: TensorSet, b: TensorSet) -> tuple[Pairs, tuple[str, ...], tuple[str, ...], tuple[EltwiseError, ...]]:
    """Match two sets. A tensor without a name is matched with the only one of the other set.

    Returns:
        The tensors of A with those of B, in the order of A; then the names of A and those of B without a partner;
        then the errors of those that could not be read to look for one.
    """
    if len(a) == len(b) == 1 and (a.is_one or b.is_one):
        return ((next(iter(a.values())), next(iter(b.values()))),), (), (), ()
    if a.tensors.keys() == b.tensors.keys():
        return tuple((tensor, b.tensors[name]) for name, tensor in a.tensors.items()), (), (), ()
    names_a, names_b = {*a, *a.unreadable}, {*b, *b.unreadable}
    partner = {name: name for name in a if name in b}
    left = {name: tensor for name, tensor in a.items() if name not in names_b}
    other = {name: tensor for name, tensor in b.items() if name not in names_a}
    unread: tuple[dict[str, EltwiseError], dict[str, EltwiseError]] = ({}, {})
    partner |= _by_content(left, other, unread)
    missing = tuple(name for name in left if name not in partner and name not in unread[0])
    matched = {*partner.values(), *unread[1]}
    extra = tuple(name for name in other if name not in matched)
    pairs = tuple((a[name], b[partner[name]]) for name in a if name in partner)
    return pairs, missing, extra, (*unread[0].values(), *unread[1].values())


def _by_content(
    a: Mapping[str, Tensor], b: Mapping[str, Tensor], unread: Sequence[dict[str, EltwiseError]]
) -> dict[str, str]:
    """The names of tensors with the same elements at some places, then of those with nearly the same."""
    shapes = {_sizes(tensor) for tensor in a.values()} & {_sizes(tensor) for tensor in b.values()}
    samples = [
        {
            name: sample
            for name, tensor in side.items()
            if _sizes(tensor) in shapes and (sample := _sample(tensor, failed)) is not None
        }
        for side, failed in zip((a, b), unread, strict=True)
    ]
    by_bits: dict[tuple[object, ...], list[str]] = {}
    for name, values in samples[1].items():
        by_bits.setdefault((b[name].element_type, _sizes(b[name]), bits_of(values).tobytes()), []).append(name)
    partner: dict[str, str] = {}
    for name, values in samples[0].items():
        same = by_bits.get((a[name].element_type, _sizes(a[name]), bits_of(values).tobytes()))
        if same:
            partner[name] = same.pop(0)
    partnered = set(partner.values())
    left = {name: values for name, values in samples[1].items() if name not in partnered}
    for name, values in samples[0].items():
        near = _nearest(a[name], values, (b[other] for other in left), left) if name not in partner else ""
        if near:
            partner[name] = near
            del left[near]
    return partner


def _sizes(tensor: Tensor) -> tuple[int, ...]:
    """The shape without dimensions of 1, which converters add and remove."""
    return tuple(size for size in tensor.shape if size != 1)


def _sample(tensor: Tensor, failed: dict[str, EltwiseError]) -> np.ndarray | None:
    """The elements at some evenly spread places; None where they cannot be read, with the error by the name."""
    if not tensor.size:
        return np.zeros(0, tensor.storage)
    indices = np.unique((np.arange(_SAMPLED) * 2 + 1) * tensor.size // (2 * _SAMPLED))
    try:
        return np.ascontiguousarray(tensor.at(indices))
    except EltwiseError as error:
        failed[tensor.name] = error
        return None


def _nearest(tensor: Tensor, values: np.ndarray, others: Iterable[Tensor], samples: Mapping[str, np.ndarray]) -> str:
    """The tensor of the same shape whose elements are nearest, if nearly all of them are near; else nothing."""
    sample = values_of(values, tensor.element_type).astype(np.float64)
    if np.unique(sample[np.isfinite(sample) & (sample != 0)]).size < _LEAST_DISTINCT:
        return ""
    best, name = _LEAST_NEAR, ""
    for other in others:
        if _sizes(other) != _sizes(tensor):
            continue
        theirs = values_of(samples[other.name], other.element_type).astype(np.float64)
        with np.errstate(all="ignore"):
            share = float((np.abs(sample - theirs) <= _NEAR * np.abs(sample)).mean())
        if share > best:
            best, name = share, other.name
    return name


class Copies:
    """Finds the tensors of a set that another one may be a copy of: they share some elements at the same places."""

    def __init__(self, tensors: Mapping[str, Tensor] | None = None) -> None:
        self._tensors = tensors or {}

    @cached_property
    def _by_content(self) -> dict[int, list[str]]:
        """The names by the type, the shape and each few sampled elements; a hash stands for these."""
        names: dict[int, list[str]] = {}
        for name, tensor in self._tensors.items():
            for key in self._keys(tensor):
                names.setdefault(key, []).append(name)
        return names

    @staticmethod
    def _keys(tensor: Tensor) -> Iterator[int]:
        sample = _sample(tensor, {})  # The comparison of the tensor itself says what cannot be read.
        data, width = (b"", 1) if sample is None else (sample.tobytes(), sample.itemsize)
        for start in range(0, len(data), _SHARED * width):
            few = data[start : start + _SHARED * width]
            if few != few[:width] * (len(few) // width):  # Equal elements tell nothing: many tensors are constant.
                yield hash((tensor.element_type.name, tensor.shape, start, few))

    def of(self, tensor: Tensor) -> list[Tensor]:
        """The tensors that share most of these elements with one, at most a few."""
        if not self._tensors:
            return []
        shared = Counter(name for key in self._keys(tensor) for name in self._by_content.get(key, ()))
        return [self._tensors[name] for name, _count in shared.most_common(_MOST_COPIES)]
