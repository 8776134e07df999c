"""Operators as data: schemas, their versions in both formats, and the registry that finds them."""
