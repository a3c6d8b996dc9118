"""A nest at a worker, one turn of its work at a time: the order, the answer, and the worker's side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mugraph.ir.block import BlockGraph
from mugraph.ir.program import TensorProgram
from mugraph.search.topologies.limits import Limits, never
from mugraph.search.topologies.nest import Account, Nest


@dataclass(frozen=True, slots=True)
class Start:
    """What a nest is begun with. Its results follow from this and from how much work it is granted."""

    program: TensorProgram
    loops: tuple[str, ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Order:
    """work: how much more to do. until_hit: stop at the first topology. stop: a reason to saturate no longer."""

    work: int
    until_hit: bool = False
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Turned:
    """The result of one turn, and the state of the nest after it. work: done in all turns so far."""

    blocks: tuple[BlockGraph, ...]
    hit: bool
    over: bool
    work: int
    account: Account


class Desk:
    """A nest that is worked on in this process. Making one raises NotSearchable."""

    def __init__(self, start: Start) -> None:
        self._nest = Nest(start.program, start.loops, start.limits)

    def turn(self, order: Order, stopped: Callable[[], bool] = never) -> Turned:
        """stopped: called often; once it returns True, the turn ends early."""
        nest = self._nest
        if order.stop:
            nest.stop_saturating(order.stop)
        blocks: list[BlockGraph] = []
        if not nest.over and not (order.until_hit and nest.hit):
            for block in nest.turn(order.work):
                if block is not None:
                    blocks.append(block)
                if (order.until_hit and nest.hit) or stopped():
                    break
        return Turned(tuple(blocks), nest.hit, nest.over, nest.work, nest.account)
