"""Names that do not matter: programs that differ in them alone are one problem, and have one result.

A decoder's second layer computes what its first one does, under other names. Two keys say so: a program's canonical
form, which is a program itself (results that are kept are kept for it), and `key_of`, which does not see the order of
operators either (parts of a kernel graph). A candidate found for one program is read under the names of another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from mugraph.ir.block import BlockGraph, Candidate, Loop, Schedule
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.windows import Window


@dataclass(frozen=True)
class Names:
    """A program's names, in an order it shares with the names they are exchanged for.

    sources: what the user's code calls the tensors, one each, "" for none
    """

    values: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def canonical(program: TensorProgram) -> tuple[TensorProgram, Renaming]:
    """The program with names by place, equal for all that differ in names alone; and the names it has been given."""
    tensors = every_tensor(program)
    old = Names(
        tuple(op.name for op in program.ops),
        tuple(dict.fromkeys(axis for tensor in tensors for axis in (*tensor.axes, *tensor.measures))),
        tuple(tensor.name for tensor in tensors),
        tuple(tensor.source for tensor in tensors),
    )
    new = Names(_numbered("v", old.values), _numbered("a", old.axes), _numbered("t", old.tensors),
                _numbered("s", old.sources))  # fmt: skip
    renaming = Renaming(old, new)
    return renaming.program(program, "program"), renaming


def every_tensor(program: TensorProgram) -> tuple[Tensor, ...]:
    """Those that the program loads, the indices of what it looks up, its outputs."""
    return (*program.tensors, *program.indices, *program.outputs.values())


def _numbered(letter: str, names: Iterable[str]) -> tuple[str, ...]:
    numbers: dict[str, str] = {}
    return tuple(name and numbers.setdefault(name, f"{letter}{len(numbers)}") for name in names)


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
        indices = tuple(described(index) for index in tensor.indices)
        dims = tuple(tuple(axes.setdefault(axis, len(axes)) for axis in dim) for dim in tensor.dims)
        # Tensors of one source are one piece of memory.
        source = sources.setdefault(tensor.source, number) if tensor.source else number
        measures = tuple(axes.setdefault(axis, len(axes)) for axis in tensor.measures)
        windows = tuple(map(_unnamed, tensor.windows))
        return number, dims, tensor.strides, tensor.dtype, source, windows, measures, indices, tensor.skew

    rows: list[Hashable] = []
    for name in order:
        op = ops[name]
        tensor = described(program.tensor(op.tensor)) if op.kind is Kind.LOAD else None
        numbers: list[Hashable] = [
            frozenset(axes.setdefault(axis, len(axes)) for axis in part) for part in (op.axes, op.over)
        ]
        numbers += [tuple(axes.setdefault(axis, len(axes)) for axis in part) for part in (op.rows, op.columns)]
        inputs = tuple(order[i] for i in op.inputs)
        rows.append((op.kind, inputs, *numbers, op.value, op.fn, op.marks, tensor))
    outputs = tuple((order[value], described(tensor)) for value, tensor in program.outputs.items())
    key = (tuple(rows), outputs, tuple(program.sizes[axis] for axis in axes))
    sources_of = {tensor.name: tensor.source for tensor in every_tensor(program)}
    return key, Names(tuple(order), tuple(axes), tuple(tensors), tuple(sources_of[name] for name in tensors))


def _unnamed(window: Window) -> Window:
    window = replace(window, by="") if window.by else window
    if window.lookup is None:
        return window
    return replace(window, lookup=replace(window.lookup, name="", source=""))


def _visit(name: str, ops: Mapping[str, Op], order: dict[str, int]) -> None:
    if name in order:
        return
    for operand in ops[name].inputs:
        _visit(operand, ops, order)
    order[name] = len(order)


class Renaming:
    """From one set of names to another. Whatever else a candidate has was named after these by the search (`k_split`,
    `xw_part`), and goes with them; no two names become one."""

    def __init__(self, old: Names, new: Names, *, made: bool = True) -> None:
        """made: rename what was named after the names as well; else other names stay as they are."""
        self.old, self.new = old, new
        self.values = dict(zip(old.values, new.values, strict=True))
        self.axes = dict(zip(old.axes, new.axes, strict=True))
        self.tensors = dict(zip(old.tensors, new.tensors, strict=True))
        self.sources = dict(zip(old.tensors, new.sources, strict=bool(old.sources)))
        # A tensor that one kernel hands to the next is named after the value in it.
        self._value = _Words(self.values, self.values if made else {})
        self._axis = _Words(self.axes, self.axes if made else {})
        self._tensor_name = _Words(self.tensors, {**self.tensors, **self.values} if made else {})
        self._blocks: dict[int, tuple[BlockGraph, BlockGraph]] = {}
        self._ops: dict[int, tuple[tuple[Op, ...], tuple[Op, ...]]] = {}

    @property
    def inverse(self) -> Renaming:
        return Renaming(self.new, self.old)

    @property
    def axis(self) -> Callable[[str], str]:
        """The new name of an axis, also of one that the search named after others."""
        return self._axis

    def program(self, program: TensorProgram, name: str) -> TensorProgram:
        """The whole program; every name of it must be known here."""
        return TensorProgram(
            name,
            {self._axis(axis): program.sizes[axis] for axis in self.axes},
            tuple(self._tensor(tensor) for tensor in program.tensors),
            tuple(self._op(op) for op in program.ops),
            {self._value(value): self._tensor(tensor) for value, tensor in program.outputs.items()},
            {self._axis(axis): size for axis, size in program.least.items()},
            {self._axis(axis): self._axis(first) for axis, first in program.sized.items()},
        )

    def candidate(self, candidate: Candidate) -> Candidate:
        """Its kernels, whose own names stay. Candidates of one block graph, or of one topology, stay so."""
        then = self.candidate(candidate.then) if candidate.then is not None else None
        return replace(candidate, block=self.block(candidate.block), schedule=self.schedule(candidate.schedule),
                       then=then)  # fmt: skip

    def block(self, block: BlockGraph) -> BlockGraph:
        """One for each block graph, with one tuple of operators for each of its own; the old ones are kept, as their
        identity is what they are known by."""
        if id(block) not in self._blocks:
            if id(block.ops) not in self._ops:
                self._ops[id(block.ops)] = block.ops, tuple(self._op(op) for op in block.ops)
            self._blocks[id(block)] = (
                block,
                BlockGraph(
                    block.name,
                    {self._axis(axis): size for axis, size in block.sizes.items()},
                    tuple(self._tensor(tensor) for tensor in block.tensors),
                    self._ops[id(block.ops)][1],
                    self._loops(block.loops),
                ),
            )
        return self._blocks[id(block)][1]

    def _op(self, op: Op) -> Op:
        return replace(
            op,
            name=self._value(op.name),
            inputs=tuple(self._value(name) for name in op.inputs),
            axes=tuple(sorted(self._axis(axis) for axis in op.axes)),
            over=tuple(sorted(self._axis(axis) for axis in op.over)),
            tensor=self._tensor_name(op.tensor) if op.tensor else "",
            rows=tuple(self._axis(axis) for axis in op.rows),
            columns=tuple(self._axis(axis) for axis in op.columns),
        )

    def _tensor(self, tensor: Tensor) -> Tensor:
        dims = tuple(tuple(self._axis(axis) for axis in dim) for dim in tensor.dims)
        source = self.sources.get(tensor.name, tensor.source)
        windows = tuple(map(self._window, tensor.windows))
        return replace(tensor, name=self._tensor_name(tensor.name), dims=dims, source=source, windows=windows)

    def _window(self, window: Window) -> Window:
        found = window.lookup
        window = replace(window, by=self._axis(window.by)) if window.by else window
        if found is None:
            return window
        source = self.sources.get(found.name, found.source)
        return replace(window, lookup=replace(found, name=self._tensor_name(found.name), source=source))

    def _loops(self, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        return tuple(Loop(self._axis(loop.axis), self._loops(loop.body)) for loop in loops)

    def schedule(self, schedule: Schedule) -> Schedule:
        return replace(
            schedule,
            grid=tuple((self._axis(axis), tile) for axis, tile in schedule.grid),
            loops={self._axis(axis): tile for axis, tile in schedule.loops.items()},
        )


class _Words:
    """Names of one kind, and those that are made of `parts`: `xw_part` becomes `qk_part`."""

    def __init__(self, known: Mapping[str, str], parts: Mapping[str, str]) -> None:
        self._known = dict(known)
        self._parts = parts
        self._taken = set(known.values())

    def __call__(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = take(numbered(self._by_parts(name)), self._taken)
        return self._known[name]

    def _by_parts(self, name: str) -> str:
        """The longest known names between underscores; others as they are."""
        words = name.split("_")
        found: list[str] = []
        at = 0
        while at < len(words):
            ends = (end for end in range(len(words), at, -1) if "_".join(words[at:end]) in self._parts)
            end = next(ends, None)
            found.append(words[at] if end is None else self._parts["_".join(words[at:end])])
            at = at + 1 if end is None else end
        return "_".join(found)
