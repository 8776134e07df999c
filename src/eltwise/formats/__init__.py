"""Readers and writers of model and tensor files. What is wrong with a file is an ``EltwiseError`` of one sentence."""
