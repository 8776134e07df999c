"""A test case: one op with its operands, its context in a model, and the reference result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.faults.alignments import placed
from eltwise.faults.record import Operation as Computed
from eltwise.ops.computation import Computation
from eltwise.ops.expression import Expression, expression_of
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.oracle.evaluation import FUNCTIONS

Attributes = tuple[tuple[str, object], ...]
Sizes = tuple[int, ...]

LETTERS = "abcdefgh"
"""The names of operands in models, files and results."""


@dataclass(frozen=True)
class Context:
    """How operands reach an op, and which nodes are around it."""

    constants: tuple[int, ...] = ()  # The operands that are constants of the model, by index.
    is_dynamic: bool = False  # Whether the sizes of inputs are known at run time only.
    has_neutral: bool = False  # Whether a subtraction of 0 makes the first operand, and another reads the result.
    is_cast: bool = False  # Whether a cast to float32 reads the result.


STATIC = Context()

SOURCES: dict[str, Context] = {
    "static": STATIC,
    "dynamic": Context(is_dynamic=True),
    "a-constant": Context(constants=(0,)),
    "b-constant": Context(constants=(1,)),
    "both-constant": Context(constants=tuple(range(len(LETTERS)))),
    "neighbours": Context(has_neutral=True),
}
"""The operand sources in a model, by name: inputs of known and of unknown sizes, constants, results of nodes."""

CALL = "call"
"""The operand source of runtimes that are functions: arrays are passed to a call."""

SOURCE_NAMES = (*SOURCES, CALL)
"""The names of all operand sources."""


@dataclass(frozen=True, eq=False)
class Case:
    """One op that any runtime can be given."""

    schema: ElementwiseSchema  # The operator version.
    attributes: Attributes  # Its attributes.
    operands: tuple[np.ndarray, ...]  # The operands.
    context: Context = STATIC  # How they reach the op, and what is around it in its model.
    is_risky: bool = False  # Whether it must be refused, or may end a process, so that it is given a model of its own.

    def __str__(self) -> str:
        attributes = "".join(f" {name}={value}" for name, value in self.attributes)
        operands = ", ".join(f"{operand.dtype}{list(operand.shape)}" for operand in self.operands)
        return f"{self.schema}{attributes} {operands}"

    @cached_property
    def element_type(self) -> ElementType:
        """The type T: that of the first operand that has no type of its own."""
        others = self.schema.other_types or (None,)
        return of_numpy(self.operands[others.index(None)].dtype)

    @cached_property
    def function(self) -> str:
        """What is computed, by the name that the reference has for it; an attribute may choose it."""
        return self._operation.function if self._operation else self.schema.function

    @cached_property
    def expression(self) -> Expression:
        """What is computed, as steps of values of the operands' types."""
        try:
            computation, read = self._computation
            types = tuple(of_numpy(operand.dtype) for operand in read)
            computation.check_types(types)
        except EltwiseError:
            return expression_of(self.function, len(self.operands))  # It must be refused.
        return computation.typed(self.element_type, types)

    @property
    def read(self) -> tuple[np.ndarray, ...]:
        """The operands but one of which only the type is read."""
        try:
            return self._computation[1]
        except EltwiseError:
            return self.operands  # It must be refused.

    @cached_property
    def _computation(self) -> tuple[Computation, tuple[np.ndarray, ...]]:
        """What is computed, and of which operands."""
        operation = self._operation or Operation(self.schema)
        return operation.computation_of(self.operands, lambda operand: of_numpy(operand.dtype))

    @cached_property
    def _operation(self) -> Operation | None:
        """The operator version with the attributes; None where these must be refused."""
        try:
            return self.schema.bind(dict(self.attributes))
        except EltwiseError:
            return None

    @property
    def parameters(self) -> dict[str, object]:
        """The numbers and types that belong to the function, by the names that the reference has for them."""
        return dict(self.expression.steps[-1].parameters)

    @property
    def computed(self) -> Computed:
        """What is computed of which element type, as the catalog of faults takes it."""
        return Computed(self.expression, self.element_type)

    @property
    def size(self) -> int:
        """The number of elements of all operands."""
        return sum(operand.size for operand in self.operands)

    @cached_property
    def rule(self) -> oracle.RuleName:
        """The broadcast rule that the operator version and its attributes choose.

        Raises:
            oracle.OracleRefusal: for a rule that does not exist.
        """
        if self.schema.broadcasting == "axis":
            return "none" if self.block_size else "pdpd"
        if self.schema.broadcasting != "auto_broadcast":
            return self.schema.broadcasting
        rule = dict(self.attributes).get("auto_broadcast", "numpy")
        for known in ("none", "numpy", "pdpd"):
            if rule == known:
                return known
        raise oracle.OracleRefusal(f"there is no auto_broadcast {rule!r}")

    @property
    def block_size(self) -> int:
        """For how many elements on the axis a scale holds; 0 where a scale does not hold for blocks."""
        size = dict(self.attributes).get("block_size", 0)
        return size if isinstance(size, int) else 0

    @cached_property
    def _of_blocks(self) -> tuple[np.ndarray, ...]:
        """The operands with what holds for a block repeated for each of its elements."""
        first, *others = self.read
        if not self.block_size:
            return self.read
        axis, _enabled = self._axis()
        if any(other.ndim <= axis for other in (first, *others)):
            return self.operands
        repeated = (np.repeat(other, self.block_size, axis) for other in others)
        return (first, *(other.take(range(min(first.shape[axis], other.shape[axis])), axis) for other in repeated))

    @cached_property
    def is_defined(self) -> bool:
        """Whether the specification defines a result: not for integers that are divided by 0."""
        if not self.expression.divides or not self.element_type.is_integer:
            return True
        return not (self.operands[1] == 0).any()

    @property
    def is_valid(self) -> bool:
        """Whether the specification allows its attributes and shapes; if not, it must be refused."""
        return not isinstance(self._placement, str)

    def placement(self) -> tuple[Sizes, tuple[int, ...]]:
        """The shape of the result, and its dimension on which the first dimension of each operand lies.

        Raises:
            oracle.OracleRefusal: if the attributes or the shapes must be refused.
        """
        if isinstance(self._placement, str):
            raise oracle.OracleRefusal(self._placement)
        return self._placement

    def shape(self) -> Sizes:
        """The shape of the result.

        Raises:
            oracle.OracleRefusal: if the attributes or the shapes must be refused.
        """
        return self.placement()[0]

    @cached_property
    def _placement(self) -> tuple[Sizes, tuple[int, ...]] | str:
        """The placement, or why there is none."""
        try:
            base = FUNCTIONS[self.function].base
            return oracle.place(self.rule, [operand.shape for operand in self._of_blocks], *self._axis(), base)
        except oracle.OracleRefusal as refusal:
            return str(refusal)

    def expected(self) -> np.ndarray:
        """Compute the reference result.

        Raises:
            oracle.OracleRefusal: if the case must be refused.
        """
        return self._evaluated(self.parameters)

    @cached_property
    def other_reading(self) -> np.ndarray | None:
        """The result by another reading of the specification, which counts as right as well; None if there is none.

        From QuantizeLinear-23 on, the scale's type is the precision of a quotient that states none; here it is real.
        ONNX's page on 4-bit integers rounds floats to them to the nearest, ties to even, and wraps; here a cast cuts.

        Raises:
            oracle.OracleRefusal: if the case must be refused.
        """
        to = self.parameters.get("to")
        if self.function == "cast" and self.schema.domain == "ai.onnx" and isinstance(to, ElementType) and to.bits < 8:
            x = np.asarray(self.operands[0])
            return _rounded_to(to, x) if of_numpy(x.dtype).kind == "float" else None
        is_open = "precision" in self.schema.attribute_names and "precision" not in dict(self.attributes)
        scale = of_numpy(self.operands[1].dtype) if is_open else None
        if scale is None or scale.kind != "float":
            return None
        return self._evaluated({**self.parameters, "precision": scale})

    def _evaluated(self, parameters: Mapping[str, object]) -> np.ndarray:
        axis, enabled = self._axis()
        return oracle.evaluate(
            self.function, *self._of_blocks, rule=self.rule, axis=axis, enabled=enabled, parameters=parameters
        )

    def refusal(self) -> str:
        """Why the specification requires an error, in the words of the reference; empty if it does not."""
        try:
            self.expected()
        except oracle.OracleRefusal as refusal:
            return str(refusal)
        return ""

    def aligned(self) -> list[np.ndarray]:
        """The operands expanded to the shape of the result, as views."""
        shape, starts = self.placement()
        return [placed(operand, shape, start) for operand, start in zip(self._of_blocks, starts, strict=True)]

    def operands_at(self, indices: np.ndarray) -> tuple[np.ndarray, ...]:
        """The elements of the operands that meet at flat indices of the result."""
        return tuple(operand.reshape(-1)[indices] for operand in self.aligned())

    def _axis(self) -> tuple[int, bool]:
        """The axis, and whether legacy broadcasting is switched on."""
        attributes = dict(self.attributes)
        foreign = [name for name in attributes if name not in self.schema.attribute_names]
        if foreign:
            raise oracle.OracleRefusal(f"{self.schema} has no attribute {foreign[0]}")
        axis = attributes.get("axis", -1)
        if self.schema.broadcasting == "axis" and "axis" not in attributes:
            defaults = (each.default for each in self.schema.attributes if each.name == "axis")
            axis = next(defaults, self.schema.axis)
        assert isinstance(axis, int)
        return axis, attributes.get("broadcast", 0) == 1


def _rounded_to(element_type: ElementType, floats: np.ndarray) -> np.ndarray:
    """Floats rounded to the nearest integer, ties to even, of which a type of 4 bits holds the lowest."""
    whole = np.rint(np.where(np.isfinite(wide := floats.astype(np.float64)), wide, 0))
    return np.asarray(np.mod(whole, 16).astype(np.uint8).view(element_type.storage))
