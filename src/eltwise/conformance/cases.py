"""The test matrix, computed from the catalog: operator version x element type x attributes x shapes x values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eltwise import oracle
from eltwise.conformance.shapes_of_rules import NUMPY_PAIRS, Sizes, one_directional
from eltwise.core.dtypes import ElementType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values

Attributes = tuple[tuple[str, object], ...]

_LARGE = 1000
"""From so many elements on, results are kept: the oracle is slow."""


@dataclass(frozen=True)
class Layout:
    """The attributes of a call and the shapes of its operands."""

    attributes: Attributes
    a: Sizes
    b: Sizes


@dataclass(frozen=True, eq=False)
class Around:
    """What stands around the node of a case in its model, on the path ``chained``.

    Attributes:
        maker: the operator version of the node that makes one operand; None where none does.
        is_cast: whether a cast of ``x`` makes it.
        slot: which operand that is, ``a`` or ``b``.
        x: that node's first operand; the result is the case's own operand.
        y: its second operand, of the shape of the first or of one element; nothing to a cast.
        constants: which of ``a``, ``b``, ``x`` and ``y`` are in the model.
        is_dynamic: whether sizes are known at run time only.
        is_shared: whether others read the result of that node, too.
        is_followed: whether a node that changes no bit reads the result of the case.
    """

    maker: ElementwiseSchema | None
    is_cast: bool
    slot: str
    x: np.ndarray
    y: np.ndarray
    constants: tuple[str, ...]
    is_dynamic: bool
    is_shared: bool
    is_followed: bool

    @property
    def has_maker(self) -> bool:
        """Whether a node makes one operand, be it a cast."""
        return self.maker is not None or self.is_cast


@dataclass(frozen=True, eq=False)
class Case:
    """One call of one operator version, as any runtime can be asked it.

    Attributes:
        row: the operator version.
        attributes: its attributes.
        a: operand A.
        b: operand B.
        around: what stands around the node, None on all paths but ``chained``.
    """

    schema: ElementwiseSchema
    attributes: Attributes
    a: np.ndarray
    b: np.ndarray
    around: Around | None = None

    def __str__(self) -> str:
        attributes = "".join(f" {name}={value}" for name, value in self.attributes)
        return f"{self.schema}{attributes} {self.a.dtype}{list(self.a.shape)}, {self.b.dtype}{list(self.b.shape)}"

    @property
    def formula(self) -> str:
        """What the operator computes."""
        return self.schema.function

    @property
    def rule(self) -> oracle.RuleName:
        """The broadcast rule that the row and its attributes choose.

        Raises:
            oracle.OracleRefusal: for a rule that does not exist.
        """
        if self.schema.broadcasting != "auto_broadcast":
            return self.schema.broadcasting
        rule = dict(self.attributes).get("auto_broadcast", "numpy")
        for known in ("none", "numpy", "pdpd"):
            if rule == known:
                return known
        raise oracle.OracleRefusal(f"there is no auto_broadcast {rule!r}")

    @property
    def works(self) -> bool:
        """Whether its attributes and shapes are allowed; what is not must be refused."""
        try:
            self.placement()
        except oracle.OracleRefusal:
            return False
        return True

    def placement(self) -> oracle.Placement:
        """Find where the operands lie in the result.

        Raises:
            oracle.OracleRefusal: where the attributes or the shapes must be refused.
        """
        return oracle.place(self.rule, self.a.shape, self.b.shape, *self._alignment())

    def expected(self) -> np.ndarray:
        """Compute the exact result.

        Raises:
            oracle.OracleRefusal: where the case must be refused.
        """
        if self.a.shape != self.b.shape or self.a.size < _LARGE:
            return oracle.evaluate(self.formula, self.a, self.b, self.rule, *self._alignment())
        self.placement()  # It may have to be refused all the same.
        operands = (np.ascontiguousarray(operand).tobytes() for operand in (self.a, self.b))
        return _same_shape(self.formula, self.a.dtype, self.b.dtype, *operands).reshape(self.a.shape)

    def expected_or_none(self) -> np.ndarray | None:
        """The exact result; None where the case must be refused."""
        try:
            return self.expected()
        except oracle.OracleRefusal:
            return None

    def _alignment(self) -> tuple[int, bool]:
        """The axis, and whether legacy broadcasting is switched on."""
        given = dict(self.attributes)
        foreign = [name for name in given if name not in self.schema.attribute_names]
        if foreign:
            raise oracle.OracleRefusal(f"{self.schema} has no attribute {foreign[0]}")
        axis = given.get("axis", -1)
        assert isinstance(axis, int)
        return axis, given.get("broadcast", 0) == 1


@lru_cache(maxsize=128)
def _same_shape(
    formula: str, a_type: np.dtype[np.generic], b_type: np.dtype[np.generic], a: bytes, b: bytes
) -> np.ndarray:
    """The exact result for operands of one shape: the same values are asked of every row that has the formula."""
    result = oracle.evaluate(formula, np.frombuffer(a, a_type), np.frombuffer(b, b_type), "none")
    result.flags.writeable = False
    return result


def rows_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """Every row of the catalog with every element type that it allows."""
    for schema in registry.ELEMENTWISE:
        for element_type in schema.types:
            yield schema, element_type


def kinds_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """For each formula and way to broadcast the row with the most types: what kernels are made for."""
    kinds: dict[tuple[str, str], ElementwiseSchema] = {}
    for schema in registry.ELEMENTWISE:
        kind = schema.function, schema.broadcasting
        if kind not in kinds or len(schema.types) >= len(kinds[kind].types):
            kinds[kind] = schema
    for schema in kinds.values():
        for element_type in schema.types:
            yield schema, element_type


def layouts(schema: ElementwiseSchema) -> Iterator[Layout]:
    """The attributes and shapes for a row, from its broadcast rules."""
    if schema.broadcasting == "numpy":
        yield from (Layout((), a, b) for a, b in NUMPY_PAIRS)
        return
    if schema.broadcasting == "legacy":
        yield from (Layout((), a, b) for a, b in NUMPY_PAIRS)
        yield from (Layout((("broadcast", 0), ("axis", 0)), a, b) for a, b in NUMPY_PAIRS)
        switched_on: Attributes = (("broadcast", 1),)
    else:
        yield from (Layout((), a, b) for a, b in NUMPY_PAIRS)
        yield from (Layout((("auto_broadcast", "none"),), a, b) for a, b in NUMPY_PAIRS)
        switched_on = (("auto_broadcast", "pdpd"),)
    for a, b, axis in one_directional():
        yield Layout(switched_on if axis is None else (*switched_on, ("axis", axis)), a, b)


def shape_cases(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> Iterator[Case]:
    """One case a layout, filled with hard and random values in an order drawn with the seed."""
    generator = np.random.default_rng(seed)
    drawn = hard_values.random_bits(element_type, 256, seed)
    pool = np.concatenate([hard_values.hard_values(element_type), drawn])
    for layout in layouts(schema):
        a, b = (pool[generator.integers(0, pool.size, size=sizes)] for sizes in (layout.a, layout.b))
        yield Case(schema, layout.attributes, np.asarray(a), np.asarray(b))


def value_cases(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> Iterator[Case]:
    """Every pair of hard values, random bit patterns, and for types of up to 8 bits every pair there is."""
    hard_a, hard_b = hard_values.hard_pairs(element_type)
    yield Case(schema, (), hard_a, hard_b)
    first, second = (hard_values.random_bits(element_type, 2000, seed + offset) for offset in (0, 1))
    yield Case(schema, (), first, second)
    if element_type.bits <= 8:
        yield Case(schema, (), *hard_values.all_pairs_8bit(element_type))
