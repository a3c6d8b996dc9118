"""Programs that differ in sizes and names alone have the same topologies: they are searched for once.

A search looks at axes, kinds of operators, constants and taps, and at which axes are too short to be looped over.
Sizes and strides come in with the schedules. So a model that has one layer at several sizes, as image networks do, is
searched for that layer once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.transforms.renaming import Names, Renaming, every_tensor
from mugraph.ir.transforms.unnamed import Unnamed
from mugraph.search.topologies.limits import Found, Limits, Searcher, Stats
from mugraph.search.uncut import uncut


@dataclass(frozen=True)
class _Known:
    """What a search that was not cut short has found. program: that was searched"""

    program: TensorProgram
    found: tuple[Found, ...]
    stats: Stats


class Alike:
    """The searches of a run so far. searched, recalled: how many were made, and spared"""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}
        self.searched = self.recalled = 0

    def known(self, program: TensorProgram, limits: Limits) -> Searcher | None:
        """What the search of one like it has found, as a search of the program."""
        known = self._known.get(_key(program, limits))
        if known is None:
            return None
        self.recalled += 1
        return _Recalled(program, known)

    def keeping(self, program: TensorProgram, limits: Limits, search: Searcher) -> Searcher:
        """The search of the program, whose results are kept for those like it."""
        key = _key(program, limits)
        if key is None:
            return search
        self.searched += 1
        return _Remembered(program, search, key, self._known)


class _Remembered:
    """A search whose results are kept if it comes to its end."""

    def __init__(self, program: TensorProgram, search: Searcher, key: Hashable, known: dict[Hashable, _Known]) -> None:
        self._program, self._search, self._key, self._known = program, search, key, known

    @property
    def stats(self) -> Stats:
        return self._search.stats

    def run(self) -> Iterator[Found]:
        found: list[Found] = []
        for one in self._search.run():
            found.append(one)
            yield one
        stats = self._search.stats
        if stats.ended_by not in ("cancelled", "time"):
            self._known[self._key] = _Known(self._program, tuple(found), stats)


class _Recalled:
    """The topologies of another program, as those of this one."""

    def __init__(self, program: TensorProgram, known: _Known) -> None:
        self._program, self._known = program, known

    @property
    def stats(self) -> Stats:
        return replace(self._known.stats, seconds=0.0)

    def run(self) -> Iterator[Found]:
        program = self._program
        renaming = Renaming(_names(self._known.program), _names(program))
        tensors = {tensor.name: tensor for tensor in (*program.tensors, *program.outputs.values())}
        for found in self._known.found:
            yield Found(_resized(renaming.block(found.block), program, tensors), 0.0)


def _resized(block: BlockGraph, program: TensorProgram, tensors: dict[str, Tensor]) -> BlockGraph:
    own = tuple(tensors[tensor.name] for tensor in block.tensors)
    return replace(block, name=program.name, sizes=dict(program.sizes), tensors=own)


def _key(program: TensorProgram, limits: Limits) -> Hashable | None:
    """None where sizes matter: the diagonal of a mask is counted in elements."""
    if any(op.kind is Kind.MASK for op in program.ops):
        return None
    unnamed = Unnamed()
    ops = unnamed.ops(program.ops)
    tensors = unnamed.tensors([(tensor, (tensor.taps, _looked_up(tensor))) for tensor in program.tensors])
    tensors = tensors, unnamed.tensors([(index, None) for tensor in program.tensors for index in tensor.indices])
    outputs = tuple(
        [(unnamed.value(value), unnamed.tensors([(tensor, None)])) for value, tensor in program.outputs.items()]
    )
    short = uncut(program, limits)
    return ops, tensors, outputs, tuple((axis, axis in short) for axis in program.sizes), limits


def _looked_up(tensor: Tensor) -> Hashable:
    """Dimensions with an index: how many rows they have, a schedule's cost does not ask."""
    return tuple(tensor.looked_up)


def _names(program: TensorProgram) -> Names:
    every = every_tensor(program)
    return Names(
        tuple(op.name for op in program.ops),
        tuple(program.sizes),
        tuple(tensor.name for tensor in every),
        tuple(tensor.source for tensor in every),
    )
