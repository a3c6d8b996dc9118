"""The last block of a group: blocks of one launch that count themselves when they have stored what they have, of which
the one that finds that it is the last goes on, and reads what all of them have stored.

    tl.debug_barrier()
    before = tl.atomic_add(counters + group, 1, sem="acq_rel", scope="gpu")
    if before == MEMBERS - 1:
        ...
        tl.store(counters + group, 0)

Which block is the last is another one in every run. So this is read with one block of each group as its last, and what
is asked is what makes it the same whichever that is:

- The counters are whole numbers that begin at 0, which nothing else reads or writes. A block counts itself once, adds 1
  to one of them, and that releases what it has stored and acquires what others have: between the last store of any of
  its threads and the addition there is a barrier, and after the addition it stores nothing.
- A group is the blocks that add to one counter, of all blocks of the launch. The number that is asked for is that of
  the others in the group. So exactly one block of each group goes on, after all of them have stored what they have.
- Where it goes on, it reads of what blocks of the launch have written only what those of its own group have. Each
  element has one writer, as everywhere.
- It knows there nothing of itself: of the names that stand for something by then, it may read those that stand for the
  same in all blocks of its group. So what it computes, and in which order, does not depend on which block it is.
- It sets its counter back to 0 there, as the last that is done to it: the next launch finds 0 again.
- All blocks of a group ask whether they are the last one, once, in the same statement. What the last one does there
  ends with the `if`.

PTX ISA, "Memory Consistency Model" (release and acquire patterns, causality order): an addition that another one reads
from, through whatever additions lie between them, orders what was before the one and what is after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mugraph.triton_text.ints import Ints
from mugraph.triton_text.language import APART, Condition, Value, is_host
from mugraph.triton_text.memory import Memory
from mugraph.triton_text.refusals import Diverges, Unreadable, Wrong
from mugraph.triton_text.source import Function, Named
from mugraph.triton_text.tiles import Kind, Pointers, is_known

COUNTS = "int32"
_NONE = -1
_ORDERS, _SCOPES = ("acq_rel",), ("gpu", "sys")
_Names = dict[str, dict[int, object]]


@dataclass
class Arrivals:
    """Of a launch. counter: of each block, which one it adds to; last: those that are taken to be the last of their
    groups, where groups are known; members: of each counter; asked: of each block, which statement asks whether it is
    the last one; names: name -> block -> what it stands for there"""

    counter: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    memory: Memory | None = None
    last: NDArray[np.bool_] | None = None
    members: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    asked: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    names: _Names = field(default_factory=_Names)

    @property
    def any(self) -> bool:
        return self.memory is not None

    def begin(self, blocks: int) -> None:
        self.counter, self.memory, self.last = np.full(blocks, _NONE, np.int64), None, None
        self.asked = np.full(blocks, _NONE, np.int64)

    def know(self) -> None:
        """All blocks have counted themselves. The last of a group is the one with the highest number, as where blocks
        run one after the other."""
        assert self.memory is not None
        counted = np.flatnonzero(self.counter != _NONE)
        self.members = np.bincount(self.counter[counted], minlength=self.memory.size)
        highest = np.full(self.memory.size, _NONE, np.int64)
        np.maximum.at(highest, self.counter[counted], counted)
        self.last = np.zeros(len(self.counter), np.bool_)
        self.last[highest[highest != _NONE]] = True

    def are_last(self, blocks: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.zeros(len(blocks), np.bool_) if self.last is None else self.last[blocks]

    def group(self, block: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.counter == self.counter[block])

    def with_members(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """These, and the others of the groups whose last ones are among them."""
        counters = np.unique(self.counter[blocks[self.are_last(blocks)]])
        return np.union1d(blocks, np.flatnonzero(np.isin(self.counter, counters)))

    def are_together(self, blocks: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (self.counter[blocks] != _NONE) & (self.counter[blocks] == self.counter[others])

    def is_same(self, name: str, block: int) -> bool:
        """Does the name stand for the same in all blocks of the group of this one?"""
        known = self.names.get(name, {})
        values = [known.get(int(one), APART) for one in self.group(block)]
        return all(one is not APART and one == values[0] for one in values)


class Arriving:
    """Of a run of some blocks, side by side."""

    def __init__(self, kernel: str, arrivals: Arrivals, blocks: NDArray[np.int64], *, surveys: bool) -> None:
        """surveys: it looks at addresses only"""
        self._kernel, self._of, self._blocks, self._surveys = kernel, arrivals, blocks, surveys
        self._at: NDArray[np.int64] | None = None
        self._asked = self._set_back = False
        self.is_last = False

    def is_counter(self, memory: Memory) -> bool:
        return memory.kind == COUNTS and memory.data is None

    def add(self, pointer: Pointers, value: Any, mask: Any, sem: Any, scope: Any, stored: set[Memory]) -> Arrival:
        """stored: what was written since the last barrier. Raises Wrong and Unreadable."""
        memory, name = pointer.memory, pointer.memory.name
        if memory.fill != 0 or memory.source is not None or memory.layers:
            raise Wrong("order", f"blocks are counted in {name}, which does not begin with 0")
        if (sem or _ORDERS[0]) not in _ORDERS or (scope or _SCOPES[0]) not in _SCOPES:
            raise Wrong("order", f"{self._kernel} counts its blocks with sem={sem!r} and scope={scope!r}: what a block"
                        " has stored may not be seen by the others")  # fmt: skip
        if not (is_host(value) and value == 1) or mask is not None or pointer.shape != ():
            raise Unreadable(f"a block adds something other than 1 to {name}")
        if stored:
            names = ", ".join(sorted(one.name for one in stored))
            raise Wrong("order", f"blocks of {self._kernel} count themselves while threads of them may still store to"
                        f" {names}, without a barrier between")  # fmt: skip
        if self._at is not None or (self._of.memory not in (None, memory)):
            raise Unreadable("a block counts itself twice")
        if not is_known(pointer.offsets):
            raise Unreadable(f"an address in {name} depends on floating-point numbers")
        self._at = np.broadcast_to(pointer.offsets.whole().reshape(-1), self._blocks.shape)
        if self._at.min() < 0 or self._at.max() >= memory.size:
            raise Wrong("bounds", f"a block of {self._kernel} counts itself beyond the end of {name}")
        if self._surveys:
            self._of.memory = memory
            self._of.counter[self._blocks] = self._at
        return Arrival(self)

    def check_store(self, memory: Memory) -> None:
        """Raises Wrong."""
        if self._at is not None and not self.is_last:
            raise Wrong("order", f"blocks of {self._kernel} store to {memory.name} after they have counted themselves:"
                        " the last one of a group may not see it")  # fmt: skip
        if self.is_last and self._set_back:
            raise Wrong("order", f"{self._kernel} stores to {memory.name} after a counter is set back")

    def set_back(self, pointer: Pointers, value: Any, mask: Any) -> None:
        """A store to a counter. Raises Wrong and Unreadable."""
        name = pointer.memory.name
        if not self.is_last or self._at is None or pointer.memory is not self._of.memory:
            raise Wrong("order", f"{self._kernel} stores to {name} where its blocks may still count themselves")
        if not (is_host(value) and type(value) is int and value == 0) or mask is not None or pointer.shape != ():
            raise Wrong("order", f"{self._kernel} stores something other than 0 to {name}, which the next launch finds")
        if not is_known(pointer.offsets) or (pointer.offsets.whole().reshape(-1) != self._at).any():
            raise Wrong(
                "order", f"the last block of a group sets another counter back than that of its group in {name}"
            )
        self._set_back = True

    def check_place(self, axis: int, ids: Ints, every: Ints) -> None:
        """What a block is told of its place, where it is the last of a group. every: that of all blocks. Raises
        Wrong."""
        if not self.is_last:
            return
        places = every.whole().reshape(-1)
        for block, place in zip(
            self._blocks, np.broadcast_to(ids.whole().reshape(-1), self._blocks.shape), strict=True
        ):
            if (places[self._of.group(int(block))] != place).any():
                raise Wrong("order", f"the last block of a group asks where it is along axis {axis}: that is another"
                            " block in every run")  # fmt: skip

    def check_end(self, line: int) -> None:
        """Raises Wrong."""
        known = self._of.last is not None
        if known and self._at is not None and self._of.are_last(self._blocks).any() and not self._set_back:
            name = self._of.memory.name if self._of.memory is not None else ""
            raise Wrong("order", f"the last block of a group leaves its counter in {name} as it is: the next launch"
                        " would not find 0", line)  # fmt: skip

    # --- where the last blocks go on

    def enter(self, number: int, here: dict[str, Value], place: int) -> bool:
        """Is each of the blocks the last one of its group? Raises Diverges and Wrong."""
        assert self._at is not None
        if self._asked:
            raise Unreadable("a block asks twice whether it is the last one of its group")
        self._asked = True
        if self._surveys:
            self._of.asked[self._blocks] = place
            self._remember(here)
        if self._of.last is None:  # groups are not known yet
            return False
        wrong = self._of.members[self._at] - 1 != number
        if wrong.any():
            at = int(wrong.argmax())
            raise Wrong("order", f"a block of {self._kernel} goes on when {number} have counted themselves before it:"
                        f" {int(self._of.members[self._at[at]])} blocks of its group do")  # fmt: skip
        last = self._of.are_last(self._blocks)
        if last.any() != last.all():
            raise Diverges(last.astype(np.int64))
        if not last.all():
            return False
        for block in self._blocks:
            if (self._of.asked[self._of.group(int(block))] != place).any():
                raise Wrong("order", f"not all blocks of a group ask in one statement of {self._kernel} whether they"
                            " are the last one: nothing is done when another one is")  # fmt: skip
        for name in here:
            if not all(self._of.is_same(name, int(block)) for block in self._blocks):
                here[name] = APART
        self.is_last = True
        return True

    def leave(self) -> None:
        self.is_last = False

    def _remember(self, here: Mapping[str, Value]) -> None:
        for name, value in here.items():
            known = self._of.names.setdefault(name, {})
            for block, own in zip(self._blocks.tolist(), self._known(value), strict=True):
                known[block] = own

    def _known(self, value: Value) -> list[object]:
        """What it is in each block; APART where that is not to be compared."""
        count = len(self._blocks)
        match value:
            case Ints(shape=()) if is_known(value):
                return [("number", n) for n in np.broadcast_to(value.whole().reshape(-1), (count,)).tolist()]
            case Pointers(memory, offsets) if offsets.shape == () and is_known(offsets):
                places = np.broadcast_to(offsets.whole().reshape(-1), (count,)).tolist()
                return [("pointer", id(memory), n) for n in places]
            case bool() | int() | float() | str() | None:
                return [(type(value).__name__, value)] * count
            case Kind() | Function() | Named():
                return [(type(value).__name__, id(value) if isinstance(value, Function) else value)] * count
            case _:
                return [APART] * count


@dataclass(frozen=True)
class Arrival:
    """How many of its group have counted themselves before a block."""

    of: Arriving

    def compared(self, op: str, number: Any) -> IsLast:
        if op != "==" or type(number) is not int:
            raise Unreadable("of how many blocks have counted themselves only equality with a number is read")
        return IsLast(self.of, number)


@dataclass(frozen=True)
class IsLast(Condition):
    of: Arriving
    number: int

    def enter(self, here: dict[str, Value], place: int) -> bool:
        return self.of.enter(self.number, here, place)

    def leave(self) -> None:
        self.of.leave()
