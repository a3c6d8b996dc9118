"""A region that stores last, with its writes as the user's code has them: `p.mul_(a).add_(g)` in place of `p * a + g`,
which is copied to `p`. Its time is the code's, which copies nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.calls import Call, Ref, operands
from mugraph.ir.region import Region
from mugraph.ops.algebra.registry import entry_for


def written_at_once(region: Region) -> Region:
    """A tensor whose writes cannot be told from the calls is copied to as before."""
    calls = list(region.calls)
    if region.dynamic is None and region.relaid is None:
        for copy in region.calls:
            if copy.target == "Tensor.copy_" and operands(copy)[0] in region.stored:
                calls = _without(calls, copy) or calls
    return replace(region, calls=tuple(calls)) if calls != list(region.calls) else region


def _without(calls: Sequence[Call], copy: Call) -> list[Call] | None:
    """The calls without this one, where each of those that compute what it copies may write in place."""
    target, value = copy.args[:2]
    makers = {out: at for at, call in enumerate(calls) for out in call.outputs}
    chain: list[int] = []
    while value != target:
        at = makers.get(value.value) if isinstance(value, Ref) else None
        if at is None or not may_write(calls[at]):
            return None
        chain.append(at)
        value = calls[at].args[0]
    for at in chain:  # what it writes over is not read behind it
        (over,) = operands(calls[at])[:1]
        if any(over in operands(call) for call in calls[at + 1 :] if call is not copy):
            return None
    return [
        replace(call, target=f"{call.target}_") if at in chain else call
        for at, call in enumerate(calls)
        if call is not copy
    ]


def may_write(call: Call) -> bool:
    """Has the method a form that writes to its first argument?"""
    is_method = call.target.startswith("Tensor.") and not call.target.endswith("_")
    return is_method and isinstance(call.args[0], Ref) and entry_for(f"{call.target}_") is not None
