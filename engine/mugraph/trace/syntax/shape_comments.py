"""Where `# mugraph:` comments are read: directly above a definition, and in the first lines of its body."""

from __future__ import annotations

import ast
import io
import logging
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePath

from mugraph.trace.syntax.nodes import Function
from mugraph.trace.syntax.shapes import comment_text
from mugraph.trace.syntax.source import Source

_log = logging.getLogger("mugraph.trace")


@dataclass(frozen=True)
class Misplaced:
    """A comment that describes shapes where none are read.

    line:     1-based
    function: qualified name of the function or class it seems to be meant for; None where there is none
    sentence: where it is, and where it belongs
    """

    line: int
    function: str | None
    sentence: str


@lru_cache(16)
def _comments(text: str) -> tuple[tuple[tokenize.TokenInfo, ...], str]:
    """The comments of a file, and why there are no more of them. Each definition of a file asks for them."""
    found: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append(token)
    except (tokenize.TokenError, SyntaxError) as error:
        return tuple(found), str(error)
    return tuple(found), ""


@dataclass(frozen=True)
class ShapeComments:
    """The comments of one file, by line (1-based)."""

    source: Source

    @cached_property
    def tokens(self) -> tuple[tokenize.TokenInfo, ...]:
        found, error = _comments(self.source.text)
        if error:  # the file was parsed before, so this is a difference between Python's tokenizer and its parser
            _log.info("comments of %s after the %dth are not read: %s", self.source.path, len(found), error)
        return found

    @cached_property
    def whole_lines(self) -> Mapping[int, str]:
        """Comments that have a line of their own."""
        own = (token for token in self.tokens if not token.line[: token.start[1]].strip())
        return {token.start[0]: token.string for token in own}

    def said(self, node: Function | ast.ClassDef) -> list[str]:
        """What the comments of a definition say, in their order."""
        return [comment_text(self.whole_lines[line]) or "" for line in self.lines(node)]

    def lines(self, node: Function | ast.ClassDef) -> list[int]:
        """The lines of the comments that describe a definition."""
        lines = [*self._above(node), *self._in_body(node)]
        return [line for line in lines if comment_text(self.whole_lines[line]) is not None]

    def _above(self, node: Function | ast.ClassDef) -> list[int]:
        """Comments directly above a definition and its decorators."""
        first = line = first_line(node)
        while line - 1 in self.whole_lines:
            line -= 1
        return list(range(line, first))

    def _in_body(self, node: Function | ast.ClassDef) -> list[int]:
        """Comments between the head of a definition and its first statement. Those directly above the first method of a
        class are the method's, unless it is the constructor, which is not traced by itself."""
        first = node.body[0]
        end = first_line(first) if isinstance(first, ast.ClassDef | Function) else first.lineno
        line = end
        while line - 1 in self.whole_lines or (line - 1 > node.lineno and not self.source.lines[line - 2].strip()):
            line -= 1
        found = [one for one in range(line, end) if one in self.whole_lines]
        if isinstance(node, ast.ClassDef) and isinstance(first, ast.ClassDef | Function) and first.name != "__init__":
            theirs = self._above(first)
            return [one for one in found if one not in theirs]
        return found

    def misplaced(self, nodes: Mapping[str, Function | ast.ClassDef]) -> Iterator[Misplaced]:
        """Comments that no definition is described by. nodes: the definitions, by qualified name."""
        read = {line for node in nodes.values() for line in self.lines(node)}
        for token in self.tokens:
            line, text = token.start[0], comment_text(token.string)
            if text is None or line in read or "=" not in text:  # the marks in an edited file are without one
                continue
            meant = _meant(line, nodes)
            where = f"{PurePath(self.source.path).name}, line {line}: this “# mugraph:” comment is not read"
            if meant is None:
                yield Misplaced(line, None, f"{where}; it belongs directly above a function or class")
                continue
            place = f"directly above {meant} (line {first_line(nodes[meant])}), or in the first line of its body"
            yield Misplaced(line, meant, f"{where} here; it belongs {place}")


def first_line(node: Function | ast.ClassDef) -> int:
    """1-based, its decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _meant(line: int, nodes: Mapping[str, Function | ast.ClassDef]) -> str | None:
    """The function that a comment is in; else the definition after it, within the same class if it is in one."""
    around = {name: node for name, node in nodes.items() if node.lineno <= line <= (node.end_lineno or node.lineno)}
    inner = max(around, key=lambda name: around[name].lineno, default=None)
    if inner is not None and not isinstance(around[inner], ast.ClassDef):
        return inner
    end = line if inner is None else around[inner].end_lineno or line
    after = [name for name, node in nodes.items() if node.lineno > line and (inner is None or node.lineno <= end)]
    return min(after, key=lambda name: nodes[name].lineno, default=inner)
