"""Kernels that start while the kernel before them ends: programmatic dependent launch.

A kernel that is launched so (`launch_pdl=True`) begins when every block of the kernel before it in the stream has
called `gdc_launch_dependents()` or has ended. What that kernel, and those before it, write is there only after
`gdc_wait()`. So its text keeps these rules, which the check of the text looks for (triton_text/waits.py):

- Every block waits, on every path. Then the end of a kernel says that all kernels before it have ended, too.
- Before it waits it stores nothing: a kernel before it may still read the memory that it would write to.
- Before it waits it loads nothing that any kernel of the call writes. The first kernel of a call is launched after all
  that is before it in the stream has ended, so what the call is given is there, and may be loaded: weights as a rule.
- A launcher whose own first kernel starts early does not know what of its inputs is there. It loads nothing before.
  Whatever runs before it, as torch.compile may put something there: that was launched after all before it had ended,
  or waits itself, as PTX asks of every kernel that is launched so. When it has ended, all before it has.
- It may ask for memory to come into the cache: that reads nothing (prefetch.py).

A kernel says at once that the next one may start. That one begins when all blocks of this one have begun, so it takes
no place that one of them waits for; its blocks hold their registers and shared memory while they wait.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from mugraph.codegen.last_block import as_one
from mugraph.codegen.launcher import launcher_text
from mugraph.codegen.one_grid import one_grid
from mugraph.codegen.prefetch import prefetches
from mugraph.ir.dtypes import itemsize
from mugraph.ir.kernel import KernelSource

WAIT, STARTS_NEXT = "tl.extra.cuda.gdc_wait()", "tl.extra.cuda.gdc_launch_dependents()"

Form = Literal["waiting", "loading", "asking"]
"""What an early kernel does before it waits: nothing of memory; load what is known to be there; and ask for first tiles
of other tensors that no kernel writes."""


def overlapped(
    source: KernelSource,
    *,
    after: bool = False,
    before: bool = False,
    form: Form = "loading",
    weights: Collection[str] = (),
) -> KernelSource:
    """The same kernels, each launched early that comes right after another.

    after:   a kernel that says that the next one may start comes right before the first
    before:  one that is launched early comes right after the last
    weights: tensors of which tiles are asked for
    """
    parts: list[KernelSource] = []
    made: set[str] = set()
    follows, is_given = after, False  # is what the launcher is given there when an early kernel begins?
    asked = weights if form == "asking" else ()
    for number, part in enumerate(source.kernels):
        if part.library is not None:  # PyTorch's kernels say nothing
            follows = False
        else:
            is_given = is_given or not follows
            last = number + 1 == len(source.kernels)
            goes_on = before if last else source.kernels[number + 1].library is None
            may_load = is_given and form != "waiting"
            in_flight = made if may_load else {tensor.name for tensor in part.tensors}
            part = _with_calls(part, in_flight if follows else None, goes_on, asked)
            follows = True
        made |= {tensor.name for tensor in part.outputs}
        parts.append(part)
    launcher = launcher_text(source.name, parts, {tensor.name for tensor in source.outputs})
    if not source.parts:
        return replace(parts[0], launcher=launcher)
    jit = "\n\n\n".join(part.jit for part in parts if part.jit)
    return replace(source, jit=jit, launcher=launcher, parts=tuple(parts), early=parts[0].early)


def _with_calls(
    kernel: KernelSource, in_flight: Collection[str] | None, goes_on: bool, asked: Collection[str]
) -> KernelSource:
    """in_flight: tensors that may not be loaded before the wait; None where the kernel is not launched early.
    goes_on: the next kernel is. asked: tensors of which tiles are asked for before the wait

    Of kernels that are one launch, each waits by itself: a block is of one of them."""
    if kernel.joined:
        return one_grid(kernel.name, [_with_calls(part, in_flight, goes_on, asked) for part in kernel.joined])
    if kernel.combined is not None:  # every block is one of the first, and has waited when it is the last
        first = _with_calls(kernel.combined.first, in_flight, goes_on, asked)
        return as_one(kernel.name, replace(kernel.combined, first=first))
    lines = kernel.jit.splitlines()
    function = next(
        node
        for node in ast.parse(kernel.jit).body
        if isinstance(node, ast.FunctionDef) and node.name == kernel.function
    )
    if in_flight is not None:
        tensors = (*kernel.inputs, *kernel.outputs)
        stored = {tensor.name for tensor in kernel.outputs}
        named = zip(kernel.pointers, tensors, strict=True)
        waited_for = {pointer for pointer, tensor in named if tensor.name in in_flight or tensor.name in stored}
        at = next(at for at, statement in enumerate(function.body) if _names(statement) & waited_for)
        sizes = {
            pointer: itemsize(tensor.dtype)
            for pointer, tensor in zip(kernel.pointers, kernel.inputs, strict=False)
            if tensor.name in asked
        }
        stages = max(1, kernel.num_stages - 1)
        waits = [*prefetches(function, at, sizes, kernel.constexprs, stages), f"    {WAIT}"]
        begin = function.body[at].lineno - 1
        lines[begin:begin] = waits
    if goes_on:
        lines.insert(function.body[0].lineno - 1, f"    {STARTS_NEXT}")
    kernel = replace(kernel, jit="\n".join(lines), early=in_flight is not None)
    return replace(kernel, launcher=launcher_text(kernel.name, [kernel]))


def _names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
