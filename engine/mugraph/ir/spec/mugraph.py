"""Rules of kernel graphs: what kernels read and write, and the thread graphs inside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from mugraph.ir.block import BlockGraph
from mugraph.ir.library import library_call
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph, ThreadGraph
from mugraph.ir.ops import Kind, Op
from mugraph.ir.registers import THREAD_LEVEL, leaving
from mugraph.ir.spec.ops import tensor_violations
from mugraph.ir.windows import Window


def mugraph_violations(mugraph: MuGraph, broken: Collection[str] = ()) -> Iterator[str]:
    """broken: kernels whose operators or tensors are not valid; only their names are checked"""
    outside = list(tensor_violations(mugraph.tensors, mugraph.sizes))
    yield from outside
    names = {tensor.name for tensor in mugraph.tensors}
    for name in (*mugraph.inputs, *mugraph.outputs):
        if name not in names:
            yield f"there is no tensor {name}"
    for what, listed in (("input", mugraph.inputs), ("output", mugraph.outputs)):
        for name in sorted({name for name in listed if listed.count(name) > 1}):
            yield f"{what} {name} is listed twice"
    kernels = [kernel.name for kernel in mugraph.kernels]
    for name in sorted({name for name in kernels if kernels.count(name) > 1}):
        yield f"there are two kernels {name}"
    written = set(mugraph.inputs)
    for kernel in mugraph.kernels:
        is_graph = isinstance(kernel, GraphKernel)
        reads = tuple(tensor.name for tensor in kernel.block.inputs) if is_graph else kernel.inputs
        writes = tuple(tensor.name for tensor in kernel.block.outputs) if is_graph else kernel.outputs
        for name in (*reads, *writes):
            if name not in names:
                yield f"kernel {kernel.name}: there is no tensor {name} in the kernel graph"
        for name in reads:
            if name in names and not any(_same_memory(mugraph, name, other) for other in written):
                yield f"kernel {kernel.name} reads {name} before anything has written it"
        for name in writes:
            if name in written:
                yield f"kernel {kernel.name} writes {name}, which is an input or already written"
        written.update(writes)
        if kernel.name in broken:
            continue
        if kernel.block is not None and not outside:
            yield from _border_violations(mugraph, kernel.name, kernel.block)
        if is_graph:
            if kernel.schedule.library:
                yield f"kernel {kernel.name} is scheduled as a library kernel"
            leaves = leaving(kernel.block)
            for thread in kernel.threads:
                yield from _thread_violations(kernel, thread, leaves)
            yield from _shared_violations(kernel)
        elif kernel.block is not None:
            yield from _library_violations(kernel, kernel.block)
    for name in mugraph.outputs:
        if name in names and name not in written:
            yield f"nothing writes output {name}"
    yield from _window_violations(mugraph)
    yield from _launch_violations(mugraph)
    yield from _combined_violations(mugraph)


def _launch_violations(mugraph: MuGraph) -> Iterator[str]:
    """Kernels of one launch are generated ones that do not depend on one another, and none that runs between them makes
    what one of them reads."""
    kernels = {kernel.name: kernel for kernel in mugraph.kernels}
    order = [kernel.name for kernel in mugraph.kernels]
    listed = [name for group in mugraph.one_launch for name in group]
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"kernel {name} is in two launches"
    for group in mugraph.one_launch:
        if len(group) < 2:
            yield f"a launch of several kernels has {len(group)}"
        unknown = [name for name in group if not isinstance(kernels.get(name), GraphKernel)]
        for name in unknown:
            yield f"{name}, of a launch of several kernels, is no generated kernel"
        if unknown or not group:
            continue
        places = [order.index(name) for name in group]
        made: dict[str, str] = {}
        for name in order[min(places) : max(places) + 1]:
            kernel = kernels[name]
            is_graph = isinstance(kernel, GraphKernel)
            reads = [tensor.name for tensor in kernel.block.inputs] if is_graph else [*kernel.inputs]
            for read in reads if name in group else ():
                for other in made:
                    if _same_memory(mugraph, read, other):
                        yield f"kernel {name} reads {read}, which {made[other]} makes after its launch begins"
            writes = [tensor.name for tensor in kernel.block.outputs] if is_graph else [*kernel.outputs]
            made |= dict.fromkeys(writes, name)


def _combined_violations(mugraph: MuGraph) -> Iterator[str]:
    """Of a launch that combines its own sums the second kernel comes right after the first, and nothing else reads what
    the first one makes."""
    kernels = {kernel.name: kernel for kernel in mugraph.kernels}
    order = [*kernels]
    listed = [name for pair in (*mugraph.combined, *mugraph.one_launch) for name in pair]
    for first, second in mugraph.combined:
        one, other = kernels.get(first), kernels.get(second)
        if not isinstance(one, GraphKernel) or not isinstance(other, GraphKernel):
            yield f"{first} and {second}, which are one launch, are not both generated kernels"
            continue
        if max(listed.count(name) for name in (first, second)) > 1:
            yield f"kernel {first} or {second} is in two launches"
        if order.index(second) != order.index(first) + 1:
            yield f"kernel {second} does not come right after {first}, in whose launch it is"
        made, read = ({tensor.name for tensor in of} for of in (one.block.outputs, other.block.inputs))
        if not made <= read or not made.isdisjoint(mugraph.outputs):
            yield f"not all that {first} makes is for {second}, in whose launch it is"
        for kernel in mugraph.kernels:
            inputs = [t.name for t in kernel.block.inputs] if isinstance(kernel, GraphKernel) else kernel.inputs
            if kernel.name != second and not made.isdisjoint(inputs):
                yield f"{kernel.name} reads what {first} makes, which only {second} has"


def _window_violations(mugraph: MuGraph) -> Iterator[str]:
    """One kernel may read a tensor through windows and another without; the kernel graph has the tensor as one of
    the two has it."""
    views: dict[str, list[tuple[Window, ...]]] = {}
    for kernel in mugraph.kernels:
        for tensor in kernel.block.tensors if kernel.block is not None else ():
            views.setdefault(tensor.name, []).append(tensor.windows)
    for tensor in mugraph.tensors:
        if tensor.windows not in views.get(tensor.name, [()]):
            yield f"tensor {tensor.name} has windows that no kernel reads it through"


def _same_memory(mugraph: MuGraph, one: str, other: str) -> bool:
    """One tensor, or one piece of memory under two sets of axis names (tensors.py)."""
    sources = {tensor.name: tensor.source for tensor in mugraph.tensors}
    return one == other or (bool(sources.get(one)) and sources.get(one) == sources.get(other))


def _library_violations(kernel: LibraryKernel, block: BlockGraph) -> Iterator[str]:
    """The block graph of a library kernel computes from the kernel's inputs, without tiles."""
    if block.loops:
        yield f"library kernel {kernel.name} has a loop"
    call = library_call(block)
    if call is None or call.shown != kernel.call:
        computed = call.shown if call is not None else "what no library call does"
        yield f"library kernel {kernel.name} computes {computed}, not {kernel.call}"
    reads, writes = ({tensor.name for tensor in tensors} for tensors in (block.inputs, block.outputs))
    if reads != set(kernel.inputs) or writes != set(kernel.outputs):
        yield (
            f"library kernel {kernel.name} computes {sorted(writes)} from {sorted(reads)}, "
            f"not {sorted(kernel.outputs)} from {sorted(kernel.inputs)}"
        )


def _border_violations(mugraph: MuGraph, kernel: str, block: BlockGraph) -> Iterator[str]:
    """A kernel may have axis names of its own; a tensor's memory has to be as in the kernel graph."""
    known = {tensor.name: tensor for tensor in mugraph.tensors}
    for inner in block.tensors:
        outer = known.get(inner.name)
        if outer is None:
            continue
        seen, real = inner.in_words(block.sizes), outer.in_words(mugraph.sizes)
        if seen != real:
            yield f"kernel {kernel} takes {inner.name} to be {seen}; it is {real}"


def _thread_violations(kernel: GraphKernel, thread: ThreadGraph, leaves: Callable[[Op, Op], str]) -> Iterator[str]:
    """leaves: why a value does not stay in registers until an operator uses it (registers.py)"""
    where = f"kernel {kernel.name}: thread graph {thread.name}"
    ops = kernel.block.ops
    if not thread.ops:
        yield f"{where} is empty"
        return
    if thread.name != thread.ops[-1].name:
        yield f"{where} is not named after its last operator, {thread.ops[-1].name}"
    for op in thread.ops:
        if op not in ops:
            yield f"{where}: {op.name} is no operator of the block graph"
        if op.kind not in THREAD_LEVEL and op.kind is not Kind.CONST:
            yield f"{where}: {op.name} is {op.kind}, which is no operator of thread graphs"
    inside = {op.name for op in thread.ops}
    constants = {op.name for op in ops if op.kind is Kind.CONST}
    members = [op.name for op in thread.ops if op.name not in constants]
    if members != [op.name for op in ops if op.name in members]:
        yield f"{where}: its operators are not in the order of the block graph"
    reads = {name for op in thread.ops for name in op.inputs} - inside
    if len(set(thread.inputs)) < len(thread.inputs):
        yield f"{where} reads a value twice: {list(thread.inputs)}"
    if reads - constants != set(thread.inputs) - constants:
        yield f"{where} reads {sorted(reads - constants)}, not {sorted(set(thread.inputs) - constants)}"
    for op in ops:
        if op.name not in members or op.name == thread.name:
            continue
        users = [user for user in ops if op.name in user.inputs]
        for user in users:
            if user.name not in inside:
                yield f"{where}: {user.name} outside it uses {op.name}, which stays in registers"
            elif {op.kind, user.kind} <= THREAD_LEVEL and (reason := leaves(op, user)):
                yield f"{where}: {reason}"
        if not users:
            yield f"{where}: nothing uses {op.name}"


def _shared_violations(kernel: GraphKernel) -> Iterator[str]:
    """Constants alone may be in several thread graphs."""
    seen: dict[str, str] = {}
    for thread in kernel.threads:
        for op in thread.ops:
            if op.kind is not Kind.CONST and seen.setdefault(op.name, thread.name) != thread.name:
                yield f"kernel {kernel.name}: {op.name} is in the thread graphs {seen[op.name]} and {thread.name}"
