"""A region's calls, cut into search units and plain PyTorch calls.

A search unit has one output here (joining.py makes units with several). It has at most one exp on any path, a reduction
or product that makes it worth searching, and about `max_ops` operators at most. It grows backwards from its output. A
producer joins if three things hold: nothing else needs what it computes; the calls together still have a tensor
program; and one kernel would not have to compute a product again for every tile of a later one. A norm that feeds
several units is computed in each of them if that moves fewer bytes than storing it.
"""

from __future__ import annotations

from collections.abc import Collection

from mugraph.ir.region import Part, Region, SearchUnit
from mugraph.units.cut import Cutter
from mugraph.units.growing import UnitPrograms
from mugraph.units.growth import UnitGrowth
from mugraph.units.order import in_order
from mugraph.units.region_graph import RegionGraph


def single_units(
    region: Region, *, max_ops: int = 12, max_ops_with_exp: int = 20, refused: Collection[frozenset[int]] = ()
) -> tuple[Part, ...]:
    """The region's units in an order in which they can run. Calls that no live-out needs are left out.

    max_ops:          operators of a search unit
    max_ops_with_exp: of one that holds an attention, which has no smaller parts, and of a region that is one unit
    refused:          sets of values that no search unit may compute, nor a part of one
    """
    graph = RegionGraph(region)
    growth = UnitGrowth(graph, UnitPrograms(graph, max_ops, max_ops_with_exp, refused))
    return in_order(graph, *Cutter(graph, growth).cut())


def is_divisible(unit: SearchUnit) -> bool:
    """Whether the unit has two products, which could have kernels of their own in smaller units."""
    return sum(op.kind.contracts for op in unit.program.ops) > 1
