"""Files larger than memory: deltas of checkpoints, operators and reductions on files, chunk by chunk."""
