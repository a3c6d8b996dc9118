"""How much memory the tensors take that are alive at once."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """Of what is made inside: most_bytes at any time. What an operator needs for itself does not count."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.live_bytes = self.most_bytes = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        there = {storage.data_ptr() for storage in _storages((args, kwargs))}
        for storage in _storages(made):
            if storage.data_ptr() not in there:
                self._count(storage)
        return made

    def _count(self, storage: torch.UntypedStorage) -> None:
        address, size = storage.data_ptr(), storage.nbytes()
        if not size or address in self._known:
            return
        self._known.add(address)
        self.live_bytes += size
        self.most_bytes = max(self.most_bytes, self.live_bytes)
        weakref.finalize(storage, self._gone, address, size)

    def _gone(self, address: int, size: int) -> None:
        self._known.discard(address)
        self.live_bytes -= size


def _storages(values: object) -> Iterator[torch.UntypedStorage]:
    return (one.untyped_storage() for one in tree_leaves(values) if isinstance(one, torch.Tensor))
