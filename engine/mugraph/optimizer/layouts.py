"""Layouts of what kernels hand to one another, as an optimisation problem (Mirage §6).

For each such tensor, one of its axes is innermost in memory. A variable says of each tensor and each layout whether the
tensor has it; another one of each kernel, and each combination of layouts of its tensors, whether the kernel has that.
Exactly one of each is true, and a kernel's combination is that of its tensors. What a kernel takes with a combination
is asked of the cost model: how many sectors its tiles touch, whether a tile changes places in shared memory, what a
library's kernel copies. A combination that a library's kernel does not accept is no variable. z3 finds the least sum.

Within a block and a thread there is nothing left to choose: the order of a tile's axes is the kernel's own
(codegen/tile/order.py), operand swap is part of the schedule, and registers and shared memory are laid out by Triton.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, prod
from typing import Any

from mugraph.ir.block import BlockGraph, Candidate, Schedule
from mugraph.ir.library import library_call
from mugraph.ir.tensors import Tensor, contiguous_strides
from mugraph.search.schedules.cost import estimate_call_us, estimate_us
from mugraph.targets import Target

Dims = tuple[tuple[str, ...], ...]
Kernels = Sequence[tuple[BlockGraph, Schedule]]
GAIN = 1.005
"""Times less that a choice of layouts has to take by estimate; less than that is no difference."""
MOST = 64
"""Combinations that are looked at for one kernel. Of one with more, tensors stay as they lie."""
TIMEOUT_MS = 2_000


@dataclass(frozen=True)
class Problem:
    """layouts: of each tensor, as it lies now first. costs: of each kernel the tensors that it reads or writes, and
    combination of their layouts, by number -> microseconds"""

    layouts: Mapping[str, Sequence[Dims]]
    costs: Sequence[tuple[tuple[str, ...], Mapping[tuple[int, ...], float]]]

    def us(self, chosen: Mapping[str, int]) -> float:
        return sum(table.get(tuple(chosen[name] for name in names), inf) for names, table in self.costs)

    @property
    def usual(self) -> dict[str, int]:
        return dict.fromkeys(self.layouts, 0)

    @property
    def least_us(self) -> float:
        """No choice takes less: each kernel as it would like its tensors."""
        return sum(min(table.values(), default=inf) for _, table in self.costs)


def relaid(candidate: Candidate, target: Target) -> Candidate | None:
    """The candidate with other layouts of what its kernels hand to one another; None where no others are faster."""
    kernels = [(one.block, one.schedule) for one in candidate.kernels]
    problem = layout_problem(kernels, target)
    usual_us = problem.us(problem.usual)
    if not problem.layouts or usual_us == inf or usual_us < GAIN * problem.least_us:
        return None
    chosen = solved(problem)
    us = problem.us(chosen)
    if usual_us < GAIN * us:
        return None
    dims = {name: problem.layouts[name][number] for name, number in chosen.items() if number}
    found: Candidate | None = None
    for one in reversed(candidate.kernels):
        found = replace(one, block=with_layouts(one.block, dims), then=found)
    assert found is not None
    return replace(found, estimate_us=candidate.estimate_us - (usual_us - us))


def layout_problem(kernels: Kernels, target: Target) -> Problem:
    """Of all tensors that one of the kernels writes and a later one reads."""
    made = {tensor.name: (tensor, block.sizes) for block, _ in kernels for tensor in block.outputs}
    read: dict[str, list[Tensor]] = {}
    for block, _ in kernels:
        for tensor in block.inputs:
            read.setdefault(tensor.name, []).append(tensor)
    layouts = {
        name: layouts_of(tensor, sizes)
        for name, (tensor, sizes) in made.items()
        if name in read and all((one.dims, one.strides) == (tensor.dims, tensor.strides) for one in read[name])
    }
    layouts = {name: every for name, every in layouts.items() if len(every) > 1}
    own = [tuple(tensor.name for tensor in block.tensors if tensor.name in layouts) for block, _ in kernels]
    for names in own:
        if prod(len(layouts[name]) for name in names) > MOST:
            layouts |= {name: layouts[name][:1] for name in names}
    costs: list[tuple[tuple[str, ...], Mapping[tuple[int, ...], float]]] = []
    for (block, schedule), names in zip(kernels, own, strict=True):
        table: dict[tuple[int, ...], float] = {}
        for numbers in product(*(range(len(layouts[name])) for name in names)):
            dims = {name: layouts[name][number] for name, number in zip(names, numbers, strict=True)}
            us = _kernel_us(with_layouts(block, dims), schedule, target)
            if us < inf:
                table[numbers] = us
        costs.append((names, table))
    return Problem(layouts, costs)


def layouts_of(tensor: Tensor, sizes: Mapping[str, int]) -> list[Dims]:
    """As it lies first; then with each other axis innermost, those around it in their order. Only of tensors that lie
    without gaps, an axis a dimension."""
    found = [tensor.dims]
    long = [dim for dim in tensor.dims if prod(sizes[axis] for axis in dim) > 1]
    plain = all(len(dim) == 1 for dim in tensor.dims) and not tensor.windows
    if plain and tensor.strides == contiguous_strides(tensor.dims, sizes):
        found += [(*(one for one in tensor.dims if one != dim), dim) for dim in long[:-1]]
    return found


def with_layouts(block: BlockGraph, dims: Mapping[str, Dims]) -> BlockGraph:
    """dims: tensor -> its dimensions in the order of memory"""

    def lying(tensor: Tensor) -> Tensor:
        own = dims.get(tensor.name, tensor.dims)
        if own == tensor.dims:
            return tensor
        return replace(tensor, dims=own, strides=contiguous_strides(own, block.sizes))

    return replace(block, tensors=tuple(map(lying, block.tensors)))


def solved(problem: Problem) -> dict[str, int]:
    """Tensor -> the number of its layout, with the least sum; as tensors lie where z3 does not find it in time."""
    import z3 as solvers  # its import takes a while

    z3: Any = solvers
    solver = z3.Optimize()
    solver.set("timeout", TIMEOUT_MS)
    has: dict[str, list[Any]] = {
        name: [z3.Bool(f"{name} {number}") for number in range(len(every))] for name, every in problem.layouts.items()
    }
    for variables in has.values():
        solver.add(z3.PbEq([(one, 1) for one in variables], 1))
    terms: list[Any] = []
    for at, (names, table) in enumerate(problem.costs):
        ways = {numbers: z3.Bool(f"kernel {at} {numbers}") for numbers in table}
        solver.add(z3.PbEq([(one, 1) for one in ways.values()], 1))
        for numbers, way in ways.items():
            solver.add(*(z3.Implies(way, has[name][number]) for name, number in zip(names, numbers, strict=True)))
            terms.append(z3.If(way, z3.RealVal(repr(table[numbers])), z3.RealVal(0)))
    solver.minimize(z3.Sum(terms))
    if solver.check() != z3.sat:
        return problem.usual
    model = solver.model()
    return {name: next(at for at, one in enumerate(every) if z3.is_true(model[one])) for name, every in has.items()}


def _kernel_us(block: BlockGraph, schedule: Schedule, target: Target) -> float:
    """Infinite where a library's kernel does not take its tensors so."""
    if not schedule.library:
        return estimate_us(block, schedule, target)
    call = library_call(block)
    return inf if call is None else estimate_call_us(call, target)
