"""Which kernels of a plan could run side by side: none needs what another one, or a call between them, makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mugraph.baseline.launches import launches
from mugraph.ir.calls import is_inplace, operands
from mugraph.ir.region import PlainCalls, Region
from mugraph.plans.plan import KernelStep, joined

Step = KernelStep | PlainCalls


@dataclass(frozen=True)
class Together:
    """Steps that may be one launch, in the order that they have in the plan."""

    steps: tuple[KernelStep, ...]


def beside(region: Region, steps: Sequence[Step], may_be: Callable[[KernelStep], bool]) -> tuple[Together | Step, ...]:
    """The plan's steps in an order in which they can run, with those that could be one launch together.

    may_be: can a step be part of such a launch?

    A kernel moves up to the first one that it can run beside; views that it reads move before both. A call that writes
    in place stays where it is, and nothing moves over it.
    """
    waiting = [one for step in steps for one in _items(step)]
    found: list[Together | Step] = []
    while waiting:
        first = waiting.pop(0)
        if isinstance(first, PlainCalls) or not may_be(first):
            found.append(first)
            continue
        together = [first]
        before: list[Step] = []
        after: list[Step] = []
        passed: list[Step] = []
        made = set(first.unit.outputs.values())  # by what does not run before the launch
        while waiting and not _in_place(waiting[0]):
            step = waiting.pop(0)
            passed.append(step)
            if made.isdisjoint(_read(step)):
                if isinstance(step, KernelStep) and may_be(step):
                    together.append(step)
                elif isinstance(step, PlainCalls) and not launches(step.calls, region.values):
                    before.append(step)
                    continue
                else:
                    after.append(step)
            else:
                after.append(step)
            made |= _made(step)
        alone = len(together) == 1
        found += [first] if alone else [*before, Together(tuple(together))]
        waiting = [*(passed if alone else after), *waiting]
    return tuple(joined(found))


def _items(step: Step) -> list[Step]:
    """A kernel; or each call for itself."""
    return [step] if isinstance(step, KernelStep) else [PlainCalls((call,)) for call in step.calls]


def _in_place(step: Step) -> bool:
    return isinstance(step, PlainCalls) and any(map(is_inplace, step.calls))


def _read(step: Step) -> set[int]:
    if isinstance(step, KernelStep):
        return set(step.unit.inputs.values())
    return {value for call in step.calls for value in operands(call)}


def _made(step: Step) -> set[int]:
    if isinstance(step, KernelStep):
        return set(step.unit.outputs.values())
    return {value for call in step.calls for value in call.outputs}
