"""imap, omap and fmap (Mirage §2), derived from the names of axes.

A map says for each grid dimension (or loop) which data dimension of the tensor it partitions; None is φ: the tensor is
replicated along it.
"""

from __future__ import annotations

from mugraph.ir.block import Schedule
from mugraph.ir.tensors import Tensor

AxisMap = dict[str, str | None]
"""Grid dimension or loop -> the tensor's axis it partitions, None for φ."""

PHI = "φ"


def grid_dimension(index: int) -> str:
    """x, y, z, then g3, g4, ... for grids that code generation flattens."""
    return "xyz"[index] if index < 3 else f"g{index}"


def imap(tensor: Tensor, schedule: Schedule) -> AxisMap:
    """Grid dimension -> axis of the input tensor that is partitioned along it."""
    return {
        grid_dimension(index): axis if axis in tensor.axes else None for index, (axis, _) in enumerate(schedule.grid)
    }


def omap(tensor: Tensor, schedule: Schedule) -> AxisMap:
    """Grid dimension -> axis of the output tensor whose pieces the blocks write.

    No φ in a valid graph: two blocks would write the same elements.
    """
    return imap(tensor, schedule)


def fmap(tensor: Tensor, loops: tuple[str, ...]) -> AxisMap:
    """Loop -> axis of the tensor that is read (or written) piece by piece over its iterations."""
    return {axis: axis if axis in tensor.axes else None for axis in loops}


def format_map(mapping: AxisMap) -> str:
    """ "{x: n, y: φ}" """
    return "{" + ", ".join(f"{key}: {PHI if axis is None else axis}" for key, axis in mapping.items()) + "}"
