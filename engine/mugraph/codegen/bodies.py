"""The body of a kernel as a function of its block's ids, which another kernel calls: what is several kernels in one
launch is made of these (one_grid.py, last_block.py)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from mugraph.codegen.arguments import argument_lines
from mugraph.codegen.launcher import launcher_text
from mugraph.ir.kernel import KernelSource, Rejected

_PROGRAM_ID = re.compile(r"^    (\w+) = tl\.program_id\((\d)\)\n", re.MULTILINE)


def ids_of(kernel: KernelSource) -> list[tuple[int, str]]:
    """The axes of its grid that it asks for, and what it calls a block's place along each."""
    return sorted((int(axis), name) for name, axis in _PROGRAM_ID.findall(kernel.jit))


def as_function(kernel: KernelSource, name: str) -> str:
    """The kernel's function under another name, with its block's ids as its first parameters. Raises Rejected where it
    asks for them in another way."""
    text = _PROGRAM_ID.sub("", kernel.jit)
    ids = "".join(f" {one}," for _, one in ids_of(kernel))
    head = f"def {kernel.function}(\n"
    if text.count(head) != 1 or "tl.program_id" in text or "tl.num_programs" in text:
        raise Rejected(f"{kernel.name} asks in another way where its block is.")
    return text.replace(head, f"def {name}(\n" + (f"   {ids}\n" if ids else ""))


def call_lines(function: str, given: Sequence[str], constexprs: Mapping[str, int | float]) -> Iterator[str]:
    """given: ids, then pointers"""
    yield f"{function}("
    for line in (*argument_lines(given), *argument_lines([f"{key}={value!r}" for key, value in constexprs.items()])):
        yield f"    {line}"
    yield ")"


def with_launches(source: KernelSource, launched: Sequence[KernelSource], outputs: Collection[str]) -> KernelSource:
    """The source with these launches in place of its own. outputs: that are returned though a later kernel reads
    them"""
    launcher = launcher_text(source.name, launched, outputs)
    if len(launched) == 1:
        return replace(launched[0], name=source.name, launcher=launcher)
    first = launched[0]
    return replace(
        source,
        jit="\n\n\n".join(part.jit for part in launched if part.jit),
        pointers=first.pointers,
        constexprs=first.constexprs,
        grid=first.grid,
        num_warps=first.num_warps,
        num_stages=first.num_stages,
        launcher=launcher,
        parts=tuple(launched),
    )
