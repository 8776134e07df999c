"""Which tensor of B belongs to which of A: by name, by content, and by the rule that the names of others follow."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from eltwise.comparison.naming import Renamer, numbers_of, renaming_of
from eltwise.comparison.near_rows import NearRows
from eltwise.comparison.numbers import bits_of, values_of
from eltwise.core.blocks import spread
from eltwise.core.border import stripped
from eltwise.core.errors import EltwiseError
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Tensor

_SAMPLED = 64
_LEAST_DISTINCT = 8
_SHARED, _MOST_COPIES = 4, 4
_LEAST_RULED, _TIMES_RULED = 2, 2
"""A rule that so many names follow, and so many times as many as the rule of a pair, is the one that was meant.

A rule that keeps numbers needs no more names than one of a single layer that changes its number.
"""


Pairs = tuple[tuple[Tensor, Tensor], ...]
_Sizes = tuple[int, ...]


def match(a: TensorSet, b: TensorSet) -> tuple[Pairs, tuple[str, ...], tuple[str, ...], tuple[EltwiseError, ...]]:
    """Match two sets. A tensor without a name is matched with the only one of the other set.

    A tensor that the other set has once for several names is in several pairs.

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
    left = _Samples({name: tensor for name, tensor in a.items() if name not in names_b})
    other = _Samples({name: tensor for name, tensor in b.items() if name not in names_a})
    partner |= _by_content(left, other)
    left = left.without(partner)
    other = other.without(set(partner.values()))
    partner |= _shared(left, _Samples({name: b[name] for name in partner.values()}), b.stores_once)
    more = _shared(other, _Samples({name: a[name] for name in partner}), a.stores_once)
    missing = tuple(name for name in left.tensors if name not in partner and name not in left.unread)
    extra = tuple(name for name in other.tensors if name not in more and name not in other.unread)
    pairs = [(a[name], b[partner[name]]) for name in a if name in partner]
    pairs += [(a[name], b[once_more]) for once_more, name in more.items()]
    return tuple(pairs), missing, extra, (*left.unread.values(), *other.unread.values())


@dataclass
class _Samples:
    """Some tensors, of which a few elements are read when they are asked for, and why those of some could not be."""

    tensors: dict[str, Tensor]
    unread: dict[str, EltwiseError] = field(default_factory=dict)
    read: dict[tuple[str, bool], np.ndarray | None] = field(default_factory=dict)

    def without(self, names: Mapping[str, str] | set[str]) -> _Samples:
        """Those that have other names."""
        tensors = {name: tensor for name, tensor in self.tensors.items() if name not in names}
        return _Samples(tensors, self.unread, self.read)

    @property
    def sizes(self) -> set[_Sizes]:
        """The sizes of all, those of matrices also in the other order."""
        sizes = set(map(_sizes, self.tensors.values()))
        return sizes | {one[::-1] for one in sizes if len(one) == 2}

    def of(self, name: str, is_transposed: bool = False) -> np.ndarray | None:
        """Some elements, evenly spread over the tensor or its transpose; None where they cannot be read."""
        key = name, is_transposed
        if key not in self.read:
            self.read[key] = _sample(self.tensors[name], self.unread, is_transposed)
        return self.read[key]

    def each(self, sizes: set[_Sizes], *, turned: bool = False) -> Iterator[tuple[str, _Sizes, np.ndarray]]:
        """The names of tensors of these sizes, with their elements; then those of the transposes of matrices, too."""
        for is_transposed in (False, True)[: 1 + turned]:
            for name, tensor in self.tensors.items():
                of_sizes = _sizes(tensor)[:: -1 if is_transposed else 1]
                is_possible = of_sizes in sizes and (len(of_sizes) == 2 or not is_transposed)
                if is_possible and (values := self.of(name, is_transposed)) is not None:
                    yield name, of_sizes, values


def _by_content(a: _Samples, b: _Samples) -> dict[str, str]:
    """Names with the same elements, then those with nearly the same ones; the rules of either lead to further ones."""
    sizes = a.sizes & b.sizes
    partner: dict[str, str] = {}
    _take_equal(partner, a, b, sizes, is_telling)
    _take_ruled(partner, a, b)
    ruled = len(partner)
    _take_equal(partner, a, b, sizes, lambda _values: True)
    _take_nearest(partner, a.without(partner), b.without(set(partner.values())))
    if len(partner) > ruled:
        _take_ruled(partner, a, b)
    return {name: partner[name] for name in a.tensors if name in partner}


def _take_ruled(partner: dict[str, str], a: _Samples, b: _Samples) -> None:
    """Add the pairs that the rules of those before lead to, and exchange those that break a rule of most."""
    _follow_rule(partner, a, b)
    renamer = Renamer(partner.items())
    used = set(partner.values())
    for name, tensor in a.tensors.items():
        if name not in partner:
            other = next((one for one in renamer.names_of(name) if one in b.tensors and one not in used), None)
            if other is not None and sorted(_sizes(tensor)) == sorted(_sizes(b.tensors[other])):
                partner[name] = other
                used.add(other)


def _follow_rule(partner: dict[str, str], a: _Samples, b: _Samples) -> None:
    """Change the pairs that break a rule which most names follow: under their new names these tensors are exchanged."""
    renamer = Renamer(partner.items())
    counts = Counter(renaming_of(*pair) for pair in partner.items())
    ruled: dict[str, str] = {}
    for name, other in partner.items():
        rule = renaming_of(name, other)
        for one in renamer.names_of(name):
            is_one = one in b.tensors and sorted(_sizes(a.tensors[name])) == sorted(_sizes(b.tensors[one]))
            keeps_numbers = numbers_of(name) == numbers_of(one) != numbers_of(other)
            least = counts[rule] if keeps_numbers else max(_LEAST_RULED, _TIMES_RULED * counts[rule])
            if is_one and one not in (other, *ruled.values()) and counts[renaming_of(name, one)] >= least:
                ruled[name] = one
                break
    for name, other in list(partner.items()):
        if name in ruled or other in ruled.values():
            del partner[name]
    partner.update(ruled)


def is_telling(values: np.ndarray) -> bool:
    """Whether elements tell a tensor from others, as those of one that is constant do not."""
    return np.unique(bits_of(values)).size >= _LEAST_DISTINCT


def _by_bits(tensors: _Samples, sizes: set[_Sizes]) -> dict[tuple[object, ...], deque[str]]:
    names: dict[tuple[object, ...], deque[str]] = {}
    for name, of_sizes, values in tensors.each(sizes, turned=True):
        names.setdefault(_key(tensors.tensors[name], of_sizes, values), deque()).append(name)
    return names


def _key(tensor: Tensor, sizes: _Sizes, values: np.ndarray) -> tuple[object, ...]:
    return tensor.element_type, sizes, values.tobytes()


def _take_equal(
    partner: dict[str, str], a: _Samples, b: _Samples, sizes: set[_Sizes], counts: Callable[[np.ndarray], bool]
) -> None:
    """Add the pairs with the same elements, of those without a partner and whose elements count."""
    used, by_bits = set(partner.values()), _by_bits(b, sizes)
    for name, of_sizes, values in a.each(sizes):
        if name in partner or not counts(values):
            continue
        same = by_bits.get(_key(a.tensors[name], of_sizes, values), deque())
        while same and same[0] in used:
            same.popleft()
        if same:
            partner[name] = same[0]
            used.add(same.popleft())


def _shared(left: _Samples, others: _Samples, stores_once: bool) -> dict[str, str]:
    """The tensors without a partner that the other set has once for several names, each with the name there.

    A constant tensor may have been lost where another is equal by chance, unless equal ones are stored once.
    """
    by_bits = _by_bits(others, left.sizes & others.sizes) if left.tensors else {}
    shared: dict[str, str] = {}
    for name, sizes, values in left.each(others.sizes) if by_bits else ():
        same = by_bits.get(_key(left.tensors[name], sizes, values))
        if same and (is_telling(values) or (stores_once and values.size)):
            shared[name] = same[0]
    return shared


def _sizes(tensor: Tensor) -> _Sizes:
    """The shape without dimensions of 1, which converters add and remove."""
    return tuple(size for size in tensor.shape if size != 1)


def _sample(tensor: Tensor, unread: dict[str, EltwiseError], is_transposed: bool = False) -> np.ndarray | None:
    if not tensor.size:
        return np.zeros(0, tensor.storage)
    indices = spread(tensor.size, _SAMPLED)
    if is_transposed:
        rows, columns = _sizes(tensor)
        column, row = np.divmod(indices, rows)
        indices = row * columns + column
    try:
        return np.ascontiguousarray(tensor.at(indices))
    except EltwiseError as error:
        unread[tensor.name] = stripped(error)
        return None


def _take_nearest(partner: dict[str, str], a: _Samples, b: _Samples) -> None:
    """Add the pairs of the same sizes of which nearly all elements are near, the nearest first."""
    rows: dict[_Sizes, list[tuple[str, np.ndarray]]] = {}
    for name, sizes, values in b.each(a.sizes, turned=True):
        rows.setdefault(sizes, []).append((name, _numbers(b.tensors[name], values)))
    near = list[tuple[float, str, str]]()
    tables = {sizes: NearRows(np.stack([values for _name, values in of_sizes])) for sizes, of_sizes in rows.items()}
    for name, sizes, values in a.each(set(rows)):
        one = _numbers(a.tensors[name], values)
        if np.unique(one[np.isfinite(one) & (one != 0)]).size < _LEAST_DISTINCT:
            continue
        near += [(-share, name, rows[sizes][row][0]) for row, share in tables[sizes].near(one)]
    used = set[str]()
    for _share, name, other in sorted(near, key=lambda each: each[0]):
        if name not in partner and other not in used:
            partner[name] = other
            used.add(other)


def _numbers(tensor: Tensor, values: np.ndarray) -> np.ndarray:
    return values_of(values, tensor.element_type).astype(np.float64)


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
