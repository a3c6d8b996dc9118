"""A file that fails, made small: statements are left out while it fails in the same way."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.trust.whole_programs.head import HEAD
from tests.trust.whole_programs.way import Outcome, outcome

LONGEST_S = 120.0


def shrunk(text: str, made: Outcome, folder: Path) -> str:
    began, sign = time.monotonic(), _sign(made)
    again = True
    while again:
        again = False
        for smaller in _smaller(text):
            if time.monotonic() - began > LONGEST_S:
                return text
            if _sign(outcome(smaller, folder)) == sign:
                text, again = smaller, True
                break
    return text


def _sign(made: Outcome) -> str:
    """What says that two failures are the same: their kind, and the first of them without its numbers."""
    first = made.wrong[:1] or made.failed[:1] or made.idle[:1] or made.error.splitlines()[-1:]
    return re.sub(r"[\d.e\-\[\]()]+", "", f"{made.kind} {''.join(first)}".split(", not")[0])[:60]


def _smaller(text: str) -> Iterator[str]:
    """The file without one of its statements, the longest first."""
    lines, tree = text.splitlines(), ast.parse(text)
    first = len(HEAD.splitlines())
    found: list[tuple[int, int, int, bool]] = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for one in block if isinstance(block, list) else []:
                if one.lineno > first and not isinstance(one, ast.Return) and one.end_lineno:
                    alone = len(block) == 1 and not isinstance(node, ast.Module)
                    begin = min([one.lineno, *(deco.lineno for deco in getattr(one, "decorator_list", []))])
                    found.append((one.end_lineno - begin, begin, one.end_lineno, alone))
                if one.lineno > first and isinstance(one, ast.If | ast.With | ast.For | ast.Try | ast.While):
                    yield from _opened(lines, one)
    for _, begin, end, alone in sorted(found, reverse=True):
        indent = lines[begin - 1][: len(lines[begin - 1]) - len(lines[begin - 1].lstrip())]
        yield "\n".join([*lines[: begin - 1], *([f"{indent}pass"] if alone else []), *lines[end:]]) + "\n"


def _opened(lines: list[str], node: ast.If | ast.With | ast.For | ast.Try | ast.While) -> Iterator[str]:
    """The body of a block in place of the block."""
    body = node.body
    begin, end = body[0].lineno - 1, body[-1].end_lineno or body[-1].lineno
    inside = [line.removeprefix("    ") for line in lines[begin:end]]
    yield "\n".join([*lines[: node.lineno - 1], *inside, *lines[node.end_lineno or end :]]) + "\n"
