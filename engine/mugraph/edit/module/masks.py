"""Masks that are passed in from outside, where a region relies on what they hold."""

from __future__ import annotations

from collections.abc import Mapping

from mugraph.ir.calls import TensorInfo, Triangle
from mugraph.plans.plan import RegionPlan

MASKS = '''\
# Masks that kernels know by heart
_looked: dict[tuple[object, ...], tuple[weakref.ref, tuple[int, int], bool]] = {}


def _triangle(tensor: torch.Tensor, diagonal: int, below: float, above: float) -> torch.Tensor:
    """Of the tensor's kind, with one number where column <= row + diagonal and another elsewhere."""
    part = torch.ones(tensor.shape[-2:], dtype=torch.bool, device=tensor.device).tril(diagonal)
    return torch.full(part.shape, above, dtype=tensor.dtype, device=tensor.device).masked_fill_(part, below)


def _holds(tensor: torch.Tensor, diagonal: int, below: float, above: float) -> bool:
    """Whether a mask still holds what it did when the region was analysed. It is looked at once, and again when it was
    written to or moved; of what is written past PyTorch's back (`.data`, NumPy), PyTorch does not know either. A mask
    made anew for each call is not worth the wait for the GPU, and a compiled or captured graph cannot ask."""
    if torch.compiler.is_compiling() or tensor.is_inference():
        return False
    key, state = (id(tensor), diagonal, below, above), (tensor._version, tensor.data_ptr())
    if key in _looked:
        known, seen, answer = _looked[key]
        if known() is tensor and seen == state:
            return answer
    gone = sum(known() is None for known, _, _ in _looked.values())
    if gone > 64 or (tensor.is_cuda and torch.cuda.is_current_stream_capturing()):
        return False
    answer = bool((tensor == _triangle(tensor, diagonal, below, above)).all())
    _looked[key] = weakref.ref(tensor), state, answer
    return answer


def _filled(
    tensor: torch.Tensor, what: float | tuple[int, float, float] | range | None, random: torch.Generator
) -> torch.Tensor:
    """With random numbers of a standard deviation, or as the mask that it is. Numbers of eight bits are drawn as well:
    a weight of nothing but zeros would hide every fault. So are integers of which it is known what they may be: as
    places in a cache, of which no two are one where there are enough. Others may be places in other tensors: zeros, or
    counted where they are written to (None)."""
    if isinstance(what, range):
        if tensor.numel() <= len(what) <= 1 << 22:
            places = torch.randperm(len(what), device=tensor.device, generator=random)[: tensor.numel()]
            return tensor.copy_(places.view(tensor.shape) + what.start)
        return tensor.copy_(torch.randint(what.start, what.stop, tensor.shape, device=tensor.device, generator=random))
    if what is None:
        return tensor.copy_(torch.arange(tensor.numel(), device=tensor.device).view(tensor.shape))
    if isinstance(what, tuple):
        return tensor.copy_(_triangle(tensor, *what))
    if tensor.dtype.itemsize > 1:
        is_drawn = tensor.is_floating_point() or tensor.is_complex()
        return tensor.normal_(std=what, generator=random) if is_drawn else tensor.zero_()
    normal = torch.randn(tensor.shape, device=tensor.device, generator=random)
    if tensor.dtype == torch.bool or tensor.is_floating_point():
        return tensor.copy_(normal > 0 if tensor.dtype == torch.bool else normal * what)
    least, most = torch.iinfo(tensor.dtype).min, torch.iinfo(tensor.dtype).max
    return tensor.copy_((normal * 32 + (least + most + 1) / 2).round_().clamp_(least, most))
'''


def masks_of(plan: RegionPlan) -> Mapping[int, Triangle]:
    """The masks that the plan relies on: value number of a live-in -> what it holds."""
    values = plan.region.values
    found = {live_in.value: values[live_in.value].triangle for live_in in plan.region.live_ins}
    return {value: triangle for value, triangle in found.items() if triangle is not None}


def triangle_text(triangle: Triangle, info: TensorInfo) -> str:
    """The arguments that follow the tensor in a call of `_holds`: "0, 1.0, 0.0"."""
    numbers = ['float("-inf")' if n is None else repr(n) for n in (triangle.below, triangle.above)]
    if info.dtype == "bool":
        numbers = [str(bool(n)) for n in (triangle.below, triangle.above)]
    elif not info.dtype.startswith(("f", "bf")):
        numbers = [repr(int(n or 0)) for n in (triangle.below, triangle.above)]
    return f"{triangle.diagonal}, {', '.join(numbers)}"
