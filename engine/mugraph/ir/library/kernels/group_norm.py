"""Groups of channels, each less its mean over the root of its variance, with a weight and maybe a bias of each channel:
`torch.nn.functional.group_norm`. (Without them it is a layer norm of each group.)

PyTorch keeps the statistics in float32, whatever the type.
"""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.library.rows import norm_call, standardized


def match(block: BlockGraph) -> LibraryCall | None:
    return norm_call(block, "torch.nn.functional.group_norm", ("weight", "bias"), standardized, grouped=True)


KERNEL = PredefinedKernel(match)
