"""Casts as operators by name: an attribute or the type of an operand states the type of the result."""

from __future__ import annotations

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import by_name
from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError, UnsupportedError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, Operation
from support.operands import pool

LIKE = [each for each in registry.ELEMENTWISE if Operation(each).type_only is not None]
STATED = {"ai.onnx": ("Cast", "to"), "openvino": ("Convert", "destination_type")}


@pytest.mark.parametrize("schema", LIKE, ids=str)
def test_a_cast_to_the_type_of_an_operand_is_the_cast_that_states_it(schema: ElementwiseSchema) -> None:
    """Whatever the shape and the values of that operand are."""
    name, attribute = STATED[schema.domain]
    cast = registry.resolve(schema.domain, name, schema.version)
    assert cast is not None
    for source in schema.types:
        x = pool(source)
        for target in schema.types:
            for shape in ((), (0,), (2, 3)):
                like = np.ones(shape, target.storage)
                result = eltwise.operator(str(schema))(x, like)
                assert oracle.same_bits(result, eltwise.operator(str(cast), **{attribute: target})(x))
                assert result.shape == x.shape


@pytest.mark.parametrize("schema", LIKE, ids=str)
def test_an_operand_that_is_read_for_its_type_is_needed_and_checked(schema: ElementwiseSchema) -> None:
    operator, x = eltwise.operator(str(schema)), np.float32([1.5, -2.5])
    with pytest.raises(GraphError, match=f"^{schema}: wrong number of operands, got 1; allowed: 2"):
        operator(x)
    with pytest.raises(ElementTypeError, match="not an array"):
        operator(x, 3)
    with pytest.raises(UnsupportedError, match=f"{schema.operands[1]}: an operand that is read for its type only"):
        eltwise.reduce("sum", str(schema), x, x)
    others = [each for each in registry.find("ConvertLike-1").types if each not in schema.types]
    for other in others:
        with pytest.raises(ElementTypeError, match=f"^{schema}, operand {schema.operands[1]}: .*got {other}; allowed"):
            operator(x, np.ones(2, other.storage))
    assert bool(others) == (schema.domain == "ai.onnx" and schema.version < 21)


def test_the_type_of_the_operand_is_enough_where_arrays_are_lazy() -> None:
    dask = pytest.importorskip("dask.array")
    x = np.float32([[1.5, -2.5, 300.0]] * 4)
    like = dask.zeros((7,), dtype=np.int8, chunks=2)
    result = eltwise.operator("CastLike-19")(dask.from_array(x, chunks=(2, 2)), like)
    assert isinstance(result, dask.Array)
    assert oracle.same_bits(result.compute(), eltwise.operator("Cast-19", to="int8")(x))


@pytest.mark.parametrize(("name", "to"), [("Cast-6", "bfloat16"), ("Cast-13", "float8_e5m2"), ("Cast-28", "string")])
def test_a_type_that_a_version_does_not_have_is_refused_by_name(name: str, to: str) -> None:
    """One that eltwise does not run may be right in a model."""
    problem = f"this element type is not .*got {to}" if by_name(to).runs else f"element type {to} is unsupported"
    error: type[EltwiseError] = ElementTypeError if by_name(to).runs else UnsupportedError
    with pytest.raises(error, match=f"^{name}, attribute to: {problem}; allowed"):
        registry.find(name).bind({"to": by_name(to)})
    with pytest.raises(EltwiseError):
        eltwise.operator(name)


def test_casts_that_saturate_and_do_not_are_one_where_no_float8_is_made() -> None:
    cast = registry.find("Cast-19")
    for to in cast.types:
        one, other = (cast.bind({"to": to, "saturate": saturate}).expression() for saturate in (0, 1))
        assert (one == other) == (not to.name.startswith("float8"))
