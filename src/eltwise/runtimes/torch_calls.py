"""The calls of PyTorch's operators while a module runs: how many give floats, of which types, and which have steps."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_STEPS = ("round", "floor", "ceil", "trunc", "fix", "frac", "sign", "fmod", "remainder", "heaviside", "fake_quantize")
"""How operators begin that give floats and have steps; all have them that make integers or booleans of floats."""


class Calls(TorchDispatchMode):  # type: ignore[misc]
    """A context in which operators are counted.

    Attributes:
        count: how many calls gave floats.
        steps: the operators that round or compare floats, in the order of their first calls.
        unit_roundoff: that of the least precise float type of a result.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count, self.steps, self.unit_roundoff = 0, dict[str, None](), 0.0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator."""
        del types
        result = function(*args, **(kwargs or {}))
        operands, results = _float_types(args), _float_types(result)
        name = str(function).removeprefix("aten.").partition(".")[0]
        self.count += bool(results)
        self.unit_roundoff = max([self.unit_roundoff, *(torch.finfo(each).eps / 2 for each in results)])
        makes_no_float = isinstance(result, torch.Tensor) and not results
        if (operands and makes_no_float) or name.strip("_").startswith(_STEPS):
            self.steps[name] = None
        return result


def _float_types(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [each for one in value for each in _float_types(one)]
    return [value.dtype] if isinstance(value, torch.Tensor) and value.is_floating_point() else []
