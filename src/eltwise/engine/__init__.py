"""Execution: arrays in, checked and computed, arrays out."""
