"""Devices in the traced program. It is traced on the CPU, whichever device it asks for; its regions run on a GPU later.

So every device that the program names becomes the CPU while it is traced, and "the device of the live-ins" in what is
recorded. What would have another result on a GPU is part of no region: sending a tensor to the CPU by name, or asking
where a tensor is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from mugraph.trace.pytorch.targets import last_part, target_of
from mugraph.trace.pytorch.words import words
from mugraph.trace.run.device_types import DeviceType
from mugraph.trace.run.torch_mode import TorchMode

HERE = torch.device("cpu")
"""What every device is while a program is traced."""
ASKS_WHERE = frozenset({"is_cuda", "is_cpu", "get_device"})
"""What a tensor says of its device, other than the device itself."""

_CONSTRUCTORS = words(
    """
    empty empty_strided empty_permuted ones zeros full arange range linspace logspace eye tensor as_tensor asarray
    scalar_tensor rand randn randint randperm normal tril_indices triu_indices fftfreq rfftfreq bartlett_window
    blackman_window hamming_window hann_window kaiser_window
    """
)
Arguments = tuple[tuple[object, ...], Mapping[str, object]]


def makes_tensors(target: str) -> bool:
    """Whether the call makes a tensor without being given one. Without a `device` that is on the default device."""
    return target.startswith("torch.") and last_part(target) in _CONSTRUCTORS


def device_argument(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """The device a call names, as it names it; None if it names none. name: the last part of the call's target"""
    if kwargs.get("device") is not None:
        return kwargs["device"]
    if name == "to" and len(args) > 1 and isinstance(args[1], str | torch.device):
        return args[1]
    if name in ("cpu", "cuda"):
        return name
    return None


def problem_with(device: object) -> str | None:
    """Why a call that names this device may be in no region. A `torch.device`, and its type, are guarded where they are
    read."""
    if device is None or isinstance(device, torch.device | int | DeviceType):
        return None
    return None if str(device).partition(":")[0] == "cuda" else "names a device other than the GPU"


def elsewhere(device: object, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Arguments:
    """The arguments with `device` in place of the device that they name."""
    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": device}
    if name == "to" and len(args) > 1 and isinstance(args[1], str | torch.device):
        args = (args[0], device, *args[2:])
    return args, kwargs


class OneDevice(TorchMode):
    """Within it, every tensor is on the CPU."""

    def called(self, function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        target = target_of(function)
        name = last_part(target)
        if name == "cuda" and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if makes_tensors(target):
            kwargs = {**kwargs, "device": HERE}
        args, kwargs = elsewhere(HERE, name, args, kwargs)
        return function(*args, **kwargs)
