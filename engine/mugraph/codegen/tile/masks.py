"""Masks in a kernel: conditions on the indices of a tile, and loops that end where everything is masked.

A mask is loaded from nowhere. `offs_t <= offs_s + diagonal` says where it is 1, and from it follows how far a loop over
its columns has to run for the rows a block has: FlashAttention's causal loop is one case of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from mugraph.codegen.tile.axes import Dim, Plan, Role
from mugraph.codegen.tile.index import Indices
from mugraph.codegen.tile.kinds import KEEP, ROWMAX
from mugraph.codegen.tile.nodes import Node, Nodes
from mugraph.ir.kept import conjuncts, is_product, kept_by
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.kinds.zeros import Zeros


def with_keeps(nodes: dict[str, Node]) -> dict[str, Node]:
    """Products with a mask as what they are: the other factor where the mask is 1, and 0 elsewhere. (In floating point
    the product of 0 and an infinity is none.) A product of masks is one itself."""
    out: dict[str, Node] = {}
    for node in nodes.values():
        if is_product(node) and not conjuncts(node, nodes):
            for mask, value in (node.inputs, node.inputs[::-1]):
                if conjuncts(nodes[mask], nodes):
                    node = replace(node, kind=KEEP, inputs=(value, mask), value=0.0)
                    break
            else:
                node = _kept_last(node, out)
        out[node.name] = node
    return out


def _kept_last(node: Node, out: dict[str, Node]) -> Node:
    """A product of which a factor is kept by a mask along other axes, as a part of what is joined: the whole product is
    kept. Another factor's NaN would be seen in the other parts, and what it is computed from would be loaded there."""
    for name, other in (node.inputs, node.inputs[::-1]):
        kept = out[name]
        if kept.kind is KEEP and kept.value == 0.0:
            value, mask = kept.inputs
            if out[mask].axes.isdisjoint(out[value].axes):
                inner = replace(node, name=f"{node.name}_whole", inputs=(value, other))
                inner = replace(inner, axes=out[value].axes | out[other].axes)
                if inner.name not in out:
                    out[inner.name] = inner
                    return replace(node, kind=KEEP, inputs=(inner.name, mask), value=0.0)
    return node


def mask_of(exp: Node, nodes: Nodes) -> Node | None:
    """The mask, or product of masks, that every use of an exponential is multiplied by at once: its logits are minus
    infinity where it is 0.

    Raises Rejected where a mask comes later: the row's maximum would then be one of logits that count for nothing, and
    the others might all vanish beside it.
    """
    # A mask along other axes says in which of several results the exponential is (a concatenation); its row keeps it.
    masked = {node.name for node in nodes.values() if conjuncts(node, nodes) and node.axes & exp.axes}
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
            kept = {one.name for one in conjuncts(nodes[node.inputs[1]], nodes)}
            gone = mask.name in kept or (below[0] and node.value == 0.0)
        elif node.kind in (Kind.STORE, ROWMAX) or node.kind.scans or not any(below):
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

    def condition(self, mask: Node, dims: Sequence[Dim], nodes: Nodes) -> str:
        """Where a mask, or a product of masks, is 1, for a tile of these dimensions."""
        tests = [self._test(one, dims) for one in conjuncts(mask, nodes)]
        return tests[0] if len(tests) == 1 else " & ".join(f"({test})" for test in tests)

    def _test(self, mask: Node, dims: Sequence[Dim]) -> str:
        columns, rows = (self._place(axes, dims) for axes in (mask.columns, mask.rows))
        more, number = self._diagonal(mask)
        if rows == "0":
            return f"{columns} <= {_with_sizes(str(number), more)}"
        if columns == "0":
            # The number first: a choice of 1.0 and 0.0 by `>=` is how an operator that compares is written.
            return f"{_with_sizes(str(-number), more, negative=True)} <= {rows}"
        return f"{columns} <= {_with_sizes(_shifted(rows, number), more)}"

    def _diagonal(self, mask: Node) -> tuple[tuple[str, ...], int]:
        """What is added to a row to give its last column: sizes with their signs, and a number."""
        if mask.fn != "last":
            return (), int(mask.value)
        more: list[str] = []
        number = int(mask.value)
        for sign, axes in (("+", mask.columns), ("-", mask.rows)):
            extent = prod(self.plan[axis].size for axis in axes if axis in self.plan)
            if any(axis in self.plan and self.plan[axis].dynamic for axis in axes):
                (axis,) = axes
                more.append(f"{sign} {self.indices.names.size[axis]}")
                number += -extent if sign == "+" else extent
        return tuple(more), number

    def unread(self, source: Node, nodes: Nodes) -> str:
        """Where a load may be left out, the condition under which it counts, else "". It is one on the block's own
        place: a load that another lane of the tile needs is as long as it is."""
        if any(p.dynamic for p in self.plan.values()) or any(node.kind is ROWMAX for node in nodes.values()):
            return ""  # proofs for all sizes count what a kernel reads; a maximum may be of what counts for nothing
        kept = kept_by(nodes, lambda node, name: _kept_here(node, name, nodes)).get(source.name, frozenset())
        tests = [self._test(nodes[name], ()) for name in nodes if name in kept and self._is_of_block(nodes[name])]
        return " & ".join(f"({test})" for test in tests)

    def _is_of_block(self, mask: Node) -> bool:
        axes = [self.plan[axis] for axis in (*mask.rows, *mask.columns) if axis in self.plan]
        return not mask.fn and all(p.role is Role.GRID and not p.wide and not p.split for p in axes)

    def place(self, position: Node, dims: Sequence[Dim]) -> str:
        """What a position counts, for a tile of these dimensions."""
        return _shifted(self._place(position.rows, dims), int(position.value))

    def sees_first(self, mask: Node, nodes: Nodes, along: Collection[str]) -> bool:
        """Is something of every row kept in the first tile of a block's loop over the columns? along: axes of a row"""
        for one in conjuncts(mask, nodes):
            columns = [axis for axis in one.columns if axis in self.plan]
            if one.value < 0 or len(columns) != 1 or columns[0] not in along or self._diagonal(one)[0]:
                return False
            if self.plan[columns[0]].role is Role.GRID or self.plan[columns[0]].split:
                return False
        return True

    def ends(self, axis: str, sources: Iterable[str], nodes: Nodes, bound: frozenset[str]) -> tuple[str, str]:
        """Where a loop over `axis` may begin and end, when it is there for `sources` alone; "" for its axis's ends.

        bound: loops around it
        """
        sources, first, last = list(sources), "", ""
        for mask in nodes.values():
            if mask.kind is not Kind.MASK or axis not in (*mask.columns[-1:], *mask.rows[-1:]):
                continue
            gone = vanishing(mask, nodes)
            if not sources or not all(name in gone for name in sources):
                continue
            if mask.columns[-1:] == (axis,):
                last = last or self._end(mask, axis, bound)
            else:
                first = first or self._begin(mask, axis, bound)
        return first, last

    def _begin(self, mask: Node, axis: str, bound: frozenset[str]) -> str:
        """The first tile that a block's first row, which is a column of the mask, sees."""
        columns = [column for column in mask.columns if column in self.plan]
        outer = [row for row in mask.rows[:-1] if row in self.plan]
        if len(columns) > 1 or any(self.plan[row].wide for row in outer):
            return ""
        if any(self.plan[a].role is Role.LOOP and a not in bound for a in (*columns, *outer)):
            return ""
        names = self.indices.names
        first = self._first(columns[0]) if columns else "0"
        more, number = self._diagonal(mask)
        if first == "0" and not outer and mask.value >= 0 and not more:
            return ""
        start = _with_sizes(_shifted(first, -number), more, negative=True)
        if outer:
            start += f" - {self._place(outer, ())} * {names.size[axis]}"
        if not self.plan[axis].wide:
            return f"tl.maximum(0, {start})"
        if mask.fn:  # what is divided is not negative, so that it can be read for all sizes
            return f"tl.maximum(0, {start}) // {names.block[axis]} * {names.block[axis]}"
        return f"tl.maximum(0, ({start}) // {names.block[axis]}) * {names.block[axis]}"

    def _first(self, column: str) -> str:
        """The first place of the tile."""
        names, plan = self.indices.names, self.plan[column]
        if not plan.wide:
            return names.index[column]
        if plan.role is Role.GRID:
            return f"{self.indices.grid.pids[column]} * {names.block[column]}"
        return names.loop[column] if plan.role is Role.LOOP else "0"

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
        more, number = self._diagonal(mask)
        end = _with_sizes(f"{last}{_offset(number)}", more)
        if outer:
            end += f" - {self._place(outer, ())} * {size}"
        elif more:
            return f"tl.minimum({size}, {end})"
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


def _kept_here(node: Node, name: str, nodes: Nodes) -> list[str]:
    """The masks that an operator keeps one of its inputs by."""
    if node.kind is not KEEP or name != node.inputs[0] or name == node.inputs[1]:
        return []
    return [one.name for one in conjuncts(nodes[node.inputs[1]], nodes)]


def hides(node: Node) -> bool:
    """Does it put minus infinity in place of what is masked?"""
    return node.kind is KEEP and node.value == -inf


def _shifted(text: str, by: int) -> str:
    """A place and a whole number."""
    return str(by) if text == "0" else f"{text}{_offset(by)}"


def _with_sizes(text: str, sizes: Sequence[str], *, negative: bool = False) -> str:
    """A place and sizes with their signs. negative: with the others"""
    turned = {"+": "-", "-": "+"}
    return " ".join([text, *((turned[one[0]] + one[1:]) if negative else one for one in sizes)])


def _offset(diagonal: int) -> str:
    return f" {'+' if diagonal > 0 else '-'} {abs(diagonal)}" if diagonal else ""
