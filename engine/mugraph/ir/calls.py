"""A recorded PyTorch call and what it works on, as plain data: what operators (`mugraph.ops`) give a meaning to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

Corner = Literal["", "first", "last"]
"""Of a matrix: where its first row and column meet, or its last ones; "" for none of both."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """0-based line; character in UTF-16 code units (LSP)."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Ref:
    """The value with this number, as an argument of a Call."""

    value: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A constant that is no Python literal, by its dotted name: `torch.float32`, `torch.contiguous_format`."""

    name: str


Argument = None | bool | int | float | str | Ref | Symbol | tuple["Argument", ...] | slice


@dataclass(frozen=True)
class Call:
    """One recorded user-level PyTorch call that can be emitted again.

    target:  "torch.matmul", "torch.nn.functional.silu", "Tensor.view", "Tensor.__getitem__", ... Tensor methods take
             self as their first argument; attribute reads are "Tensor.T.__get__".
    outputs: value numbers, in order
    range:   of the expression in the region's function body that led to it
    tf32:    PyTorch's settings let it compute its products of float32 numbers in TF32 where it was recorded
    exact:   it was seen not to, on the device: its library computes them in float32 all the same
    """

    target: str
    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]
    outputs: tuple[int, ...]
    range: Range
    tf32: bool = False
    exact: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Triangle:
    """The numbers of a constant with two values, or with one: `below` where column <= row + diagonal, else `above`.

    Rows and columns are the last two dimensions; along the others it repeats. None: minus infinity.

    corner: of one whose sizes vary, the corner from which the diagonal keeps its distance; then it may be uniform at
            some of them
    """

    diagonal: int
    below: float | None
    above: float | None
    corner: Corner = ""

    @property
    def is_uniform(self) -> bool:
        return self.below == self.above


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What was seen of a value. dtype: "f16", "bf16", "f32", "f64", "i64", "i32", "bool", ... strides in elements.

    triangle: what it holds, where it is a constant of this form: made by the region's calls from nothing, or a tensor
              that was there before (then what it holds is checked at run time). A truth value counts as 0 or 1.
    skew:     elements from the last multiple of 16 bytes to its first element, as a view has them (`x[..., 1:]`); 0 if
              kernels may read it in whole words of 16 bytes. Two calls that differ in it are the same otherwise.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    triangle: Triangle | None = None
    skew: int = field(default=0, compare=False)


def operands(call: Call) -> tuple[int, ...]:
    """Value numbers the call reads, in order, each once."""

    def walk(argument: Argument) -> list[int]:
        if isinstance(argument, Ref):
            return [argument.value]
        if isinstance(argument, tuple):
            return [value for item in argument for value in walk(item)]
        if isinstance(argument, slice):
            bounds: tuple[Argument, ...] = (argument.start, argument.stop, argument.step)
            return [value for item in bounds for value in walk(item)]
        return []

    found = [value for argument in (*call.args, *call.kwargs.values()) for value in walk(argument)]
    return tuple(dict.fromkeys(found))


STORES = "Tensor.__setitem__"
"""`x[index] = y`. Its output is `x` after it: the same tensor, under another number."""


def is_inplace(call: Call) -> bool:
    """Does the call write to its first argument?"""
    if call.target == STORES:
        return True
    name = call.target.rsplit(".", 1)[-1]
    if name.startswith("__") and name.endswith("__"):
        return name.startswith("__i") and name != "__invert__"
    return name.endswith("_") or call.kwargs.get("inplace") is True


def are_known(calls: Sequence[Call], values: Mapping[int, TensorInfo]) -> bool:
    """Whether the shapes of all that the calls read and make are known."""
    return all(value in values for call in calls for value in (*operands(call), *call.outputs))


def renumbered(argument: Argument, new: Mapping[int, int]) -> Argument:
    """The argument with other value numbers. new: value number -> the other one"""
    if isinstance(argument, Ref):
        return Ref(new[argument.value])
    if isinstance(argument, tuple):
        return tuple(renumbered(item, new) for item in argument)
    if isinstance(argument, slice):
        start, stop, step = (renumbered(cast(Argument, p), new) for p in (argument.start, argument.stop, argument.step))
        return slice(start, stop, step)
    return argument
