"""Masks in a kernel: conditions on the indices of a tile, and loops that end where everything is masked.

A mask is loaded from nowhere. `offs_t <= offs_s + diagonal` says where it is 1, and from it follows how far a loop over
its columns has to run for the rows a block has: FlashAttention's causal loop is one case of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from mugraph.codegen.tile.axes import Dim, Plan, Role
from mugraph.codegen.tile.index import Indices
from mugraph.codegen.tile.kinds import KEEP, ROWMAX
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.kinds.zeros import Zeros


def with_keeps(nodes: dict[str, Node]) -> dict[str, Node]:
    """Products with a mask as what they are: the other factor where the mask is 1, and 0 elsewhere. (In floating point
    the product of 0 and an infinity is none.)"""
    out: dict[str, Node] = {}
    for node in nodes.values():
        if node.kind.neutral == 1.0 and node.kind.absorbing == 0.0:
            for mask, value in (node.inputs, node.inputs[::-1]):
                if nodes[mask].kind is Kind.MASK and nodes[value].kind is not Kind.MASK:
                    node = replace(node, kind=KEEP, inputs=(value, mask), value=0.0)
                    break
        out[node.name] = node
    return out


def mask_of(exp: Node, nodes: Nodes) -> Node | None:
    """The mask that every use of an exponential is multiplied by at once: its logits are minus infinity there.

    Raises Rejected where a mask comes later: the row's maximum would then be one of logits that count for nothing, and
    the others might all vanish beside it.
    """
    # A mask along other axes says in which of several results the exponential is (a concatenation); its row keeps it.
    masked = {node.name for node in nodes.values() if node.kind is Kind.MASK and node.axes & exp.axes}
    users = [node for node in nodes.values() if exp.name in node.inputs]
    keeps = {node.inputs[1] if node.kind is KEEP and node.inputs[1] in masked else "" for node in users}
    if len(keeps) == 1 and keeps != {""}:
        return nodes[keeps.pop()]
    made = {exp.name}
    for node in nodes.values():
        if made.intersection(node.inputs):
            if masked.intersection(node.inputs):
                raise Rejected(f"{exp.name} is masked by {node.name}, but not wherever it is used.")
            made.add(node.name)
    return None


class _Nothing(Zeros):
    """With the exponentials of logits that are minus infinity."""

    def exp2(self, a: bool) -> bool:
        return a


def vanishing(mask: Node, nodes: Nodes) -> frozenset[str]:
    """Values that add nothing to a sum, or to a row's maximum of logits, in a tile in which the mask is 0
    everywhere."""
    found: set[str] = set()
    for node in nodes.values():
        below = [name in found for name in node.inputs]
        if node.kind is KEEP:
            gone = node.inputs[1] == mask.name or (below[0] and node.value == 0.0)
        elif node.kind in (Kind.STORE, ROWMAX) or not any(below):
            gone = False
        else:
            gone = node.kind.meaning(_Nothing(), below, node.fn, node.over)
        if gone:
            found.add(node.name)
    return frozenset(found)


@dataclass(frozen=True)
class MaskText:
    """Text about masks."""

    plan: Plan
    indices: Indices

    def condition(self, mask: Node, dims: Sequence[Dim]) -> str:
        """Where the mask is 1, for a tile of these dimensions."""
        columns, rows = (self._place(axes, dims) for axes in (mask.columns, mask.rows))
        if rows == "0":
            return f"{columns} <= {int(mask.value)}"
        if columns == "0":
            return f"{rows} >= {-int(mask.value)}"
        return f"{columns} <= {rows}{_offset(int(mask.value))}"

    def sees_first(self, mask: Node) -> bool:
        """Is something of every row kept in the first tile of a block's loop over the columns?"""
        columns = [self.plan[axis] for axis in mask.columns if axis in self.plan]
        return mask.value >= 0 and all(axis.role is not Role.GRID for axis in columns) and len(columns) == 1

    def end(self, axis: str, sources: Iterable[str], nodes: Nodes, bound: frozenset[str]) -> str:
        """Where a loop over `axis` may end, when it is there for `sources` alone; "" for its axis's end.

        bound: loops around it
        """
        sources = list(sources)
        for mask in nodes.values():
            if mask.kind is Kind.MASK and mask.columns[-1:] == (axis,):
                gone = vanishing(mask, nodes)
                if sources and all(name in gone for name in sources):
                    return self._end(mask, axis, bound)
        return ""

    def _end(self, mask: Node, axis: str, bound: frozenset[str]) -> str:
        rows = [row for row in mask.rows if row in self.plan]
        outer = [column for column in mask.columns[:-1] if column in self.plan]
        # Several rows at once end where the last of them ends; their places must be one run.
        if len(rows) > 1 or any(self.plan[column].wide for column in outer):
            return ""
        if any(self.plan[a].role is Role.LOOP and a not in bound for a in (*rows, *outer)):
            return ""
        size = self.indices.names.size[axis]
        last = self._after(rows[0]) if rows else "1"
        end = f"{last}{_offset(int(mask.value))}"
        if outer:
            end += f" - {self._place(outer, ())} * {size}"
        elif not rows or self.plan[rows[0]].role is Role.WHOLE:
            known = (self.plan[rows[0]].size if rows else 1) + int(mask.value)
            return end if known < self.plan[axis].size else ""
        return f"tl.minimum({size}, {end})"

    def _after(self, row: str) -> str:
        """One more than the last row of the tile."""
        names, plan = self.indices.names, self.plan[row]
        if not plan.wide:
            return f"{names.index[row]} + 1"
        if plan.role is Role.GRID:
            return f"({self.indices.grid.pids[row]} + 1) * {names.block[row]}"
        return f"{names.loop[row]} + {names.block[row]}" if plan.role is Role.LOOP else names.size[row]

    def _place(self, axes: Iterable[str], dims: Sequence[Dim]) -> str:
        """The place along several axes, counted as one, in a tile of these dimensions."""
        text = ""
        for axis in (axis for axis in axes if axis in self.plan):
            index = self.indices.names.index[axis]
            if self.plan[axis].wide:
                index += self.indices.broadcast(self.indices.dim_of[axis], dims)
            outer = f"({text})" if " + " in text else text
            text = f"{outer} * {self.indices.names.size[axis]} + {index}" if text else index
        return text or "0"


def hides(node: Node) -> bool:
    """Does it put minus infinity in place of what is masked?"""
    return node.kind is KEEP and node.value == -inf


def _offset(diagonal: int) -> str:
    return f" {'+' if diagonal > 0 else '-'} {abs(diagonal)}" if diagonal else ""
