"""The verdict on a step that has a launch of several kernels: by all tests that a kernel has to pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mugraph.ir.kernel import KernelSource
from mugraph.optimizer.nodes import scheduled
from mugraph.plans.plan import KernelStep
from mugraph.sizes.indexed import indexed
from mugraph.sizes.same_bits import same_bits
from mugraph.sizes.text import text_checked
from mugraph.sizes.tuning import tested_at_sizes
from mugraph.solve.one_launch import write
from mugraph.solve.right import with_float
from mugraph.targets import Target
from mugraph.verification.conditioning import verified
from mugraph.verification.document import proof_of
from mugraph.verification.float_test import FloatTester
from mugraph.verification.verdict import Lowering, Verdict


def verified_as_one(
    step: KernelStep, source: KernelSource, old: Sequence[Verdict], tester: FloatTester, target: Target
) -> Verdict:
    """old: the verdicts on what it was made of, which has passed the tests by itself and in another text"""
    program, kernels = step.unit.program, [*map(scheduled, step.kernels)]
    found = verified(program, [block for block, _ in kernels])
    indexing = indexed(program, kernels, source) if found.passed else found
    if not indexing.passed:
        return replace(indexing, passed=False)
    text = text_checked(program, source, kernels, write(step, target))
    if not text.passed:
        return Verdict(False, f"its text: {text.reason}")
    tested = tested_at_sizes(tester, source, program)
    if not tested.passed:
        return Verdict(False, tested.reason)
    bits = same_bits(step.unit, source, tested)
    lost = all(one.same_bits is not None and one.same_bits.holds for one in old) and not bits.holds
    if lost:
        return Verdict(False, bits.why)
    whole = with_float(found, tested, indexing, text, program, bits)
    return replace(whole, proof=proof_of(program, kernels), lowering=_lowering([one.lowering for one in old]))


def _lowering(parts: Sequence[Lowering | None]) -> Lowering | None:
    """Of the programs of the parts, together: the least that is known of one of them."""
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    least = next((one for one in known if not one.passed), None)
    return least or Lowering(True, "; ".join(dict.fromkeys(one.note for one in known)))
