"""Two sets of tensors, or two runs of a model, compared: what differs, where, by how much and why."""
