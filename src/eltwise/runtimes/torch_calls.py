"""The calls of PyTorch's operators while a module runs: how many give floats, of which types, and which have steps."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_STEPS = (
    *("round", "floor", "ceil", "trunc", "fix", "frac", "sign", "sgn", "fmod", "remainder", "heaviside"),
    *("fake_quantize", "hardshrink", "threshold", "hist", "unique"),
)
"""How operators begin that give floats and have steps; all have them that make integers or booleans of floats."""

_NEAREST = 1
"""The mode of a grid_sampler that takes the nearest element, its third operand."""


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
        self._indices = dict[int, tuple[Any, str]]()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator."""
        del types
        result = function(*args, **(kwargs or {}))
        operands, results = _float_types(args), _float_types(result)
        name = str(function).removeprefix("aten.").partition(".")[0]
        self.count += bool(results)
        self.unit_roundoff = max([self.unit_roundoff, *(torch.finfo(each).eps / 2 for each in results)])
        makes_no_float = isinstance(result, torch.Tensor) and not results
        is_rounded = bool((kwargs or {}).get("rounding_mode")) and bool(operands)
        is_rounded |= name.startswith("grid_sampler") and args[2] == _NEAREST
        if (operands and makes_no_float) or is_rounded or name.strip("_").startswith(_STEPS):
            self.steps[name] = None
        self._follow_indices(name, args, result)
        return result

    def _follow_indices(self, name: str, args: Any, result: Any) -> None:
        """Note the indices that come with floats, as of a sort: a step where they meet floats again."""
        operands, results, sources = _float_types(args), _float_types(result), self._indices
        read = [sources[id(one)][1] for one in _tensors(args) if id(one) in sources]
        if operands or results:
            self.steps |= dict.fromkeys(read)
        if (operands and results) or read:  # The tensors stay, as another one might have the id of a freed one.
            others = [one for one in _tensors(result) if not one.is_floating_point()]
            self._indices |= {id(one): (one, [*read, name][0]) for one in others}


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [each for one in value for each in _tensors(one)]
    return [value] if isinstance(value, torch.Tensor) else []


def _float_types(value: Any) -> list[Any]:
    return [one.dtype for one in _tensors(value) if one.is_floating_point()]
