"""Sizes that come of data: how many rows a mask selects, how many tokens are routed to an expert.

Of a tensor without numbers nothing says how many there are. So each such place of the program has a size of its own,
which is taken for any from one to the most that it can be, as a size that a comment gives a range. The program is
traced at the largest, and at others to see what varies with it. What the selected rows are is not known: where the
program reads their numbers, they are taken for the first ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from mugraph.ir.calls import STORES
from mugraph.ir.ranges import SizeRange
from mugraph.trace.pytorch.targets import last_part, target_of
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.counts import Counted, Counts, Size, counts_of
from mugraph.trace.run.torch_mode import TorchMode
from mugraph.trace.syntax.size_ranges import LARGEST

_NAME = "rows"
_MOST_NUMBERS = 1 << 16
"""Of what is selected, when it is made again with numbers."""
Place = tuple[str, int]
"""A file and a line of it."""


def comes_of_data(target: str, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Whether what the call returns is as long as its data say."""
    name = last_part(target)
    if name == "where":
        return len(args) + len(kwargs) == 1
    if name == "__getitem__":
        return any(map(_is_mask, _items(args[1])))
    if name == "repeat_interleave":
        repeats = kwargs.get("repeats", args[1] if len(args) > 1 else None)
        lengths = repeats if repeats is not None else args[0] if args else None
        return isinstance(lengths, torch.Tensor) and lengths.numel() > 1 and kwargs.get("output_size") is None
    if name == "one_hot":  # without a number of classes: one more than the largest
        return kwargs.get("num_classes", args[1] if len(args) > 1 else -1) == -1
    return name in ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount")


@dataclass
class SizesOfData:
    """The sizes of one function's runs: a place keeps its name from run to run.

    here:    the file whose functions are run
    taken:   names that are others' already
    places:  the sizes by where they arise, one for each length of what is searched there
    stepped: names of those that a loop has a step for each of, which are no ranges
    """

    here: str = ""
    taken: Collection[str] = ()
    places: dict[Place, dict[int, SizeRange]] = field(default_factory=dict[Place, dict[int, SizeRange]])
    stepped: set[str] = field(default_factory=set[str])

    @property
    def ranges(self) -> tuple[SizeRange, ...]:
        every = (one for found in self.places.values() for one in found.values())
        return tuple(one for one in every if one.name not in self.stepped and one.largest > 1)

    def at(self, place: Place, words: str, ends: tuple[int, int], met: dict[Place, list[int]]) -> SizeRange:
        """The size of one place.

        words: "as many as torch.where{} selects", with its place in the source in it
        ends:  the most that is traced, and the most that it can be, in this run
        met:   the different ones of this run by place, in the order in which they were met: another run may have
               others, if the arguments have other sizes
        """
        traced, most = ends
        lengths, found = met.setdefault(place, []), self.places.setdefault(place, {})
        if most not in lengths:
            lengths.append(most)
        which = lengths.index(most)
        if which not in found:
            where = f" in line {place[1]}" + (f" of {Path(place[0]).name}" if place[0] != self.here else "")
            largest = max(1, min(traced, LARGEST))
            found[which] = SizeRange(self._name(), 1, largest, words.format(where), max(largest, min(most, LARGEST)))
        return found[which]

    def _name(self) -> str:
        used = {*self.taken, *(one.name for found in self.places.values() for one in found.values())}
        return next(name for n in count(1) if (name := _NAME if n == 1 else f"{_NAME}_{n}") not in used)


class DataSizes(TorchMode):
    """Within it, calls whose results are as long as data say return as many as `size` takes of the range."""

    def __init__(self, sizes: SizesOfData, constants: Constants, size: Size) -> None:
        """constants: of which the numbers are known, so that how many there are is as well"""
        super().__init__()
        self._sizes = sizes
        self._constants = constants
        self._size = size
        self._guessed = Constants(real=False)
        self._counted = Counted(self._range_of_counts, size)
        self._met: dict[Place, list[int]] = {}
        self._of_mask: dict[tuple[int, int], tuple[SizeRange, torch.Tensor]] = {}
        self._of_counts: dict[Counts, SizeRange] = {}
        self._selected: dict[int, tuple[SizeRange, torch.Tensor]] = {}

    def __enter__(self) -> DataSizes:
        self._guessed.__enter__()
        super().__enter__()
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        leave: Callable[..., object] = cast(Any, super()).__exit__
        leave(exc_type, exc_val, exc_tb)
        cast(Any, self._guessed).__exit__(exc_type, exc_val, exc_tb)

    def called(self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        target = target_of(function)
        name = last_part(target)
        given = args[0] if args else kwargs.get("input")
        if not isinstance(given, torch.Tensor) or (given.dim() == 0 and not isinstance(given, FakeTensor)):
            return function(*args, **kwargs)
        known = self._counted.read(name, function, args, kwargs)
        if known is not None:
            return known[0]
        if name == "unbind" and id(given) in self._selected:  # `for expert in selected`
            self._sizes.stepped.add(self._selected[id(given)][0].name)
        if name == "__getitem__" and any(map(_is_number, _items(args[1]))):
            items = tuple(self._any_number(one) if _is_number(one) else one for one in _items(args[1]))
            args = (given, items if isinstance(args[1], tuple) else items[0])
        if target == STORES:
            return self._stored(function, given, *args[1:])
        if comes_of_data(target, args, kwargs) and given.dim():
            return self._of_data(target, name, function, given, args, kwargs)
        out = function(*args, **kwargs)
        if name == "sum" and isinstance(out, FakeTensor) and not given.dtype.is_floating_point:
            self._note_counts(name, given, out, target)
        return out

    def _of_data(
        self,
        target: str,
        name: str,
        function: Callable[..., object],
        given: torch.Tensor,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> object:
        if name == "where":
            return self._nonzero(given, "torch.where").unbind(1)
        if name in ("nonzero", "argwhere"):
            found = self._nonzero(given, target)
            return found.unbind(1) if kwargs.get("as_tuple", False) else found
        if name == "__getitem__":
            return function(given, self._without_masks(_items(args[1])))
        if name == "masked_select":
            mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
            if isinstance(mask, torch.Tensor) and mask.shape == given.shape:
                return given.reshape(-1)[: self._size(self._range(mask, target), 0)].clone()
        if name in ("unique", "unique_consecutive") and not kwargs.keys() - {"sorted"} and len(args) < 3:
            return given.reshape(-1)[: self._size(self._range(given, target), 0)].clone()
        if name == "bincount":
            length = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
            if isinstance(length, int) and length and isinstance(given, FakeTensor):  # greater numbers: taken for none
                found = given.new_empty((length,), dtype=torch.int64)
                self._note_counts(name, given, found, target)
                return found
        return function(*args, **kwargs)

    def _stored(self, function: Callable[..., object], given: torch.Tensor, index: object, value: object) -> object:
        """After `given[index] = value`: of a mask as many places as where it is read, as the value may come from
        there."""
        if isinstance(value, torch.Tensor) and any(map(_is_mask, _items(index))):
            index = self._without_masks(_items(index))
        return function(given, index, value)

    def _note_counts(self, name: str, given: torch.Tensor, out: torch.Tensor, target: str) -> None:
        counts = counts_of(name, given, out, _word(target))
        if counts is not None:
            self._counted.note(out, counts)

    def _range_of_counts(self, counts: Counts) -> SizeRange:
        whole = Counts(counts.length, counts.most, counts.share, counts.called)
        if whole not in self._of_counts:
            words = f"as many as {counts.called} counts, read{{}}"
            self._of_counts[whole] = self._sizes.at(_place(), words, (counts.share, counts.most), self._met)
        return self._of_counts[whole]

    def _range(self, mask: torch.Tensor, called: str) -> SizeRange:
        known = self._of_mask.get((id(mask), mask._version))
        if known is not None:
            return known[0]
        total: Any = mask.numel()
        most = int(total if isinstance(total, int) else total.node.hint)
        found = self._sizes.at(_place(), f"as many as {_word(called)}{{}} selects", (most, most), self._met)
        self._of_mask[id(mask), mask._version] = found, mask
        return found

    def _nonzero(self, mask: torch.Tensor, called: str) -> torch.Tensor:
        """What `torch.nonzero` returns, which lies column by column."""
        known = self._known(mask)
        if known is not None:
            return mask.new_empty_strided((known, mask.dim()), (1, known), dtype=torch.int64)
        size = self._range(mask, called)
        many = self._size(size, 0)
        found = mask.new_empty_strided((many, mask.dim()), (1, many), dtype=torch.int64)
        if isinstance(many, int):
            if not isinstance(mask, FakeTensor):
                found.copy_(_first_places(mask.shape, many))
            elif many <= _MOST_NUMBERS:
                with unset_fake_temporarily(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
                    places = _first_places(mask.shape, many)
                self._guessed.same(found, places)
        self._selected[id(found)] = size, found
        return found

    def _any_number(self, index: object) -> int:
        """For a whole number that is data: where it says which expert's weight is read, any has the same shape."""
        with unset_fake_temporarily(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            numbers = [one.numbers_of(cast(torch.Tensor, index)) for one in (self._constants, self._guessed)]
            return next((int(one) for one in numbers if one is not None), 0)

    def _known(self, mask: torch.Tensor) -> int | None:
        """How many elements of a constant hold."""
        if not isinstance(mask, FakeTensor):
            return None
        with unset_fake_temporarily(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            numbers = self._constants.numbers_of(mask)
            return None if numbers is None else int(torch.count_nonzero(numbers))

    def _without_masks(self, items: Sequence[object]) -> tuple[object, ...]:
        """An index with the places at which masks hold in place of them."""
        found: list[object] = []
        for item in items:
            if isinstance(item, torch.Tensor) and _is_mask(item):
                found += self._nonzero(item, "a mask").unbind(1)
            else:
                found.append(item)
        return tuple(found)


def _items(index: object) -> Sequence[object]:
    return cast("tuple[object, ...]", index) if isinstance(index, tuple) else (index,)


def _is_mask(item: object) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8) and item.dim() > 0


def _is_number(item: object) -> bool:
    """A whole number, in a tensor that has none."""
    if not isinstance(item, FakeTensor) or item.dim():
        return False
    dtype = cast(torch.Tensor, item).dtype
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def _first_places(shape: Sequence[int], many: int) -> torch.Tensor:
    """many x dimensions: the first places of a tensor."""
    return torch.stack(torch.unravel_index(torch.arange(many), tuple(shape)), 1)


def _word(target: str) -> str:
    return target.removeprefix("Tensor.").removesuffix(".__get__")


def _place() -> Place:
    """Of who called PyTorch."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in ("torch", "mugraph"):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0
