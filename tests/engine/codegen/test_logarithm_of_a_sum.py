"""The logarithm of a sum of exponentials: relative to the row's maximum, which is added again."""

from __future__ import annotations

from mugraph.codegen.lower import lower_kernels
from mugraph.ir.block import Schedule
from mugraph.search.direct import as_block

from tests.engine.ops.harness import lower_region, randn, record


def test_it_is_relative_to_the_maximum() -> None:
    program = lower_region(record(lambda x: x.logsumexp(-1), {"x": randn(8, 32)})).program
    (rows,) = next(iter(program.outputs.values())).axes
    text = lower_kernels([(as_block(program), Schedule(((rows, 4),)))], program=program).jit
    assert "tl.exp2(" in text
    assert "tl.max(" in text
    assert "tl.log(" in text
    assert "tl.exp(" not in text


def test_an_exponential_that_is_no_softmax_stays_what_it_is() -> None:
    program = lower_region(record(lambda x: (x * -2.0).exp() + x, {"x": randn(8, 32)})).program
    (axis,) = next(iter(program.outputs.values())).axes
    text = lower_kernels([(as_block(program), Schedule(((axis, 64),)))], program=program).jit
    assert "tl.exp(" in text
    assert "tl.max(" not in text
