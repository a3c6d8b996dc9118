"""Wrong pairs of kernels are rejected: anything changed in either, parts of keys paired with other parts of values,
quotients added in place of a quotient of sums."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mugraph.ir.block import BlockGraph
from mugraph.ir.ops import Kind, Op
from mugraph.verification.verdict import Verdict
from mugraph.verification.verifier import verify_topologies

from tests.engine.codegen.splits import CASES, program_of
from tests.engine.verification.mutants import mutants, retyped

NAMES = ("attention", "attention_whole_parts", "rms_norm_linear", "gated_mlp", "lora", "gemm_chain_nest")
SAME = "behind its users"
"""An accumulator that only a store uses stands where it did."""


def verdict(name: str, first: BlockGraph, second: BlockGraph) -> Verdict:
    return verify_topologies(program_of(CASES[name][0]), [(first, None), (second, None)], seed=1)


def pair(name: str) -> tuple[BlockGraph, BlockGraph]:
    (first, _), (second, _) = CASES[name][1]
    return first, second


@pytest.mark.parametrize("name", NAMES)
def test_every_mutant_of_either_kernel_is_rejected(name: str) -> None:
    first, second = pair(name)
    assert verdict(name, first, second).passed
    count = 0
    for what, mutant in mutants(first):
        if SAME not in what:
            count += 1
            assert not verdict(name, mutant, second).passed, what
    for what, mutant in mutants(second):
        count += 1
        assert not verdict(name, first, mutant).passed, what
    assert count > 15


def test_parts_of_keys_with_other_parts_of_values_are_rejected() -> None:
    """Taking every fourth key is as good as taking a quarter of them, if the values are taken alike."""
    first, second = pair("attention")

    def interleaved(block: BlockGraph, *names: str) -> BlockGraph:
        dims = {"kv_split": "kv_part", "kv_part": "kv_split"}
        return replace(
            block,
            tensors=tuple(
                replace(t, dims=tuple(tuple(dims.get(axis, axis) for axis in dim) for dim in t.dims))
                if t.name in names
                else t
                for t in block.tensors
            ),
        )

    assert verdict("attention", interleaved(first, "key", "value"), second).passed
    assert not verdict("attention", interleaved(first, "key"), second).passed
    assert not verdict("attention", interleaved(first, "value"), second).passed


def test_a_sum_of_quotients_is_rejected() -> None:
    first, second = pair("attention")
    parts = {op.name.removesuffix("_parts"): op.name for op in second.ops if op.kind is Kind.LOAD}
    loads = [op for op in second.ops if op.kind is Kind.LOAD]
    (store,) = (op for op in second.ops if op.kind is Kind.STORE)
    quotient = Op("quotient", Kind.DIV, (parts["acc"], parts["row_sum"]))
    total = Op("total", Kind.SUM, ("quotient",), over=("kv_split",))
    wrong = replace(second, ops=retyped([*loads, quotient, total, replace(store, inputs=("total",))], second))
    found = verdict("attention", first, wrong)
    assert not found.passed
    assert "differs" in (found.reason or "")


def test_a_pair_earns_a_bound_where_one_kernel_would() -> None:
    """Theorem 2 of Mirage speaks of functions; how many kernels compute them does not matter."""
    for name in ("lora", "gemm_chain_nest"):
        found = verdict(name, *pair(name))
        assert found.bound is not None
        assert found.bound < 1e-9
    assert verdict("rms_norm_linear", *pair("rms_norm_linear")).bound is None


def test_a_kernel_that_nobody_finishes_is_rejected() -> None:
    first, second = pair("attention")
    program = program_of(CASES["attention"][0])
    for blocks in ([first], [second], [second, first], [first, first, second]):
        found = verify_topologies(program, [(block, None) for block in blocks], seed=1)
        assert not found.passed
        assert found.reason
