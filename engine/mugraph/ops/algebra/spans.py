"""Whole numbers that are computed from stored ones, and between which ends they lie.

PyTorch's integers wrap around where they leave their type, which real numbers do not. What stays inside is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ir.calls import TensorInfo
from mugraph.ir.dtypes import STORED
from mugraph.kinds import Kind
from mugraph.ops.algebra.bounds import Bounds
from mugraph.ops.algebra.nodes import Node
from mugraph.ops.algebra.packed import BYTE, BYTES

Span = tuple[int, int]
"""The least and the largest number, both included."""
EXACT = 1 << 24
"""As far as float32 has all whole numbers."""
SMALL: Mapping[str, Span] = {"i8": (-128, 127), "u8": (0, 255), "i16": (-(1 << 15), (1 << 15) - 1)}
"""Integer types that values inside a program may have."""


def span(node: Node, values: Mapping[int, TensorInfo], bounds: Bounds | None = None) -> Span | None:
    """Where a node's numbers lie, if all are known to be whole; None of any other. bounds: looks at what was rounded
    to whole numbers, too"""
    found = _span(node, values)
    if found is None and bounds is not None and bounds.are_whole(node):
        low, high = bounds.ends(node)
        found = (int(low), int(high)) if max(-low, high) <= EXACT else None
    return found if found is not None and found[0] >= -EXACT and found[1] <= EXACT else None


def _span(node: Node, values: Mapping[int, TensorInfo]) -> Span | None:
    if node.shifted is not None:
        x, places = node.shifted
        around = span(x, values)
        return None if around is None else (around[0] >> places, around[1] >> places)
    if node.cases:
        return _around([span(case, values) for case in node.cases])
    if node.kind is Kind.CONST:
        return (int(node.value), int(node.value)) if node.value.is_integer() else None
    if node.kind is Kind.LOAD:
        whole = {str(name): one for name, one in STORED.items() if one.is_whole}
        one = whole.get(BYTE if node.fn == BYTES else values[node.source].dtype)
        return (int(one.least), int(one.largest)) if one is not None and one.least is not None else None
    if node.keep is not None or len(node.inputs) != 2:
        return None
    a, b = (span(operand, values) for operand in node.inputs)
    if a is None or b is None:
        return None
    if node.kind is Kind.BIT_AND:
        return (0, b[1] if a[0] < 0 else min(a[1], b[1])) if b[0] >= 0 else None
    if node.kind.primitives == frozenset(("add",)):
        return a[0] + b[0], a[1] + b[1]
    if node.kind.primitives == frozenset(("mul",)):
        ends = [one * other for one in a for other in b]
        return min(ends), max(ends)
    return None


def _around(spans: list[Span | None]) -> Span | None:
    known = [one for one in spans if one is not None]
    if len(known) < len(spans):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
