"""Programs that no kernel of a kernel graph computes, told without a search."""

from __future__ import annotations

from mugraph.ir.program import TensorProgram
from mugraph.search.direct import as_block
from mugraph.search.schedules.held import is_too_large_to_hold
from mugraph.search.schedules.moments import moments_cuts


def is_in_vain(program: TensorProgram) -> bool:
    """Has a thread block to hold more than any can, of what cannot be cut into parts either?"""
    return is_too_large_to_hold(program) and not moments_cuts(as_block(program))
