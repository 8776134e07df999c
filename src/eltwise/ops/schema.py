"""What a row of the catalog is: one version of one operator, as data that is checked when it is made.

A row says which element types its one type variable T may be, which attributes there are and how the operands
broadcast; verification, inference, execution, listing and tests are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, SupportsIndex

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import AttributeValueError, ElementTypeError, UnsupportedError, unknown_name

Domain = Literal["ai.onnx", "openvino"]
Behaviour = Literal["constant", "identity", "cast", "reshape", "squeeze", "unsqueeze"]
AttributeKind = Literal["int", "ints", "float", "floats", "string", "element type", "boolean", "tensor", "not run"]
Broadcasting = Literal["legacy", "numpy", "auto_broadcast"]
FormulaName = Literal["subtract", "squared_difference", "add", "multiply"]
AttributeValue = object
"""An int, a tuple of ints, a string, an element type or a tensor, as the attribute's kind says; hashable."""


@dataclass(frozen=True)
class Attribute:
    """One attribute of an operator version.

    Attributes:
        name: the specification's name.
        kind: what its value is.
        default: the value where it is absent; None means that absence has a meaning of its own.
        choices: the allowed values; empty where the kind alone limits it.
        synonyms: other spellings of a choice.
        required: whether it must be there.
        meaning: one sentence.
    """

    name: str
    kind: AttributeKind
    default: AttributeValue = None
    choices: tuple[AttributeValue, ...] = ()
    synonyms: tuple[tuple[str, str], ...] = ()
    required: bool = False
    meaning: str = ""

    def checked(self, value: object, operator: str) -> AttributeValue:
        """Bring a value to its canonical form.

        Raises:
            AttributeValueError: where its type or value is not allowed.
            UnsupportedError: where the attribute is valid but not run here.
        """
        if self.kind == "not run":
            raise UnsupportedError(
                "this attribute is not run here", operator=operator, operand=f"attribute {self.name}"
            )
        canonical = _OF_KIND[self.kind](value)
        if isinstance(canonical, str) and self.choices:
            canonical = dict(self.synonyms).get(canonical.casefold(), canonical.casefold())
        if canonical is None or (self.choices and canonical not in self.choices):
            raise AttributeValueError(
                "this value is not allowed",
                operator=operator,
                operand=f"attribute {self.name}",
                got=repr(value)[:80],
                allowed=", ".join(map(str, self.choices)) or _IN_WORDS[self.kind],
            )
        return canonical


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        whole = value.__index__()
    except TypeError:  # NumPy's arrays have __index__, but few are one integer.
        return None
    return whole if -(2**63) <= whole < 2**63 else None


def _integers(value: object) -> tuple[int, ...] | None:
    items = tuple(map(_integer, value)) if isinstance(value, list | tuple) else (None,)
    whole = tuple(item for item in items if item is not None)
    return whole if len(whole) == len(items) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _numbers(value: object) -> tuple[float, ...] | None:
    items = tuple(value) if isinstance(value, list | tuple) else None
    return items if items is not None and all(_number(item) is not None for item in items) else None


_OF_KIND: dict[AttributeKind, Callable[[object], AttributeValue]] = {
    "int": _integer,
    "ints": _integers,
    "float": _number,
    "floats": _numbers,
    "string": lambda value: value if isinstance(value, str) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "element type": lambda value: value if isinstance(value, ElementType) else None,
    "tensor": lambda value: value,
}
_IN_WORDS: dict[AttributeKind, str] = {
    "int": "an integer of 64 bits",
    "ints": "a list of integers",
    "float": "a number",
    "floats": "a list of numbers",
    "string": "a text",
    "boolean": "true or false",
    "element type": "an element type",
    "tensor": "a tensor",
    "not run": "none",
}


@dataclass(frozen=True)
class Arithmetic:
    """How numbers are computed; the default is the strictest, others describe what real runtimes do.

    Attributes:
        name: what it is called in reports.
        overflow: what an integer does beyond its limits.
        compute: the type a float step is computed in; "exact" rounds the exact real result once.
        rounding: whether a formula of several steps rounds to T after each or once at the end.
        subnormals: whether results below the least normal number are kept or become zero.
    """

    name: str = "exact"
    overflow: Literal["wrap", "saturate", "clamp"] = "wrap"
    compute: Literal["exact", "float32", "int32"] = "exact"
    rounding: Literal["each step", "once"] = "each step"
    subnormals: Literal["kept", "flushed"] = "kept"


EXACT = Arithmetic()


@dataclass(frozen=True)
class Step:
    """One arithmetic step: an operation on operands ("a", "b") or on the results of earlier steps (their index)."""

    operation: Literal["subtract", "multiply", "add"]
    left: Literal["a", "b"] | int
    right: Literal["a", "b"] | int


@dataclass(frozen=True)
class Formula:
    """What an operator computes for each element: steps, of which the last is the result."""

    name: FormulaName
    text: str
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            for operand in (step.left, step.right):
                if isinstance(operand, int) and not 0 <= operand < index:
                    raise ValueError(f"step {index} of {self.name} reads step {operand}")


SUBTRACT = Formula("subtract", "a - b", (Step("subtract", "a", "b"),))
SQUARED_DIFFERENCE = Formula(
    "squared_difference", "(a - b) * (a - b)", (Step("subtract", "a", "b"), Step("multiply", 0, 0))
)
ADD = Formula("add", "a + b", (Step("add", "a", "b"),))
MULTIPLY = Formula("multiply", "a * b", (Step("multiply", "a", "b"),))


@dataclass(frozen=True)
class OpSchema:
    """One version of one operator, of the catalog or of its neighbours.

    Attributes:
        name: the operator's name in its specification.
        domain: which specification.
        version: the since-version: the first opset that has it in this form.
        last: the last opset that has it in this form; None: up to the newest.
        types: what T may be; the inputs of type T and the output share it.
        operands: the names of the inputs, in order; those after ``required_operands`` may be left out.
        attributes: all attributes that it knows.
        changes: what is different from the version before, one sentence.
        qualified: whether its versioned name begins with the domain, because the other dialect has an operator of the
            same name and version.
    """

    name: str
    domain: Domain
    version: int
    last: int | None
    types: tuple[ElementType, ...]
    operands: tuple[str, ...]
    required_operands: int
    attributes: tuple[Attribute, ...] = ()
    changes: str = ""
    qualified: bool = False

    def __post_init__(self) -> None:
        if not self.types or len(set(self.types)) != len(self.types):
            raise ValueError(f"{self.versioned_name}: types are missing or repeated")
        if self.last is not None and self.last < self.version:
            raise ValueError(f"{self.versioned_name}: ends before it starts")

    def __str__(self) -> str:
        return self.versioned_name

    @property
    def versioned_name(self) -> str:
        """The name with the since-version: ``Sub-6``; every row of the catalog has its own."""
        return f"{self.domain}.{self.name}-{self.version}" if self.qualified else f"{self.name}-{self.version}"

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of the attributes, in the specification's order."""
        return tuple(attribute.name for attribute in self.attributes)

    def bind(self, given: Mapping[str, object]) -> Operation:
        """Check attributes by name and bind them.

        Raises:
            NameUnknownError: for an attribute that this version does not have.
            AttributeValueError: for a value that it does not allow, or one that is missing.
        """
        schemas = {attribute.name: attribute for attribute in self.attributes}
        for name in given:
            if name not in schemas:
                raise unknown_name("attribute", name, schemas, operator=self.versioned_name)
        for attribute in self.attributes:
            if attribute.required and attribute.name not in given:
                raise AttributeValueError(
                    "a required attribute is missing",
                    operator=self.versioned_name,
                    operand=f"attribute {attribute.name}",
                )
        values = {name: schemas[name].checked(value, self.versioned_name) for name, value in given.items()}
        ordered = tuple((name, values[name]) for name in self.attribute_names if name in values)
        return self._bound(ordered)

    def _bound(self, values: tuple[tuple[str, AttributeValue], ...]) -> Operation:
        return Operation(self, values)

    def check_type(self, element_type: ElementType, operand: str) -> None:
        """Refuse an element type that T does not allow.

        Raises:
            ElementTypeError: naming the type and those allowed.
        """
        if element_type not in self.types:
            raise ElementTypeError(
                "this element type is not allowed",
                operator=self.versioned_name,
                operand=operand,
                got=element_type.name,
                allowed=", ".join(each.name for each in self.types),
            )


@dataclass(frozen=True)
class ElementwiseSchema(OpSchema):
    """One version of an element-wise operator with two operands of one type T and a result of type T.

    Attributes:
        broadcasting: the rule, or ``auto_broadcast`` where the attribute of that name chooses it.
        formula: what is computed.
        arithmetic: how.
    """

    broadcasting: Broadcasting = "numpy"
    formula: Formula = field(default=SUBTRACT)
    arithmetic: Arithmetic = field(default=EXACT)

    def bind(self, given: Mapping[str, object]) -> Operation:
        """Check attributes by name and bind them; ``axis`` needs the broadcasting that reads it."""
        operation = super().bind(given)
        axis, rule = operation.value("axis"), operation.value("auto_broadcast")
        if self.broadcasting == "auto_broadcast" and axis not in (None, -1) and rule != "pdpd":
            raise AttributeValueError(
                f"axis has no meaning with auto_broadcast={rule!r}",
                operator=self.versioned_name,
                operand="attribute axis",
                got=str(axis),
                allowed="axis only with auto_broadcast='pdpd'",
            )
        return operation


@dataclass(frozen=True)
class DataMovementSchema(OpSchema):
    """One version of an operator that may stand beside those of the catalog and moves or converts their values.

    Attributes:
        behaviour: which inference and which evaluation apply.
        index_types: the types of an operand that holds a shape or axes; empty where there is none.
    """

    behaviour: Behaviour = "identity"
    index_types: tuple[ElementType, ...] = ()


@dataclass(frozen=True)
class Operation:
    """A row with its attributes bound: only those that were given, in the row's order."""

    schema: OpSchema
    given: tuple[tuple[str, AttributeValue], ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: an operation is the key of every call's plan."""
        return hash((self.schema.domain, self.schema.versioned_name, self.given))

    def value(self, name: str) -> AttributeValue:
        """The value of an attribute: as given, else its default; None where the row has no such attribute."""
        for key, value in self.given:
            if key == name:
                return value
        return next((attribute.default for attribute in self.schema.attributes if attribute.name == name), None)

    def integer(self, name: str, otherwise: int) -> int:
        """The value of an integer attribute; ``otherwise`` where it is unset."""
        value = self.value(name)
        return value if isinstance(value, int) else otherwise

    @cached_property
    def rule(self) -> Rule:
        """The broadcast rule that the row and its attributes choose; only for element-wise rows."""
        broadcasting = getattr(self.schema, "broadcasting", None)
        match broadcasting:
            case "numpy":
                return Rule("numpy")
            case "legacy":
                return Rule("legacy", self.integer("axis", -1), self.value("broadcast") == 1)
            case "auto_broadcast":
                name = self.value("auto_broadcast")
                assert name in ("none", "numpy", "pdpd")
                return Rule(name, self.integer("axis", -1))
            case _:
                raise TypeError(f"{self.schema} does not broadcast")
