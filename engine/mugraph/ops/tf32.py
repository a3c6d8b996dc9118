"""Which of PyTorch's settings says whether a call's products of float32 numbers may take TF32."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.calls import Call
from mugraph.ir.ops import Tf32
from mugraph.ops.algebra.registry import canonical, entry_for


def setting_of(target: str) -> Tf32:
    """Convolutions have one whether there is a rule for them or not: PyTorch's time for them depends on it."""
    entry = entry_for(target)
    if entry is not None:
        return entry.tf32
    return "conv" if canonical(target).rpartition(".")[2].startswith("conv") else ""


def settings_of(calls: Iterable[Call]) -> tuple[Tf32, ...]:
    """Those that were set where the calls were recorded, as far as it matters to them."""
    return tuple(sorted({setting_of(call.target) for call in calls if call.tf32}))
