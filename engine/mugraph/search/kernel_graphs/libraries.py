"""Kernel graphs that need little search: each product by a library's kernel, and all the rest in one kernel that reads
their results (or one that is split in two).

They are given before others are searched, so that a region has them however little time is left; and in each order of
memory that a library's kernel answers in, because which of them is faster is a question to the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mugraph.ir.block import Candidate
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.chain import Apart, chained
from mugraph.search.kernel_graphs.parts import by_estimate, by_library, is_what_the_code_runs
from mugraph.search.kernel_graphs.solver import Solver
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram
from mugraph.search.schedules.sizes import ScheduleLimits
from mugraph.search.schedules.split_schedules import kernel_candidates
from mugraph.search.topologies.frame import check
from mugraph.search.topologies.limits import NotSearchable
from mugraph.targets import Target

_ORDERS = 2
"""Of a product's result in memory, the library's preferred one first."""
_AS_LONG = 1.05
"""How many times as long a call takes that takes as long: a bias is read."""
_SCHEDULES = 6
"""Of the kernel that reads what the libraries' leave."""


def beside_libraries(program: TensorProgram, target: Target, kernels: int, solver: Solver) -> tuple[Candidate, ...]:
    """Best first by estimate. kernels: of one graph at most. solver: of what reduces beside the products"""
    found = [one for one in by_library(program, target) if not is_what_the_code_runs([one])]
    found += [one for choice in range(_ORDERS) for one in _in_order(program, target, kernels, choice, solver)]
    seen: list[Candidate] = []
    for one in by_estimate(found):
        if one not in seen:
            seen.append(one)
    return tuple(seen)


def _in_order(program: TensorProgram, target: Target, kernels: int, choice: int, solver: Solver) -> Iterator[Candidate]:
    stored = in_memory(program, choice)
    products = [op.name for op in program.ops if op.kind.contracts]
    if not 0 < len(products) < kernels or any(value in program.outputs for value in products):
        return
    found = [_called(program, product, stored, target) for product in products]
    if not all(found):
        return
    most, least = [one[-1] for one in found], [one[0] for one in found]
    for calls in [most] if least == most else [most, least]:
        apart = Apart({tensor.name for tensor in (*program.tensors, *stored.values())}, set(program.sizes))
        rest = subprogram(program, tuple(program.outputs), [value for value, _ in calls], stored)
        for last in apart.part(_of_rest(rest, target, solver)):
            graph = [*(call for _, call in calls), *last.kernels]
            if len(graph) <= kernels and not is_what_the_code_runs(graph):
                yield chained([*(call for _, call in calls), last])


def _called(
    program: TensorProgram, value: str, stored: Mapping[str, Tensor], target: Target
) -> list[tuple[str, Candidate]]:
    """Values that a library's call computes which takes a product: with as little of what follows it as one does, its
    scales for one, and with more. What costs nothing besides is taken."""
    found: list[tuple[str, Candidate]] = []
    while value not in program.outputs:
        calls = by_library(subprogram(program, [value], [], stored), target)
        for call in calls:
            found = [one for one in found if one[1].estimate_us < call.estimate_us / _AS_LONG]
            found.append((value, call))
        if found and not calls:
            break
        users = [op for op in program.ops if value in op.inputs]
        if len(users) != 1 or not users[0].kind.is_elementwise:
            break
        value = users[0].name
    return found


def _of_rest(rest: TensorProgram, target: Target, solver: Solver) -> Sequence[Candidate]:
    if any(op.kind.reduces for op in rest.ops):
        return solver.solve(rest).candidates[:_SCHEDULES]
    try:
        check(rest)
    except NotSearchable:
        return ()
    return kernel_candidates([as_block(rest)], target, ScheduleLimits(max_candidates=_SCHEDULES), _SCHEDULES)
