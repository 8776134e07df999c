"""The errors of a trace as node data of Model Explorer, which colours the nodes of the graph with them.

Source: https://github.com/google-ai-edge/model-explorer/wiki/2.-User-Guide
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from eltwise.core.escaping import to_json
from eltwise.tracing.records import TracedNode

_OWN, _INHERITED, _WITHIN = "#b3261e", "#2f6f9f", "#e3efe6"
_ON_DARK, _ON_LIGHT = "#ffffff", "#1c1f22"


def node_data(nodes: Sequence[TracedNode]) -> str:
    """Write the error of what each node makes, by the name of the node; JSON has no infinity, but the largest number.

    Nodes that were not compared have no entry.
    """
    results = {node.name: _result(node) for node in nodes if node.error_out is not None}
    return to_json({"results": results}, indent=2)


def _result(node: TracedNode) -> dict[str, object]:
    error = node.error_out or 0.0
    value = error if math.isfinite(error) else sys.float_info.max
    colours = {"own": (_OWN, _ON_DARK), "inherited": (_INHERITED, _ON_DARK)}.get(node.standing, (_WITHIN, _ON_LIGHT))
    return {"value": value, "bgColor": colours[0], "textColor": colours[1]}
