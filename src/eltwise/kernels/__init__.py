"""How results are computed: a plan says where the operands lie in the result, a kernel fills it.

What is above this room hands over a formula, an element type, a plan and arrays, and knows no more.
"""
