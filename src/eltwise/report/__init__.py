"""Conformance results for people: one HTML page, and a Markdown document for the repository."""
