"""What the traced program asks of devices. It is told of each question that has another answer on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from mugraph.trace.pytorch.attributes import attribute_of
from mugraph.trace.pytorch.callables import Judge
from mugraph.trace.run.device_types import DeviceType, device_types_in
from mugraph.trace.run.devices import HERE, problem_with
from mugraph.trace.run.gpu_answers import ANSWERS, GPU, IS_ON, TOLD
from mugraph.trace.run.tape import Happening
from mugraph.trace.run.tape_writer import TapeWriter
from mugraph.trace.run.varying_calls import is_watched

Arguments = tuple[tuple[object, ...], dict[str, object]]


@dataclass
class AskedDevices:
    writer: TapeWriter
    judge: Judge
    _known: dict[int, torch.device] = field(default_factory=dict[int, torch.device])
    """That tensors of the program were asked for, by identity."""
    _has_types: bool = False

    def where(self, base: object, name: str) -> bool | None:
        """What a tensor says that is asked for its device; None where it is not, or not to be told the GPU."""
        if not ANSWERS.gpu or name not in IS_ON or not isinstance(base, torch.Tensor):
            return None
        self._told()
        return IS_ON[name]

    def read(self, base: object, name: str, value: object) -> object:
        """An attribute was read: what the program gets."""
        if isinstance(base, torch.Tensor) and isinstance(value, torch.device):
            self._known[id(value)] = value
        elif isinstance(base, torch.device) and name == "type" and id(base) in self._known:
            self._has_types = True
            return DeviceType.of(GPU, self._told) if ANSWERS.gpu else DeviceType.of(str(value), self._asked)
        elif isinstance(base, DeviceType):
            base.asked()
        elif isinstance(base, torch.device):
            self._asked()
        return value

    def compared(self, left: object, right: object) -> None:
        if isinstance(left, torch.device) or isinstance(right, torch.device):
            own = id(left) in self._known and id(right) in self._known
            self._add(None if own else "compares devices")

    def computed(self, *operands: object) -> None:
        """An operator other than a comparison: with the type of a device it makes another text."""
        if self._has_types and (kind := next(device_types_in(operands), None)) is not None:
            kind.asked()

    def given(self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Arguments:
        """A function is about to be called: with what."""
        kind = next(device_types_in((args, kwargs)), None) if self._has_types else None
        if kind is None:
            return args, kwargs
        if _is_autocast(function):
            # Whether it is on decides (autocast.py). Off, it is off for the live-ins' device, as it was before.
            return tuple(map(_here, args)), {name: _here(value) for name, value in kwargs.items()}
        if function is not isinstance and not is_watched(self.judge, function) and not _takes(function, args, kwargs):
            kind.asked()
        return args, kwargs

    def called(self, function: Callable[..., object], args: tuple[object, ...], result: object) -> object:
        """A function was called: what the program gets."""
        if isinstance(result, torch.device) and any(problem_with(arg) for arg in args if isinstance(arg, str)):
            self._add("names a device other than the GPU")
        elif function in (str, repr, format, hash) and any(isinstance(arg, torch.device) for arg in args):
            self._asked()
        elif function is getattr and len(args) > 1:
            return self.read(args[0], str(args[1]), result)
        return result

    def _told(self) -> None:
        ANSWERS.asked = True
        if self.writer.watching:
            self.writer.add(Happening(self.writer.site(), TOLD, None))

    def _asked(self) -> None:
        self._add("asks which device a tensor is on")

    def _add(self, problem: str | None) -> None:
        if self.writer.watching:
            self.writer.add(Happening(self.writer.site(), "torch.device", problem))


def _is_autocast(function: object) -> bool:
    return isinstance(function, type) and issubclass(function, torch.autocast)


def _here(value: object) -> object:
    return HERE.type if isinstance(value, DeviceType) else value


def _takes(function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Whether it is the device on which one of PyTorch's calls makes a tensor, and nothing else of what it is given."""
    places = [kwargs.get("device")]
    is_method = isinstance(attribute_of(function, "__self__"), torch.Tensor)
    if function is torch.device or (is_method and attribute_of(function, "__name__") == "to"):
        places.extend(args[:1])
    elif not is_method and str(attribute_of(function, "__module__") or "").partition(".")[0] != "torch":
        return False
    said = sum(isinstance(place, DeviceType) for place in places)
    return said == sum(1 for _ in device_types_in((args, kwargs)))
