"""A search unit under construction, and the tensor program of the calls that it may be made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from mugraph.ir.names import identifier
from mugraph.ir.program import TensorProgram
from mugraph.ir.region import Region
from mugraph.trace.regions.value_names import value_names
from mugraph.units.fusion import fits
from mugraph.units.looked_up import gathers_well, looks_up
from mugraph.units.lower import Lowered, NotLowerable, lower
from mugraph.units.region_graph import RegionGraph

_LESS_ROOM = 4
"""Of each chain that prepares an input, one limit counts the last operator alone. It is smaller by this factor than the
limit that counts all operators."""

_NARROWER = 16
"""Times as many places as what is left of it, a product has at least."""
MOST_OF_LOSSES = 24
"""Operators of a unit with an exp and without a product, whose result is one number, as a loss over classes."""
MOST_WITHOUT_PRODUCTS = 32
"""Operators of a unit without a product, as a norm and a rotation after it: what is searched is where its few
reductions stand."""


@dataclass(frozen=True)
class GrowingUnit:
    """A search unit under construction. calls: positions in the region. output: of its only result."""

    calls: frozenset[int]
    output: int
    lowered: Lowered

    @property
    def last(self) -> int:
        return max(self.calls)


class UnitPrograms:
    """The tensor programs of sets of calls, each computed once.

    max_ops: operators of a unit; most: of one with an exp
    refused: sets of values that no unit may compute, nor a part of one
    names: of the values; None: as the graph's region has them
    """

    def __init__(
        self,
        graph: RegionGraph,
        max_ops: int,
        most: int,
        refused: Collection[frozenset[int]],
        names: Mapping[int, str] | None = None,
    ) -> None:
        self._graph = graph
        self.max_ops = max_ops
        self.most = most
        self._refused = refused
        self._tried: dict[tuple[frozenset[int], int], Lowered | None] = {}
        self._names = value_names(graph.region) if names is None else names

    def lower(self, calls: frozenset[int], output: int, limit: int) -> Lowered | None:
        """The program of these calls when it is within the limits of a unit."""
        key = (calls, output)
        if key not in self._tried:
            self._tried[key] = self._lowered(calls, output)
        lowered = self._tried[key]
        if lowered is None:
            return None
        program = lowered.program
        size, with_exp = len(program.compute_ops), max(limit, self.most)
        is_number = not any(tensor.axes for tensor in program.outputs.values())  # each sum of all has its own kernel
        if not any(op.kind.contracts for op in program.ops):
            limit = limit if is_number else max(limit, MOST_WITHOUT_PRODUCTS)
            with_exp = max(with_exp, MOST_OF_LOSSES)
        if size > limit and any("exp" in op.kind.primitives for op in program.ops):
            limit = with_exp
            if size > limit:  # RoPE on queries and keys; a loss of classes
                size, limit = size - prepared(program) - finishing(program), limit - _LESS_ROOM
        return lowered if size <= limit else None

    def _lowered(self, calls: frozenset[int], output: int) -> Lowered | None:
        region = self._graph.region
        if self._refused:
            made = {value for i in calls for value in region.calls[i].outputs}
            if any(made.issuperset(values) for values in self._refused):
                return None
        try:
            lowered = lower(
                [region.calls[i] for i in sorted(calls)],
                region.values,
                region.live_ins,
                [output],
                identifier_of(region),
                self._names,
                region.names.keys(),
                as_they_lie=True,
                dynamic=region.dynamic,
                copies=len(calls) == 1 and any(self._graph.turns(region.calls[i]) for i in calls),
            )
        except NotLowerable:
            return None
        program = lowered.program
        is_kernel = fits(program) and not looks_up(program) and gathers_well(program)
        return lowered if is_kernel else None


def worthwhile(unit: GrowingUnit) -> bool:
    """Has its program a reduction, a running sum or a product to gain from?"""
    return any(op.kind.reduces or op.kind.scans for op in unit.lowered.program.ops)


def prepared(program: TensorProgram) -> int:
    """Element-wise operators on nothing but inputs and constants, but for the last one of each chain: RoPE on queries
    and keys gives the search nothing to decide but where it stands."""
    users: dict[str, list[str]] = {}
    for op in program.ops:
        for name in op.inputs:
            users.setdefault(name, []).append(op.name)
    early: set[str] = set()
    for op in program.ops:
        if op.kind.is_leaf or (op.kind.is_elementwise and early.issuperset(op.inputs)):
            early.add(op.name)
    inner = [op for op in program.compute_ops if op.name in early and early.issuperset(users.get(op.name, ["-"]))]
    return len(inner)


def finishing(program: TensorProgram) -> int:
    """Element-wise operators on what is left of the products when it has been reduced, as what a cross-entropy makes of
    each row: they give the search little to decide."""
    sizes = program.sizes
    least = min((prod(sizes[a] for a in op.axes) for op in program.ops if op.kind.contracts), default=0)
    below: set[str] = set()
    found = 0
    for op in program.ops:
        if op.kind.contracts or below.intersection(op.inputs):
            below.add(op.name)
            found += op.kind.is_elementwise and _NARROWER * prod(sizes[a] for a in op.axes) <= least
    return found


def identifier_of(region: Region) -> str:
    """A program's name: the region's function, as an identifier."""
    parts = [part for part in region.function.split(".") if part.isidentifier()]
    return "_".join(part if part.isascii() else identifier(part) for part in parts) or "region"
