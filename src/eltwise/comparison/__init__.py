"""Two sets of tensors compared: what differs, where, by how much, and why."""
