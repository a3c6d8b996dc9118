"""Where tensors lie that the kernels of one launcher hand to one another, once launches are prepared.

A launcher's text has a tensor for each of them, which it deletes after its last use: PyTorch's allocator gives the same
memory to what is allocated after that. What runs once launches are prepared allocates all of it at once, ahead of the
first launch. So there it is a plan that says which of them share memory (optimizer/storage.py). A result that only a
later kernel writes has room for what is no longer read by then.

A kernel that is launched before the one before it has ended (early.py) writes nothing until that has, and all before it
have. So lifetimes are counted in launches there, too. What runs side by side is one launch.
"""

from __future__ import annotations

from math import prod

from mugraph.codegen.launcher import names_of
from mugraph.ir.dtypes import itemsize
from mugraph.ir.kernel import KernelSource
from mugraph.optimizer.storage import Lifetime, aligned, stored

Places = dict[str, tuple[str, int]]


def lifetimes_of(source: KernelSource) -> tuple[list[Lifetime], list[Lifetime]]:
    """In launches: of what generated kernels hand to one another, and of what they return. Where sizes vary, the
    largest."""
    returned, end = {tensor.name for tensor in source.outputs}, len(source.kernels)
    seen: dict[str, list[int]] = {}
    by_library: set[str] = set()
    sizes: dict[str, int] = {}
    for at, kernel in enumerate(source.kernels):
        for tensor in kernel.tensors:
            seen.setdefault(tensor.name, []).append(at)
            by_library |= {tensor.name} if kernel.library is not None else set()
        for tensor in (*kernel.scratch, *kernel.outputs):
            sizes[tensor.name] = aligned(prod(tensor.shape(kernel.sizes)) * itemsize(tensor.dtype))
    own = [name for name in sizes if name not in by_library]
    scratch = [Lifetime(name, sizes[name], min(seen[name]), max(seen[name])) for name in own if name not in returned]
    return scratch, [Lifetime(name, sizes[name], min(seen[name]), end) for name in own if name in returned]


def scratch_places(source: KernelSource) -> Places:
    """Variable of the launcher -> the result that it lies in, "" being the buffer that is made for them, and how many
    bytes behind where that begins. None where the buffer is no smaller than all of them together."""
    if source.smaller or any(kernel.least or kernel.launches for kernel in source.kernels):
        return {}
    scratch, results = lifetimes_of(source)
    found = stored(scratch, results)
    if found.shared.size >= sum(one.size for one in scratch):
        return {}
    called = names_of(source.kernels)
    places = {name: ("", offset) for name, offset in found.shared.offsets.items()}
    places |= {name: (called[host], offset) for name, (host, offset) in found.inside.items()}
    return {called[one.name]: places[one.name] for one in scratch}
