"""Losses and distances: several kernels of one call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mugraph.baseline.arguments import tensors
from mugraph.baseline.launch import Launch, Values
from mugraph.baseline.memory import held_bytes
from mugraph.ir.calls import Call

LOSSES = {
    "mse_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1, "l1_loss": 2, "kl_div": 3, "soft_margin_loss": 4,
    "margin_ranking_loss": 4, "binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 4,
}  # fmt: skip
"""Element-wise kernels of losses; the sum or mean of what they leave is another one."""
SUMS_OF_DISTANCES = {"pairwise_distance": 1, "triplet_margin_loss": 2}
"""Distances, each a difference, eps added to it, and a norm."""
BETWEEN = -1
"""Stands for the value that one kernel of a call leaves to the next."""


def loss(launch: Launch, passes: int, call: Call, values: Values) -> Iterator[Launch]:
    """Element by element, then the sum of that, if there is one."""
    summed = "none" not in (*call.args, *call.kwargs.values())
    between = _left_between(call, values, launch) if summed else launch.writes
    yield replace(launch, writes=between)
    for _ in range(passes - 1):
        yield replace(launch, reads=between, writes=between)
    if summed:
        yield replace(launch, work="reduction", reads=between, row=sum(between.values()))


def distances(launch: Launch, count: int, call: Call, values: Values) -> Iterator[Launch]:
    between = _left_between(call, values, launch)
    pair = dict(list(launch.reads.items())[:2])
    for _ in range(count):
        yield replace(launch, reads=pair, writes=between)
        yield replace(launch, reads=between, writes=between)
        yield replace(launch, work="reduction", reads=between)
    if count > 1:
        yield replace(launch, reads=launch.writes)


def _left_between(call: Call, values: Values, launch: Launch) -> dict[int, int]:
    """A tensor as large as the largest that the call is given; of the call alone."""
    largest = max((held_bytes(info) for info in tensors(call, values)), default=0)
    return {BETWEEN - call.outputs[0]: largest}
