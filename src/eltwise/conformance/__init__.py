"""Conformance: the values and cases that engines and runtimes are checked by, computed from the tables of types."""
