"""Reads the loop nest of the text form: `loops n/64(k/32, h)`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mugraph.ir.block import Loop
from mugraph.ir.text.lines import Line, Lines


def read_loops(lines: Lines) -> tuple[tuple[Loop, ...], dict[str, int]]:
    """The loops, and the tiles of those that show one: axis -> elements. Both empty without the line."""
    if not lines.has("loops"):
        return (), {}
    line = lines.take("loops")
    reader = _LoopReader(line, re.findall(r"[(),]|[^\s(),]+", line.rest))
    loops = reader.body()
    if reader.tokens:
        line.fail(f"{reader.tokens[0]!r} is left over after the loops")
    return loops, reader.tiles


@dataclass
class _LoopReader:
    """Recursive descent over `n/64(k/32, h)`."""

    line: Line
    tokens: list[str]
    tiles: dict[str, int] = field(default_factory=dict[str, int])

    def body(self) -> tuple[Loop, ...]:
        loops = [self.loop()]
        while self.tokens and self.tokens[0] == ",":
            self.tokens.pop(0)
            loops.append(self.loop())
        return tuple(loops)

    def loop(self) -> Loop:
        if not self.tokens or self.tokens[0] in "(),":
            self.line.fail("a loop is missing its axis")
        axis, _, tile = self.tokens.pop(0).partition("/")
        if tile:
            self.tiles[axis] = self.line.integer(tile)
        if not self.tokens or self.tokens[0] != "(":
            return Loop(axis)
        self.tokens.pop(0)
        body = self.body()
        if not self.tokens or self.tokens.pop(0) != ")":
            self.line.fail(f"the body of loop {axis} is not closed")
        return Loop(axis, body)
