"""Why a cell goes wrong, taken apart: each deviation that its explanation names, and the kind of its refusal. Pure."""

from __future__ import annotations

import re

from eltwise.conformance.alignments import WRONG_ALIGNMENTS
from eltwise.conformance.cells import Cell
from eltwise.conformance.companions import BESIDE
from eltwise.conformance.deviations import deviations
from eltwise.core.dtypes import BY_NAME
from eltwise.ops import registry
from eltwise.report.legend import first_line

_BETWEEN = re.compile(r"; | \+ |, elsewhere ")
"""What joins names: several reasons, a composition, and what happens outside a region."""
_REGION = re.compile(r" \([^()]*\)")
_RIGHT = "as specified"
KEPT_WIDER = "kept wider between nodes"
OTHERS = "wrong when another node reads it"
TOGETHER = "computed together with the node before"
LEFT_OUT = "constant left out"

NOT_BY_VALUE = {
    "wrong type": "the result has another element type",
    "wrong shape": "the result has another shape",
    KEPT_WIDER: "the result is not brought to its type before the next node reads it",
    OTHERS: "the next node reads other values",
    TOGETHER: "it and the node that makes its operand become one step, or their constants become one",
    LEFT_OUT: "the node is left out, since its constant is 0, or is 0 or 1 in float32",
    BESIDE: "in one model with another node it gives other values than alone",
}
_ALIGNMENTS = {alignment.name: alignment.text for alignment in WRONG_ALIGNMENTS}

_ADDED = re.compile(r"(?:^|; )of \d+ cases .*|; \d+ cases more .*")
"""What the referee adds to a runtime's words: how many cases of the cell had which verdict."""
_PARTICULAR = re.compile(r"\([^()]*(?:\)|$)|\[[^\[\]]*(?:\]|$)|'[^']*'|\"[^\"]*\"|\S*\d\S*|\S*/\S*")
"""What differs between refusals of one kind: what stands in brackets or quotes, numbers and names with them, places."""
_COMPARED = 60


def reasons(cell: Cell) -> tuple[str, ...]:
    """The reasons of a cell that is not right, each a name that other cells of its runtime may share.

    A difference has the deviations that explain it, a refusal its kind in the runtime's own words; what is accepted,
    hangs or crashes has the empty one.
    """
    if cell.explanation:
        names = (_REGION.sub("", name) for name in _BETWEEN.split(cell.explanation))
        return tuple(dict.fromkeys(name for name in names if name != _RIGHT)) or (cell.explanation,)
    if cell.verdict == "refused":
        return (_kind_of(words(cell)),)
    return ("",)


def words(cell: Cell) -> str:
    """The runtime's own words, without what the referee adds to them about the other cases of the cell."""
    return first_line(_ADDED.sub("", cell.message))


def _kind_of(text: str) -> str:
    """What refusals in other numbers and names have in common."""
    before = ""
    while before != text:
        before, text = text, _PARTICULAR.sub("", text)
    return " ".join(word for word in text.split() if any(map(str.isalpha, word)))[:_COMPARED]


def meaning(reason: str, cell: Cell) -> str:
    """What a deviation does, as a clause; empty for what is no known deviation."""
    if reason in NOT_BY_VALUE:
        return NOT_BY_VALUE[reason]
    known = dict(_ALIGNMENTS)
    known |= {found.name: found.text for found in deviations(registry.find(cell.op).function, BY_NAME[cell.dtype])}
    return known.get(reason, "")


def is_alignment(reason: str) -> bool:
    """Whether a deviation pairs the wrong elements, so that the shapes show it and single elements do not."""
    return reason in _ALIGNMENTS
