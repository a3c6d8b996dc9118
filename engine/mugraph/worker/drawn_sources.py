"""Which statements of a region each box of its drawing comes from."""

from __future__ import annotations

from mugraph.ir.drawing.layout import INPUT, OUTPUT
from mugraph.ir.drawing.parts import Sources
from mugraph.ir.mugraph import GraphKernel
from mugraph.ir.region import Range
from mugraph.plans.origins import origins
from mugraph.plans.plan import RegionPlan
from mugraph.worker.states import statements


def drawn_sources(plan: RegionPlan) -> Sources:
    places = {place: str(number) for number, place in enumerate(statements(plan.region))}
    found = origins(plan)

    def words(ranges: tuple[Range, ...]) -> str:
        return " ".join(places[place] for place in ranges if place in places)

    sources: dict[tuple[str, str], str] = {}
    for kernel in plan.mugraph.kernels:
        one = found[kernel.name]
        sources[kernel.name, ""] = words(one.call)
        if isinstance(kernel, GraphKernel):
            sources.update({(kernel.name, name): words(ranges) for name, ranges in one.ops.items()})
            for side, tensors in ((INPUT, kernel.block.inputs), (OUTPUT, kernel.block.outputs)):
                for tensor in tensors:
                    sources[kernel.name, side + tensor.name] = words(one.tensors.get(tensor.name, ()))
    return sources
