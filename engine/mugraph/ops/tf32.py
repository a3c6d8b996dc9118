"""Which of PyTorch's settings says whether a call's products of float32 numbers may take TF32."""

from __future__ import annotations

from collections.abc import Iterable

from mugraph.ir.calls import Call
from mugraph.ir.ops import Tf32
from mugraph.ops.algebra.registry import entry_for


def settings_of(calls: Iterable[Call]) -> tuple[Tf32, ...]:
    """Those that were set where the calls were recorded, as far as it matters to them."""
    return tuple(sorted({_setting_of(call) for call in calls if call.tf32}))


def _setting_of(call: Call) -> Tf32:
    """Of a call that takes TF32. Products of matrices have rules; of what cuDNN computes, some have none."""
    entry = entry_for(call.target)
    return entry.tf32 if entry is not None else "cudnn"
