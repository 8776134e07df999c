"""What an op schema is: one version of one operator, as data that is checked when it is made.

A schema says which element types its one type variable T may be, which attributes there are and how the operands
broadcast; verification, inference, execution, listing and tests are derived from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, TypeGuard, TypeVar

import numpy as np

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import AttributeValueError, GraphError, UnsupportedError, unknown_name
from eltwise.core.shapes import Sizes
from eltwise.ops.attribute import Attribute, AttributeValue
from eltwise.ops.computation import Computation, wrong_count, wrong_type
from eltwise.ops.expression import Expression, expression_of
from eltwise.ops.primitives import PRIMITIVES

Domain = Literal["ai.onnx", "openvino"]
Behaviour = Literal["elementwise", "constant", "identity", "reshape", "squeeze", "unsqueeze"]
InputT = TypeVar("InputT")
Broadcasting = Literal["none", "legacy", "numpy", "auto_broadcast", "axis", "channel"]


@dataclass(frozen=True, kw_only=True)
class OpSchema:
    """One version of one operator.

    Attributes:
        name: the operator's name in its specification.
        domain: which specification.
        version: the since-version: the first opset that has it in this form.
        types: what T may be; the inputs of type T and the output share it.
        operands: the names of the inputs, in order; those after ``required_operands`` may be left out.
        attributes: all attributes that it knows.
        changes: what is different from the version before, one sentence.
        qualified: whether its versioned name begins with the domain, because the other domain has an operator of the
            same name and version.
        is_variadic: whether the last operand may be repeated any number of times.
        behaviour: which inference and which evaluation apply.
    """

    name: str
    domain: Domain
    version: int
    types: tuple[ElementType, ...]
    operands: tuple[str, ...]
    required_operands: int
    attributes: tuple[Attribute, ...] = ()
    changes: str = ""
    qualified: bool = False
    is_variadic: bool = False
    behaviour: Behaviour

    def __post_init__(self) -> None:
        if not self.types or len(set(self.types)) != len(self.types):
            raise ValueError(f"{self.versioned_name}: types are missing or repeated")

    def __str__(self) -> str:
        return self.versioned_name

    @property
    def versioned_name(self) -> str:
        """The name with the since-version: ``Sub-6``; no two schemas share one."""
        return f"{self.domain}.{self.name}-{self.version}" if self.qualified else f"{self.name}-{self.version}"

    def operand_name(self, index: int) -> str:
        """The name of an operand: ``A``, or ``data_0[2]`` where one name stands for any number."""
        return f"{self.operands[-1]}[{index}]" if self.is_variadic else self.operands[index]

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of the attributes, in the specification's order."""
        return tuple(attribute.name for attribute in self.attributes)

    def bind(self, values: Mapping[str, object]) -> Operation:
        """Check attributes by name and bind them.

        Raises:
            NameUnknownError: for an attribute that this version does not have.
            AttributeValueError: for a value that it does not allow, or one that is missing.
        """
        if not values and not any(attribute.required for attribute in self.attributes):
            return Operation(self)
        schemas = {attribute.name: attribute for attribute in self.attributes}
        for name in values:
            if name not in schemas:
                raise unknown_name("attribute", name, schemas, operator=self.versioned_name)
        for attribute in self.attributes:
            if attribute.required and attribute.name not in values:
                raise AttributeValueError(
                    "a required attribute is missing",
                    operator=self.versioned_name,
                    operand=f"attribute {attribute.name}",
                )
        checked = {name: schemas[name].checked(value, self.versioned_name) for name, value in values.items()}
        ordered = tuple((name, checked[name]) for name in self.attribute_names if name in checked)
        return Operation(self, ordered)

    def check_type(self, element_type: ElementType, operand: str) -> None:
        """Refuse an element type that T does not allow.

        Raises:
            ElementTypeError: naming the type and those allowed.
        """
        if element_type not in self.types:
            raise wrong_type(element_type, self.types, self.versioned_name, operand)


_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True)
class ElementwiseSchema(OpSchema):
    """One version of an element-wise operator: operands of which most have one type T.

    Attributes:
        function: what is computed: a primitive, or a composite of several.
        variants: attributes whose value chooses another function: the attribute, the value, the function.
        broadcasting: the rule, or ``auto_broadcast`` where the attribute of that name chooses it.
        other_types: for each operand what its type may be, None where it is T; empty where all are T.
        renamed: the attributes that are parameters of the primitive by another name, with that name.
        constants: the parameters that no attribute states, and their values.
        like: the operand whose type the result has where no attribute states one, and the type where that is absent.
            One that the function does not take is read for its type only.
        axis: the dimension that operands lie on where no attribute states it.
        base: the operand that the others broadcast onto by the rule ``pdpd``.
        absent: what is computed where optional operands are left out: which are there, and the function of those.
        keeps_shape: whether the result must have the shape of the first operand.
        of_integers: the functions that this version has for integers only.
        constant_operands: attributes that files state as constants of type T after the operands, and their shapes.
        unsupported: what T may be by the specification, too, and is not run.
    """

    behaviour: Behaviour = "elementwise"
    function: str
    variants: tuple[tuple[str, object, str], ...] = ()
    broadcasting: Broadcasting
    other_types: tuple[tuple[ElementType, ...] | None, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, Hashable], ...] = ()
    like: tuple[int, ElementType | None] | None = None
    axis: int = -1
    base: int = 0
    absent: tuple[tuple[tuple[bool, ...], str], ...] = ()
    keeps_shape: bool = False
    of_integers: tuple[str, ...] = ()
    constant_operands: tuple[tuple[str, Sizes], ...] = ()
    unsupported: tuple[ElementType, ...] = ()

    @cached_property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The attributes that are parameters of the primitive, and their names there."""
        if self.function not in PRIMITIVES:
            return ()
        pairs = ((name, dict(self.renamed).get(name, name)) for name in self.attribute_names)
        return tuple(pair for pair in pairs if pair[1] in PRIMITIVES[self.function].parameters)

    def expression(self, count: int | None = None) -> Expression:
        """What is computed for each element of so many operands; attributes without a default are named."""
        return Operation(self).expression(count)

    def _check_numbers(self, operation: Operation, *, is_real: bool) -> None:
        """Refuse NaN, and numbers of a formula that are infinite, also as the float32 that a file has."""
        for name, value in operation.attributes:
            if isinstance(value, float) and (math.isnan(value) or (is_real and abs(value) > _LARGEST_FLOAT32)):
                raise AttributeValueError(
                    "this value is not allowed",
                    operator=self.versioned_name,
                    operand=f"attribute {name}",
                    got=repr(value),
                    allowed="a finite float32" if is_real else "a number",
                )

    def bind(self, values: Mapping[str, object]) -> Operation:
        """Check attributes by name and bind them; ``axis`` needs the broadcasting that reads it."""
        operation = super().bind(values)
        if not values:
            return operation
        self._check_numbers(operation, is_real=operation.expression().is_real)
        axis, rule = operation.value("axis"), operation.value("auto_broadcast")
        if self.broadcasting == "auto_broadcast" and axis not in (None, -1) and rule != "pdpd":
            raise AttributeValueError(
                f"axis is not allowed with auto_broadcast={rule!r}",
                operator=self.versioned_name,
                operand="attribute axis",
                got=str(axis),
                allowed="axis only with auto_broadcast='pdpd'",
            )
        return operation


def is_arithmetic(schema: object) -> TypeGuard[ElementwiseSchema]:
    """Whether an operator version is arithmetic or a comparison: what conformance tests and targets have rules of."""
    if not isinstance(schema, ElementwiseSchema) or schema.absent:
        return False
    return schema.expression().is_arithmetic


def stated_types(schema: ElementwiseSchema) -> tuple[ElementType, ...]:
    """The types T of which texts and IEEE 754 state every bit of a result, as they do not for real functions."""
    if schema.function == "shrink" or any(step.definition.is_variadic for step in schema.expression().steps):
        return ()
    is_real = schema.expression().is_real
    if is_real and schema.other_types:  # No text says what a fractional power of an integer is.
        return ()
    return tuple(each for each in schema.types if each.is_integer or not is_real)


@dataclass(frozen=True)
class Operation:
    """A schema with its attributes bound.

    Attributes:
        schema: the operator version.
        attributes: those that are stated, in the schema's order.
    """

    schema: OpSchema
    attributes: tuple[tuple[str, AttributeValue], ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: an operation is the key of every call's plan."""
        return hash((self.schema.domain, self.schema.versioned_name, self.attributes))

    def value(self, name: str) -> AttributeValue:
        """The value of an attribute: as stated, else its default; None where the schema has no such attribute."""
        for key, value in self.attributes:
            if key == name:
                return value
        return next((attribute.default for attribute in self.schema.attributes if attribute.name == name), None)

    @property
    def _axis(self) -> int:
        value = self.value("axis")
        return value if isinstance(value, int) else self._elementwise.axis

    @cached_property
    def rule(self) -> Rule:
        """The broadcast rule that the version and its attributes choose; only for element-wise operators."""
        match self._elementwise.broadcasting:
            case "none" | "numpy":
                return Rule(self._elementwise.broadcasting)
            case "channel":
                return Rule("channel", 1)
            case "legacy":
                return Rule("legacy", self._axis, self.value("broadcast") == 1)
            case "axis":
                block_size = self.value("block_size")
                return Rule("axis", self._axis, block=block_size if isinstance(block_size, int) else 0)
            case "auto_broadcast":
                name = self.value("auto_broadcast")
                assert name in ("none", "numpy", "pdpd")
                return Rule(name, self._axis, base=self._elementwise.base if name == "pdpd" else 0)

    @cached_property
    def function(self) -> str:
        """What is computed: a primitive, or a composite of several; only for element-wise operators."""
        for name, value, function in self._elementwise.variants:
            if self.value(name) == value:
                return function
        return self._elementwise.function

    def expression(self, count: int | None = None, like: ElementType | None = None) -> Expression:
        """What is computed for each element of so many operands; only for element-wise operators.

        ``like`` is the type of the operand that is read for its type only. Without it, that operand is named.
        """
        is_any = self.schema.is_variadic or self.schema.required_operands < len(self.schema.operands)
        return expression_of(self.function, count if is_any else None, self._parameters(count, like))

    @cached_property
    def type_only(self) -> int | None:
        """The number of the operand that is read for its type only, None where there is none."""
        schema = self.schema
        if not isinstance(schema, ElementwiseSchema) or schema.like is None:
            return None
        return None if PRIMITIVES[schema.function].takes(schema.like[0] + 1) else schema.like[0]

    def _parameters(self, count: int | None, like: ElementType | None) -> tuple[tuple[str, Hashable], ...]:
        """The parameters of a step of so many operands: ONNX's floats are float32, OpenVINO's float64."""
        schema, values = self._elementwise, dict(self._elementwise.constants)
        if self.type_only is not None:
            values["to"] = like or schema.operands[self.type_only]
        elif schema.like is not None:
            operand, element_type = schema.like
            values["to"] = operand if count is None or count > operand else element_type
        for attribute, name in schema.parameters:
            value = self.value(attribute)
            if isinstance(value, float):
                with np.errstate(over="ignore"):  # Infinity is a limit, and what else it is not allowed for is refused.
                    values[name] = float(np.float32(value)) if schema.domain == "ai.onnx" else value
            elif isinstance(value, int):
                is_flag = not next(each.limits for each in schema.attributes if each.name == attribute)
                values[name] = bool(value) if is_flag else value
            elif value is not None or name not in values:
                values[name] = attribute if value is None else value
        to = values.get("to")
        if isinstance(to, ElementType) and (to.bits, to.kind) != (8, "float"):  # Only these saturate.
            values |= {"saturate": False} if "saturate" in values else {}
        return tuple((name, values[name]) for name in PRIMITIVES[self.function].parameters) if values else ()

    def result_type(self, element_type: ElementType) -> ElementType:
        """The type of the result for operands of a type; only for element-wise operators."""
        return self.expression().result_type(element_type)

    def computation(self, count: int) -> Computation:
        """What is computed of so many operands, the first ones; only for element-wise operators.

        Raises:
            GraphError: for a number of operands that the operator version does not take.
            UnsupportedError: for one of which an operand is read for its type only; see ``computation_of``.
        """
        if self.type_only is not None:
            operand = f"operand {self.schema.operand_name(self.type_only)}"
            problem = "an operand that is read for its type only is unsupported here"
            raise UnsupportedError(problem, operator=self.schema.versioned_name, operand=operand)
        return self._computation((True,) * count)

    def computation_of(
        self, inputs: Sequence[InputT | None], type_of: Callable[[InputT], ElementType | None] = lambda _input: None
    ) -> tuple[Computation, tuple[InputT, ...]]:
        """What is computed of inputs, and the operands: the inputs that are not None, which is one left out.

        An input that is read for its type only is no operand. Where its type is not known, that of the result is not.

        Args:
            inputs: what stands for each input.
            type_of: gives the element type of an input; it is asked of one that is read for its type only.

        Raises:
            GraphError: for a number of inputs that the operator version does not take, and for one that it needs.
            ElementTypeError: for a type that an input cannot have.
        """
        operands, index, like = tuple([each for each in inputs if each is not None]), self.type_only, None
        if index is not None and index < len(inputs) and (typed := inputs[index]) is not None:
            like = type_of(typed)
            operands = tuple([each for number, each in enumerate(inputs) if number != index and each is not None])
        elif len(operands) == len(inputs):
            return self._computation((True,) * len(operands)), operands
        return self._computation(tuple(each is not None for each in inputs), like), operands

    def _computation(self, present: tuple[bool, ...], like: ElementType | None = None) -> Computation:
        computation = self._computations.get((present, like))
        if computation is None:
            computation = self._computations[present, like] = self._new_computation(present, like)
        return computation

    @cached_property
    def _computations(self) -> dict[tuple[tuple[bool, ...], ElementType | None], Computation]:
        """By whether each input is there, and by the type of the one that is read for its type only."""
        return {}

    def _new_computation(self, present: tuple[bool, ...], like: ElementType | None) -> Computation:
        schema, most = self._elementwise, len(self.schema.operands)
        while present and not present[-1]:
            present = present[:-1]
        if len(present) < schema.required_operands or (len(present) > most and not schema.is_variadic):
            allowed = str(most) if schema.required_operands == most else f"{schema.required_operands} to {most}"
            allowed = f"{most} or more" if schema.is_variadic else allowed
            raise wrong_count(schema.versioned_name, len(present), allowed)
        function = dict(schema.absent).get(present)
        if function is None and not all(present):
            operand = f"operand {schema.operand_name(present.index(False))}"
            raise GraphError("this operand cannot be left out", operator=schema.versioned_name, operand=operand)
        if like is not None:
            self._check_like(like)
        indices = [index for index, is_present in enumerate(present) if is_present and index != self.type_only]
        expression = expression_of(function, len(indices)) if function else self.expression(len(indices), like)
        every = self._other_types(expression)
        other_types = tuple(every[index] for index in indices) if every else ()
        return Computation(
            expression,
            self.rule,
            self.types,
            self.name,
            tuple(f"operand {schema.operand_name(index)}" for index in indices),
            other_types if any(other_types) else (),
            schema.keeps_shape,
            schema.unsupported,
        )

    def _check_like(self, like: ElementType) -> None:
        """Refuse a type that the operand which is read for its type only cannot have."""
        schema, index = self._elementwise, self.type_only
        assert index is not None
        allowed = schema.other_types[index] or schema.types
        if like not in allowed:
            raise wrong_type(like, allowed, schema.versioned_name, f"operand {schema.operand_name(index)}")

    def _other_types(self, expression: Expression) -> tuple[tuple[ElementType, ...] | None, ...]:
        """The types of operands that are not T; the one that the result is like has the type that is stated."""
        schema, to = self._elementwise, dict(expression.steps[-1].parameters).get("to")
        if schema.like is None or schema.like[0] != 2 or not isinstance(to, ElementType):
            return schema.other_types
        return (*schema.other_types[:2], (to,))

    @cached_property
    def types(self) -> tuple[ElementType, ...]:
        """The element types that T may be with these attributes."""
        schema = self.schema
        has_more = not isinstance(schema, ElementwiseSchema) or self.function not in schema.of_integers
        return schema.types if has_more else tuple(each for each in schema.types if each.is_integer)

    @cached_property
    def name(self) -> str:
        """What errors call it: with the attributes that choose the function where the types depend on these."""
        schema = self.schema
        if not isinstance(schema, ElementwiseSchema) or not schema.of_integers:
            return schema.versioned_name
        chosen = ", ".join(f"{name}={self.value(name)}" for name, _value, _function in schema.variants)
        return f"{schema.versioned_name} with {chosen}"

    @property
    def _elementwise(self) -> ElementwiseSchema:
        if not isinstance(self.schema, ElementwiseSchema):
            raise TypeError(f"{self.schema} is not element-wise")
        return self.schema


Computable: TypeAlias = Operation | Computation
"""What gives a computation for a number of operands."""
