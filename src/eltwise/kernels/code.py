"""A builder of LLVM instructions: fresh names, blocks and loops."""

from __future__ import annotations

from collections.abc import Callable


def of(lanes: int, scalar: str) -> str:
    """The LLVM type of ``lanes`` values.

    >>> of(16, "i32"), of(1, "i32")
    ('<16 x i32>', 'i32')
    """
    return f"<{lanes} x {scalar}>" if lanes > 1 else scalar


def constant(lanes: int, scalar: str, value: int) -> str:
    """An integer in every lane.

    >>> constant(4, "i32", -1), constant(1, "i8", 2)
    ('splat (i32 -1)', '2')
    """
    return f"splat ({scalar} {value})" if lanes > 1 else str(value)


class Code:
    """The body of one function, written from top to bottom."""

    def __init__(self) -> None:
        self.lines: list[str] = ["entry:"]
        self._block = "entry"
        self._count = 0

    def let(self, instruction: str) -> str:
        """Append an instruction and give the name of its result."""
        name = self._fresh("%v")
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def loop(self, begin: str, end: str, step: int, body: Callable[[str], None]) -> None:
        """Write a loop over i64 indices from ``begin`` to before ``end``; the body is written with the index's name."""
        before, head, after = self._block, self._fresh("loop"), self._fresh("after")
        some = self.let(f"icmp ult i64 {begin}, {end}")
        self.do(f"br i1 {some}, label %{head}, label %{after}")
        self._enter(head)
        index, place = self._fresh("%i"), len(self.lines)
        body(index)
        following = self.let(f"add i64 {index}, {step}")
        self.lines.insert(place, f"  {index} = phi i64 [{begin}, %{before}], [{following}, %{self._block}]")
        more = self.let(f"icmp ult i64 {following}, {end}")
        self.do(f"br i1 {more}, label %{head}, label %{after}")
        self._enter(after)

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """Write what is done only where an i1 holds."""
        then, after = self._fresh("then"), self._fresh("after")
        self.do(f"br i1 {condition}, label %{then}, label %{after}")
        self._enter(then)
        body()
        self.do(f"br label %{after}")
        self._enter(after)

    def loop_with(
        self, first: str, last: str, begin: list[str], body: Callable[[str, list[str]], tuple[list[str], str]]
    ) -> None:
        """Write a loop from ``first`` to before ``last`` that hands values from one iteration to the next.

        Args:
            first: the first index, an i64.
            last: where it ends; the body's steps must meet it.
            begin: the values of the first iteration, each a type and a name.
            body: is written with the names of the index and of the values, and gives the names for the next iteration
                and the step to its index.
        """
        before, head, after = self._block, self._fresh("loop"), self._fresh("after")
        some = self.let(f"icmp ult i64 {first}, {last}")
        self.do(f"br i1 {some}, label %{head}, label %{after}")
        self._enter(head)
        place = len(self.lines)
        index, names = self._fresh("%i"), [self._fresh("%c") for _value in begin]
        following, step = body(index, names)
        up = self.let(f"add i64 {index}, {step}")
        phis = [f"  {index} = phi i64 [{first}, %{before}], [{up}, %{self._block}]"]
        for name, came, goes in zip(names, begin, following, strict=True):
            kind, value = came.split()
            phis.append(f"  {name} = phi {kind} [{value}, %{before}], [{goes}, %{self._block}]")
        self.lines[place:place] = phis
        more = self.let(f"icmp ult i64 {up}, {last}")
        self.do(f"br i1 {more}, label %{head}, label %{after}")
        self._enter(after)

    def moved(self, pointer: str, *terms: str) -> str:
        """A pointer moved by bytes; each term is an i64."""
        for term in terms:
            if term != "0":
                pointer = self.let(f"getelementptr i8, ptr {pointer}, i64 {term}")
        return pointer

    def _enter(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self._block = block

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"
