"""A region's calls, cut into search units and plain PyTorch (tracing.md, "two units").

A search unit (LaxPiece) has one output, at most one exp on any path, a reduction or product to be worth searching, and
about `max_ops` operators at most. It grows from its output backwards: a producer joins when nobody else needs what it
computes, when the calls together still have a tensor program, and when one kernel would not pay for the join by
computing a product again for every tile of a later one. A norm that feeds several units is computed in each of them
where that moves fewer bytes than storing it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

from mugraph.ir.ops import ELEMENTWISE, LEAVES, REDUCING, Kind
from mugraph.ir.program import TensorProgram
from mugraph.ops.builder import is_inplace, operands
from mugraph.ops.registry import entry_for
from mugraph.trace.fusion import BANDWIDTH, LAUNCH_US, fits, joins_well
from mugraph.trace.lower import Lowered, NotLowerable, lower
from mugraph.trace.part_views import PartViews
from mugraph.trace.region import Call, LaxPiece, Piece, PlainPiece, Region, Symbol, TensorInfo
from mugraph.trace.value_names import value_names

_ITEMSIZE = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "bool": 1, "i8": 1, "u8": 1}
_VIEWS = frozenset({"Tensor.view"})
_CALLS_AN_OPERATOR = 1.5
"""So many calls that compute make no fewer operators than one: some are casts, or factors of 1."""
_LESS_ROOM = 4
"""Operators fewer that a unit may have to count only the last of each chain that prepares an input."""
_MOST_TRIALS = 12
"""Other cuts that are compared with the greedy one."""


@dataclass(frozen=True)
class _Unit:
    """A search unit under construction. calls: positions in the region. output: of its only result."""

    calls: frozenset[int]
    output: int
    lowered: Lowered

    @property
    def last(self) -> int:
        return max(self.calls)


class _Graph:
    """Who computes and who uses which value of the region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.calls = region.calls
        self.returned = frozenset(live.value for live in region.live_outs)
        self.producer: dict[int, int] = {}
        self.users: dict[int, set[int]] = {}
        for i, call in enumerate(self.calls):
            for value in operands(call):
                self.users.setdefault(value, set()).add(i)
            for value in call.outputs:
                if value not in operands(call):
                    self.producer.setdefault(value, i)
        writes = [is_inplace(call) and not self._local(call) for call in self.calls]
        # A call must not move across a write to memory that others see: units stay between two of them.
        self.segment = [sum(writes[:i]) for i in range(len(writes))]
        self.barrier = frozenset(i for i, write in enumerate(writes) if write)

    def _local(self, call: Call) -> bool:
        """Does an in-place call write only what its own region computed for it alone?"""
        first = operands(call)[:1]
        if not first or first[0] not in self.producer or first[0] in self.returned:
            return False
        source = self.calls[self.producer[first[0]]]
        entry = entry_for(source.target)
        later = self.users.get(first[0], set())
        return entry is not None and not entry.shape_only and len(later) == 1

    def lowerable(self, i: int) -> bool:
        entry = entry_for(self.calls[i].target)
        if i in self.barrier or entry is None:
            return False
        others = self.calls[i].outputs[1:]
        unused = not any(value in self.returned or self.users.get(value) for value in others)
        return not others or entry.several or (entry.first_only and unused)

    def shape_only(self, i: int) -> bool:
        entry = entry_for(self.calls[i].target)
        return entry is not None and entry.shape_only

    def inputs(self, calls: frozenset[int]) -> tuple[int, ...]:
        """Values the calls read and do not compute, in order; what they know by heart they do not read."""
        made = {value for i in calls for value in self.calls[i].outputs if self.producer.get(value) == i}
        read = [value for i in sorted(calls) for value in operands(self.calls[i])]
        known = self.region.values
        return tuple(dict.fromkeys(v for v in read if v not in made and known[v].triangle is None))

    def private(self, value: int, calls: frozenset[int], needed: set[int]) -> bool:
        """Is the value needed by these calls alone, nowhere by a view of it that others see?

        needed: values that other pieces read already
        """
        if value in self.returned or value in needed:
            return False
        users = self.users.get(value, set())
        if not users <= calls:
            return False
        return all(not self.shape_only(i) or self._private_outputs(i, calls, needed) for i in users)

    def _private_outputs(self, i: int, calls: frozenset[int], needed: set[int]) -> bool:
        """A view at the root of the unit is its output; any other has to be private itself."""
        return i == max(calls) or all(self.private(value, calls, needed) for value in self.calls[i].outputs)


def pieces(
    region: Region, *, max_ops: int = 12, max_ops_with_exp: int = 20, refused: Collection[frozenset[int]] = ()
) -> tuple[Piece, ...]:
    """The region's pieces in an order in which they can run. Calls that no live-out needs are left out.

    max_ops: operators of a search unit; max_ops_with_exp: of one that holds an attention, which has no smaller parts,
    and of a region that is one unit as a whole
    refused: what is no search unit, nor part of one: the values that its calls compute
    """
    graph = _Graph(region)
    cutter = _Cutter(graph, max_ops, max_ops_with_exp, refused)
    return cutter.cut()


class _Cutter:
    def __init__(self, graph: _Graph, max_ops: int, most: int, refused: Collection[frozenset[int]]) -> None:
        self._graph = graph
        self._refused = refused
        self._max_ops = max_ops
        self._most = most
        self._tried: dict[tuple[frozenset[int], int], Lowered | None] = {}
        self._names = value_names(graph.region)

    def cut(self) -> tuple[Piece, ...]:
        """The greedy cut, improved by ending units at element-wise calls where the estimate says so.

        Growing backwards, a product takes the SwiGLU before it from the products before that; one value in memory in
        place of two is better.
        """
        whole = self._whole()
        if whole is not None:
            return self._ordered([whole], set())
        best = self._collect(frozenset())
        ends: frozenset[int] = frozenset()
        for i in self._candidates(best[0]):
            other = self._collect(ends | {i})
            # At equal cost, too: what is done once where a value is written is done for every tile where it is read.
            if self._cost(*other) <= self._cost(*best) + 1e-9:
                best, ends = other, ends | {i}
        return self._ordered(*best)

    def _candidates(self, units: Sequence[_Unit]) -> list[int]:
        """Inner calls of units that read what other units write: those that read most first, then the last ones."""
        graph = self._graph
        written = {unit.output for unit in units}
        found: list[tuple[int, int]] = []
        for unit in units:
            for i in sorted(unit.calls):
                count = len(written & self._leaves(i, unit.calls))
                rest = [n for n in unit.calls if n > i]  # nothing but views: no unit to give the call up
                if count and not graph.shape_only(i) and not all(graph.shape_only(n) for n in rest):
                    found.append((count, i))
        return [i for _, i in sorted(found, reverse=True)[:_MOST_TRIALS]]

    def _leaves(self, i: int, calls: frozenset[int]) -> set[int]:
        """What call `i` of a unit reads from outside of it, through others of the unit."""
        found: set[int] = set()
        for value in operands(self._graph.calls[i]):
            source = self._graph.producer.get(value)
            found |= self._leaves(source, calls) if source is not None and source in calls else {value}
        return found

    def _cost(self, units: Sequence[_Unit], plain: set[int]) -> float:
        """Microseconds, estimated: bytes moved and kernels launched."""
        graph = self._graph
        moved = [{*graph.inputs(unit.calls), unit.output} for unit in units]
        alone = [graph.calls[i] for i in plain if not graph.shape_only(i)]
        moved += [{*operands(call), *call.outputs} for call in alone]
        return sum(LAUNCH_US + sum(self._bytes(value) for value in values) / BANDWIDTH for values in moved)

    # --- units ---------------------------------------------------------------------------------------------------

    def _lower(self, calls: frozenset[int], output: int, limit: int) -> Lowered | None:
        """The program of these calls when it is within the limits of a unit."""
        key = (calls, output)
        if key not in self._tried:
            self._tried[key] = self._lowered(calls, output)
        lowered = self._tried[key]
        if lowered is None:
            return None
        program = lowered.program
        size, with_exp = len(program.compute_ops), max(limit, self._most)
        if size > limit and any(op.kind is Kind.EXP for op in program.ops):
            limit = with_exp
            if size > limit:  # RoPE on queries and keys
                size, limit = size - prepared(program), limit - _LESS_ROOM
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
            )
        except NotLowerable:
            return None
        return lowered if fits(lowered.program) else None

    def _whole(self) -> _Unit | None:
        """The region as one unit."""
        graph = self._graph
        returned = {live.value for live in graph.region.live_outs}
        if len(returned) != 1:
            return None
        (output,) = returned
        calls = self._cone(output)
        if not calls or graph.barrier or not all(graph.lowerable(i) for i in calls):
            return None
        if sum(not graph.shape_only(i) for i in calls) > _CALLS_AN_OPERATOR * self._most:
            return None
        lowered = self._lower(calls, output, self._most)
        if lowered is None or not worthwhile(lowered.program) or not joins_well(lowered.program, crowded=False):
            return None
        return _Unit(calls, output, lowered)

    def _cone(self, output: int) -> frozenset[int]:
        """All calls the value depends on."""
        found: set[int] = set()
        todo = [output]
        while todo:
            i = self._graph.producer.get(todo.pop())
            if i is not None and i not in found:
                found.add(i)
                todo.extend(operands(self._graph.calls[i]))
        return frozenset(found)

    def _grow(self, root: int, needed: set[int], ends: frozenset[int]) -> _Unit | None:
        """The largest unit that ends with call `root`, its nearest producers first.

        needed: values other pieces read. ends: calls that may only end a unit
        """
        graph = self._graph
        output = graph.calls[root].outputs[0]
        calls = frozenset({root})
        lowered = self._lower(calls, output, self._max_ops)
        refused: set[int] = set()
        while True:
            near = {graph.producer.get(value, -1) for value in graph.inputs(calls)} - {-1} - refused - ends
            if not near:
                break
            nearest = max(near)
            joined = self._joined(calls, nearest, output, needed - {output})
            if joined is None:
                refused.add(nearest)
                continue
            calls, lowered = joined
            refused.clear()  # a value can become private when a later user of it joins
        if lowered is None or not worthwhile(lowered.program):
            return None
        return self._trimmed(_Unit(calls, output, lowered))

    def _joined(
        self, calls: frozenset[int], i: int, output: int, needed: set[int]
    ) -> tuple[frozenset[int], Lowered | None] | None:
        """The unit with call `i`, or None. A unit of views alone has no program yet."""
        graph = self._graph
        if not graph.lowerable(i) or graph.segment[i] != graph.segment[max(calls)]:
            return None
        larger = calls | {i}
        private = all(graph.private(value, larger, needed) for value in graph.calls[i].outputs)
        if not private and not graph.shape_only(i):
            return None
        if all(graph.shape_only(n) for n in larger):
            return larger, None
        lowered = self._lower(larger, output, self._max_ops)
        if lowered is None or not joins_well(lowered.program, crowded=True):
            return None
        return larger, lowered

    def _trimmed(self, unit: _Unit) -> _Unit:
        """Without the views of other pieces' outputs that give it more axes than it needs.

        Such a view costs nothing where it is; inside, `o.transpose(1, 2).reshape(b, s, h * d) @ w` is a product over
        two axes in place of one.
        """
        graph = self._graph
        for i in sorted(unit.calls - {unit.last}, reverse=True):
            chain = self._view_chain(i, unit.calls)
            if not chain or any(value not in graph.producer for value in graph.inputs(chain)):
                continue
            users = {user for n in chain for value in graph.calls[n].outputs for user in graph.users.get(value, set())}
            fewer = unit.calls - chain
            if any(user in fewer for user in users):
                lowered = self._lower(fewer, unit.output, self._most)
                if lowered is not None and len(lowered.program.sizes) < len(unit.lowered.program.sizes):
                    unit = _Unit(fewer, unit.output, lowered)
        return unit

    def _view_chain(self, i: int, calls: frozenset[int]) -> frozenset[int]:
        """Call `i` and those of the unit it depends on, when all of them are views; else nothing."""
        if i not in calls or not self._graph.shape_only(i):
            return frozenset()
        chain = {i}
        for value in operands(self._graph.calls[i]):
            source = self._graph.producer.get(value)
            if source is not None and source in calls:
                above = self._view_chain(source, calls)
                if not above:
                    return frozenset()
                chain |= above
        return frozenset(chain)

    def _collect(self, ends: frozenset[int]) -> tuple[list[_Unit], set[int]]:
        """Units and plain calls that the live-outs need, from the last call to the first."""
        graph = self._graph
        units: list[_Unit] = []
        plain: set[int] = set()
        needed = set(graph.returned)
        for i in reversed(range(len(graph.calls))):
            call = graph.calls[i]
            if i not in graph.barrier and not needed.intersection(call.outputs):
                continue
            starts = graph.lowerable(i) and self._contiguous(i)
            unit = self._grow(i, needed, ends) if starts else None
            if unit is not None:
                units.append(unit)
                needed.update(graph.inputs(unit.calls))
            else:
                plain.add(i)
                needed.update(operands(call))
        units = self._merge_shared(units)
        return units, self._still_needed(units, plain)

    def _contiguous(self, i: int) -> bool:
        """One value, and not a view with strides of its own: a unit writes its output row by row, and a later `view` in
        plain PyTorch may rely on the strides."""
        call = self._graph.calls[i]
        entry = entry_for(call.target)
        if entry is not None and entry.several:
            return False
        info = self._graph.region.values[call.outputs[0]]
        return not self._graph.shape_only(i) or is_contiguous(info)

    # --- shared producers ----------------------------------------------------------------------------------------

    def _merge_shared(self, units: list[_Unit]) -> list[_Unit]:
        """Units without a product that feed several others, computed inside each of those where it moves less."""
        merged = sorted(units, key=lambda unit: unit.last)
        for small in [unit for unit in merged if self._can_repeat(unit)]:
            users = [unit for unit in merged if small.output in self._graph.inputs(unit.calls)]
            readers = self._graph.users.get(small.output, set())
            if len(users) < 2 or not all(any(i in unit.calls for unit in users) for i in readers):
                continue
            larger = [self._with(unit, small) for unit in users]
            if any(unit is None for unit in larger):
                continue
            own = sum(self._bytes(value) for value in self._graph.inputs(small.calls))
            apart = own + (1 + len(users)) * self._bytes(small.output)
            if len(users) * own > apart:
                continue
            replaced = dict(zip((unit.output for unit in users), larger, strict=True))
            merged = [replaced.get(unit.output) or unit for unit in merged if unit is not small]
        return merged

    def _can_repeat(self, unit: _Unit) -> bool:
        kinds = {op.kind for op in unit.lowered.program.ops}
        return not kinds & {Kind.DOT, Kind.EXP} and unit.output not in self._graph.returned

    def _with(self, unit: _Unit, small: _Unit) -> _Unit | None:
        calls = unit.calls | small.calls
        if len({self._graph.segment[i] for i in calls}) > 1:
            return None
        lowered = self._lower(calls, unit.output, self._max_ops)
        return (
            None
            if lowered is None or not joins_well(lowered.program, crowded=True)
            else _Unit(calls, unit.output, lowered)
        )

    def _bytes(self, value: int) -> int:
        info = self._graph.region.values[value]
        return prod(info.shape) * _ITEMSIZE.get(info.dtype, 4)

    # --- the order -----------------------------------------------------------------------------------------------

    def _still_needed(self, units: Sequence[_Unit], plain: set[int]) -> set[int]:
        """Plain calls whose results something reads; merging may have left some without a reader."""
        graph = self._graph
        needed = set(graph.returned).union(*(graph.inputs(unit.calls) for unit in units))
        kept: set[int] = set()
        for i in sorted(plain, reverse=True):
            if i in graph.barrier or needed.intersection(graph.calls[i].outputs):
                kept.add(i)
                needed.update(operands(graph.calls[i]))
        return kept

    def _ordered(self, units: Sequence[_Unit], plain: set[int]) -> tuple[Piece, ...]:
        """By last call: whatever a piece reads was computed by an earlier call of the region."""
        graph = self._graph
        by_last = {unit.last: unit for unit in units}
        values = graph.region.values
        restrided = {unit.output for unit in units if not is_contiguous(values[unit.output])}
        result: list[Piece] = []
        run: list[Call] = []
        views = PartViews(graph.region)
        for i, call in enumerate(graph.calls):
            if i in plain:
                run.append(self._free_of_strides(call, restrided))
            if i in by_last:
                if run:
                    result.append(PlainPiece(tuple(run)))
                    run = []
                result.append(self._piece(by_last[i], views))
        if run:
            result.append(PlainPiece(tuple(run)))
        return tuple(result)

    def _piece(self, unit: _Unit, views: PartViews) -> LaxPiece:
        calls = tuple(self._graph.calls[n] for n in sorted(unit.calls))
        lowered = unit.lowered
        parts = {name: views.of(view, calls[0]) for name, view in lowered.views.items()}
        inputs = {name: parts[name][-1] if name in parts else value for name, value in lowered.inputs.items()}
        made = tuple(dict.fromkeys(number for numbers in parts.values() for number in numbers))
        return LaxPiece(
            lowered.program,
            inputs,
            lowered.outputs,
            calls,
            lowered.origins,
            views=tuple(views.calls[number] for number in made),
            view_values={number: views.values[number] for number in made},
            viewed={view.value: self._graph.region.values[view.value] for view in lowered.views.values()},
        )

    def _free_of_strides(self, call: Call, restrided: set[int]) -> Call:
        """A `view` of what a unit writes with other strides than were recorded: let PyTorch copy if it must.

        Only where nothing is written in place, for there a copy would not be the same memory.
        """
        if self._graph.barrier or call.target not in _VIEWS or any(isinstance(a, Symbol) for a in call.args):
            return call
        return replace(call, target="Tensor.reshape") if self._roots(operands(call)[0]) & restrided else call

    def _roots(self, value: int) -> set[int]:
        """The value and those it is a view of."""
        found = {value}
        i = self._graph.producer.get(value)
        while i is not None and self._graph.shape_only(i):
            value = operands(self._graph.calls[i])[0]
            found.add(value)
            i = self._graph.producer.get(value)
        return found


def is_contiguous(info: TensorInfo) -> bool:
    """Row by row in memory, leaving dimensions of size 1 aside."""
    step = 1
    for size, stride in zip(reversed(info.shape), reversed(info.strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def worthwhile(program: TensorProgram) -> bool:
    """Has the program a reduction or a product to gain from?"""
    return any(op.kind in REDUCING for op in program.ops)


def is_divisible(unit: LaxPiece) -> bool:
    """Are there two products in the unit, that would have kernels of their own in smaller ones?"""
    return sum(op.kind is Kind.DOT for op in unit.program.ops) > 1


def prepared(program: TensorProgram) -> int:
    """Element-wise operators on nothing but inputs and constants, but for the last one of each chain: RoPE on queries
    and keys gives the search nothing to decide but where it stands."""
    users: dict[str, list[str]] = {}
    for op in program.ops:
        for name in op.inputs:
            users.setdefault(name, []).append(op.name)
    early: set[str] = set()
    for op in program.ops:
        if op.kind in LEAVES or (op.kind in ELEMENTWISE and early.issuperset(op.inputs)):
            early.add(op.name)
    inner = [op for op in program.compute_ops if op.name in early and early.issuperset(users.get(op.name, ["-"]))]
    return len(inner)


def identifier_of(region: Region) -> str:
    """A program's name: the region's function, as an identifier."""
    return "_".join(part for part in region.function.split(".") if part.isidentifier()) or "region"
