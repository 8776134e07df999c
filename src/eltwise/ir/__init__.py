"""The graph of a model, its structure checks, and the inference of types and shapes."""
