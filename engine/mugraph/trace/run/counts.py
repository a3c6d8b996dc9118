"""Numbers that say how many of something there are, as of the tokens that are routed to each expert: what `bincount`
counts, and what the sums of a tensor's whole numbers along a dimension are.

Of tensors without numbers nothing says what they are. A program that takes parts of as many rows (`rows[start : start +
count]`) needs ones that fit together: the first few have a share each, and the others are 0. Each is taken for any size
up to all that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from mugraph.ir.ranges import SizeRange

_NUMBER = ("item", "__int__", "__index__")
_SAME = ("cpu", "to", "long", "int", "detach", "contiguous", "clone")
"""Methods that leave whole numbers as they are."""
_LEAST_SHARE = 8
"""A share that is smaller says little of how what is computed varies with it."""

Range = Callable[["Counts"], SizeRange]
"""The size that is read at this place of the program."""
Size = Callable[[SizeRange, int], Any]
"""Which of its sizes is taken for the number at a position: a number, or a symbol."""


@dataclass(frozen=True)
class Counts:
    """length: how many numbers. most: that one of them can be. share: that the first ones are, others: 0.
    called: what counts. running: each is the sum of those before it and its own. at: of one of them, which it is"""

    length: int
    most: int
    share: int
    called: str
    running: bool = False
    at: int | None = None

    @property
    def shared(self) -> int:
        """Numbers that have a share."""
        return min(self.length, max(1, self.most // self.share))


def counts_of(name: str, given: torch.Tensor, out: torch.Tensor, called: str) -> Counts | None:
    """Of the result of counting, or of a sum of whole numbers; None where that is no row of numbers."""
    if out.dim() != 1 or type(out.shape[0]) is not int or not out.shape[0]:
        return None
    length, total = out.shape[0], given.numel()
    most = int(total if type(total) is int else cast(Any, total).node.hint)
    if name == "sum":
        most = most // length
    return Counts(length, max(1, most), max(1, most // length, min(most, _LEAST_SHARE)), called) if most else None


class Counted:
    """What is known of counts in a run, and what follows from them."""

    def __init__(self, range_of: Range, size: Size) -> None:
        self._range_of = range_of
        self._size = size
        self._known: dict[int, tuple[Counts, torch.Tensor]] = {}

    def note(self, tensor: torch.Tensor, counts: Counts) -> None:
        self._known[id(tensor)] = counts, tensor

    def read(
        self, name: str, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[object] | None:
        """What a call gives of counts that it is given; None where it is not given any, or nothing is known of it."""
        found = self._known.get(id(args[0])) if args else None
        if found is None:
            return None
        counts, given = found
        if name in _NUMBER and counts.at is not None:
            return (self._number(counts, counts.at),)
        if name == "tolist" and counts.at is None:
            return ([self._number(counts, at) for at in range(counts.length)],)
        if name == "numpy" and counts.at is None:
            import numpy

            numbers = [self._number(counts, at) for at in range(counts.length)]
            return (numpy.array(numbers, dtype=None if all(type(one) is int for one in numbers) else object),)
        if name in ("unbind", "__getitem__", "cumsum", *_SAME):
            out = function(*args, **kwargs)
            self._follow(name, counts, given, args, out)
            return (out,)
        return None

    def _follow(self, name: str, counts: Counts, given: torch.Tensor, args: tuple[object, ...], out: object) -> None:
        if name == "unbind" and counts.at is None:  # as FakeTensor.tolist does, and `for count in counts`
            for at, one in enumerate(cast("tuple[torch.Tensor, ...]", out)):
                self.note(one, _at(counts, at))
        elif isinstance(out, torch.Tensor) and not out.dtype.is_floating_point and out is not given:
            if name in _SAME:
                self.note(out, counts)
            elif name == "cumsum" and not counts.running:
                self.note(out, Counts(counts.length, counts.most, counts.share, counts.called, running=True))
            elif name == "__getitem__" and type(args[1]) is int and counts.at is None:
                self.note(out, _at(counts, range(counts.length)[args[1]]))

    def _number(self, counts: Counts, at: int) -> Any:
        if counts.running:
            return sum(self._one(counts, before) for before in range(at + 1))
        return self._one(counts, at)

    def _one(self, counts: Counts, at: int) -> Any:
        return self._size(self._range_of(counts), at) if at < counts.shared else 0


def _at(counts: Counts, at: int) -> Counts:
    return Counts(counts.length, counts.most, counts.share, counts.called, counts.running, at)
