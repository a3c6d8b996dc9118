"""Numbers for the values that a search unit's recorded calls read: of both signs, with zeros, ones and equal numbers
among them, rows that are small, and truth values that hold nowhere and everywhere in a row. Each value has its own
shape and strides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, prod
from typing import Literal

import torch
from torch import Tensor

from mugraph.ir.calls import Symbol, TensorInfo, Triangle, operands
from mugraph.ir.dtypes import ELEMENTS, INTEGERS, STORED, is_read
from mugraph.ir.region import SearchUnit
from mugraph.verification.compared import Meant, meant
from mugraph.verification.lowering.calls import Wide
from mugraph.verification.rows import reduced
from mugraph.verification.stored import held

Numbers = Literal["mixed", "normal", "positive", "small"]
"""mixed: normal numbers with zeros, whole ones, those that the calls name, and a small row among them. positive: of one
sign, as roots want them. small: so that no exponential of them leaves its range"""
_SOME = 8
"""One of so many numbers is one of `_special`."""
_FEW_NUMBERS = 64
"""Of so few, every second one is."""
_WHOLE = (0.0, 0.0, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0)
_NEAR = 2.0**-11
_NAMED = 8.0
"""The largest number of a call that is drawn as well."""
_SMALL = 2.0**-10
"""Of a row whose squares are no larger than what norms add to them."""
_FEW = 4
"""Whole numbers from zero, where nothing says which are meant."""
_LEAST = 2.0**-6
"""Of positive numbers."""
_REDUCED = 2.0**-5
_PERIOD = 1_048_583
"""Numbers that are drawn at most, a prime: more of them repeat these, and no two rows of a matrix are equal."""


class NotDrawn(Exception):
    """Nothing is known of a value that the calls read; the message says of which."""


def read_values(unit: SearchUnit) -> dict[int, TensorInfo]:
    """What has to be there before the unit's calls and views run. Raises NotDrawn."""
    calls = (*unit.views, *unit.calls)
    made = {value for call in calls for value in call.outputs}
    read = [*(value for call in calls for value in operands(call)), *unit.inputs.values()]
    known = {**unit.viewed, **unit.values}
    found: dict[int, TensorInfo] = {}
    for value in read:
        if value in made:
            continue
        if value not in known:
            raise NotDrawn(f"nothing is known of the value {value} that they read")
        found[value] = known[value]
    return found


def draw(unit: SearchUnit, numbers: Numbers, wide: Wide, generator: torch.Generator) -> dict[int, Tensor]:
    """By value number. Floating-point types are the wide one, but for those of eight bits."""
    program = unit.program
    scales: dict[int, float] = {}
    classes: dict[int, Meant] = {}
    packed = {value for call in unit.views if Symbol("torch.uint8") in call.args for value in operands(call)}
    said = meant(program)
    some = torch.tensor(tuple(_special(unit)), dtype=torch.float64)
    for tensor in program.tensors:
        value = unit.inputs[tensor.name]
        shape = tensor.shape(program.sizes)
        # Sums of products are then about as large as what they are made of.
        scale = prod(shape[dim] for dim in reduced(program, tensor)) ** -0.25
        scales[value] = min(scale, scales.get(value, 1.0))
    for name, numbers_meant in said.items():
        classes[unit.inputs[name]] = numbers_meant
    for call in reversed(unit.views):  # what a part holds that is read, all of its tensor may hold
        for value in operands(call):
            known = [classes[output] for output in call.outputs if output in classes]
            if known:
                classes.setdefault(value, known[0])
    return {
        value: _of_triangle(info, info.triangle, getattr(torch, wide))
        if info.triangle is not None
        else _bits(info, generator)
        if value in packed
        else _drawn(info, numbers, getattr(torch, wide), scales.get(value, 1.0), some, classes.get(value), generator)
        for value, info in read_values(unit).items()
    }


def _bits(info: TensorInfo, random: torch.Generator) -> Tensor:
    """Integers of which bits are taken: any."""
    reach = 1 + sum((size - 1) * abs(stride) for size, stride in zip(info.shape, info.strides, strict=True))
    dtype: torch.dtype = getattr(torch, ELEMENTS[info.dtype].torch)
    ends = torch.iinfo(dtype)
    memory = torch.randint(ends.min, ends.max, (min(reach, _PERIOD),), dtype=dtype, generator=random)
    return _repeated(memory, reach).as_strided(info.shape, info.strides)


def _special(unit: SearchUnit) -> Iterator[float]:
    """Numbers at which something may change."""
    yield from _WHOLE
    for call in unit.calls:
        for argument in (*call.args, *call.kwargs.values()):
            if isinstance(argument, float | int) and 0.0 < abs(argument) <= _NAMED:
                yield from (argument, argument * (1.0 + _NEAR), argument * (1.0 - _NEAR))


def _drawn(
    info: TensorInfo,
    numbers: Numbers,
    wide: torch.dtype,
    scale: float,
    some: Tensor,
    classes: Meant | None,
    random: torch.Generator,
) -> Tensor:
    """some: numbers that are drawn as well, where they are mixed"""
    reach = 1 + sum((size - 1) * abs(stride) for size, stride in zip(info.shape, info.strides, strict=True))
    if info.dtype in ("c64", "c128"):
        real, imaginary = (_numbers(reach, numbers, scale, some, wide, random) for _ in range(2))
        return torch.complex(real, imaginary).as_strided(info.shape, info.strides)
    if info.dtype == "bool" or info.dtype in INTEGERS:
        normal = _repeated(_normal(min(reach, _PERIOD), random), reach)
        if info.dtype == "bool":
            memory = normal > 0.0
        elif is_read(info.dtype) and (classes is not None or ELEMENTS[info.dtype].bytes == 1):
            memory = held(normal, info.dtype, classes)
        else:
            memory = torch.randint(0, _FEW, (reach,), generator=random)
        if numbers == "positive" and info.dtype != "bool":  # a class that is ignored may be below
            memory = memory.clamp_min(0)
        view = memory.to(getattr(torch, ELEMENTS[info.dtype].torch)).as_strided(info.shape, info.strides)
        if numbers == "mixed" and info.dtype == "bool" and view.dim() > 1 and view.shape[0] > 2 and info.strides[0]:
            view[0], view[-1] = False, True
        return view
    view = _numbers(reach, numbers, scale, some, wide, random).as_strided(info.shape, info.strides)
    if numbers == "mixed" and view.dim() > 1 and view.shape[0] > 2 and info.strides[0]:
        view[-1] *= _SMALL
    if info.dtype in STORED:  # of eight bits: the calls convert it, or take nothing else
        kind: torch.dtype = getattr(torch, ELEMENTS[info.dtype].torch)
        made = torch.empty_strided(info.shape, info.strides, dtype=kind)
        return view.to(kind) if 0 in info.strides else made.copy_(view)
    return view


def _numbers(
    count: int, numbers: Numbers, scale: float, some: Tensor, wide: torch.dtype, random: torch.Generator
) -> Tensor:
    drawn = _normal(min(count, _PERIOD), random)
    if numbers == "positive":
        drawn = drawn.abs_().clamp_min_(_LEAST)
    drawn *= scale if numbers != "small" else scale * _REDUCED
    if numbers == "mixed":
        count_of = len(drawn) // (_SOME if len(drawn) > _FEW_NUMBERS else 2)
        places = torch.randint(0, len(drawn), (max(1, count_of),), generator=random)
        drawn[places] = some[torch.randint(0, len(some), places.shape, generator=random)]
    return _repeated(drawn.to(wide), count)


def _normal(count: int, random: torch.Generator) -> Tensor:
    """In float64, at the price of float32."""
    return torch.randn(count, generator=random).to(torch.float64)


def _repeated(drawn: Tensor, count: int) -> Tensor:
    if len(drawn) == count:
        return drawn
    return drawn.expand(-(-count // len(drawn)), -1).reshape(-1)[:count]


def _of_triangle(info: TensorInfo, triangle: Triangle, wide: torch.dtype) -> Tensor:
    """The constant that the value is known to be."""
    below, above = (-inf if number is None else number for number in (triangle.below, triangle.above))
    rows, columns = (1, 1, *info.shape)[-2:]
    places = torch.arange(columns) <= torch.arange(rows)[:, None] + triangle.diagonal
    data = torch.where(places, below, above).expand(*info.shape[:-2], rows, columns).reshape(info.shape)
    stored = ELEMENTS.get(info.dtype)
    whole = stored is not None and (info.dtype == "bool" or info.dtype in INTEGERS)
    kind = getattr(torch, stored.torch) if whole and stored is not None else wide
    found = torch.empty_strided(info.shape, info.strides, dtype=kind)
    return found.copy_(data) if 0 not in info.strides else data.to(kind)


def program_inputs(unit: SearchUnit, values: Mapping[int, Tensor]) -> dict[str, Tensor]:
    """The program's tensors, of the values with the unit's views among them."""
    return {name: values[value] for name, value in unit.inputs.items()}
