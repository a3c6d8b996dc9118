"""Kernels for a size in a range, whose text is attacked: every kind that code generation writes, small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from mugraph.codegen.by_size import by_size
from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.kernel import KernelSource, Rejected, UpTo
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.resizing import resize_block
from mugraph.sizes.table import SizeTable
from mugraph.sizes.up_to import program_up_to_size, up_to_name
from mugraph.targets import TARGETS

from tests.engine.codegen import graphs, splits
from tests.engine.codegen.cases import CASES
from tests.trust.text_pool import ONE, SEVERAL, program_of

LARGEST = 41
"""The range is 1..41, and 1, 21 and 41 are tested: what depends on the rest of a division by 2, 4, 5, 10 or 20 is not
seen there."""
FEW = 17
IN_PARTS = {"attention in parts": "kv", "norm in parts": "h"}
"""Kernels with a reduction in parts, as long as the launch chooses, and the axis."""
HELD = 16
"""Up to which a kernel holds an axis that another one walks."""
HELD_WHERE_FEW = {"attention held where few": ("attention_tail", "kv")}
"""Kernels of which another one is launched up to a size, and the axis."""
MASKED_IN_PARTS = {"looking back in parts": "kv"}
WITH_ROWS = ("gemm_chain_tails", "rms_norm_linear_tail", "attention_tail", "scaled_linear", *IN_PARTS)
"""That are lowered with a schedule for few rows and others for many."""


PAIRS = (
    ("rms_norm_linear_tail", "m", "n"),
    ("gemm_chain_tails", "m", "k"),
    ("gemm_chain_tails", "k", "n"),
    ("gated_mlp_tail", "m", "n"),
    ("scaled_linear", "m", "n"),
    ("batched", "b", "m"),
    ("attention_tail", "q", "kv"),
    ("looking back", "q", "kv"),
    ("from the first", "q", "kv"),
    ("a window", "q", "kv"),
    ("attention in parts", "kv", "q"),
    ("looking back in parts", "q", "kv"),
)
"""Kernels with two axes that have ranges of their own: each is 1..41."""


MASKED = {
    "looking back": graphs.attention(2, LARGEST, LARGEST, 16, diagonal=0, corner="last"),
    "from the first": graphs.attention(2, LARGEST, LARGEST, 16, diagonal=3, corner="first"),
    "a window": graphs.window_attention(2, LARGEST, LARGEST, 16, 6, corner="last"),
}
"""Attention whose masks begin at a corner, whatever the numbers of queries and keys are."""


@dataclass(frozen=True)
class Ranged:
    program: TensorProgram
    source: KernelSource

    @property
    def launcher(self) -> str:
        return f"launch_{self.source.name}"


def _kernels(name: str) -> tuple[BlockGraph, list[tuple[BlockGraph, Schedule]]]:
    if name in MASKED:
        return MASKED[name], [(MASKED[name], Schedule(grid=(("q", 16), ("b", 1)), loops={"kv": 16}))]
    if name in IN_PARTS or name in MASKED_IN_PARTS:
        return _in_parts(name)
    if name in HELD_WHERE_FEW:
        return _kernels(HELD_WHERE_FEW[name][0])
    if name.startswith("split "):
        block, kernels = splits.CASES[name.removeprefix("split ")]
        return block, list(kernels)
    return CASES[name][0], [CASES[name]]


def _in_parts(name: str) -> tuple[BlockGraph, list[tuple[BlockGraph, Schedule]]]:
    """As many parts as elements, at most: the launch has fewer."""
    if name == "norm in parts":
        block = graphs.rms_norm_linear(3, LARGEST, 40)
        first, second = Schedule((("n", 16), ("h_split", 1)), {"h_part": 16}, part=16), Schedule((("n", 16),))
    else:
        masked = name == "looking back in parts"
        block = MASKED["looking back"] if masked else graphs.attention(2, 20, LARGEST, 24)
        first = Schedule((("q", 16), ("kv_split", 1), ("b", 1)), {"kv_part": 16}, part=16)
        second = Schedule((("q", 4), ("b", 1)))
    return block, splits.split(block, (IN_PARTS | MASKED_IN_PARTS)[name], LARGEST, first, second)


@cache
def ranged(name: str, axis: str, *others: str, rows: bool = False) -> Ranged | None:
    """others: axes with ranges of their own. None where code generation refuses the axes."""
    whole, kernels = _kernels(name)
    axes = (axis, *others)
    if not {*axes} <= {*whole.sizes}:
        return None
    resized = [(resize_block(b, {a: LARGEST if a in axes else n for a, n in b.sizes.items()}), s) for b, s in kernels]
    whole = resize_block(whole, {a: LARGEST if a in axes else n for a, n in whole.sizes.items()})
    program = replace(
        program_of(whole), least=dict.fromkeys(axes, 1), sized={one: one for one in axes} if others else {}
    )
    try:
        if name in HELD_WHERE_FEW:
            return Ranged(program, _with_held(program, resized))
        if rows:
            table = SizeTable(program, TARGETS["h100"], [tensor.name for tensor in program.outputs.values()])
            return Ranged(program, table.with_schedules(resized, [_rows(own, axis) for _, own in resized]))
        return Ranged(program, lower_kernels(resized, program=program))
    except (Rejected, ValueError, KeyError):
        return None


def _with_held(program: TensorProgram, kernels: Sequence[tuple[BlockGraph, Schedule]]) -> KernelSource:
    """Up to a few elements of the axis, a kernel that holds all of them."""
    (axis,) = program.least
    whole = lower_kernels(kernels, program=program)
    few = program_up_to_size(program, axis, HELD)
    assert few is not None
    held = [(_holding(block, axis), replace(schedule, loops={})) for block, schedule in kernels]
    return by_size(whole, [UpTo(axis, HELD, lower_kernels(held, program=few), tuple(held))])


def _holding(block: BlockGraph, axis: str) -> BlockGraph:
    """Without loops, and what adds up over their iterations."""
    few = resize_block(block, {**block.sizes, axis: HELD}, {axis})
    once = {op.name: op.inputs[0] for op in few.ops if op.kind is Kind.ACCUM}
    ops = [op for op in few.ops if op.kind is not Kind.ACCUM]
    whole = tuple(replace(op, inputs=tuple(once.get(one, one) for one in op.inputs)) for op in ops)
    return replace(few, name=up_to_name(block.name, HELD), ops=whole, loops=())


def _rows(own: Schedule, axis: str) -> list[tuple[int, Schedule]]:
    """Larger tiles for larger sizes, or parts that are longer."""
    if own.part:
        return [(FEW, own), (LARGEST, replace(own, part=2 * own.part))]
    wider = replace(own, grid=tuple((one, 2 * tile if one == axis else tile) for one, tile in own.grid))
    return [(FEW, own), (LARGEST, wider)] if wider != own else []


def names() -> list[tuple[str, str]]:
    """Kernels, each with an axis."""
    every = [*ONE, *(f"split {name}" for name in SEVERAL), *IN_PARTS, *HELD_WHERE_FEW]
    return [(name, axis) for name in every for axis in _kernels(name)[0].sizes]
