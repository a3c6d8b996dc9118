"""Whether PyTorch takes TF32 for what may take it. Child process only.

A setting allows it; the library decides, by sizes and by the order in memory. cuDNN convolves images of a few channels
in float32 where they lie in the usual order, and in TF32 where they lie channels last. What it does is the program's
own precision, which a kernel has to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch

from mugraph.ir.ops import Tf32
from mugraph.ir.tf32 import EPSILON
from mugraph.tune import timing
from mugraph.tune.messages import InputSpec, Kept

_FLOAT32 = EPSILON / 8
"""Of results of float32 in two orders of adding up: at most, relative to their norm. One rounded operand makes a
difference of 0.4 of TF32's largest rounding error, on numbers of all sizes, however many are added up."""


def keeps_digits(
    function: timing.Function,
    specs: Sequence[InputSpec],
    generator: torch.Generator,
    settings: Collection[Tf32],
    take: Callable[[Collection[Tf32]], None],
) -> Kept:
    """take: sets what PyTorch may take TF32 for"""
    inputs = timing.make_inputs(specs, generator)
    with torch.no_grad():
        take(settings)
        found = timing.tensors_of(function(*inputs))
        take(())
        exact = timing.tensors_of(function(*inputs))
    return Kept(all(timing.norms_apart(*pair) < _FLOAT32 for pair in zip(found, exact, strict=True)))
