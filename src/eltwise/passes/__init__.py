"""Conversion: a model in another version or format, exact or refused, with a report of what was changed."""
