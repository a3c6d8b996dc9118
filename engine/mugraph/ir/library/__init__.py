"""Pre-defined kernels (Mirage §2): block graphs that one PyTorch call computes, and the call.

The block graph says what is computed, without loops, so that a pre-defined kernel is verified as any other one. Each
is a file of `kernels`; nothing outside of it knows which there are.
"""

from mugraph.ir.library.call import LibraryCall, Product, View
from mugraph.ir.library.registry import fast_call, library_call, memory_orders

__all__ = ["LibraryCall", "Product", "View", "fast_call", "library_call", "memory_orders"]
