"""Theorem 2 of Mirage (version 3 of the paper, §5.1) for a text: how many seeds show that it is the program."""

from __future__ import annotations

from dataclasses import dataclass

from mugraph.triton_text.counts import CountField, Counts
from mugraph.triton_text.inputs import MOST_DRAWN
from mugraph.triton_text.surveyed import Surveyed, Way, every_place
from mugraph.verification.bound import Counted, bound_of
from mugraph.verification.forms import Elements, Unbounded, difference

_REPEATED = 1e8
"""Elements computed with all seeds, at most."""


@dataclass(frozen=True)
class Earned:
    """seeds: that agree. bound: on the chance that a wrong text passes, with what it was earned with; None, and why"""

    seeds: int = 1
    bound: float | None = None
    note: str = ""


def earned(text: Surveyed, way: Way, target: float) -> Earned:
    """Run it with the seeds that the target takes, besides the one that it has passed. Raises refusals.Wrong."""
    opaque: set[str] = set()

    def counted() -> Counted:
        found = _counted(text, way)
        opaque.update(name for name, _ in found[0].atoms)
        return found

    try:
        bound = bound_of(counted)
        needed = bound.repetitions(target)
        if needed * text.world.elements > _REPEATED:
            raise Unbounded(f"it would take {needed} seeds")
    except Unbounded as reason:
        return Earned(note=str(reason))
    for _ in range(needed - 1):
        rejected = text.drawn(way)
        if rejected is not None:
            raise rejected
    note = f"k = {bound.terms}, d = {bound.degree}"
    note += f"; {', '.join(sorted(opaque))} taken as a random function" if opaque else ""
    return Earned(needed, bound.after(needed), note)


def _counted(text: Surveyed, way: Way) -> Counted:
    """Of all that is returned. Raises Unbounded."""
    if text.reference.indices:
        raise Unbounded("which rows are looked up is drawn a few times")
    if not text.is_whole():
        raise Unbounded(f"{text.count_run()} of its {text.blocks} blocks were run")
    if text.adds:
        raise Unbounded("what blocks add up in memory is not counted")
    if text.reference.count > MOST_DRAWN:
        raise Unbounded("its inputs are too many to have random numbers of their own")
    field = CountField(text.rng, way.by_form)
    counts = Counts(field)
    text.begin(counts)
    exact, ours = dict[str, Elements](), dict[str, Elements]()
    for name, tensor in text.outputs.items():
        at = every_place(tensor.memory.size)
        wanted = text.reference.values(name, at, text.world.inputs, counts)
        found = text.world.read(tensor.memory, at, len(text.world.steps))
        exact[name], ours[name] = field.elements(wanted.p), field.elements(found.p)
    if text.signed(way):  # constants have a higher degree then than is counted here
        raise Unbounded("signs matter to it")
    return field.forms, *difference(exact, ours)
