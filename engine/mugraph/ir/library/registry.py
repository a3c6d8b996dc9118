"""Which pre-defined kernels there are: every file of `mugraph.ir.library.kernels` holds one, as KERNEL."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from mugraph.ir.block import BlockGraph
from mugraph.ir.library.call import LibraryCall
from mugraph.ir.library.record import Orders, PredefinedKernel
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram

_KERNELS = "mugraph.ir.library.kernels"


@cache
def _kernels() -> tuple[PredefinedKernel, ...]:
    names = sorted(module.name for module in iter_modules(import_module(_KERNELS).__path__))
    return tuple(cast("PredefinedKernel", import_module(f"{_KERNELS}.{name}").KERNEL) for name in names)


def library_call(block: BlockGraph) -> LibraryCall | None:
    """The call that computes the block graph; None where there is none, or where it would copy an operand first."""
    return next((call for kernel in _kernels() if (call := kernel.match(block)) is not None), None)


def fast_call(block: BlockGraph) -> LibraryCall | None:
    """The same, where no other calls are known to be faster."""
    call = library_call(block)
    return None if call is None or call.is_slow else call


def memory_orders(program: TensorProgram, op: Op) -> Orders:
    """Axes of the operator's value as a library's kernel for it leaves them in memory; none where none says it."""
    return next((orders for kernel in _kernels() if (orders := kernel.orders(program, op))), ())
