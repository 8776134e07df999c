"""NumPy's loops: the small calls' way gives what the way for all operands gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eltwise.core.dtypes import BOOL, FLOAT32, INT32
from eltwise.kernels import numpy_kernel
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.ops.primitive import Primitive
from eltwise.ops.primitives import PRIMITIVES
from support import operands


@pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=lambda primitive: primitive.name)
def test_results_have_the_order_of_the_operands(primitive: Primitive) -> None:
    expression = operands.expression(primitive)
    kinds = primitive.operand_kinds(expression.operands)
    is_float = primitive.is_real or "float" in primitive.kinds
    element_type = FLOAT32 if is_float else INT32 if "signed" in primitive.kinds else BOOL
    types = [BOOL if kind == "boolean" else element_type for kind in kinds]
    shape = (3, 4)
    plan = aligned_plan(shape, (shape,) * len(types))
    for orders in itertools.product("CF", repeat=len(types)):
        arrays = [np.ones(shape, each.storage, order) for each, order in zip(types, orders, strict=True)]
        results = [
            run(*arrays)
            for run in (
                numpy_kernel.direct(expression, element_type),
                numpy_kernel.planned(TypedCall(expression, element_type, plan)),
            )
        ]
        assert results[0].strides == results[1].strides
        assert results[0].tobytes() == results[1].tobytes()
