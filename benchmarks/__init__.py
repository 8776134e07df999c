"""Measure eltwise beside other libraries: ``make bench``, or ``python -m benchmarks.run operators`` in a checkout."""
