"""What a runtime that a model is meant for runs, and runs right: measured, shipped as a table, checked and repaired."""
