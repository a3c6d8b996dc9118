"""Demand-driven emission: each operator lands in the outermost region in which its loops' indices are known.

`need(value, region)` emits a value once per region that needs its own. This hoists what does not vary, opens an inner
loop where an accumulator needs one, lets accumulators of one loop and one pass share it, and computes rows that do not
fit in registers again in a second pass over their loop (lowering rules; MCFuser §3's trees of loops follow).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mugraph.codegen.tile.analyses import Analyses
from mugraph.codegen.tile.axes import Dim, Plan, Role
from mugraph.codegen.tile.constants import Constants
from mugraph.codegen.tile.index import REACH, WIDE, Indices, subscript
from mugraph.codegen.tile.kinds import EXP2, ROWMAX
from mugraph.codegen.tile.meeting import Meeting
from mugraph.codegen.tile.memory import finish_loads, store
from mugraph.codegen.tile.nodes import Node
from mugraph.codegen.tile.operators import operator
from mugraph.codegen.tile.pads import LANES, VALID, summed
from mugraph.codegen.tile.pointwise import spelled
from mugraph.codegen.tile.products import dot, dot_pads
from mugraph.codegen.tile.row_maxima import RowMaxima
from mugraph.codegen.tile.small_loads import begin_small_loads
from mugraph.codegen.tile.softmax import SafeSoftmax
from mugraph.codegen.tile.text import Block, Expr, Item, Line, Prec, Ref, Region, Value, number, uses
from mugraph.codegen.tile.values import Values
from mugraph.ir.block import LOADS_AHEAD, BlockGraph, Precision
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.kinds import accumulator, kind_named

_LOOP_ORDER = {ROWMAX: 0, Kind.ACCUM: 1, Kind.STORE: 2}


class Emitter(Values):
    """Emits a whole graph into `root`."""

    def __init__(
        self, block: BlockGraph, plan: Plan, softmax: SafeSoftmax, facts: Analyses, order: Sequence[Dim],
        indices: Indices, constants: Constants, precision: Precision, stages: int,
        meeting: Meeting, evicts: bool,
    ) -> None:  # fmt: skip
        super().__init__(block, plan, softmax.nodes, facts, order, indices, constants, precision, meeting, evicts)
        self._softmax = softmax
        has_products = any(node.kind.contracts for node in self.nodes.values())
        self._stages = stages if stages >= LOADS_AHEAD and not has_products else 0
        self._loops = [axis for axis in block.loop_axes if axis in plan]
        self._stored: set[str] = set()
        self._open: set[str] = set()
        self._maxima = RowMaxima(self, softmax)
        self._into: dict[str, str] = {}  # accumulator of an inner loop -> the outer one's name, which it adds to
        self._called: dict[str, str] = {}  # accumulator of an open loop -> its name
        self._backwards: dict[str, str] = {}  # looped axis -> what counts its tiles from the end

    def emit(self) -> Region:
        root = Region()
        for line in self.indices.grid.lines:
            root.head.append(line)
        for dim in self.order:
            if not self._loop_of(dim):
                root.head += self.indices.head(dim)
        for node in self.nodes.values():
            if node.kind is Kind.STORE:
                self._store(node, root)
        finish_loads(self, root)
        begin_small_loads(self, root.items)
        return root

    def need(self, name: str, region: Region) -> Value:
        node = self.nodes[name]
        home = self._home(node, region)
        if name not in home.memo:
            if node.loop:
                self._loop(node, node.loop, home)
            elif node.kind is EXP2:
                home.memo[name] = self._maxima.exponential(node, home)
            elif node.kind is ROWMAX:
                home.memo[name] = self._maxima.whole(node, home)
            else:
                home.memo[name] = operator(self, node, home)
        return home.memo[name]

    def _home(self, node: Node, region: Region) -> Region:
        """The outermost region around `region` in which all loops of the node are bound."""
        vary = self.facts.vary[node.name]
        fitting = [r for r in region.chain if vary <= r.bound]
        if not fitting:
            loops = ", ".join(sorted(vary - region.bound))
            raise Rejected(f"{node.name} is used outside the loop over {loops} without an accumulator.")
        return fitting[-1]

    def _loop_of(self, dim: Dim) -> str:
        return next((axis for axis in dim.axes if self.plan[axis].role is Role.LOOP), "")

    # Loops

    def _loop(self, first: Node, axis: str, home: Region) -> None:
        """Open a loop over `axis` in `home` for `first` and all that can share it."""
        turn = self._pass(first, axis)
        around = set(self._open)
        members = [n for n in self.nodes.values() if n is first or self._shares(n, axis, turn, home, around)]
        members.sort(key=lambda n: _LOOP_ORDER[n.kind])
        self._open |= {n.name for n in members}
        body = Region(home, axis, turn)
        for dim in self.order:
            if axis in dim.axes:
                body.head += self.indices.head(dim)
        for node in members:
            if node.kind is Kind.ACCUM:
                self._call(node)
        before: list[Item] = []
        after: list[Item] = []
        done: dict[str, Value] = {}
        for node in members:
            if node.kind is ROWMAX:
                done[node.name] = self._maxima.running(node, home, body, before, after)
            elif node.kind is Kind.ACCUM:
                done[node.name] = self._accumulate(node, home, body, before)
            else:
                self._store(node, body)
        home.memo.update(done)
        home.items += [*before, *body.before]
        head = [*self._turned(axis), *body.head] if body.backwards else body.head
        home.items.append(Block(self._header(axis, members, home, body), [*head, *body.items, *after]))
        self._open -= {n.name for n in members}

    def _pass(self, node: Node, axis: str) -> int:
        return self.facts.passes[node.inputs[0]].get(axis, 0)

    def _shares(self, node: Node, axis: str, turn: int, home: Region, around: set[str]) -> bool:
        vary = self.facts.vary[node.name]
        if self.facts.below[node.name] & around or node.name in around:
            return False  # it waits for a value that this loop is opened for
        if node.kind is Kind.STORE:
            waits = node.name not in self._stored and self._next_loop(node, home) == axis and home.bound <= vary
            return waits and self._pass(node, axis) == turn
        if node.loop != axis or not vary <= home.bound or node.name in home.memo:
            return False
        return self._home(node, home) is home and self._pass(node, axis) == turn

    def _header(self, axis: str, members: Sequence[Node], home: Region, body: Region) -> str:
        names = self.indices.names
        start, end = "", ""
        # What is carried through a loop is carried through all of it.
        if body.backwards is None and all(node.kind in (ROWMAX, Kind.ACCUM) for node in members):
            # In what is left out everything is 0, which may be the largest.
            sums = all(accumulator(node.fn).neutral == 0.0 for node in members)
            if sums:
                start, end = self.masks.ends(axis, (n.inputs[0] for n in members), self.nodes, home.bound)
        if self.plan[axis].split:
            which, part = names.index[self.plan[axis].split], names.part[axis]
            # Also where the axis's own elements are within reach, the end of its last part may not be.
            if self.plan[axis].part * -(-self.indices.sizes[axis] // self.plan[axis].part) >= REACH:
                which += WIDE
            start, end = f"{which} * {part}", f"tl.minimum(({which} + 1) * {part}, {names.size[axis]})"
        elif self.indices.sizes[axis] >= REACH:
            # Up to 2^32 an end has 32 bits and no sign, and Triton's loop takes it to have one.
            end = f"tl.cast({end or names.size[axis]}, tl.int64)"
        step = f", {names.block[axis]}" if self.plan[axis].wide else ""
        place = self._from_end(axis) if body.backwards else names.loop[axis]
        ends = f"{start or 0}, {end or names.size[axis]}{step}"
        # What is stored in a loop may be what it reads.
        if self._stages and all(node.kind is not Kind.STORE for node in members):
            return f"for {place} in tl.range({ends}, num_stages={self._stages})"
        return f"for {place} in range({ends})"

    def _from_end(self, axis: str) -> str:
        """The distance of a tile from the last one, in a loop that begins there."""
        if axis not in self._backwards:
            self._backwards[axis] = self.fresh(f"{axis}_back")
        return self._backwards[axis]

    def _turned(self, axis: str) -> list[Item]:
        """Where a loop is that begins at its last iteration."""
        names, plan = self.indices.names, self.plan[axis]
        last = f"{names.size[axis]} - 1"
        if plan.padded:
            last = f"({last}) // {names.block[axis]} * {names.block[axis]}"
        elif plan.wide:
            last = f"{names.size[axis]} - {names.block[axis]}"
        return [Line(names.loop[axis], Expr((f"{last} - {self._from_end(axis)}",)))]

    def _accumulate(self, node: Node, home: Region, body: Region, before: list[Item]) -> Value:
        dims = self.dims(node)
        source = self.nodes[node.inputs[0]]
        parts = accumulator(node.fn)
        joins = kind_named(parts.joins)
        name = self._called.pop(node.name)
        if self._into.pop(node.name, "") != name:
            before.append(Line(name, Expr((self.filled(dims, number(parts.neutral)),))))
        if self._goes_on(node, source):
            pads = self.need(source.name, body).pads
            kept = {dim: pad for dim, pad in pads.items() if node.loop not in dim.axes}
            return Value(name, dims, "f32", kept, home, Expr((name,)), named=True)
        alpha = self._maxima.rescale(node, body)
        target = Ref(alpha, Prec.ATOM, subscript(alpha.dims, dims)) if alpha else None
        adds = kind_named(parts.kind).adds
        products = self._products(source, node.loop, joins) if adds else ()
        if products:
            every = [dot_pads(self, product, body) for product in products]
            texts = [dot(self, product, body, name) for product in products]
            if target:
                body.items.append(Line(name, uses(Expr((target,)), body), "*="))
            body.items += [Line(name, uses(text, body)) for text in texts]
            pads = every[0]
            for other in every[1:]:
                both = ((dim, (pads.get(dim, VALID), other.get(dim, VALID))) for dim in {**pads, **other})
                pads = {dim: LANES.add(*two) for dim, two in both}
        else:
            value = self.f32(self.need(source.name, body))
            for dim in dims:
                if node.loop in dim.axes:  # the last iteration's tail would stay in the sum, or be the maximum
                    value = self.forced(value, dim, parts.neutral)
            pads = value.pads
            added = Ref(value, Prec.MUL)
            if not adds:
                body.items.append(Line(name, uses(spelled(joins, (name, Ref(value))), body)))
            elif target:
                body.items.append(Line(name, uses(Expr((f"{name} * ", target, " + ", added)), body)))
            else:
                body.items.append(Line(name, uses(Expr((Ref(value),)), body), "+="))
        kept = {dim: summed(pad) for dim, pad in pads.items() if dim in dims and node.loop not in dim.axes}
        return Value(name, dims, "f32", kept, home, Expr((name,)), named=True)

    def _products(self, source: Node, loop: str, joins: Kind) -> tuple[Node, ...]:
        """The products that a loop adds up, where it adds up nothing else: one accumulator goes through all of them.
        joins: the kind of a sum of two

        The sum of two is one product of operands side by side, (x || z) @ (w over b): concat-matmul (Mirage v1, §7 and
        Figure 9b), which puts nothing side by side in memory either.
        """
        if self.facts.users[source.name] > 1 or loop not in self.facts.vary[source.name]:
            return ()
        if source.kind.contracts:
            return (source,)
        if source.kind is not joins or loop in source.axes:
            return ()
        terms = [self.nodes[name] for name in source.inputs]
        products = [self._products(term, loop, joins) if term.axes == source.axes else () for term in terms]
        return (*products[0], *products[1]) if all(products) else ()

    def _summed(self, node: Node) -> Node:
        """What an accumulator adds up, through accumulators of inner loops."""
        return self._summed(self.nodes[node.inputs[0]]) if node.kind is Kind.ACCUM else node

    def _call(self, node: Node) -> None:
        """Name an accumulator before its loop's body is written: an inner loop may add to it for several at once."""
        source = self.nodes[node.inputs[0]]
        name = self._into.get(node.name, "") or self.fresh(_accumulator(node, self._summed(source)))
        self._called[node.name] = name
        if self._goes_on(node, source):
            self._into[source.name] = name

    def _goes_on(self, node: Node, source: Node) -> bool:
        """Whether an outer loop only goes on with an inner loop's accumulator (as a convolution's loops over rows,
        columns and channels do): then both loops share one."""
        relative = any(self._softmax.degrees.get(node.inputs[0], {}).values())
        same = self.dims(node) == self.dims(source) and node.fn == source.fn
        return source.kind is Kind.ACCUM and self.facts.users[source.name] == 1 and same and not relative

    # Stores

    def _next_loop(self, node: Node, region: Region) -> str:
        """The outermost loop the stored value varies in that is not open at `region`."""
        missing = self.facts.vary[node.name] - region.bound
        return next((axis for axis in self._loops if axis in missing), "")

    def _store(self, node: Node, region: Region) -> None:
        if node.name in self._stored:
            return
        loop = self._next_loop(node, region)
        if loop:
            self._loop(node, loop, region)
            return
        self._stored.add(node.name)
        region.items.append(store(self, node, region))


def _accumulator(node: Node, source: Node) -> str:
    """What an accumulator is called: it is a value of the program, else a sum of something; a product's is `acc`."""
    if source.kind.contracts or not re.fullmatch(r"acc(_\d+)?", node.name):
        return node.name
    return f"{source.name}_sum"
