"""A finished prefix: is it the program, is it free of waste, does a loop nest run it? Then it is a block graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.names import underscored
from mugraph.ir.ops import Kind, Op
from mugraph.research.reference.nests import Statement, nest
from mugraph.research.reference.operators import OperatorType, Shared
from mugraph.search.topologies.frame import Frame, Value


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a block graph; inputs: indices of tensors, in the operator's own order (a / b is (a, b))."""

    type: OperatorType
    inputs: tuple[int, ...]


class Finished:
    """leaves: what the kernel reads, indices 0 and on."""

    def __init__(self, frame: Frame, leaves: Sequence[Op], goal: Value) -> None:
        self._frame, self._leaves, self._goal = frame, tuple(leaves), goal

    def block(self, nodes: Sequence[Node], tensors: Sequence[Shared]) -> BlockGraph | str:
        """The graph, or what is wrong with it: "field" (divides by zero), "redundant" (computes a value twice, in two
        ways; the same graph with one of them is smaller and found as well), "unequal" (another function), "nest"."""
        values = [self._frame.values[op.name] for op in self._leaves]
        for node, tensor in zip(nodes, tensors[len(values) :], strict=True):
            value = self._evaluate(node, tensor, tuple(values[i] for i in node.inputs))
            if value is None:
                return "field"
            values.append(value)
        if values[-1].mask != self._goal.mask or values[-1].p.tobytes() != self._goal.p.tobytes():
            return "unequal"
        if len({(value.mask, value.after, value.nf, value.p.tobytes()) for value in values}) < len(values):
            return "redundant"
        loops = nest(self._frame.loops, [self._statement(node, tensors) for node in nodes])
        return "nest" if loops is None else self._built(nodes, tensors, loops)

    def _evaluate(self, node: Node, tensor: Shared, inputs: tuple[Value, ...]) -> Value | None:
        kind = node.type
        number = self._frame.evaluate(kind.kind, kind.fn, kind.slots, inputs)
        if number is None:
            return None
        has_exp = "exp" in kind.kind.primitives or any(value.has_exp for value in inputs)
        return Value(kind.kind, kind.fn, kind.slots, inputs, tensor.mask, tensor.after, tensor.nf, number, has_exp)

    def _statement(self, node: Node, tensors: Sequence[Shared]) -> Statement:
        loops_of = self._frame.loops_of
        varies = frozenset(axis for i in node.inputs for axis in loops_of(tensors[i].mask))
        after = frozenset(axis for i in node.inputs for axis in loops_of(tensors[i].after))
        return Statement(varies, after, node.type.over[0] if node.type.kind is Kind.ACCUM else "")

    def _built(self, nodes: Sequence[Node], tensors: Sequence[Shared], loops: tuple[Loop, ...]) -> BlockGraph:
        program, frame = self._frame.program, self._frame
        names = [op.name for op in self._leaves]
        stem = next(stem for stem in underscored("step_") if not any(name.startswith(stem) for name in names))
        used = {i for node in nodes for i in node.inputs}
        ops = [op for i, op in enumerate(self._leaves) if i in used]
        for node, tensor in zip(nodes, tensors[len(names) :], strict=True):
            inputs = tuple(names[i] for i in node.inputs)
            names.append(f"{stem}{len(names)}")
            ops.append(Op(names[-1], node.type.kind, inputs, frame.axes_of(tensor.mask), node.type.over,
                          fn=node.type.fn))  # fmt: skip
        (output,) = program.outputs.values()
        ops.append(Op(f"{stem}store", Kind.STORE, (names[-1],), frame.axes_of(tensors[-1].mask), tensor=output.name))
        loaded = {op.tensor for op in ops if op.kind is Kind.LOAD}
        read = tuple(tensor for tensor in program.tensors if tensor.name in loaded)
        return BlockGraph(program.name, dict(program.sizes), (*read, output), tuple(ops), loops)
