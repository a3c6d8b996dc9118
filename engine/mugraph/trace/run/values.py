"""Value numbers: which tensor was meant, also after a write in place."""

from __future__ import annotations

import logging
from dataclasses import replace

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from mugraph.ir.dtypes import ELEMENTS, WORD_BYTES
from mugraph.ir.region import TensorInfo

_log = logging.getLogger("mugraph.trace")

DTYPE_NAMES: dict[str, torch.dtype] = {name: getattr(torch, one.torch) for name, one in ELEMENTS.items()}
_DTYPES = {dtype: name for name, dtype in DTYPE_NAMES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    return _DTYPES.get(dtype, str(dtype).removeprefix("torch."))


class Values:
    """Numbers tensors; keeps every tensor alive, so that an id means one tensor for the whole trace."""

    def __init__(self, keep_copies: bool = False) -> None:
        """keep_copies: remember contents too, as they were when the number was given (to check regions with)."""
        self.now = 0  # the index of the event being recorded
        self._keep_copies = keep_copies
        self.contents: dict[int, torch.Tensor] = {}
        self._history: dict[int, list[tuple[int, int]]] = {}  # of a tensor's id: since which event, which number
        self._tensors: list[torch.Tensor] = []
        self._stand_ins: dict[int, torch.Tensor] = {}
        self._storages: list[int] = []
        self._by_storage: dict[int, list[int]] = {}
        self.infos: dict[int, TensorInfo] = {}

    def number(self, tensor: torch.Tensor) -> int:
        """The current number of a tensor; a new one if it was not met before."""
        history = self._history.get(id(tensor))
        return history[-1][1] if history else self.fresh(tensor)

    def number_at(self, tensor: torch.Tensor, event: int) -> int:
        """The number it had before that event."""
        found = self.number(tensor) if id(tensor) not in self._history else self._history[id(tensor)][0][1]
        for since, number in self._history[id(tensor)]:
            if since < event:
                found = number
        return found

    def fresh(self, tensor: torch.Tensor) -> int:
        """A new number, for a tensor whose contents (or layout) may have changed."""
        number = len(self._tensors)
        with torch._C.DisableTorchFunction():  # pyright: ignore[reportPrivateUsage]
            self.infos[number] = describe(tensor)
            if id(tensor) not in self._stand_ins:
                self._stand_ins[id(tensor)] = _stand_in(tensor)
            storage = _storage(self._stand_ins[id(tensor)])
            if self._keep_copies:
                self.contents[number] = tensor.detach().clone() if strided(tensor) else tensor
        history = self._history.setdefault(id(tensor), [])
        history.append((self.now if history else -1, number))
        self._tensors.append(tensor)
        self._storages.append(storage)
        self._by_storage.setdefault(storage, []).append(number)
        return number

    def imagined(self, like: int) -> int:
        """A number for what no tensor held: what would be computed in place of a write. It has memory of its own.

        like: number of a tensor of the same shape and type
        """
        number, tensor, info = len(self._tensors), self._tensors[like], self.infos[like]
        lies = torch.empty_strided(info.shape, info.strides, device="meta")  # it may lie otherwise since then
        self.infos[number] = replace(info, strides=tuple(map(int, torch.empty_like(lies).stride())), skew=0)
        self._tensors.append(tensor)
        self._storages.append(-1 - number)
        self._by_storage[-1 - number] = [number]
        return number

    def tensor(self, number: int) -> torch.Tensor:
        return self._tensors[number]

    def storage(self, number: int) -> int:
        return self._storages[number]

    def sharing(self, number: int) -> list[int]:
        """All numbers ever given to tensors with this one's storage, itself included."""
        return self._by_storage[self._storages[number]]

    def is_written(self, number: int) -> bool:
        """Whether anything with its storage was ever written to after it was first seen."""
        return any(len(self._history[id(self._tensors[other])]) > 1 for other in self.sharing(number))

    def objects(self, number: int) -> set[int]:
        """The ids of all tensors that share its storage."""
        return {id(self._tensors[other]) for other in self.sharing(number)}

    def changed_with(self, number: int) -> set[int]:
        """Numbers that writes after it gave to other tensors with its storage: what they hold since then."""
        this = id(self._tensors[number])
        others = [other for other in self.sharing(number) if id(self._tensors[other]) != this and other > number]
        return {other for other in others if self._history[id(self._tensors[other])][0][1] != other}

    def written(self, tensor: torch.Tensor) -> None:
        """After a write: every tensor on that storage holds something new."""
        for other in {id(t): t for t in (self._tensors[n] for n in self.sharing(self.number(tensor)))}.values():
            self.fresh(other)


def _stand_in(tensor: torch.Tensor) -> torch.Tensor:
    """What stands for it among tensors without numbers: views of it are views of that."""
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)  # pyright: ignore[reportPrivateUsage]
    if isinstance(mode, FakeTensorMode) and not isinstance(tensor, FakeTensor):
        return mode.from_tensor(tensor)
    return tensor


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]
    except (RuntimeError, NotImplementedError) as error:  # sparse tensors have none, and share no memory
        _log.debug("a tensor of layout %s has no storage: %s", tensor.layout, error)
        return -1 - id(tensor)


def version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version  # inference tensors keep none


def strided(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided


def describe(tensor: torch.Tensor) -> TensorInfo:
    shape = tuple(int(size) for size in tensor.shape)
    strides = tuple(int(stride) for stride in tensor.stride()) if strided(tensor) else ()
    return TensorInfo(shape, strides, dtype_name(tensor.dtype), tensor.device.type, skew=_skew(tensor))


def _skew(tensor: torch.Tensor) -> int:
    if not strided(tensor):
        return 0
    return int(tensor.storage_offset()) % max(1, WORD_BYTES // tensor.element_size())
