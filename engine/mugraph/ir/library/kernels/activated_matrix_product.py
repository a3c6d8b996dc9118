"""A product with a vector along its columns, and relu of that: `torch._addmm_activation`.

cuBLASLt computes it all as it writes (measured on an H200 in float16: 1.0 to 1.1 times as long as without relu).

GELU is no such kernel: the same call has its definition on a CPU and an approximation on a GPU.
"""

from __future__ import annotations

from dataclasses import replace

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.kernels.biased_matrix_product import match as biased
from mugraph.ir.library.record import PredefinedKernel
from mugraph.ir.ops import Kind

_FUNCTION = "relu"
_MOST_OPS = 7
"""Three loads, a product, a sum, the function and the store."""


def match(block: BlockGraph) -> LibraryCall | None:
    if not 2 <= len(block.ops) <= _MOST_OPS:
        return None
    *before, root, store = block.ops
    if store.kind is not Kind.STORE or store.inputs != (root.name,):
        return None
    if not root.kind.is_function or root.fn != _FUNCTION:
        return None
    call = biased(replace(block, ops=(*before, replace(store, inputs=root.inputs))))
    if call is None or call.copied or call.arguments:
        return None
    return replace(call, function="torch._addmm_activation", fuses=True)


KERNEL = PredefinedKernel(match)
