"""A program with what does not vary along a sum taken out of it, before its topologies are searched for.

Where weights are stored with a scale for each group of inputs, a program multiplies each of them by its scale, and sums
over the groups and over what is in them at once. Taken out, a scale is multiplied once for a group:

    sum over m, k of x[m, k] * (w[n, m, k] * s[n, m])  =  sum over m of s[n, m] * (sum over k of x[m, k] * w[n, m, k])

That is done where it is multiplied less often then: with many rows it is not.

A search by values comes to it late, or not before its time is over: two sums and what is under them are many values,
and no smaller graph leads there. What varies along none of a sum's axes it finds soon, so that stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from mugraph.ir.block import BlockGraph, Loop
from mugraph.ir.names import numbered, take
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.search.collected import collected, used
from mugraph.search.direct import as_block
from mugraph.search.topologies.limits import Found, Searcher, Stats

SHARE = 4
"""A search gets one part in so many of its seconds where there are such factors: what it has not found by then is
mostly these forms, and a file's other functions want the time. (Weights of four bits in groups, one row: of 18 s the
search found a form with one of two zero points taken out. With 64 rows no kernel of its own fits, and those of several
were not looked for once two functions before them had taken the file's 45 s.)"""


def factored(program: TensorProgram, every: bool = False) -> TensorProgram | None:
    """The same function with the factors of groups outside of the sums in them; None where there are none. every: and
    factors that do not vary along these sums at all"""
    rewriting = _Rewriting(program, every)
    for op in program.ops:
        rewriting.take(op)
    if not rewriting.changed:
        return None
    return replace(program, ops=used(tuple(rewriting.ops.values()), program))


class _Rewriting:
    """ops: of the new program, by name, in order. changed: has anything been taken out of a sum?"""

    def __init__(self, program: TensorProgram, every: bool) -> None:
        self._every = every
        self.ops: dict[str, Op] = {}
        self._sizes = program.sizes
        self.changed = False
        self._taken = {op.name for op in program.ops}

    def take(self, op: Op) -> None:
        """Adds an operator of the program, written anew where that is of use."""
        is_sum = op.kind.is_elementwise and op.kind.neutral == 0.0
        if self._factor_taken_out(op) if op.kind.contracts else is_sum and self._same_factor_taken_out(op):
            self.changed = True
        else:
            self.ops[op.name] = op

    def _factor_taken_out(self, op: Op) -> bool:
        """Of a product that sums over groups and what is in them: the factor of the groups, where the sums within the
        groups are no more than what it was multiplied by."""
        for product, other in (op.inputs, op.inputs[::-1]):
            multiplied = self.ops[product]
            if multiplied.kind is not op.kind.terms:
                continue
            for rest, factor in (multiplied.inputs, multiplied.inputs[::-1]):
                groups = tuple(axis for axis in op.over if axis in self.ops[factor].axes)
                within = tuple(axis for axis in op.over if axis not in groups)
                if (groups or (self._every and self.ops[factor].axes)) and within:
                    axes = {*self.ops[rest].axes, *self.ops[other].axes}
                    fewer = self._elements(axes - {*within}) <= self._elements(multiplied.axes)
                    if fewer and axes.issuperset({*within, *groups}):
                        name = take(numbered(f"{op.name}_groups"), self._taken)
                        # In the order that they have: it says which of them is the left operand.
                        inputs = (rest, other) if product == op.inputs[0] else (other, rest)
                        sums = replace(op, name=name, inputs=inputs, axes=tuple(sorted(axes - {*within})), over=within)
                        self.ops[name] = sums
                        by = op if groups else replace(op, kind=op.kind.terms, tf32="")
                        self.ops[op.name] = replace(by, inputs=(name, factor), over=groups)
                        return True
        return False

    def _elements(self, axes: Iterable[str]) -> int:
        return prod(self._sizes[axis] for axis in axes)

    def _same_factor_taken_out(self, op: Op) -> bool:
        """Of a sum of two products with a factor in common."""
        one, two = (self.ops[name] for name in op.inputs)
        if not (one.kind is two.kind and one.over == two.over and one.axes == two.axes):
            return False
        if not (one.kind.contracts or (self._every and one.kind.is_elementwise and one.kind.absorbing == 0.0)):
            return False
        common = [name for name in one.inputs if name in two.inputs]
        if not common or one.name == two.name:
            return False
        factor = common[0]
        rests = tuple(next((name for name in of.inputs if name != factor), factor) for of in (one, two))
        if len({self.ops[rest].axes for rest in rests}) > 1:
            return False
        name = take(numbered(f"{op.name}_groups"), self._taken)
        self.ops[name] = Op(name, op.kind, rests, self.ops[rests[0]].axes, f32=op.f32)
        self.ops[op.name] = replace(one, name=op.name, inputs=(name, factor), f32=op.f32)
        return True


def looped(block: BlockGraph, axis: str) -> BlockGraph | None:
    """The block graph in a loop over an axis that it reduces, each of its sums carried through the loop; None where
    something needs the axis after a sum over it."""
    taken = {op.name for op in block.ops}
    ops: list[Op] = []
    varies: dict[str, bool] = {}
    after: dict[str, bool] = {}
    for op in block.ops:
        over = axis in op.over
        if over and not (op.kind.contracts or op.kind.is_plain_sum):
            return None
        inside = axis in op.axes or any(varies[name] for name in op.inputs)
        behind = any(after[name] for name in op.inputs)
        if behind and inside:
            return None
        varies[op.name], after[op.name] = inside and not over, behind or over
        if over:
            part = take(numbered(f"{op.name}_part"), taken)
            ops += [replace(op, name=part), Op(op.name, Kind.ACCUM, (part,), op.axes, (axis,), f32=op.f32)]
        else:
            ops.append(op)
    return replace(block, ops=tuple(ops), loops=(Loop(axis),))


class FactoredSearch:
    """What a search finds, and before it the program with its factors taken out of sums, where it has such."""

    def __init__(self, blocks: Sequence[BlockGraph], search: Searcher, cancelled: Callable[[], bool]) -> None:
        """blocks: of the program, as of `blocks_of`"""
        self._search, self._cancelled = search, cancelled
        self._blocks = blocks
        self._given = 0

    @property
    def stats(self) -> Stats:
        stats = self._search.stats
        return replace(stats, topologies=stats.topologies + self._given)

    def run(self) -> Iterator[Found]:
        began = time.monotonic()
        for block in self._blocks:
            if self._cancelled():
                break
            self._given += 1
            yield Found(block, time.monotonic() - began)
        yield from self._search.run()


def blocks_of(program: TensorProgram) -> list[BlockGraph]:
    """The program with its factors taken out of sums, and then with what multiplies the same collected (collected.py),
    as it is and in a loop over each axis of those sums."""
    if len(program.outputs) > 1:
        return []
    found = [factored(program), collected(factored(program, every=True) or program)]
    return [block for one in found if one is not None for block in _as_it_is_and_looped(one)]


def _as_it_is_and_looped(program: TensorProgram) -> Iterator[BlockGraph]:
    whole = as_block(program)
    yield whole
    (value,) = program.outputs
    kept = program.op(value).axes
    for axis in dict.fromkeys(axis for op in program.ops for axis in op.over if axis not in kept):
        block = looped(whole, axis)
        if block is not None:
            yield block
