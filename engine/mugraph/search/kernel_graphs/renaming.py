"""Programs that differ in names alone are one problem: their key, and a solution carried from one to the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

from mugraph.ir.block import BlockGraph, Candidate, Loop, Schedule
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor


@dataclass(frozen=True)
class Names:
    """A program's own names, in an order that programs of one key share. sources: of the tensors"""

    values: tuple[str, ...]
    axes: tuple[str, ...]
    tensors: tuple[str, ...]
    sources: tuple[str, ...]


def key_of(program: TensorProgram) -> tuple[Hashable, Names]:
    """Equal keys: one program under two sets of names, with the same sizes, types and layouts.

    Operators are numbered from the outputs backwards, operands first, so their order in the program does not count;
    that of commuting operands does.
    """
    ops = {op.name: op for op in program.ops}
    order: dict[str, int] = {}
    for output in program.outputs:
        _visit(output, ops, order)
    axes: dict[str, int] = {}
    tensors: dict[str, int] = {}
    sources: dict[str, int] = {}

    def described(tensor: Tensor) -> Hashable:
        number = tensors.setdefault(tensor.name, len(tensors))
        dims = tuple(tuple(axes.setdefault(axis, len(axes)) for axis in dim) for dim in tensor.dims)
        # Tensors of one source are one piece of memory.
        source = sources.setdefault(tensor.source, number) if tensor.source else number
        return number, dims, tensor.strides, tensor.dtype, source, tensor.windows

    rows: list[Hashable] = []
    for name in order:
        op = ops[name]
        tensor = described(program.tensor(op.tensor)) if op.kind is Kind.LOAD else None
        numbers: list[Hashable] = [
            frozenset(axes.setdefault(axis, len(axes)) for axis in part) for part in (op.axes, op.over)
        ]
        numbers += [tuple(axes.setdefault(axis, len(axes)) for axis in part) for part in (op.rows, op.columns)]
        inputs = tuple(order[i] for i in op.inputs)
        rows.append((op.kind, inputs, *numbers, op.value, op.fn, op.f32, tensor))
    outputs = tuple((order[value], described(tensor)) for value, tensor in program.outputs.items())
    key = (tuple(rows), outputs, tuple(program.sizes[axis] for axis in axes))
    return key, Names(tuple(order), tuple(axes), tuple(tensors), tuple(program.tensor(name).source for name in tensors))


def _visit(name: str, ops: Mapping[str, Op], order: dict[str, int]) -> None:
    if name in order:
        return
    for operand in ops[name].inputs:
        _visit(operand, ops, order)
    order[name] = len(order)


class Renaming:
    """Candidates with other names of values, axes and tensors. sources: of tensors, by their old names, where they
    change too"""

    def __init__(
        self,
        values: Callable[[str], str],
        axes: Callable[[str], str],
        tensors: Callable[[str], str],
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self._values, self._axes, self._tensors = values, axes, tensors
        self._sources = sources or {}
        self._blocks: dict[int, BlockGraph] = {}
        self._ops: dict[int, tuple[Op, ...]] = {}

    @staticmethod
    def between(old: Names, new: Names) -> Renaming:
        """From the names of one program to those of another with the same key."""
        return Renaming(
            _Words(dict(zip(old.values, new.values, strict=True))),
            _Words(dict(zip(old.axes, new.axes, strict=True))),
            _Words(dict(zip(old.tensors, new.tensors, strict=True))),
            dict(zip(old.tensors, new.sources, strict=True)),
        )

    def candidate(self, candidate: Candidate) -> Candidate:
        then = self.candidate(candidate.then) if candidate.then is not None else None
        return replace(candidate, block=self.block(candidate.block), schedule=self._schedule(candidate.schedule),
                       then=then)  # fmt: skip

    def block(self, block: BlockGraph) -> BlockGraph:
        """One for each block graph, with one tuple of operators for each of its own."""
        if id(block) not in self._blocks:
            if id(block.ops) not in self._ops:
                self._ops[id(block.ops)] = tuple(self._op(op) for op in block.ops)
            self._blocks[id(block)] = BlockGraph(
                block.name,
                {self._axes(axis): size for axis, size in block.sizes.items()},
                tuple(self._tensor(tensor) for tensor in block.tensors),
                self._ops[id(block.ops)],
                self._loops(block.loops),
            )
        return self._blocks[id(block)]

    def _op(self, op: Op) -> Op:
        return replace(
            op,
            name=self._values(op.name),
            inputs=tuple(self._values(name) for name in op.inputs),
            axes=tuple(sorted(self._axes(axis) for axis in op.axes)),
            over=tuple(sorted(self._axes(axis) for axis in op.over)),
            tensor=self._tensors(op.tensor) if op.tensor else "",
            rows=tuple(self._axes(axis) for axis in op.rows),
            columns=tuple(self._axes(axis) for axis in op.columns),
        )

    def _tensor(self, tensor: Tensor) -> Tensor:
        dims = tuple(tuple(self._axes(axis) for axis in dim) for dim in tensor.dims)
        return replace(
            tensor, name=self._tensors(tensor.name), dims=dims, source=self._sources.get(tensor.name, tensor.source)
        )

    def _loops(self, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        return tuple(Loop(self._axes(loop.axis), self._loops(loop.body)) for loop in loops)

    def _schedule(self, schedule: Schedule) -> Schedule:
        return replace(
            schedule,
            grid=tuple((self._axes(axis), tile) for axis, tile in schedule.grid),
            loops={self._axes(axis): tile for axis, tile in schedule.loops.items()},
        )


class _Words:
    """Names and what is made of them (`h_split` of `h`); no two become one."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = dict(known)
        self._taken = set(known.values())
        words = "|".join(re.escape(word) for word in sorted(known, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![^_])(?:{words})(?![^_])") if known else None

    def __call__(self, name: str) -> str:
        if name not in self._known:
            made = self._pattern.sub(lambda found: self._known[found[0]], name) if self._pattern else name
            fresh, number = made, 2
            while fresh in self._taken:
                fresh, number = f"{made}_{number}", number + 1
            self._taken.add(fresh)
            self._known[name] = fresh
        return self._known[name]
