"""Memory of a region between its steps: a tensor is deleted after the last line that reads it.

A name for each value keeps it until the function returns. The user's code, in which most values have no name, lets go
of them at once. One buffer with a plan for all would be no better: PyTorch's allocator gives the memory to the next
tensor of the same stream, at any size, inside a captured graph too, and steps stay calls that return tensors of their
own, as `torch.compile` needs them. (Within a launcher there is such a plan: codegen/scratch_places.py.)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from mugraph.baseline.memory import owners_of
from mugraph.ir.region import PlainCalls, Region
from mugraph.plans.plan import KernelStep


def with_deletions(lines: Sequence[str], kept: Collection[str]) -> list[str]:
    """The lines of a function, with a `del` after the last use of each name that they bind, where a later line computes
    something. kept: names that hold no memory of their own"""
    body = ast.parse("\n".join(lines)).body
    bound: dict[str, int] = {}  # name -> the last line that has it
    for at, part in enumerate(body):
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or node.id in bound):
                bound[node.id] = at
    computes = [at for at, part in enumerate(body) if any(isinstance(node, ast.Call) for node in ast.walk(part))]
    until = max(computes, default=0)
    found: list[str] = []
    first = 0
    for at, part in enumerate(body):
        end = part.end_lineno or part.lineno
        found += lines[first:end]
        first = end
        dead = [name for name, last in bound.items() if last == at < until and name not in kept]
        found += [f"del {', '.join(dead)}"] if dead else []
    return [*found, *lines[first:]]


def of_inputs(region: Region, steps: Iterable[KernelStep | PlainCalls]) -> set[int]:
    """Values that are views of what the region is given: they hold none of its memory."""
    calls = [call for step in steps if isinstance(step, PlainCalls) for call in step.calls]
    given = {live_in.value for live_in in region.live_ins}
    return {value for value, owner in owners_of(calls, region.values).items() if owner in given}
