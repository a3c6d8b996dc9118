"""Kernels whose text is attacked: small ones, of every kind that code generation writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from mugraph.codegen.lower import lower, lower_kernels
from mugraph.ir.block import BlockGraph
from mugraph.ir.kernel import KernelSource
from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor

from tests.engine.codegen import side_by_side, splits
from tests.engine.codegen.cases import CASES

ONE = (
    "rms_norm_linear_tail", "gated_mlp_tail", "lora_rank_8_tail", "lora_side_by_side_tail", "attention_tail",
    "attention_mask", "causal_last_keys", "grouped_attention_rows_tiled", "layer_norm_looped", "softmax_looped",
    "softmax_two_passes", "gemm_chain_tails", "batched", "convolution_strided", "scaled_linear",
    "packed_rows_and_depth",
)  # fmt: skip
BESIDE = ("projections", "grids", "product_and_elements")
SEVERAL = ("attention_tail", "rms_norm_linear_tail", "lora", "gemm_chain_nest", "scaled_linear")


@dataclass(frozen=True)
class Entry:
    """block: what the kernels compute together"""

    block: BlockGraph
    source: KernelSource

    @property
    def program(self) -> TensorProgram:
        return program_of(self.block)

    @property
    def launcher(self) -> str:
        return f"launch_{self.source.name}"


def program_of(block: BlockGraph) -> TensorProgram:
    """What a topology computes: an accumulator over all of a loop is what it adds up."""
    alias: dict[str, str] = {}
    ops: list[Op] = []
    outputs: dict[str, Tensor] = {}
    for op in block.ops:
        inputs = tuple(alias.get(name, name) for name in op.inputs)
        if op.kind is Kind.ACCUM:
            alias[op.name] = inputs[0]
        elif op.kind is Kind.STORE:
            outputs[inputs[0]] = block.tensor(op.tensor)
        else:
            ops.append(replace(op, inputs=inputs))
    return TensorProgram(block.name, block.sizes, block.inputs, tuple(ops), outputs)


@cache
def entry(name: str) -> Entry:
    if name.startswith("split "):
        block, kernels = splits.CASES[name.removeprefix("split ")]
        return Entry(block, lower_kernels(kernels))
    if name.startswith("beside "):
        one = side_by_side.case(name.removeprefix("beside "))
        return Entry(_block_of(one.program), one.source)
    return Entry(CASES[name][0], lower(*CASES[name]))


def _block_of(program: TensorProgram) -> BlockGraph:
    """Without a loop."""
    stores = [
        Op(f"store_{tensor.name}", Kind.STORE, (value,), program.op(value).axes, tensor=tensor.name)
        for value, tensor in program.outputs.items()
    ]
    tensors = (*program.tensors, *program.outputs.values())
    return BlockGraph(program.name, program.sizes, tensors, (*program.ops, *stores))


def names() -> list[str]:
    return [*ONE, *(f"split {name}" for name in SEVERAL), *(f"beside {name}" for name in BESIDE)]
