"""How the results of calls lie in memory, from how their operands do: calls are run on tensors without memory.

PyTorch's own rules say it, but for convolutions: of those the strides depend on the library that computes them. cuDNN
computes channels last where the operand or the weight lies so. Where the device's library chooses otherwise after all,
the kernel module brings a value to the strides that its kernel was made for. What is usual in such networks is known
without a run: the first one takes seconds, for what it imports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from mugraph.baseline.launch import name_of
from mugraph.ir.calls import Call, Ref, TensorInfo, is_inplace, operands
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.pytorch.biased import WINDOW_DIMS
from mugraph.units.biases import argument

_KEEPING = frozenset(
    """
    relu relu6 leaky_relu hardtanh hardswish hardsigmoid silu gelu mish elu sigmoid tanh clamp clamp_min dropout
    dropout2d batch_norm max_pool2d avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d interpolate cat add sub mul div
    truediv neg
    """.split()  # noqa: SIM905 - a word list is read more easily
)
"""Calls that leave images channels last, where all images that they are given lie so."""


class Unknown(Exception):
    """It is not known how a result lies."""


class Lying:
    """infos: of the values that are there, by number"""

    def __init__(self, infos: Mapping[int, TensorInfo]) -> None:
        self._infos = dict(infos)

    def info(self, number: int) -> TensorInfo:
        if number not in self._infos:
            raise Unknown(f"value {number} is read before it is made")
        return self._infos[number]

    def know(self, numbers: Sequence[int], infos: Sequence[TensorInfo]) -> None:
        for number, info in zip(numbers, infos, strict=True):
            self._infos[number] = info

    def after(self, call: Call, recorded: Sequence[TensorInfo] = ()) -> list[TensorInfo]:
        """What the call makes, in order. Raises Unknown. recorded: what it made where it was recorded; of a convolution
        the shape is taken from there"""
        if canonical(call.target) in WINDOW_DIMS:
            return self._convolved(call, recorded)
        read = operands(call)
        given = [self.info(number) for number in read]
        if is_inplace(call) and len(recorded) == 1 and given:
            return [replace(recorded[0], strides=given[0].strides)]
        if _keeps_last(call, given, recorded):
            return [in_last_order(info) for info in recorded]
        if _reduces_images(call, given, recorded):
            return [in_usual_order(info) for info in recorded]
        from mugraph.units.without_memory import run  # PyTorch takes seconds to import

        try:
            return run(call, {number: self.info(number) for number in read})
        except Exception as error:  # whatever PyTorch, or a call that cannot be run without memory, raises
            raise Unknown(str(error)) from error

    def _convolved(self, call: Call, recorded: Sequence[TensorInfo]) -> list[TensorInfo]:
        x, weight = argument(call, 0, "input"), argument(call, 1, "weight")
        if not isinstance(x, Ref) or not isinstance(weight, Ref) or len(recorded) != 1:
            raise Unknown("windows of something else than tensors")
        last = any(lies_last(self.info(one.value)) for one in (x, weight))
        is_image = len(recorded[0].shape) == 4
        return [in_last_order(recorded[0]) if last and is_image else in_usual_order(recorded[0])]


def _keeps_last(call: Call, given: Sequence[TensorInfo], recorded: Sequence[TensorInfo]) -> bool:
    """Does it leave images channels last, by its name and by what it is given? What is given beside images is no
    image, as of a norm, or is spread over them."""
    if name_of(call) not in _KEEPING or not recorded or any(len(info.shape) != 4 for info in recorded):
        return False
    images = [info for info in given if is_image(info)]
    others = [info for info in given if not is_image(info) and len(info.shape) == 4]
    return bool(images) and all(map(lies_last, images)) and (not others or name_of(call) != "cat")


def _reduces_images(call: Call, given: Sequence[TensorInfo], recorded: Sequence[TensorInfo]) -> bool:
    """Is each channel of an image channels last reduced to one number? They are in the usual order as well."""
    if name_of(call) not in ("mean", "sum", "amax", "amin") or len(given) != 1 or len(recorded) != 1:
        return False
    dims = argument(call, 1, "dim")
    places = isinstance(dims, tuple) and {dim % 4 for dim in dims if isinstance(dim, int)} == {2, 3} and len(dims) == 2
    return places and is_image(given[0]) and lies_last(given[0])


def is_image(info: TensorInfo) -> bool:
    """Of more than one channel and more than one place."""
    return len(info.shape) == 4 and info.shape[1] > 1 and prod(info.shape[2:]) > 1


def lies_last(info: TensorInfo) -> bool:
    """Is it an image whose channels lie next to one another, so that PyTorch takes it for channels last? What is one
    channel, or has one place, is so only by its strides, as PyTorch has it."""
    if len(info.shape) != 4 or info.strides[1] == 0:
        return False
    least = 0
    for dim in (1, 3, 2, 0):
        if info.strides[dim] < least or (dim == 0 and least == info.strides[1]):
            return False
        least = info.strides[dim] * max(1, info.shape[dim])
    return True


def same_places(one: TensorInfo, other: TensorInfo) -> bool:
    """Has each element of two tensors of one shape the same place?"""
    pairs = zip(one.shape, one.strides, other.strides, strict=True)
    return 0 in one.shape or all(size == 1 or a == b for size, a, b in pairs)


def in_usual_order(info: TensorInfo) -> TensorInfo:
    strides = tuple(prod(info.shape[dim + 1 :]) for dim in range(len(info.shape)))
    return replace(info, strides=strides)


def in_last_order(info: TensorInfo) -> TensorInfo:
    _, channels, rows, columns = info.shape
    return replace(info, strides=(channels * rows * columns, 1, columns * channels, channels))
