"""Conformance: the values and cases that engines and runtimes are judged by, computed from the tables of types."""
