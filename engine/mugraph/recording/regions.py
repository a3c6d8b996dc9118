"""What a recording says of the regions of a file: how much of the run each one's function takes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import msgspec

from mugraph.ir.region import Region, Trace
from mugraph.ir.shares import Share
from mugraph.trace.syntax.definitions import definitions


def shared(
    trace: Trace, shares: Mapping[str, Share], text: str, comments: Mapping[int, str] = MappingProxyType({})
) -> Trace:
    """The trace with the shares of its regions. text: that was traced. comments: of regions for a range of a recorded
    size, what says the range"""
    if not shares:
        return trace
    bodies = _bodies(text)
    found: dict[int, Share] = {}
    for number, region in enumerate(trace.regions):
        share = shares.get(region.function)
        if share is not None:
            whole = _is_whole(region, bodies.get(region.function))
            most = None if whole else share.own + sum(one.own for name, one in shares.items() if _ran(region, name))
            found[number] = msgspec.structs.replace(share, whole=whole, most=most, comment=comments.get(number, ""))
    return replace(trace, shares=found)


def _ran(region: Region, function: str) -> bool:
    """Whether it ran inside the region: `ran` has a method by its class."""
    return function != region.function and (function in region.ran or function.rpartition(".")[0] in region.ran)


def _is_whole(region: Region, body: tuple[int, int] | None) -> bool:
    if body is None:
        return False
    first, last = body
    return region.range.start.line <= first and last <= region.range.end.line


def _bodies(text: str) -> dict[str, tuple[int, int]]:
    """By function, the lines of its first and last statement, docstring apart, from 0."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, tuple[int, int]] = {}
    for one in definitions(tree):
        name, node = one.name, one.node
        if not isinstance(node, ast.ClassDef):
            rest = node.body[ast.get_docstring(node, clean=False) is not None :]
            if len(rest) > 1 and _only_returns(rest[-1]):
                rest.pop()
            if rest:
                found[name] = rest[0].lineno - 1, (rest[-1].end_lineno or rest[-1].lineno) - 1
    return found


def _only_returns(node: ast.stmt) -> bool:
    """`return x`, which computes nothing."""
    if not isinstance(node, ast.Return):
        return False
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return all(isinstance(value, ast.Name | ast.Constant | None) for value in values)
