"""Tensors of the program as a kernel's launcher reads them."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.codegen.dynamic import read_by_shape
from mugraph.ir.kernel import KernelSource, Rejected
from mugraph.ir.region import TensorInfo
from mugraph.ir.tensors import Tensor


def same_strides(shape: Sequence[int], first: Sequence[int], second: Sequence[int]) -> bool:
    return all(size == 1 or a == b for size, a, b in zip(shape, first, second, strict=True))


def as_seen(text: str, tensor: Tensor, kernel: KernelSource, info: TensorInfo) -> str:
    """The text of an input whose memory the kernel's `tensor` addresses: with its dimensions joined as the kernel has
    them, where the launcher reads a size off one that comes after them.

    Strides are compared only where the dimensions are. A kernel that sees others (an axis that a view inside the unit
    splits) has strides that fit by the construction of its program. Raises Rejected where it cannot be read so.
    """
    shape = tensor.memory_shape(kernel.sizes)
    if shape == info.shape:
        if not same_strides(shape, tensor.strides, info.strides):
            raise Rejected(f"{kernel.name} reads {tensor.name} by other strides than the program's")
        return text
    if (last := read_by_shape(kernel.inputs, kernel.least).get(tensor.name)) is None:
        return text
    if (joined := _joined(shape, info)) is None or not same_strides(
        shape[: last + 1], tensor.strides[: last + 1], [info.strides[end - 1] for _, end in joined[: last + 1]]
    ):
        raise Rejected(f"{kernel.name} reads a size off {tensor.name}, which has other dimensions in the program")
    several = [(first, end) for first, end in joined[: last + 1] if end - first > 1]
    # the last ones first: then the numbers of the others stay
    return text + "".join(f".flatten({first}, {end - 1})" for first, end in reversed(several))


def _joined(shape: Sequence[int], info: TensorInfo) -> list[tuple[int, int]] | None:
    """For each dimension of the shape, which ones of the tensor make it: from the first to the one after the last. They
    lie in memory as one."""
    found: list[tuple[int, int]] = []
    end = 0
    for size in shape:
        first, product = end, 1
        while end < len(info.shape) and (end == first or product < size):
            product *= info.shape[end]
            end += 1
        if product != size or not _is_one(info.shape[first:end], info.strides[first:end]):
            return None
        found.append((first, end))
    return found if all(size == 1 for size in info.shape[end:]) else None


def _is_one(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return all(
        size == 1 or stride == inner * count
        for size, stride, count, inner in zip(shape, strides, shape[1:], strides[1:], strict=False)
    )
