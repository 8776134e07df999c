"""How results are computed: a plan says where the operands lie in the result, a kernel fills it.

Callers hand over an expression, an element type, a plan and arrays.
"""
