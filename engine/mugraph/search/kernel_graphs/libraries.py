"""Kernel graphs that need no search: each product by a library's kernel, and all the rest, element by element, in one
kernel that reads their results.

They are given before anything is searched, so that a region has them however little time is left; and in each order of
memory that a library's kernel answers in, because which of them is faster is a question to the device.
"""

from __future__ import annotations

from collections.abc import Iterator

from mugraph.ir.block import Candidate, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.program import TensorProgram
from mugraph.search.kernel_graphs.chain import chained
from mugraph.search.kernel_graphs.parts import as_block, by_estimate
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram
from mugraph.search.schedules.cost import estimate_call_us
from mugraph.search.schedules.sizes import ScheduleLimits
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.frame import check
from mugraph.search.topologies.limits import NotSearchable
from mugraph.targets import Target

_ORDERS = 2
"""Of a product's result in memory, the library's preferred one first."""
_SCHEDULES = 6
"""Of the kernel that reads what the libraries' leave."""


def beside_libraries(program: TensorProgram, target: Target, kernels: int) -> tuple[Candidate, ...]:
    """Best first by estimate. kernels: of one graph at most"""
    found = [one for choice in range(_ORDERS) for one in _in_order(program, target, kernels, choice)]
    seen: list[Candidate] = []
    for one in by_estimate(found):
        if one not in seen:
            seen.append(one)
    return tuple(seen)


def _in_order(program: TensorProgram, target: Target, kernels: int, choice: int) -> Iterator[Candidate]:
    stored = in_memory(program, choice)
    products = [op.name for op in program.ops if op.kind.contracts]
    if not 0 < len(products) < kernels or any(value in program.outputs for value in products):
        return
    calls: list[Candidate] = []
    for value in products:
        block = as_block(subprogram(program, [value], [], stored))
        call = library_call(block)
        if call is None:
            return
        calls.append(Candidate(block, Schedule((), library=True), estimate_call_us(call, target)))
    rest = subprogram(program, tuple(program.outputs), products, stored)
    if any(op.kind.reduces for op in rest.ops):
        return
    try:
        check(rest)
    except NotSearchable:
        return
    limits = ScheduleLimits(max_candidates=_SCHEDULES)
    for last in kernel_candidates([as_block(rest)], target, limits, _SCHEDULES):
        yield chained([*calls, last])
