"""Numbers that vary, as operands of PyTorch's calls: each is a tensor without dimensions on the tape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from mugraph.ops.algebra.registry import canonical, entry_for
from mugraph.trace.run.picked import Pick, pick_of
from mugraph.trace.run.tape_writer import TapeWriter
from mugraph.trace.run.varying import Varying, varying_in

_BESIDE = (torch.float16, torch.bfloat16, torch.float32)
"""Types of tensors beside which PyTorch computes with a number as float32, as generated kernels do."""

_TINY = 1e-4
"""What is added and is no larger keeps a divisor or a root from 0, and does not vary."""


@dataclass(frozen=True)
class Taken:
    """A call's arguments, with plain numbers to make it with, and with tensors to write it down with. numbers: the
    value numbers of these, by their ids; kept: the numbers that vary; pick: of a call that makes a view by one"""

    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    written: tuple[object, ...]
    named: Mapping[str, object]
    numbers: Mapping[int, int]
    kept: Sequence[Varying]
    pick: Pick | None = None

    def made(self, out: object) -> None:
        """The call's result follows from a number that varies, so that its numbers are no constants."""
        for number in self.kept[:1]:
            number.watch.forget(out)


def taken(
    writer: TapeWriter, target: str, args: tuple[object, ...], kwargs: Mapping[str, object], tensors: Sequence[object]
) -> Taken:
    """tensors: among the arguments. A number that the call takes for another purpose is decided by."""
    if next(varying_in((args, kwargs)), None) is None:
        return Taken(args, kwargs, args, kwargs, {}, ())
    if writer.watching and (pick := pick_of(target, args)) is not None:
        plain = tuple(map(_plain, args))
        return Taken(plain, kwargs, plain, kwargs, {}, [*varying_in(args)], pick)
    allowed = _allowed(target, args, kwargs, cast("Sequence[torch.Tensor]", tensors))
    kept: list[Varying] = []
    numbers: dict[int, int] = {}

    def written(at: int | str, value: object) -> object:
        if not (isinstance(value, Varying) and at in allowed and writer.watching):
            return _plain(value)
        if allowed[at] and abs(value.plain()) <= _TINY:
            return value.plain()
        kept.append(value)
        tensor = _tensor(value)
        numbers[id(tensor)] = number = writer.values.number(tensor)
        writer.tape.varying[number] = value
        return tensor

    positional = tuple(written(at, value) for at, value in enumerate(args))
    named = {name: written(name, value) for name, value in kwargs.items()}
    for number in varying_in((args, kwargs)):
        if not any(number is one for one in kept):
            number.decide()
    plain = tuple(map(_plain, args)), {name: _plain(value) for name, value in kwargs.items()}
    return Taken(*plain, positional, named, numbers, kept)


def _allowed(
    target: str, args: Sequence[object], kwargs: Mapping[str, object], tensors: Sequence[torch.Tensor]
) -> dict[int | str, bool]:
    """Positions and names of arguments that a kernel can be given as they come, and whether they are added."""
    entry = entry_for(canonical(target))
    if entry is None or not tensors or kwargs.get("rounding_mode") is not None:
        return {}
    with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
        types = {tensor.dtype for tensor in tensors}
        rows = any(tensor.dim() for tensor in tensors)
    if not types <= {*_BESIDE} or not (rows or types == {torch.float32}):
        return {}
    names = [name.split("|")[0] for name in entry.parameters]
    added = {name: name == "other" and "alpha" in entry.numbers for name in entry.numbers}
    by_place = {at: added[name] for at, name in enumerate(names[: len(args)]) if name in added}
    return {**by_place, **{name: added[name] for name in kwargs if name in added}}


def _tensor(number: Varying) -> torch.Tensor:
    """The one that stands for a number on the tape."""
    if number.tensor is None:
        with unset_fake_temporarily(), torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            number.tensor = torch.tensor(number.plain(), dtype=torch.float32)
        number.watch.forget(number.tensor)
    return cast(torch.Tensor, number.tensor)


def _plain(value: object) -> object:
    """With plain numbers in lists, tuples, slices and tables."""
    if next(varying_in(value), None) is None:
        return value
    if isinstance(value, Varying):
        return value.plain()
    if isinstance(value, slice):
        whole = cast("slice[object, object, object]", value)
        return slice(_plain(whole.start), _plain(whole.stop), _plain(whole.step))
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in cast("Mapping[object, object]", value).items()}
    items = [_plain(item) for item in cast("Sequence[object]", value)]
    return tuple(items) if isinstance(value, tuple) else items
