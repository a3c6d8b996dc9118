"""Rows less their mean over the root of their variance, maybe with a weight and a bias:
`torch.nn.functional.layer_norm` over the last dimensions.

PyTorch keeps the statistics in float32, whatever the type.
"""

from __future__ import annotations

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.library.rows import norm_call, standardized


def match(block: BlockGraph) -> LibraryCall | None:
    return norm_call(block, "torch.nn.functional.layer_norm", ("weight", "bias"), standardized)


KERNEL = PredefinedKernel(match)
