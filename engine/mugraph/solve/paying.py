"""The unit as plain PyTorch calls, measured; and whether a kernel is faster than that at one size of a range."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from mugraph.codegen.plain import FUNCTION, plain_source
from mugraph.events import Solution
from mugraph.ir.kernel import Rejected
from mugraph.ir.region import SearchUnit
from mugraph.ops.tf32 import settings_of
from mugraph.optimizer.nodes import scheduled
from mugraph.protocol.settings import CompareWith
from mugraph.sizes.search_unit import estimates_at
from mugraph.solve.pytorch import library_us
from mugraph.targets import Target
from mugraph.tune.input_specs import input_specs
from mugraph.tune.measure import Measurer
from mugraph.tune.messages import InputSpec, Subject
from mugraph.tune.statistics import Summary
from mugraph.tune.tuner import subject_of

_log = logging.getLogger("mugraph.solve")


def plain_us(unit: SearchUnit, measurer: Measurer) -> float | None:
    """Microseconds of the unit as the user has it, eager; None where it cannot be run on its own."""
    try:
        text, values = plain_source(unit)
    except Rejected as error:
        _log.info("the original of %s is not measured: %s", unit.program.name, error)
        return None
    plain = Subject("plain", text, FUNCTION, tf32=settings_of(unit.calls))
    found = measurer.measure_kernel(plain, plain_specs(unit, values), rounds=12)
    return found.median_us if isinstance(found, Summary) else None


def pays_at(
    small: SearchUnit, solution: Solution, target: Target, measurer: Measurer | None, compare_with: CompareWith
) -> bool:
    """Whether a kernel for a range of sizes pays at one of them, measured or by estimate. small: the unit there"""
    if measurer is None:
        kernels = [scheduled(kernel) for kernel in solution.kernels]
        ours_us, _ = estimates_at(small.program, kernels, solution.source, target)
        return ours_us < library_us(small, target, compare_with)
    specs = input_specs(small.program, [tensor.name for tensor in solution.source.inputs])
    ours = measurer.measure_kernel(subject_of(solution.source), specs, rounds=12)
    plain = plain_us(small, measurer)
    return isinstance(ours, Summary) and plain is not None and ours.median_us < plain


def plain_specs(unit: SearchUnit, values: Sequence[int]) -> tuple[InputSpec, ...]:
    """The inputs of the unit as plain PyTorch calls. A tensor of which the kernel reads parts is scaled like the one
    of its inputs that has to be smallest."""
    names = {value: name for name, value in unit.inputs.items()}
    kernel = dict(zip(names, input_specs(unit.program, list(names.values())), strict=True))
    for value, spec in kernel.items():  # a kernel may see several dimensions as one
        if (info := unit.values.get(value)) is not None:
            kernel[value] = replace(spec, shape=info.shape, strides=info.strides, skew=info.skew)
    least = min(spec.scale for spec in kernel.values())
    whole = {
        v: InputSpec(info.shape, info.strides, info.dtype, least, skew=info.skew) for v, info in unit.viewed.items()
    }
    return tuple({**whole, **kernel}[value] for value in values)
