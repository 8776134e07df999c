"""Readers and writers of model and tensor files: the only rooms that know protobuf, XML and .npy."""
