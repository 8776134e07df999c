"""The peak memory of a new process, as an expression for its program."""

PEAK_KIB = "int(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
"""On Linux; ``ru_maxrss`` counts the memory of the process that started this one, too."""
