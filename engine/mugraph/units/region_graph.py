"""Who computes and who uses which value of a region, and what of it may be one search unit."""

from __future__ import annotations

from math import prod

from mugraph.ir.calls import is_inplace, operands
from mugraph.ir.region import Call, Region, TensorInfo
from mugraph.ops.algebra.conversions import is_rounded
from mugraph.ops.algebra.registry import entry_for, looks_up
from mugraph.units.fusion import bytes_of


class RegionGraph:
    """Which call computes each value of the region, and which calls use it."""

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
        # A call must not move across a write to memory that others see: a unit stays between two such writes.
        self.segment = [sum(writes[:i]) for i in range(len(writes))]
        self.barrier = frozenset(i for i, write in enumerate(writes) if write)
        self._written = frozenset(root for i in self.barrier for root in self.roots(operands(self.calls[i])[0]))

    def _local(self, call: Call) -> bool:
        """Does an in-place call write only what its own region computed for it alone?"""
        first = operands(call)[:1]
        if not first or first[0] not in self.producer or first[0] in self.returned:
            return False
        source = self.calls[self.producer[first[0]]]
        entry = entry_for(source.target)
        later = self.users.get(first[0], set())
        return entry is not None and not entry.shape_only and len(later) == 1

    def is_computed(self, value: int) -> bool:
        """Does the region compute it, other than by writing into what was there before?"""
        source = self.producer.get(value)
        return source is not None and source not in self.barrier

    def repeats(self, i: int) -> bool:
        """Has a view's result the same elements several times, as of expanding or repeating?"""
        values, call = self.region.values, self.calls[i]
        read = max((prod(values[value].shape) for value in operands(call)), default=0)
        return any(prod(values[value].shape) > read for value in call.outputs)

    def is_written(self, view: Call) -> bool:
        """Is what it is a view of written to in place, before it or after it?"""
        found = self.roots(operands(view)[0])
        left = any(self.producer.get(value) in self.barrier for value in found)  # by a write, of the same memory
        return left or not found.isdisjoint(self._written)

    def lowerable(self, i: int) -> bool:
        entry = entry_for(self.calls[i].target)
        if i in self.barrier or entry is None:
            return False
        others = self.calls[i].outputs[1:]
        unused = not any(value in self.returned or self.users.get(value) for value in others)
        return not others or entry.several or (entry.first_only and unused)

    def shape_only(self, i: int) -> bool:
        entry = entry_for(self.calls[i].target)
        call = self.calls[i]
        if entry is None or not entry.shape_only:
            return False
        return not looks_up(call) and not self.turns(call) and not self.rounds(call)

    def rounds(self, call: Call) -> bool:
        """Is it a conversion to a type of eight bits, which a kernel computes?"""
        types = [self.region.values[value].dtype for value in (*operands(call)[:1], *call.outputs)]
        return len(types) == 2 and is_rounded(*types)

    def turns(self, call: Call) -> bool:
        """Does it copy images to another order in memory, which the user's code does not? Where the whole region is
        turned such a copy is made once, and a unit may end with it; where single convolutions are, it stands alone."""
        if call.target != "Tensor.contiguous" or (self.region.relaid is None and not self.stands_alone(call)):
            return False
        source, out = (self.region.values[value] for value in (operands(call)[0], call.outputs[0]))
        pairs = zip(out.shape, source.strides, out.strides, strict=True)
        return any(size != 1 and one != other for size, one, other in pairs)

    def stands_alone(self, call: Call) -> bool:
        """Is it a copy for a convolution, which is a unit by itself or none?"""
        return not self.region.turned.isdisjoint(call.outputs)

    def inputs(self, calls: frozenset[int]) -> tuple[int, ...]:
        """Values that the calls read and do not compute, in order. Values that they know by heart are not read."""
        made = {value for i in calls for value in self.calls[i].outputs if self.producer.get(value) == i}
        read = [value for i in sorted(calls) for value in operands(self.calls[i])]
        known = self.region.values
        return tuple(dict.fromkeys(v for v in read if v not in made and known[v].triangle is None))

    def private(self, value: int, calls: frozenset[int], needed: set[int]) -> bool:
        """Whether only these calls need the value, and no view of it that others see does. needed: values that other
        units read"""
        if value in self.returned or value in needed:
            return False
        users = self.users.get(value, set())
        if not users <= calls:
            return False
        return all(not self.shape_only(i) or self._private_outputs(i, calls, needed) for i in users)

    def _private_outputs(self, i: int, calls: frozenset[int], needed: set[int]) -> bool:
        """A view at the root of the unit is its output; any other has to be private itself."""
        return i == max(calls) or all(self.private(value, calls, needed) for value in self.calls[i].outputs)

    def leaves(self, i: int, calls: frozenset[int]) -> set[int]:
        """What call `i` of a unit reads from outside the unit, also through other calls of the unit."""
        found: set[int] = set()
        for value in operands(self.calls[i]):
            source = self.producer.get(value)
            found |= self.leaves(source, calls) if source is not None and source in calls else {value}
        return found

    def cone(self, output: int) -> frozenset[int]:
        """All calls the value depends on."""
        found: set[int] = set()
        todo = [output]
        while todo:
            i = self.producer.get(todo.pop())
            if i is not None and i not in found:
                found.add(i)
                todo.extend(operands(self.calls[i]))
        return frozenset(found)

    def view_chain(self, i: int, calls: frozenset[int]) -> frozenset[int]:
        """Call `i` and the calls of the unit that it depends on, if all of them are views; else nothing."""
        if i not in calls or not self.shape_only(i):
            return frozenset()
        chain = {i}
        for value in operands(self.calls[i]):
            source = self.producer.get(value)
            if source is not None and source in calls:
                above = self.view_chain(source, calls)
                if not above:
                    return frozenset()
                chain |= above
        return frozenset(chain)

    def starts_unit(self, i: int) -> bool:
        """Whether a unit may end with the call: it has one result, which is no view with strides of its own. A unit
        writes its output row by row, and a later `view` in plain PyTorch may rely on the strides."""
        call = self.calls[i]
        entry = entry_for(call.target)
        if entry is not None and entry.several:
            return False
        info = self.region.values[call.outputs[0]]
        return not self.shape_only(i) or is_contiguous(info)

    def bytes_of(self, value: int) -> int:
        """Of memory that the value takes."""
        return bytes_of(self.region.values[value])

    def roots(self, value: int) -> set[int]:
        """The value and those it is a view of."""
        found = {value}
        i = self.producer.get(value)
        while i is not None and self.shape_only(i):
            value = operands(self.calls[i])[0]
            found.add(value)
            i = self.producer.get(value)
        return found


def is_contiguous(info: TensorInfo) -> bool:
    """Row by row in memory, leaving dimensions of size 1 aside."""
    step = 1
    for size, stride in zip(reversed(info.shape), reversed(info.strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True
