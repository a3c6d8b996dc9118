"""The block graph as tile operators: what the schedule leaves of it, in the forms Triton has words for.

Loops of one iteration and axes of size 1 are gone, dead values too; constants are folded; `x / sqrt(y)` is
`x * rsqrt(y)`, `a + -1 * b` is `a - b`; a product without a wide axis on both sides is a multiplication and a sum.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from mugraph.codegen.tile.axes import Plan, Role
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind, Op


class TileKind(StrEnum):
    LOAD = "load"
    CONST = "const"
    MASK = "mask"  # 1 where the place along columns <= that along rows + value, else 0
    KEEP = "keep"  # inputs[0] where the mask inputs[1] is 1, else value: 0, or -inf (softmax.py)
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    EXP = "exp"  # becomes EXP2 or the graph is rejected (softmax.py); 2 ** (value * inputs[0]) where it has a value
    EXP2 = "exp2"  # 2 ** (value * inputs[0] - inputs[1]), inputs[1] a ROWMAX
    ROWMAX = "rowmax"  # running maximum of value * inputs[0] over `over`, through the iterations of `loop` if any
    MAX = "max"
    MIN = "min"  # of a graph's `-max(-a, -b)`
    UNARY = "unary"
    SUM = "sum"
    AMAX = "amax"
    DOT = "dot"
    ACCUM = "accum"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Node:
    """One tile operator.

    axes: it varies along inside a tile, scalar ones (tile 1) included
    over: SUM, AMAX, DOT, ROWMAX: wide axes reduced
    loop: ACCUM, ROWMAX: the loop it closes
    rows, columns: MASK: as in the block graph, axes of size 1 included
    """

    name: str
    kind: TileKind
    inputs: tuple[str, ...] = ()
    axes: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    loop: str = ""
    tensor: str = ""
    value: float = 0.0
    fn: str = ""
    f32: bool = False
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


Nodes = Mapping[str, Node]
"""By name, inputs before uses."""


def tile_nodes(block: BlockGraph, schedule: Schedule, plan: Plan) -> dict[str, Node]:
    """Live tile operators of `block` under `plan`; raises Rejected for a graph that is not well formed under it."""
    builder = _Builder(block, schedule, plan)
    for op in block.ops:
        builder.add(op)
    return _live(_forms(builder.nodes))


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
        kind = TileKind(op.kind.name)
        node = Node(op.name, kind, inputs, axes, tensor=op.tensor, value=op.value, fn=op.fn, f32=op.f32)
        match op.kind:
            case Kind.ACCUM:
                self._accum(op, node)
            case Kind.SUM | Kind.AMAX | Kind.DOT:
                self._reduce(op, node)
            case Kind.STORE:
                self._store(op, node)
            case Kind.LOAD:
                axes = frozenset(axis for axis in self.block.tensor(op.tensor).axes if axis in self.plan)
                self._define(op.name, replace(node, axes=axes))
            case Kind.CONST:
                self._define(op.name, replace(node, axes=frozenset()))
            case Kind.MASK:
                self._define(op.name, replace(node, rows=op.rows, columns=op.columns))
            case _:
                axes = frozenset[str]().union(*(self.nodes[name].axes for name in inputs))
                self._define(op.name, replace(node, axes=axes))

    def _define(self, name: str, node: Node) -> None:
        self.nodes[node.name] = node
        self.alias[name] = node.name
        looped = frozenset(axis for axis in node.axes if self.plan[axis].role is Role.LOOP)
        if node.kind in (TileKind.LOAD, TileKind.MASK):
            self.vary[node.name] = looped
        else:
            below = frozenset[str]().union(*(self.vary[i] for i in node.inputs))
            self.vary[node.name] = below - {node.loop} if node.kind is TileKind.ACCUM else below

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def _accum(self, op: Op, node: Node) -> None:
        (loop,) = op.over
        (value,) = node.inputs
        axis = self.plan.get(loop)
        if loop in self.vary[value]:
            self._define(op.name, replace(node, axes=self.nodes[value].axes, loop=loop))
            return
        if axis is not None and axis.dynamic and not op.fn:
            raise Rejected(f"{op.name} adds the same in each iteration over {loop}, whose number varies.")
        # Nothing varies in this loop: all iterations add the same, as many times as the schedule's tile says, or have
        # the same maximum.
        count = 1 if axis is None else math.ceil(axis.size / self.schedule.tile(loop, axis.size))
        if count == 1 or op.fn:
            self.alias[op.name] = value
            return
        factor = Node(self._fresh(f"{op.name}_count"), TileKind.CONST, value=float(count))
        self._define(factor.name, factor)
        self._define(op.name, Node(op.name, TileKind.MUL, (value, factor.name), self.nodes[value].axes))

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
        if op.kind is Kind.DOT and self._is_matrix_product(operands, wide):
            self._define(op.name, replace(node, axes=axes, over=wide))
            return
        if op.kind is Kind.DOT:
            if not wide:
                self._define(op.name, replace(node, kind=TileKind.MUL, axes=axes))
                return
            product = Node(self._fresh(f"{op.name}_terms"), TileKind.MUL, node.inputs, axes | wide)
            self._define(product.name, product)
            self._define(op.name, replace(node, kind=TileKind.SUM, inputs=(product.name,), axes=axes, over=wide))
        elif wide:
            self._define(op.name, replace(node, axes=axes, over=wide))
        else:
            self._without(op.name, node.inputs[0], axes)

    def _without(self, name: str, value: str, axes: frozenset[str]) -> None:
        """`name` is `value` itself, less scalar axes."""
        if self.nodes[value].axes == axes:
            self.alias[name] = value
        else:
            self._define(name, Node(name, TileKind.SUM, (value,), axes))

    def _is_matrix_product(self, operands: list[Node], over: frozenset[str]) -> bool:
        left, right = (frozenset(axis for axis in o.axes if self.plan[axis].wide) for o in operands)
        return bool(over) and over <= left & right and bool(left - right) and bool(right - left)

    def _store(self, op: Op, node: Node) -> None:
        tensor = self.block.tensor(op.tensor)
        (value,) = node.inputs
        axes = frozenset(axis for axis in tensor.axes if axis in self.plan)
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


def _forms(nodes: dict[str, Node]) -> dict[str, Node]:
    """Fold constants and choose Triton's forms, one operator at a time in dependency order."""
    out: dict[str, Node] = {}
    alias: dict[str, str] = {}
    for node in nodes.values():
        node = replace(node, inputs=tuple(alias[name] for name in node.inputs))
        args = [out[name] for name in node.inputs]
        formed = _form(node, args, out)
        if isinstance(formed, str):
            alias[node.name] = formed
        else:
            out[node.name] = formed
            alias[node.name] = node.name
    return out


def _form(node: Node, args: list[Node], out: dict[str, Node]) -> Node | str:
    """The node to define instead, or the name of the value it equals."""
    constants = [a.value for a in args if a.kind is TileKind.CONST]
    if args and len(constants) == len(args) and node.kind in _FOLD:
        try:
            return Node(node.name, TileKind.CONST, value=_FOLD[node.kind](*constants))
        except (ArithmeticError, ValueError) as error:
            raise Rejected(f"{node.name} is a constant expression that cannot be evaluated ({error}).") from error
    if node.kind is TileKind.MUL:
        for one, other in ((0, 1), (1, 0)):
            if args[one].kind is TileKind.CONST and args[one].value == 1.0 and args[other].axes == node.axes:
                return args[other].name
    if node.kind is TileKind.MUL and (least := _least(node, out)):
        return replace(node, kind=TileKind.MIN, inputs=least)
    if node.kind is TileKind.DIV and args[1].kind is TileKind.SQRT:
        root = Node(f"inv_{args[1].name}", TileKind.RSQRT, args[1].inputs, args[1].axes)
        out[root.name] = root  # two divisions by one root share it
        if args[0].kind is TileKind.CONST and args[0].value == 1.0:
            return root.name
        return replace(node, kind=TileKind.MUL, inputs=(args[0].name, root.name))
    if node.kind is TileKind.ADD:
        for kept, negated in ((0, 1), (1, 0)):
            minus = _negated(args[negated], out)
            if minus:
                return replace(node, kind=TileKind.SUB, inputs=(args[kept].name, minus))
    return node


def _negated(node: Node, out: dict[str, Node]) -> str:
    """The name of y when `node` is -1 * y."""
    if node.kind is TileKind.MUL:
        for one, other in ((0, 1), (1, 0)):
            constant = out[node.inputs[one]]
            if constant.kind is TileKind.CONST and constant.value == -1.0:
                return node.inputs[other]
    return ""


def _least(node: Node, out: dict[str, Node]) -> tuple[str, str] | None:
    """The operands of the minimum when `node` is -1 * max(-1 * a, -1 * b); a constant is negated as it is."""
    inner = _negated(node, out)
    if not inner or out[inner].kind is not TileKind.MAX:
        return None
    found: list[str] = []
    for name in out[inner].inputs:
        operand = out[name]
        if operand.kind is TileKind.CONST:
            negative = Node(f"neg_{name}", TileKind.CONST, value=-operand.value)
            found.append(out.setdefault(negative.name, negative).name)
        elif plain := _negated(operand, out):
            found.append(plain)
    return (found[0], found[1]) if len(found) == 2 else None


def _quotient(a: float, b: float) -> float:
    return a / b


_FOLD: Mapping[TileKind, Callable[..., float]] = {
    TileKind.ADD: operator.add,
    TileKind.MUL: operator.mul,
    TileKind.DIV: _quotient,
    TileKind.SQRT: math.sqrt,
    TileKind.EXP: math.exp,
    TileKind.MAX: max,
}


def _live(nodes: dict[str, Node]) -> dict[str, Node]:
    """Only what a store needs."""
    needed: set[str] = set()
    for node in reversed(nodes.values()):
        if node.kind is TileKind.STORE or node.name in needed:
            needed.add(node.name)
            needed.update(node.inputs)
    if not any(node.kind is TileKind.STORE for node in nodes.values()):
        raise Rejected("the block graph stores nothing.")
    return {name: node for name, node in nodes.items() if name in needed}
