"""What kernels hold that is neither a number nor a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mugraph.triton_text.ints import REACH
from mugraph.triton_text.language import is_host
from mugraph.triton_text.refusals import Wrong
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


def range_of(arguments: Sequence[Any], named: Mapping[str, Any]) -> Range:
    """What a kernel loops over. Raises Wrong."""
    ends = [*arguments]
    if "step" in named:
        ends = [*(ends if len(ends) == 2 else [0, *ends]), named["step"]]
    start, stop, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1) if len(ends) == 2 else ends
    if is_host(stop) and REACH <= int(stop) < 2 * REACH:
        raise Wrong("bounds", "a loop's end has 32 bits and no sign, which Triton's loop takes to be less than 0")
    return Range(start, stop, step)
