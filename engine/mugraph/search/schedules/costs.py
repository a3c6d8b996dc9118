"""What operations of generated kernels cost, as fitted to measured kernels (`costs.json`, which
`python -m mugraph.research.calibration fit` writes)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("costs.json")


@dataclass(frozen=True)
class Costs:
    """Microseconds, and shares of the device's figures. They are the same for every program.

    latency_us:  from a load's issue to its data, device memory
    fill_us:     of a loop's start and end: an empty pipeline, and its drain
    start_us:    of a kernel, to start and to end
    floor_us:    what the least kernel does besides starting and ending: a load and a store
    bandwidth:   share of the device's that a grid reaches
    processor:   share of the bandwidth that one processor can draw, as a multiple of its even share
    cached:      the second-level cache's bandwidth over device memory's
    wide_us:     of a wide product besides its flops: it is waited for
    wide, narrow, exact: share of a processor's peak that products reach, by their path; in float32
    exact_us:    of an element that a product in float32 adds to those before it
    shared:      bytes that products read from shared memory in a microsecond
    passed:      bytes of operands that go from registers through shared memory in a microsecond: stores, a barrier,
                 loads
    reduction_us: of a reduction over a tile
    exp_us:      of an exp, whose running maximum is one and whose accumulators are rescaled
    exchange:    how much dearer reductions are with each four warps more
    lane_us, issue_us: of one element-wise operation of one thread, until the next one; that four warps keep the
                 processor with
    overlap, serial: share of the shorter of the two clocks that many iterations do not hide behind the longer one,
                 with products and without
    """

    latency_us: float = 0.54
    fill_us: float = 1.04
    start_us: float = 1.9
    floor_us: float = 1.1
    bandwidth: float = 1.0
    processor: float = 2.4
    cached: float = 2.26
    wide_us: float = 0.04
    wide: float = 0.9
    narrow: float = 0.39
    shared: float = 2.5e5
    passed: float = 3.1e4
    exact: float = 0.06
    exact_us: float = 0.01
    reduction_us: float = 0.06
    exp_us: float = 0.146
    exchange: float = 0.74
    lane_us: float = 8e-4
    issue_us: float = 4e-4
    overlap: float = 0.1
    serial: float = 0.6


class FittedCosts(msgspec.Struct, frozen=True):
    """device, date, kernels: what the costs were fitted to."""

    device: str
    date: str
    kernels: int
    costs: Costs


@cache
def fitted_costs() -> FittedCosts:
    """As they are kept with the engine."""
    return msgspec.json.decode(FILE.read_bytes(), type=FittedCosts)
