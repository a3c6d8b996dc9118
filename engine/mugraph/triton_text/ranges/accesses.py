"""What the reading of a kernel finds: where it reads and writes, and what masks and integers go into its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mugraph.triton_text.ints import Shape
from mugraph.triton_text.ranges.formulas import Formula
from mugraph.triton_text.ranges.poly import Poly
from mugraph.triton_text.ranges.values import Along, Lanes, Memory
from mugraph.triton_text.waits import Start


@dataclass(frozen=True)
class Place:
    """Where in a kernel something is. loops: that are open, by their counters. ways: branches that are taken"""

    line: int
    loops: tuple[str, ...] = ()
    ways: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Access:
    what: Literal["reads", "writes"]
    memory: Memory
    axes: tuple[Along, ...]
    offset: Poly
    shape: Shape
    lanes: Lanes
    mask: Formula
    place: Place


@dataclass(frozen=True)
class Choice:
    """A mask that decides between numbers."""

    mask: Formula
    lanes: Lanes
    place: Place


@dataclass
class Launch:
    """blocks: of each dimension of the grid, the program's number. axes: of a tensor, as the kernel takes it"""

    kernel: str
    grid: tuple[Poly, Poly, Poly]
    blocks: tuple[Poly, Poly, Poly]
    axes: Mapping[str, tuple[Along, ...]]
    accesses: list[Access] = field(default_factory=list[Access])
    choices: list[Choice] = field(default_factory=list[Choice])
    start: Start = field(default_factory=Start)
    numbers: list[tuple[Poly, int]] = field(default_factory=list[tuple[Poly, int]])
    """Integers that floating-point numbers are computed from, with their lines."""
