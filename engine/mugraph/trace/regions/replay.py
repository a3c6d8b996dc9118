"""Recorded calls run again on real tensors: the reference a generated kernel is held against."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import torch

from mugraph.ir.calls import STORES
from mugraph.ir.region import DEVICE, Argument, Call, Ref, Symbol
from mugraph.ops.algebra.registry import canonical
from mugraph.trace.regions.emit_call import NotReplayable

__all__ = ["NotReplayable", "replay"]


def replay(calls: Sequence[Call], env: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """Every value number -> its tensor, after running the calls in order on the tensors of `env`.

    The region's device is that of the first of them (the CPU when there is none).
    Raises NotReplayable for an unknown target or a missing value; what PyTorch itself raises goes through.
    """
    values = dict(env)
    device = next((tensor.device for tensor in env.values()), torch.device("cpu"))
    for call in calls:
        args = [_decode(argument, values, device) for argument in call.args]
        kwargs = {name: _decode(argument, values, device) for name, argument in call.kwargs.items()}
        result = function_of(call.target)(*args, **kwargs)
        values.update(zip(call.outputs, _results(call, result), strict=True))
    return values


def _results(call: Call, result: object) -> list[torch.Tensor]:
    """The tensors of a call's result, in order; one for each of its outputs."""
    found = list(_tensors(result))
    if len(found) != len(call.outputs):
        raise NotReplayable(f"{call.target} gave {len(found)} tensors; {len(call.outputs)} were recorded")
    return found


def _tensors(result: object) -> Iterable[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for item in cast("Sequence[object]", result):
            yield from _tensors(item)


def _decode(argument: Argument, values: Mapping[int, torch.Tensor], device: torch.device) -> object:
    if isinstance(argument, Ref):
        if argument.value not in values:
            raise NotReplayable(f"value {argument.value} is needed before it is computed")
        return values[argument.value]
    if argument == DEVICE:
        return device
    if isinstance(argument, Symbol):
        return symbol(argument.name)
    if isinstance(argument, tuple):
        return tuple(_decode(item, values, device) for item in argument)
    if isinstance(argument, slice):
        bounds: tuple[Argument, ...] = (argument.start, argument.stop, argument.step)
        return slice(*(_decode(item, values, device) for item in bounds))
    return argument


def symbol(name: str) -> object:
    """The constant a Symbol stands for: `torch.float32`, `...`, `math.inf`."""
    if name in ("...", "Ellipsis"):
        return ...
    module, _, rest = name.partition(".")
    root = {"torch": torch, "math": math}.get(module)
    if root is None or not rest:
        raise NotReplayable(f"{name} is no constant of torch or math")
    return _attribute(root, rest, name)


def _attribute(root: object, path: str, name: str) -> object:
    for part in path.split("."):
        if not hasattr(root, part):
            raise NotReplayable(f"this PyTorch has no {name}")
        root = getattr(root, part)
    return root


def _store(tensor: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    tensor[index] = value
    return tensor


@functools.cache
def function_of(target: str) -> Callable[..., object]:
    """The callable of a Call's target. Tensor methods take self first; getters are "Tensor.T.__get__"."""
    if target == STORES:
        return _store
    root, _, path = canonical(target).partition(".")
    if root not in ("torch", "Tensor") or not path:
        raise NotReplayable(f"{target} is no call of PyTorch")
    found = _attribute(torch if root == "torch" else torch.Tensor, path, target)
    if not callable(found):
        raise NotReplayable(f"{target} is no function")
    return found
