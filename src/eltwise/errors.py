"""The errors of the package, for ``except``: one family, each of them also the error of Python that is its kind.

>>> issubclass(ShapeError, EltwiseError), issubclass(ShapeError, ValueError)
(True, True)
"""

from eltwise.core.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ChangedInputError,
    ElementTypeError,
    EltwiseError,
    FileFormatError,
    FileMissingError,
    GraphError,
    ManyProblemsError,
    NameUnknownError,
    ShapeError,
    UnsupportedError,
    ValueRangeError,
    VerificationError,
)

__all__ = [
    "ArgumentTypeError",
    "AttributeValueError",
    "ChangedInputError",
    "ElementTypeError",
    "EltwiseError",
    "FileFormatError",
    "FileMissingError",
    "GraphError",
    "ManyProblemsError",
    "NameUnknownError",
    "ShapeError",
    "UnsupportedError",
    "ValueRangeError",
    "VerificationError",
]
