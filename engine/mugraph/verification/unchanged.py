"""Whether memory is as it was: a copy where it is small, and where it has gigabytes a hash of each part.

The hash is multilinear (Carter and Wegman 1979; over words of 32 bits with weights of 64, Lemire and Kaser 2014): parts
that differ have one hash with a probability of 2^-32 at most, whatever was written, as nobody knows the weights.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

COPIED = 1 << 28
"""Bytes of memory that is copied."""
PART = 1 << 26
"""Bytes that are hashed at once: six times as many are needed for it."""
_WORD = 4


class Unchanged:
    """Of the memory of these bytes, as it is now. tensors: of uint8, in one dimension"""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._weights: Tensor | None = None
        self._before = [self._told(tensor) for tensor in tensors]

    @property
    def holds(self) -> bool:
        pairs = zip(self._tensors, self._before, strict=True)
        return all(torch.equal(now if now.numel() <= COPIED else self._told(now), before) for now, before in pairs)

    def _told(self, tensor: Tensor) -> Tensor:
        if tensor.numel() <= COPIED:
            return tensor.clone()
        return torch.stack([self._hash(words) for words in _words(tensor)])

    def _hash(self, words: Tensor) -> Tensor:
        if self._weights is None:
            generator = torch.Generator(words.device).manual_seed(secrets.randbits(62))
            ends = -(1 << 63), (1 << 63) - 1
            self._weights = torch.randint(*ends, (PART // _WORD,), generator=generator, device=words.device)
        return (words.to(torch.int64) * self._weights[: words.numel()]).sum()


def _words(tensor: Tensor) -> Iterator[Tensor]:
    for part in torch.split(tensor, PART):
        lacking = -part.numel() % _WORD
        yield (torch.cat((part, part.new_zeros(lacking))) if lacking else part).view(torch.int32)
