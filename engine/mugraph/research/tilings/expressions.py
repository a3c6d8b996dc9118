"""Tiling expressions (MCFuser §III-A): every way to nest and to sequence the loops over tiles of fused contractions.

An expression is a loop tree in which each axis is one loop. *Deep* expressions are single nests, x! of them for x axes;
*flat* ones have loops beside each other, `mn(k,h)`: possible where no contraction needs both sides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mugraph.ir.block import Loop
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram

Expression = tuple[Loop, ...]
"""Loops beside each other, in the order they run."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """A compute-intensive operator: the sum over `over` of the product of its inputs.

    name: of its result. axes: of the result
    """

    name: str
    inputs: tuple[str, ...]
    axes: tuple[str, ...]
    over: tuple[str, ...]

    @property
    def loops(self) -> frozenset[str]:
        """The loops related to it."""
        return frozenset((*self.axes, *self.over))


@dataclass(frozen=True)
class Contractions:
    """What is fused: contractions in dependency order.

    sizes:   axis -> elements
    tensors: name of an input -> its axes
    """

    sizes: Mapping[str, int]
    tensors: Mapping[str, tuple[str, ...]]
    ops: tuple[Contraction, ...]

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Contraction, ...]]:
        """Contraction -> those that read its result."""
        return {op.name: tuple(user for user in self.ops if op.name in user.inputs) for op in self.ops}

    @cached_property
    def reduced(self) -> Mapping[str, frozenset[str]]:
        """Contraction -> axes that it, or anything its result is made of, sums over."""
        found: dict[str, frozenset[str]] = {}
        for op in self.ops:
            found[op.name] = frozenset(op.over).union(*(found[name] for name in op.inputs if name in found))
        return found

    @property
    def outputs(self) -> tuple[Contraction, ...]:
        return tuple(op for op in self.ops if not self.consumers[op.name])

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(sorted(frozenset[str]().union(*(op.loops for op in self.ops))))

    def axes_of(self, tensor: str) -> tuple[str, ...]:
        """Of an input or a result."""
        known = {op.name: op.axes for op in self.ops}
        return known[tensor] if tensor in known else self.tensors[tensor]


def contractions(program: TensorProgram) -> Contractions:
    """The products of a program. Memory-intensive operators (element-wise, sums) are fused into the contraction that
    reads them, as the paper leaves them to standard fusion (§III-A)."""
    sources: dict[str, tuple[str, ...]] = {}  # value -> the tensors and contractions it is made of
    tensors: dict[str, tuple[str, ...]] = {}
    ops: list[Contraction] = []
    for op in program.ops:
        read = tuple(dict.fromkeys(name for value in op.inputs for name in sources[value]))
        if op.kind is Kind.LOAD:
            tensors[op.name] = op.axes
            sources[op.name] = (op.name,)
        elif op.kind is Kind.DOT:
            ops.append(Contraction(op.name, read, op.axes, op.over))
            sources[op.name] = (op.name,)
        else:
            sources[op.name] = read
    axes = {axis for op in ops for axis in op.loops}
    sizes = {axis: size for axis, size in program.sizes.items() if axis in axes}
    return Contractions(sizes, {name: tensors[name] for op in ops for name in op.inputs if name in tensors}, tuple(ops))


def expressions(chain: Contractions) -> Iterator[Expression]:
    """Every deep and every flat expression, each once; valid or not (statements.py says which are)."""
    yield from _forests(chain, tuple((op, op.loops) for op in chain.ops))


def is_deep(expression: Expression) -> bool:
    """Any two of its loops are nested."""
    return len(expression) <= 1 and all(is_deep(loop.body) for loop in expression)


def without(expression: Expression, axes: Iterable[str]) -> Expression:
    """With these loops removed; what stood in them moves up."""
    gone = frozenset(axes)
    kept: list[Loop] = []
    for loop in expression:
        body = without(loop.body, gone)
        kept += body if loop.axis in gone else (Loop(loop.axis, body),)
    return tuple(kept)


def text(expression: Expression) -> str:
    """ "mn(k,h)", as the paper writes it; axes of more than one letter have a space after them."""

    def one(loop: Loop) -> str:
        name = loop.axis if len(loop.axis) == 1 or not loop.body else f"{loop.axis} "
        body = text(loop.body)
        return f"{name}({body})" if len(loop.body) > 1 else f"{name}{body}"

    return ",".join(one(loop) for loop in expression)


_Left = tuple[tuple[Contraction, frozenset[str]], ...]
"""Contractions that stand in a scope, each with those of its loops that are not around the scope."""


def _forests(chain: Contractions, left: _Left) -> Iterator[Expression]:
    if not any(loops for _, loops in left):
        yield ()
        return
    yield from ((tree,) for tree in _trees(chain, left))
    for groups in _sequences(chain, left):
        yield from itertools.product(*(list(_trees(chain, group)) for group in groups))


def _trees(chain: Contractions, left: _Left) -> Iterator[Loop]:
    """One loop around all of them."""
    for axis in sorted(frozenset[str]().union(*(loops for _, loops in left))):
        inside = tuple((op, loops - {axis}) for op, loops in left)
        yield from (Loop(axis, body) for body in _forests(chain, inside))


def _sequences(chain: Contractions, left: _Left) -> Iterator[tuple[_Left, ...]]:
    """Two or more groups that share no loop, in an order in which results come before uses."""
    looped = [item for item in left if item[1]]
    alone = tuple((item,) for item in left if not item[1])
    for parts in _partitions(looped):
        loops = [frozenset[str]().union(*(loops for _, loops in part)) for part in parts]
        if len(parts) < 2 or sum(map(len, loops)) != len(frozenset[str]().union(*loops)):
            continue
        order = _ordered(chain, (*parts, *alone))
        if order is not None:
            yield tuple(part for part in order if part not in alone)


def _partitions(items: Sequence[tuple[Contraction, frozenset[str]]]) -> Iterator[tuple[_Left, ...]]:
    """Of a set into sets, each partition once."""
    if not items:
        yield ()
        return
    first, *rest = items
    for parts in _partitions(rest):
        yield ((first,), *parts)
        for i, part in enumerate(parts):
            yield (*parts[:i], (first, *part), *parts[i + 1 :])


def _ordered(chain: Contractions, groups: Sequence[_Left]) -> list[_Left] | None:
    """In dependency order, by the program's where there is a choice; None where groups need each other."""
    waiting = sorted(groups, key=lambda group: min(chain.ops.index(op) for op, _ in group))
    done: list[_Left] = []
    while waiting:
        made = {op.name: group for group in waiting for op, _ in group}
        ready = next(
            (g for g in waiting if all(made.get(name, g) is g for op, _ in g for name in op.inputs)),
            None,
        )
        if ready is None:
            return None
        waiting.remove(ready)
        done.append(ready)
    return done
