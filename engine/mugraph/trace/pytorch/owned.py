"""The names that PyTorch's modules of functions have. A process that has not imported PyTorch, which takes seconds, is
told them by the one that traces for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

Names = Mapping[str, frozenset[str]]
_known: Names | None = None


def names() -> Names:
    """The module, or "Tensor" -> the names in it. Imports PyTorch where they are not known."""
    global _known
    if _known is None:
        import torch

        spaces = {
            "torch": torch,
            "torch.nn.functional": torch.nn.functional,
            "torch._C._nn": sys.modules["torch._C._nn"],
            "Tensor": torch.Tensor,
        }
        _known = {owner: frozenset(dir(space)) for owner, space in spaces.items()}
    return _known


def are_wanted() -> bool:
    """Whether PyTorch would have to be imported for them."""
    return _known is None and "torch" not in sys.modules


def known() -> Names | None:
    """None where they are wanted."""
    return None if are_wanted() else names()


def take(told: Names) -> None:
    """What another process has learnt."""
    global _known
    _known = _known or told


def beside(result: Path) -> Path:
    """The file for them beside that of a trace."""
    return result.with_name("names.json")


def tell(result: Path) -> None:
    """For the process that has asked for this trace."""
    beside(result).write_bytes(msgspec.json.encode(names()))


def learn(result: Path) -> None:
    """What was told with a trace. Where that process ended before it could tell, nothing is known as before."""
    global _known
    with contextlib.suppress(OSError, msgspec.DecodeError):
        _known = msgspec.json.decode(beside(result).read_bytes(), type=dict[str, frozenset[str]])
