"""The block graph as tile operators: what the schedule leaves of it, in the forms Triton has words for (forms.py).

Loops of one iteration and axes of size 1 are gone, dead values too; a product without a wide axis on both sides is a
multiplication and a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from mugraph.codegen.tile.axes import Plan, Role
from mugraph.codegen.tile.forms import with_forms
from mugraph.codegen.tile.nodes import Node
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.names import take, underscored
from mugraph.ir.ops import Kind, Op
from mugraph.kinds import accumulators, kind_named


def tile_nodes(block: BlockGraph, schedule: Schedule, plan: Plan) -> dict[str, Node]:
    """Live tile operators of `block` under `plan`; raises Rejected for a graph that is not well formed under it."""
    builder = _Builder(block, schedule, plan)
    for op in block.ops:
        builder.add(op)
    return _live(with_forms(builder.nodes))


class _Builder:
    def __init__(self, block: BlockGraph, schedule: Schedule, plan: Plan) -> None:
        self.block = block
        self.schedule = schedule
        self.plan = plan
        self.nodes: dict[str, Node] = {}
        self.alias: dict[str, str] = {}
        self.vary: dict[str, frozenset[str]] = {}
        self.taken = {op.name for op in block.ops}

    def add(self, op: Op) -> None:
        inputs = tuple(self.alias[name] for name in op.inputs)
        axes = frozenset(axis for axis in op.axes if axis in self.plan)
        node = Node(
            op.name, op.kind, inputs, axes, tensor=op.tensor, value=op.value, fn=op.fn, f32=op.f32, tf32=op.tf32
        )
        if op.kind is Kind.ACCUM:
            self._accum(op, node)
        elif op.kind.reduces:
            self._reduce(op, node)
        elif op.kind.scans:
            self._run(op, node)
        elif op.kind is Kind.STORE:
            self._store(op, node)
        elif op.kind is Kind.LOAD:
            axes = self._read_with(axis for axis in self.block.tensor(op.tensor).axes if axis in self.plan)
            self._define(op.name, replace(node, axes=axes))
        elif op.kind is Kind.CONST:
            self._define(op.name, replace(node, axes=frozenset()))
        elif op.kind.of_places:
            self._define(op.name, replace(node, rows=op.rows, columns=op.columns))
        else:
            axes = frozenset[str]().union(*(self.nodes[name].axes for name in inputs))
            self._define(op.name, replace(node, axes=axes))

    def _define(self, name: str, node: Node) -> None:
        self.nodes[node.name] = node
        self.alias[name] = node.name
        looped = frozenset(axis for axis in node.axes if self.plan[axis].role is Role.LOOP)
        if node.kind is Kind.LOAD or node.kind.of_places:
            self.vary[node.name] = looped
        else:
            below = frozenset[str]().union(*(self.vary[i] for i in node.inputs))
            self.vary[node.name] = below - {node.loop} if node.kind is Kind.ACCUM else below

    def _read_with(self, axes: Iterable[str]) -> frozenset[str]:
        """With those that say which part of one of them a thread block has: there is another value in each part."""
        own = frozenset(axes)
        return own | {self.plan[axis].split for axis in own if self.plan[axis].split}

    def _accum(self, op: Op, node: Node) -> None:
        if op.fn not in accumulators():
            raise Rejected(f"{op.name} accumulates by {op.fn}, which no accumulator does.")
        repeated = accumulators()[op.fn].repeated
        (loop,) = op.over
        (value,) = node.inputs
        axis = self.plan.get(loop)
        if loop in self.vary[value]:
            self._define(op.name, replace(node, axes=self.nodes[value].axes, loop=loop))
            return
        if axis is not None and axis.dynamic and repeated:
            raise Rejected(f"{op.name} adds the same in each iteration over {loop}, whose number varies.")
        # Nothing varies in this loop: all iterations have the same to add, as often as the schedule's tile says, or
        # the same maximum.
        count = 1 if axis is None else math.ceil(axis.size / self.schedule.tile(loop, axis.size))
        if count == 1 or not repeated:
            self.alias[op.name] = value
            return
        factor = Node(take(underscored(f"{op.name}_count"), self.taken), Kind.CONST, value=float(count))
        self._define(factor.name, factor)
        self._define(op.name, Node(op.name, kind_named(repeated), (value, factor.name), self.nodes[value].axes))

    def _reduce(self, op: Op, node: Node) -> None:
        operands = [self.nodes[name] for name in node.inputs]
        united = frozenset[str]().union(*(operand.axes for operand in operands))
        over = frozenset(axis for axis in op.over if axis in self.plan)
        for axis in sorted(over):
            if axis not in united:
                raise Rejected(f"{op.name} reduces axis {axis}, which its operands do not have.")
            if self.plan[axis].role is Role.GRID:
                raise Rejected(f"{op.name} reduces axis {axis}, which is partitioned over the grid.")
        wide = frozenset(axis for axis in over if self.plan[axis].wide)
        # A loop axis of tile 1 is summed by its accumulator; it no longer belongs to the value's tile.
        axes = united - over
        if op.kind.contracts and self._is_matrix_product(operands, wide):
            self._define(op.name, replace(node, axes=axes, over=wide))
            return
        if op.kind.contracts:
            if not wide:
                self._define(op.name, replace(node, kind=op.kind.terms, axes=axes))
                return
            product = Node(take(underscored(f"{op.name}_terms"), self.taken), op.kind.terms, node.inputs, axes | wide)
            self._define(product.name, product)
            self._define(op.name, replace(node, kind=Kind.SUM, inputs=(product.name,), axes=axes, over=wide))
        elif wide:
            self._define(op.name, replace(node, axes=axes, over=wide))
        else:
            self._without(op.name, node.inputs[0], axes)

    def _run(self, op: Op, node: Node) -> None:
        (value,), (axis,) = node.inputs, op.over
        if axis not in self.plan:  # of one element
            self.alias[op.name] = value
            return
        axes = self.nodes[value].axes
        if axis not in axes:
            raise Rejected(f"{op.name} runs along axis {axis}, which its operand does not have.")
        if self.plan[axis].role is Role.GRID:
            raise Rejected(f"{op.name} runs along axis {axis}, which is partitioned over the grid.")
        if self.plan[axis].role is Role.LOOP and axis not in self.vary[value]:
            raise Rejected(f"{op.name} runs along axis {axis}, whose loop is over.")
        self._define(op.name, replace(node, axes=axes, over=frozenset((axis,))))

    def _without(self, name: str, value: str, axes: frozenset[str]) -> None:
        """`name` is `value` itself, less scalar axes."""
        if self.nodes[value].axes == axes:
            self.alias[name] = value
        else:
            self._define(name, Node(name, Kind.SUM, (value,), axes))

    def _is_matrix_product(self, operands: list[Node], over: frozenset[str]) -> bool:
        left, right = (frozenset(axis for axis in o.axes if self.plan[axis].wide) for o in operands)
        return bool(over) and over <= left & right and bool(left - right) and bool(right - left)

    def _store(self, op: Op, node: Node) -> None:
        tensor = self.block.tensor(op.tensor)
        (value,) = node.inputs
        axes = self._read_with(axis for axis in tensor.axes if axis in self.plan)
        have = frozenset(axis for axis in self.nodes[value].axes)
        if axes != have:
            raise Rejected(f"output {tensor.name} has axes {_list(axes)}, the value stored to it {_list(have)}.")
        for axis in sorted(axes):
            if self.plan[axis].role is Role.LOOP and axis not in self.vary[value]:
                raise Rejected(f"the value stored to {tensor.name} no longer varies in the loop over {axis}.")
        stray = self.vary[value] - axes
        if stray:
            raise Rejected(f"output {tensor.name} needs an accumulator over the loop {_list(stray)}.")
        self._define(op.name, replace(node, axes=axes))


def _list(axes: frozenset[str]) -> str:
    return ", ".join(sorted(axes)) or "none"


def _live(nodes: dict[str, Node]) -> dict[str, Node]:
    """Only what a store needs."""
    needed: set[str] = set()
    for node in reversed(nodes.values()):
        if node.kind is Kind.STORE or node.name in needed:
            needed.add(node.name)
            needed.update(node.inputs)
    if not any(node.kind is Kind.STORE for node in nodes.values()):
        raise Rejected("the block graph stores nothing.")
    return {name: node for name, node in nodes.items() if name in needed}
