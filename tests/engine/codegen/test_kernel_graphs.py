"""Kernel graphs of generated and pre-defined kernels: right together, in the interpreter and as an operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from mugraph.codegen.lower import lower_kernels
from mugraph.edit.module.operator import operator_text
from mugraph.ir.block import Schedule
from mugraph.ir.kernel import Rejected
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.transforms.reduced import program_sizes, reduced_kernels
from mugraph.ir.transforms.resizing import resize
from mugraph.search.direct import as_block
from mugraph.search.kernel_graphs.subprogram import in_memory, subprogram
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verifier import verify_schedules, verify_topologies
from syrupy.assertion import SnapshotAssertion

from tests.engine.codegen.goldens import PythonFile
from tests.engine.codegen.norm_and_product import LIBRARY, an_op, normed, split_product, tensor_of


@pytest.fixture(scope="module")
def tester() -> Iterator[FloatTester]:
    with FloatTester(timeout_s=120) as tester:
        yield tester


CASES = {"library": normed, "split": split_product}


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_the_program_together(name: str, tester: FloatTester) -> None:
    program, kernels = CASES[name]()
    assert verify_topologies(program, [(block, None) for block, _ in kernels], seed=4).passed
    assert verify_schedules(program, kernels, seed=4).passed
    source = lower_kernels(kernels)
    assert [tensor.name for tensor in source.inputs] == ["x", "w"]
    assert [tensor.name for tensor in source.outputs] == ["y"]
    tested = tester.test_kernel(source, program)
    assert tested.passed, tested.reason


@pytest.mark.parametrize("name", CASES)
def test_at_reduced_sizes(name: str, tester: FloatTester) -> None:
    program, kernels = CASES[name](512, 1024, 2048)
    small = reduced_kernels(kernels, largest_tile=16)
    program = resize(program, program_sizes(program, small))
    assert all(size <= 128 for size in program.sizes.values())
    assert verify_schedules(program, small, seed=4).passed
    tested = tester.test_kernel(lower_kernels(small), program)
    assert tested.passed, tested.reason


def test_values_that_one_kernel_writes_and_another_reads(tester: FloatTester) -> None:
    """Rotated keys, in halves of which each is in a tensor of its own between the kernels."""
    sizes = {"m": 32, "n": 64, "r": 16}
    loaded = dict.fromkeys(("k1", "k2", "cos", "sin"), "nr") | {"q1": "mr", "q2": "mr"}
    tensors = {name: tensor_of(name, *axes, sizes=sizes) for name, axes in loaded.items()}
    loads = [an_op(name, Kind.LOAD, axes=axes, tensor=name) for name, axes in loaded.items()]
    ops = (
        *loads,
        an_op("minus", Kind.CONST, value=-1.0),
        an_op("k2_minus", Kind.MUL, "minus k2", "nr"),
        an_op("k1_cos", Kind.MUL, "k1 cos", "nr"),
        an_op("k2_sin", Kind.MUL, "k2_minus sin", "nr"),
        an_op("first", Kind.ADD, "k1_cos k2_sin", "nr"),
        an_op("k2_cos", Kind.MUL, "k2 cos", "nr"),
        an_op("k1_sin", Kind.MUL, "k1 sin", "nr"),
        an_op("second", Kind.ADD, "k2_cos k1_sin", "nr"),
        an_op("left", Kind.DOT, "q1 first", "mn", over=("r",)),
        an_op("right", Kind.DOT, "q2 second", "mn", over=("r",)),
        an_op("scores", Kind.ADD, "left right", "mn"),
    )
    out = tensor_of("out", "m", "n", sizes=sizes)
    program = TensorProgram("rotated", sizes, tuple(tensors.values()), ops, {"scores": out})
    stored, halves = in_memory(program), ["first", "second"]
    parts: list[tuple[list[str], list[str]]] = [(halves, []), (["scores"], halves)]
    turned, product = (as_block(subprogram(program, *part, stored)) for part in parts)
    kernels = [(turned, Schedule((("n", 16),))), (product, Schedule((("n", 32), ("m", 16))))]
    assert verify_schedules(program, kernels, seed=4).passed
    source = lower_kernels(kernels)
    assert [tensor.name for tensor in source.outputs] == ["out"]
    tested = tester.test_kernel(source, program)
    assert tested.passed, tested.reason


def test_wrong_products_are_found(tester: FloatTester) -> None:
    program, [first, (block, schedule)] = normed(32, 64, 64)
    source = lower_kernels([first, (block, schedule)])
    spoiled = replace(source, launcher=source.launcher.replace("torch.mm(h, w,", "torch.mm(h, w.mT,"))
    assert spoiled.launcher != source.launcher
    assert not tester.test_kernel(spoiled, program).passed
    left_out = replace(source, launcher="\n".join(s for s in source.launcher.splitlines() if "torch.mm" not in s))
    assert not tester.test_kernel(left_out, program).passed


def test_an_output_that_another_kernel_reads_is_returned(tester: FloatTester) -> None:
    program, kernels = normed()
    handed = kernels[0][0].tensor("h")
    both = replace(program, outputs={"h": handed, **program.outputs})
    assert verify_topologies(both, [(block, None) for block, _ in kernels], seed=4).passed
    source = lower_kernels(kernels, outputs=["h", "y"])
    assert [tensor.name for tensor in source.outputs] == ["h", "y"]
    assert source.launcher.endswith("return h, y")
    tested = tester.test_kernel(source, both)
    assert tested.passed, tested.reason


def test_text(snapshot: SnapshotAssertion) -> None:
    _, kernels = normed(512, 1024, 4096)
    source = lower_kernels(kernels)
    assert source.standalone() == snapshot(extension_class=PythonFile)
    assert operator_text(source, "mugraph::normed").count("_operator(") == 1


def test_a_library_kernel_that_is_none_is_rejected() -> None:
    _, [(block, _), _] = normed()
    assert "rms_norm" in lower_kernels([(block, LIBRARY)]).launcher
    times = tuple(replace(op, kind=Kind.MUL) if op.kind is Kind.DIV else op for op in block.ops)
    block = replace(block, ops=times)
    with pytest.raises(Rejected, match="no library call computes normed"):
        lower_kernels([(block, LIBRARY)])
