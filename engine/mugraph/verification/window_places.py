"""Which places of its dimension a window reads, as a tensor on the device.

`Window.places` says the same as a list. Here a dimension has up to 65,536 places, of which each piece of a tensor of
gigabytes reads all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import torch
from torch import Tensor

from mugraph.ir.windows import Window


def read_places(window: Window, axes: Sequence[str], sizes: Mapping[str, int], device: torch.device) -> Tensor:
    """As `Window.places` gives them: int64, one for each position and tap, taps fastest; -1 where there is none."""
    positions, taps = (prod(sizes[axis] for axis in part) for part in window.split(axes))
    extent, dilation = window.extent(axes, sizes), window.dilation
    order = torch.arange(positions, device=device)
    if window.reverse:
        order = order.flip(0)
    tap = torch.arange(taps, device=device)
    place = (order[:, None] * window.stride + tap * dilation - window.pad).reshape(-1)
    if window.edge:
        back = torch.div(extent - 1 - place, dilation, rounding_mode="floor")
        on = -torch.div(place, dilation, rounding_mode="floor")
        place = torch.where(
            place < 0, place + on * dilation, torch.where(place >= extent, place + back * dilation, place)
        )
    between = torch.remainder(place, window.spread)
    element = torch.div(place, window.spread, rounding_mode="floor")
    return torch.where((element >= 0) & (element < extent) & (between == 0), element, -1)
