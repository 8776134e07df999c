"""Measure eltwise beside other libraries: ``make bench``, or ``python -m benchmarks`` in a checkout."""
