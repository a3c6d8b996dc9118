"""Tile operators: what a kernel's text is written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mugraph.codegen.tile.kinds import AnyKind
from mugraph.ir.ops import Tf32


@dataclass(frozen=True, slots=True)
class Node:
    """One tile operator.

    axes: it varies along inside a tile, scalar ones (tile 1) included
    over: SUM, AMAX, DOT, ROWMAX: wide axes reduced. A running sum: the axis, wide or not
    loop: ACCUM, ROWMAX: the loop it closes
    rows, columns: MASK, POSITION: as in the block graph, axes of size 1 included
    """

    name: str
    kind: AnyKind
    inputs: tuple[str, ...] = ()
    axes: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    loop: str = ""
    tensor: str = ""
    value: float = 0.0
    fn: str = ""
    f32: bool = False
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    tf32: Tf32 = ""


Nodes = Mapping[str, Node]
"""By name, inputs before uses."""
