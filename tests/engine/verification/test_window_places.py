"""Places that windows read, on the device, are those of the window itself."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from mugraph.ir.windows import Window
from mugraph.verification.window_places import read_places


@given(
    positions=st.integers(1, 9),
    taps=st.integers(1, 5),
    stride=st.integers(0, 3),
    dilation=st.integers(1, 4),
    pad=st.integers(-2, 9),
    rest=st.integers(-9, 5),
    edge=st.booleans(),
    reverse=st.booleans(),
    spread=st.integers(1, 4),
)
def test_places_are_those_of_the_window(
    positions: int,
    taps: int,
    stride: int,
    dilation: int,
    pad: int,
    rest: int,
    edge: bool,
    reverse: bool,
    spread: int,
) -> None:
    window = Window(0, 1, stride, dilation, pad, rest, edge, reverse, 1 if edge else spread)
    axes, sizes = ("p", "t"), {"p": positions, "t": taps}
    assert read_places(window, axes, sizes, torch.device("cpu")).tolist() == window.places(axes, sizes)
