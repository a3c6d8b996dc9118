"""Attributes and methods of tensors in a launcher: what a tensor is, and views of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from mugraph.triton_text.refusals import Unreadable
from mugraph.triton_text.source import listed
from mugraph.triton_text.tensors import HostTensor
from mugraph.triton_text.tiles import Kind

_ITEM_BYTES = {
    "float64": 8, "float32": 4, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "int1": 1, "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Device:
    """Where a tensor is: it does not matter here."""


@dataclass(frozen=True)
class Given:
    """The arguments of a method."""

    arguments: tuple[Any, ...]
    named: Mapping[str, Any]

    @property
    def numbers(self) -> tuple[Any, ...]:
        """Those of a method that takes several numbers, or one tuple of them."""
        return listed(self.arguments[0]) if len(self.arguments) == 1 else self.arguments


def item_bytes(kind: Kind) -> int:
    return _ITEM_BYTES.get(kind.name, 2)


def _size(tensor: HostTensor, given: Given) -> Any:
    return _one_or_all(tensor.shape, given)


def _stride(tensor: HostTensor, given: Given) -> Any:
    return _one_or_all(tensor.strides, given)


def _one_or_all(numbers: tuple[int, ...], given: Given) -> int | tuple[int, ...]:
    if not given.arguments:
        return numbers
    dimension: int = given.arguments[0]
    return numbers[dimension]


def _itself(tensor: HostTensor, given: Given) -> HostTensor:
    return tensor


def _contiguous(tensor: HostTensor, given: Given) -> HostTensor:
    if not tensor.is_contiguous:
        raise Unreadable("a tensor is copied into another order")
    return tensor


def _view(tensor: HostTensor, given: Given) -> HostTensor:
    return tensor.viewed(given.numbers, copies=False)


def _reshape(tensor: HostTensor, given: Given) -> HostTensor:
    return tensor.viewed(given.numbers, copies=True)


def _flatten(tensor: HostTensor, given: Given) -> HostTensor:
    start, end = (*given.arguments, *(0, -1)[len(given.arguments) :])
    end %= len(tensor.shape)
    flat = prod(tensor.shape[start : end + 1])
    return tensor.viewed((*tensor.shape[:start], flat, *tensor.shape[end + 1 :]), copies=True)


def _reversed(tensor: HostTensor) -> HostTensor:
    return tensor.permuted(range(len(tensor.shape))[::-1])


def _last_two_exchanged(tensor: HostTensor) -> HostTensor:
    rank = len(tensor.shape)
    return tensor.permuted([*range(rank - 2), rank - 1, rank - 2])


def _transpose(tensor: HostTensor, given: Given) -> HostTensor:
    order = list(range(len(tensor.shape)))
    a, b = (axis % len(order) for axis in given.numbers)
    order[a], order[b] = order[b], order[a]
    return tensor.permuted(order)


def _as_strided(tensor: HostTensor, given: Given) -> HostTensor:
    shape, strides, *rest = given.arguments
    offset = rest[0] if rest else given.named.get("storage_offset", tensor.offset)
    return HostTensor(tensor.memory, tuple(shape), tuple(strides), offset)


def _unsqueeze(tensor: HostTensor, given: Given) -> HostTensor:
    at = given.numbers[0] % (len(tensor.shape) + 1)
    return tensor.indexed((*(slice(None),) * at, None))


def _squeeze(tensor: HostTensor, given: Given) -> HostTensor:
    rank = len(tensor.shape)
    at = [given.numbers[0] % rank] if given.numbers else range(rank)
    kept = [d for d in range(rank) if d not in at or tensor.shape[d] != 1]
    shape, strides = (tuple(of[d] for d in kept) for of in (tensor.shape, tensor.strides))
    return HostTensor(tensor.memory, shape, strides, tensor.offset)


def _expand(tensor: HostTensor, given: Given) -> HostTensor:
    wanted = given.numbers
    own = [(1, 0)] * (len(wanted) - len(tensor.shape)) + list(zip(tensor.shape, tensor.strides, strict=True))
    shape = tuple(n if want == -1 else want for want, (n, _) in zip(wanted, own, strict=True))
    strides = tuple(0 if n == 1 and want != 1 else s for want, (n, s) in zip(shape, own, strict=True))
    return HostTensor(tensor.memory, shape, strides, tensor.offset)


def _converted(tensor: HostTensor, given: Given) -> HostTensor:
    """Only to the type that it has: a launcher's own arithmetic is not read."""
    wanted = [one for one in (*given.arguments, *given.named.values()) if isinstance(one, Kind)]
    if any(one.name != tensor.memory.kind for one in wanted):
        raise Unreadable("a tensor is converted to another type by the launcher")
    return tensor


def _refused(tensor: HostTensor, given: Given) -> HostTensor:
    raise Unreadable("a tensor is converted to another type by the launcher")


ATTRIBUTES: Mapping[str, Callable[[HostTensor], Any]] = {
    "shape": lambda tensor: tensor.shape,
    "dtype": lambda tensor: Kind(tensor.memory.kind),
    "device": lambda tensor: Device(),
    "ndim": lambda tensor: len(tensor.shape),
    "is_cuda": lambda tensor: True,
    "requires_grad": lambda tensor: False,
    "T": _reversed,
    "H": _reversed,
    "mT": _last_two_exchanged,
    "data": lambda tensor: tensor,
}
METHODS: Mapping[str, Callable[[HostTensor, Given], Any]] = {
    "size": _size,
    "stride": _stride,
    "numel": lambda tensor, given: prod(tensor.shape),
    "nelement": lambda tensor, given: prod(tensor.shape),
    "dim": lambda tensor, given: len(tensor.shape),
    "ndimension": lambda tensor, given: len(tensor.shape),
    "is_contiguous": lambda tensor, given: tensor.is_contiguous,
    "element_size": lambda tensor, given: item_bytes(Kind(tensor.memory.kind)),
    "contiguous": _contiguous,
    "cuda": _itself,
    "detach": _itself,
    "view": _view,
    "reshape": _reshape,
    "flatten": _flatten,
    "t": lambda tensor, given: _reversed(tensor),
    "transpose": _transpose,
    "permute": lambda tensor, given: tensor.permuted(given.numbers),
    "as_strided": _as_strided,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "broadcast_to": _expand,
    "expand_as": lambda tensor, given: _expand(tensor, Given((given.arguments[0].shape,), {})),
    "view_as": lambda tensor, given: tensor.viewed(given.arguments[0].shape, copies=False),
    "to": _converted,
    "type": _converted,
    "float": _refused,
    "half": _refused,
}
