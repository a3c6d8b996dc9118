"""From a chosen DAG to a BlockGraph: order, loop nest, and the names a reader of the program knows."""

from __future__ import annotations

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.tensors import Tensor
from mugraph.search.topologies.edges import Dag, Edge
from mugraph.search.topologies.forest import forest
from mugraph.search.topologies.frame import Frame
from mugraph.search.topologies.saturate import Saturation
from mugraph.search.topologies.tf32 import tf32_marks


class Topologies:
    """Builds the block graphs of one saturation."""

    def __init__(self, frame: Frame, saturation: Saturation) -> None:
        self.frame, self.saturation = frame, saturation
        program = frame.program
        self._named: dict[tuple[int, bytes], Op] = {}
        for op in program.ops:
            value = frame.values[op.name]
            self._named.setdefault((value.mask, value.p.tobytes()), op)
        # The output's own name belongs to what is stored, also where an input of the program has the same value.
        (output,) = program.outputs
        self._named[saturation.goal.mask, saturation.goal.p.tobytes()] = program.op(output)
        self._taken = {op.name for op in program.ops}
        self._float32_products = any(op.f32 for op in program.ops if op.kind.contracts)
        self._marks = tf32_marks(frame)

    def build(self, dag: Dag) -> BlockGraph | None:
        """The topology, or None where no order of its loops runs it, or one of the frame's loops is of no use to it."""
        loops = self._nest(dag)
        if loops is None:
            return None
        program, leaves = self.frame.program, self.saturation.leaves
        order = _ordered(dag)
        used = {leaves[i] for edge in dag.values() for i in edge.inputs if i in leaves}
        names: dict[int, str] = {index: name for index, name in leaves.items() if name in used}
        f32 = {name: program.op(name).f32 for name in used}
        ops: list[Op] = [op for op in program.ops if op.name in used]
        taken = set(self._taken)
        values = self.saturation.values
        owners = self._owners(order)
        for index in order:
            edge, value = dag[index], values[index]
            operands = self._operands(edge)
            inputs = tuple(names[i] for i in operands)
            known = owners.get(index)
            name = known.name if known else take(numbered(self._stem(index, edge, inputs, dag, owners)), taken)
            names[index] = name
            f32[name] = known.f32 if known else self._in_float32(edge.kind, [f32[i] for i in inputs])
            axes = self.frame.axes_of(value.mask)
            tf32 = self._marks.of(index, dag, values)
            ops.append(Op(name, edge.kind, inputs, axes, edge.over, fn=edge.fn, f32=f32[name], tf32=tf32))
        (target,) = (index for index in order if index in self.saturation.targets)
        (tensor,) = program.outputs.values()
        store = take(numbered(f"store_{tensor.name}"), taken)
        ops.append(Op(store, Kind.STORE, (names[target],), self.frame.axes_of(values[target].mask), tensor=tensor.name))
        return BlockGraph(program.name, dict(program.sizes), self._tensors(ops, tensor), tuple(ops), loops)

    def _in_float32(self, kind: Kind, operands: list[bool]) -> bool:
        """The precision mark of a value the program does not have. A product takes 16-bit operands, computed ones too,
        unless the program itself multiplies matrices in float32."""
        return any(operands) and (not kind.contracts or self._float32_products)

    def _owners(self, order: list[int]) -> dict[int, Op]:
        """Which values are values of the program; of several equal ones (before and after a loop) the last."""
        owners: dict[tuple[int, bytes], tuple[int, Op]] = {}
        for index in order:
            value = self.saturation.values[index]
            key = (value.mask, value.p.tobytes())
            if key in self._named and self._named[key].name not in self.saturation.leaves.values():
                owners[key] = (index, self._named[key])
        return dict(owners.values())

    def _operands(self, edge: Edge) -> tuple[int, ...]:
        """A product's operands with the one of the output's outer axes, its rows, on the left."""
        if not edge.kind.contracts:
            return edge.inputs
        (output,) = self.frame.program.outputs.values()
        order = {axis: i for i, axis in enumerate(output.axes)}
        a, b = (set(self.frame.axes_of(self.saturation.values[i].mask)) for i in edge.inputs)
        own_a = min((order[axis] for axis in a - b if axis in order), default=len(order))
        own_b = min((order[axis] for axis in b - a if axis in order), default=len(order))
        return edge.inputs if own_a <= own_b else edge.inputs[::-1]

    def _stem(self, index: int, edge: Edge, inputs: tuple[str, ...], dag: Dag, owners: dict[int, Op]) -> str:
        """What to call a value the program has no name for."""
        for user, other in dag.items():
            if other.kind is Kind.ACCUM and other.inputs == (index,) and user in owners:
                return f"{owners[user].name}_part"
        if edge.kind.is_function:
            return f"{edge.fn}_{inputs[0]}"
        if edge.kind.juxtaposed and all(i in self._taken for i in inputs):
            return "_".join(inputs)
        return edge.kind.stem

    def _tensors(self, ops: list[Op], output: Tensor) -> tuple[Tensor, ...]:
        loaded = {op.tensor for op in ops if op.kind is Kind.LOAD}
        return (*(t for t in self.frame.program.tensors if t.name in loaded), output)

    def _nest(self, dag: Dag) -> tuple[Loop, ...] | None:
        """The tiling expression that runs the DAG: nested where an accumulator of one loop runs in each iteration of
        the other, one after the other where the second uses a result of the first (MCFuser §3: deep and flat)."""
        frame, values = self.frame, self.saturation.values
        inside: dict[str, set[str]] = {axis: set() for axis in frame.loops}
        first: dict[str, set[str]] = {axis: set() for axis in frame.loops}
        outside: dict[str, list[set[str]]] = {axis: [] for axis in frame.loops}  # per accumulator of a loop
        for edge in dag.values():
            varies = {axis for i in edge.inputs for axis in frame.loops_of(values[i].mask)}
            passed = {axis for i in edge.inputs for axis in frame.loops_of(values[i].after)}
            if edge.kind is Kind.ACCUM:
                (axis,) = edge.over
                outside[axis].append(varies - {axis})
                inside[axis] |= varies - {axis}
            for axis in varies:
                first[axis] |= passed
        if not all(outside.values()):
            return None
        # An accumulator that could leave the outer loop belongs to a loop beside it: another topology runs it there.
        if any(part != inside[axis] for axis, parts in outside.items() for part in parts):
            return None
        return forest(frame.loops, inside, first)


def _ordered(dag: Dag) -> list[int]:
    """Values with inputs before uses."""
    order: list[int] = []
    placed: set[int] = set()

    def place(index: int) -> None:
        if index in placed or index not in dag:
            return
        placed.add(index)
        for i in dag[index].inputs:
            place(i)
        order.append(index)

    place(next(iter(dag)))
    return order
