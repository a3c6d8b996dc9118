"""Sizes that come of data: how many rows a mask selects, how many tokens are routed to an expert.

Of a tensor without numbers nothing says how many there are. So each such place of the program has a size of its own,
which is taken for any from one to the most that it can be, as a size that a comment gives a range. The program is
traced at the largest, and at others to see what varies with it. What the selected rows are is not known: where the
program reads their numbers, they are taken for the first ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from mugraph.ir.ranges import SizeRange
from mugraph.trace.pytorch.targets import last_part, target_of
from mugraph.trace.run.constants import Constants
from mugraph.trace.run.torch_mode import TorchMode
from mugraph.trace.syntax.size_ranges import LARGEST

_NAME = "rows"
_NUMBER = ("item", "__int__", "__index__")
_COUNTS = "torch.bincount"
_MOST_NUMBERS = 1 << 16
"""Of what is selected, when it is made again with numbers."""
Size = Callable[[SizeRange], Any]
"""Which of its sizes is taken: a number, or a symbol."""


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
    return name in ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount")


@dataclass
class SizesOfData:
    """The sizes of one function's runs: a place keeps its name from run to run.

    here: the file whose functions are run. taken: names that are others' already. places: the sizes by where they arise, one for each length of what is
    searched there. stepped: names of those that a loop has a step for each of, which are no ranges
    """

    here: str = ""
    taken: Collection[str] = ()
    places: dict[tuple[str, int], dict[int, SizeRange]] = field(
        default_factory=dict[tuple[str, int], dict[int, SizeRange]]
    )
    stepped: set[str] = field(default_factory=set[str])

    @property
    def ranges(self) -> tuple[SizeRange, ...]:
        every = (one for found in self.places.values() for one in found.values())
        return tuple(one for one in every if one.name not in self.stepped and one.largest > 1)

    def at(self, place: tuple[str, int], called: str, most: int, met: dict[tuple[str, int], list[int]]) -> SizeRange:
        """The size of one place. most: that it can be in this run. met: the different ones of this run by place, in
        the order in which they were met: another run may have others, if the arguments have other sizes"""
        lengths, found = met.setdefault(place, []), self.places.setdefault(place, {})
        if most not in lengths:
            lengths.append(most)
        which = lengths.index(most)
        if which not in found:
            where = f"line {place[1]}" + (f" of {Path(place[0]).name}" if place[0] != self.here else "")
            words = f"as many as {called} in {where} {'counts' if called == _COUNTS else 'selects'}"
            found[which] = SizeRange(self._name(), 1, max(1, min(most, LARGEST)), words)
        return found[which]

    def _name(self) -> str:
        used = {*self.taken, *(one.name for found in self.places.values() for one in found.values())}
        return next(name for n in count(1) if (name := _NAME if n == 1 else f"{_NAME}_{n}") not in used)


class DataSizes(TorchMode):
    """Within it, calls whose results are as long as data say return as many as `size` takes of the range."""

    def __init__(self, sizes: SizesOfData, constants: Constants, size: Size) -> None:
        """constants: whose numbers are known, so that how many there are is as well"""
        super().__init__()
        self._sizes = sizes
        self._constants = constants
        self._size = size
        self._guessed = Constants(real=False)
        self._met: dict[tuple[str, int], list[int]] = {}
        self._of_mask: dict[tuple[int, int], tuple[SizeRange, torch.Tensor]] = {}
        self._counts: dict[int, tuple[SizeRange, torch.Tensor]] = {}
        self._selected: dict[int, tuple[SizeRange, torch.Tensor]] = {}

    def __enter__(self) -> DataSizes:
        self._guessed.__enter__()
        return cast("DataSizes", super().__enter__())

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._guessed.__exit__(*raised)

    def called(self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        target = target_of(function)
        name = last_part(target)
        given = args[0] if args else kwargs.get("input")
        if not isinstance(given, torch.Tensor):
            return function(*args, **kwargs)
        if id(given) in self._counts and (found := self._counted(function, name, given, args, kwargs)) is not None:
            return found
        if name == "unbind" and id(given) in self._selected:  # `for expert in selected`
            self._sizes.stepped.add(self._selected[id(given)][0].name)
        if not comes_of_data(target, args, kwargs) or given.dim() == 0:
            return function(*args, **kwargs)
        if name == "where":
            return self._nonzero(given, "torch.where").unbind(1)
        if name == "nonzero":
            found = self._nonzero(given, target)
            as_tuple = kwargs.get("as_tuple", False)
            return found.unbind(1) if as_tuple else found
        if name == "argwhere":
            return self._nonzero(given, target)
        if name == "__getitem__":
            return function(given, self._without_masks(_items(args[1])))
        if name == "masked_select":
            mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
            if isinstance(mask, torch.Tensor):
                one, other = torch.broadcast_tensors(given, mask)
                return one.reshape(-1)[: self._many(other, target)]
        if name == "bincount":
            return self._bincount(function, given, args, kwargs)
        if name in ("unique", "unique_consecutive") and not kwargs.keys() - {"sorted"} and len(args) < 3:
            return given.reshape(-1)[: self._many(given, target)].clone()
        return function(*args, **kwargs)

    def _many(self, mask: torch.Tensor, called: str) -> Any:
        """How many of a mask's elements hold, or are different."""
        return self._size(self._range(mask, called))

    def _range(self, mask: torch.Tensor, called: str) -> SizeRange:
        known = self._of_mask.get((id(mask), mask._version))
        if known is not None:
            return known[0]
        found = self._sizes.at(_place(), _word(called), _most(mask), self._met)
        self._of_mask[id(mask), mask._version] = found, mask
        return found

    def _nonzero(self, mask: torch.Tensor, called: str) -> torch.Tensor:
        """What `torch.nonzero` returns, which lies column by column."""
        numbers = self._constants.numbers_of(mask) if isinstance(mask, FakeTensor) else None
        if numbers is not None:
            with unset_fake_temporarily(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
                many: Any = int(torch.count_nonzero(numbers))
            return mask.new_empty_strided((many, mask.dim()), (1, many), dtype=torch.int64)
        size = self._range(mask, called)
        many = self._size(size)
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

    def _without_masks(self, items: Sequence[object]) -> tuple[object, ...]:
        """An index with the places at which masks hold in place of them."""
        found: list[object] = []
        for item in items:
            if isinstance(item, torch.Tensor) and _is_mask(item):
                found += self._nonzero(item, "a mask").unbind(1)
            else:
                found.append(item)
        return tuple(found)

    def _bincount(
        self,
        function: Callable[..., object],
        given: torch.Tensor,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> object:
        """Each counts the same: a fair share. Numbers beyond the least length are taken for none."""
        least = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
        if not isinstance(least, int) or least < 1 or not isinstance(given, FakeTensor):
            return function(*args, **kwargs)
        found = given.new_empty((least,), dtype=torch.int64)
        size = self._sizes.at(_place(), _COUNTS, max(1, _most(given) // least), self._met)
        self._counts[id(found)] = size, found
        return found

    def _counted(
        self, function: Callable[..., object], name: str, given: torch.Tensor, args: Any, kwargs: Any
    ) -> object | None:
        """What is made of counts: numbers, each of which the size is; None: nothing that is known."""
        size, _ = self._counts[id(given)]
        if name in _NUMBER and given.dim() == 0:
            return self._size(size)
        if name == "numpy" and given.dim() == 1:
            import numpy

            many = self._size(size)
            return numpy.array([many] * given.shape[0], dtype=None if isinstance(many, int) else object)
        if name == "cpu":
            return given
        if name in ("unbind", "__getitem__") and given.dim() == 1:  # FakeTensor.tolist asks the items of a tensor
            found = function(*args, **kwargs)
            items = found if isinstance(found, tuple) else (found,)
            for one in cast("tuple[torch.Tensor, ...]", items):
                self._counts[id(one)] = size, one
            return found
        return None


def _items(index: object) -> Sequence[object]:
    return cast("tuple[object, ...]", index) if isinstance(index, tuple) else (index,)


def _is_mask(item: object) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8) and item.dim() > 0


def _most(mask: torch.Tensor) -> int:
    """Elements that it has, at the largest size where that is a symbol."""
    total: Any = mask.numel()
    return int(total if isinstance(total, int) else total.node.hint)


def _first_places(shape: Sequence[int], many: int) -> torch.Tensor:
    """many x dimensions: the first places of a tensor."""
    return torch.stack(torch.unravel_index(torch.arange(many), tuple(shape)), 1)


def _word(target: str) -> str:
    return target.removeprefix("Tensor.").removesuffix(".__get__")


def _place() -> tuple[str, int]:
    """The file and the line of who called PyTorch."""
    for frame in _frames():
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in ("torch", "mugraph"):
            return frame.f_code.co_filename, frame.f_lineno
    return "", 0


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        yield frame
        frame = frame.f_back
