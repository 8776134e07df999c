"""One function for each operator that is often called; ``functions.pyi`` beside this says their signatures."""

from eltwise.engine.api import FUNCTIONS, public_function

__all__ = [*FUNCTIONS]  # noqa: PLE0604 - they are names
globals().update({name: public_function(name) for name in FUNCTIONS})
