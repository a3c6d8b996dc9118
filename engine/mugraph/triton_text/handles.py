"""What kernels hold that is neither a number nor a tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mugraph.triton_text.tiles import Kind, Pointers


@dataclass(frozen=True)
class Method:
    owner: Any
    name: str


@dataclass(frozen=True)
class Range:
    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True)
class PointerKind:
    """The type of a pointer."""

    element_ty: Kind


@dataclass(frozen=True)
class BlockPointer:
    """What tl.make_block_ptr and tl.make_tensor_descriptor make. checked: every access is masked by the shape"""

    base: Pointers
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    offsets: tuple[Any, ...]
    block: tuple[int, ...]
    checked: bool = False


@dataclass(frozen=True)
class Nothing:
    """What may not be used."""
