"""Reads the text form that the package's docstring describes. Every error is one sentence with its line number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from mugraph.ir.block import PRECISIONS, BlockGraph, Precision, Schedule
from mugraph.ir.mugraph import GraphKernel, LibraryKernel, MuGraph, ThreadGraph
from mugraph.ir.ops import Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ir.text.body import check_derived, read_body, read_op
from mugraph.ir.text.lines import NAME, Line, Lines, listed, read_lines
from mugraph.ir.text.loops import read_loops
from mugraph.ir.text.tensors import read_axes, read_tensor, read_tensors, read_together

CALL = re.compile(rf"({NAME})\(([^()]*)\)(?: (.*))?")
OUTPUT = re.compile(rf"({NAME}) -> (.*)")
LAUNCH = re.compile(rf"warps=(\d+) stages=(\d+)( swap)?(?: ({'|'.join(PRECISIONS)}))?(?: part=(\d+))?( evict| keep)?")


def parse_mugraph(text: str) -> MuGraph:
    """Raises TextError."""
    lines = read_lines(text, "mugraph")
    head = lines.take("mugraph")
    found = head.match(CALL, head.rest, "a name, inputs in parentheses, `->` and outputs")
    name, inputs, tail = found.groups()
    if not (tail or "").startswith("-> "):
        head.fail("the outputs are missing: `mugraph name(inputs) -> outputs`")
    sizes = read_axes(lines)
    tensors = read_tensors(lines, sizes)
    together: list[tuple[str, ...]] = []
    while lines.has("one_launch"):
        together.append(listed(lines.take("one_launch").rest))
    combined: list[tuple[str, str]] = []
    while lines.has("combined"):
        line = lines.take("combined")
        pair = listed(line.rest)
        if len(pair) != 2:
            line.fail("`combined` has two kernels: one, and the one that combines its sums")
        combined.append((pair[0], pair[1]))
    kernels: list[GraphKernel | LibraryKernel] = []
    while lines.has("kernel", "library"):
        is_graph = lines.has("kernel")
        kernels.append(_kernel(lines, sizes, tensors) if is_graph else _library(lines, sizes, tensors))
    lines.end()
    every, outputs, launches = tuple(tensors.values()), listed(tail[3:]), (tuple(together), tuple(combined))
    return MuGraph(name, sizes, every, listed(inputs), outputs, tuple(kernels), *launches)


def parse_program(text: str) -> TensorProgram:
    """Raises TextError."""
    lines = read_lines(text, "program")
    name = lines.take("program").rest
    least: dict[str, int] = {}
    sizes = read_axes(lines, least)
    sized = read_together(lines, least)
    tensors = read_tensors(lines, sizes)
    ops: list[Op] = []
    while lines.has(""):
        line = lines.take("")
        op, shown = read_op(line)
        if shown:
            line.fail("an operator of a tensor program has no maps")
        ops.append(op)
    outputs: dict[str, Tensor] = {}
    while lines.has("output"):
        line = lines.take("output")
        value, tensor = line.match(OUTPUT, line.rest, "`value -> tensor`").groups()
        outputs[value] = read_tensor(line, tensor, sizes)
    lines.end()
    return TensorProgram(name, sizes, tuple(tensors.values()), tuple(ops), outputs, least, sized)


def parse_block(text: str) -> BlockGraph:
    """Raises TextError."""
    lines = read_lines(text, "block")
    name = lines.take("block").rest
    sizes = read_axes(lines)
    tensors = read_tensors(lines, sizes)
    loops, _ = read_loops(lines)
    body = read_body(lines)
    lines.end()
    block = BlockGraph(name, sizes, tuple(tensors.values()), tuple(placed.op for placed in body), loops)
    check_derived(block, None, body)
    return block


def _library(lines: Lines, outer: dict[str, int], known: Mapping[str, Tensor]) -> LibraryKernel:
    """Operators below it, if any, say what it computes."""
    line = lines.take("library")
    name, called, tail = line.match(CALL, line.rest, "a library kernel").groups()
    found = line.match(re.compile(r'-> (.*?) = (".*")'), tail or "", '`-> outputs = "call"`')
    call, inputs, outputs = line.string(found[2]), listed(called), listed(found[1])
    if not lines.has("axes", "tensor", ""):
        return LibraryKernel(name, call, inputs, outputs)
    sizes, tensors = _borders(line, lines, (*inputs, *outputs), outer, known)
    body = read_body(lines)
    block = BlockGraph(name, sizes, tensors, tuple(placed.op for placed in body))
    check_derived(block, None, body)
    return LibraryKernel(name, call, inputs, outputs, block)


def _borders(
    head: Line, lines: Lines, names: tuple[str, ...], outer: dict[str, int], known: Mapping[str, Tensor]
) -> tuple[dict[str, int], tuple[Tensor, ...]]:
    """A kernel's own axes and tensors, or the kernel graph's."""
    sizes = read_axes(lines) if lines.has("axes") else outer
    own = read_tensors(lines, sizes)
    for name in names:
        if name not in own and name not in known:
            head.fail(f"there is no tensor {name}")
    return sizes, tuple(own.get(name) or known[name] for name in names)


def _kernel(lines: Lines, outer: dict[str, int], known: Mapping[str, Tensor]) -> GraphKernel:
    head = lines.take("kernel")
    name, called, tail = head.match(CALL, head.rest, "a kernel: `name(tensors)`").groups()
    sizes, tensors = _borders(head, lines, listed(called), outer, known)
    grid = _grid(lines.take("grid")) if lines.has("grid") else ()
    loops, tiles = read_loops(lines)
    launch = lines.take("launch")
    expected = "`warps=4 stages=3`, perhaps `swap`, a precision, `part=128`, and `evict` or `keep`"
    warps, stages, swap, precision, part, evict = launch.match(LAUNCH, launch.rest, expected).groups()
    chosen = cast(Precision, precision or "ieee")
    schedule = Schedule(
        grid,
        tiles,
        bool(swap),
        int(warps),
        int(stages),
        precision=chosen,
        part=int(part or 0),
        evict=None if evict is None else evict == " evict",
    )
    body = read_body(lines)
    block_name = (tail or f"block {name}").removeprefix("block ")
    block = BlockGraph(block_name, sizes, tensors, tuple(placed.op for placed in body), loops)
    check_derived(block, schedule, body)
    return GraphKernel(name, block, schedule, tuple(_threads(lines, block)))


def _grid(line: Line) -> tuple[tuple[str, int], ...]:
    parts = (part.partition("/") for part in listed(line.rest))
    return tuple((axis, line.integer(tile)) for axis, _, tile in parts)


def _threads(lines: Lines, block: BlockGraph) -> Iterator[ThreadGraph]:
    ops = {op.name: op for op in block.ops}
    while lines.has("thread"):
        line = lines.take("thread")
        name, inputs, tail = line.match(CALL, line.rest, "a thread graph").groups()
        members = listed((tail or "").removeprefix("= "))
        for member in members:
            if member not in ops:
                line.fail(f"thread graph {name} holds {member}, which the block graph does not")
        yield ThreadGraph(name, listed(inputs), tuple(ops[member] for member in members))
