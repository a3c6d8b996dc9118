"""How the results of kernels lie in the program.

A kernel stores its results one element after the other, with dimensions of its own. The program has a tensor of another
shape, or with its dimensions in another order, over the same memory. What launches the kernel makes the tensor so:
views of it in the calling code would take longer than some kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mugraph.ir.calls import TensorInfo
from mugraph.ir.kernel import KernelSource
from mugraph.ir.memory_order import Order, in_order, inverse
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.plans.plan import KernelStep, RegionPlan

Laid = tuple[tuple[int, ...], tuple[int, ...]]
"""Shape and strides."""


def laid_results(
    plans: Sequence[RegionPlan], kernels: Mapping[str, KernelSource]
) -> dict[str, tuple[Laid | None, ...]]:
    """Of kernels: how each result lies in the program; None where that is how it is stored, where it is converted, or
    where sizes vary, or steps that call the same kernel differ."""
    found: dict[str, tuple[Laid | None, ...]] = {}
    for plan in plans:
        for step in plan.steps:
            if not isinstance(step, KernelStep):
                continue
            kernel = kernels[step.kernel.name]
            here = tuple(None if plan.region.dynamic is not None else one for one in _of_step(plan, step, kernel))
            known = found.setdefault(kernel.name, here)
            found[kernel.name] = tuple(a if a == b else None for a, b in zip(known, here, strict=True))
    return found


def order_of(step: KernelStep, value: int, info: TensorInfo) -> Order:
    """Of a result's dimensions, as the kernel stores them."""
    return step.unit.laid.get(value, tuple(range(len(info.shape))))


def laid_as(tensor: Tensor, kernel: KernelSource, info: TensorInfo, order: Order) -> Laid | None:
    """How a kernel's result lies as a tensor of the program's shape; None where that is how it is stored."""
    shape = tensor.shape(kernel.sizes)
    in_memory = in_order(order, info.shape)
    if prod(shape) != prod(info.shape) or (shape == in_memory and order == tuple(range(len(order)))):
        return None
    strides = contiguous_strides(
        tuple((str(d),) for d in range(len(order))), {str(d): s for d, s in enumerate(in_memory)}
    )
    return info.shape, in_order(inverse(order), strides)


def _of_step(plan: RegionPlan, step: KernelStep, kernel: KernelSource) -> tuple[Laid | None, ...]:
    found: list[Laid | None] = []
    for tensor in kernel.made:
        value = step.unit.outputs[tensor.name]
        info = plan.region.values[value]
        same = tensor.dtype == info.dtype and not kernel.over  # what writes over tensors returns what it makes as it is
        found.append(laid_as(tensor, kernel, info, order_of(step, value, info)) if same else None)
    return tuple(found)
