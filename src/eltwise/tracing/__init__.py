"""Two runs of a model, compared node by node: which one is wrong first, and why."""
