"""What the arguments of a program's kernels are, to be made up for measuring."""

from __future__ import annotations

from collections.abc import Sequence

from mugraph.ir.program import TensorProgram
from mugraph.plans.scales import input_scale
from mugraph.tune.messages import InputSpec


def input_specs(program: TensorProgram, names: Sequence[str]) -> tuple[InputSpec, ...]:
    """Inputs at the program's shapes."""
    rows = {one.name: one.rows for tensor in program.tensors for one in tensor.looked_up.values()}
    return tuple(
        InputSpec(
            tensor.memory_shape(program.sizes),
            tensor.strides,
            tensor.dtype,
            input_scale(program, tensor.name),
            rows.get(tensor.name, InputSpec.high),
            skew=tensor.skew,
        )
        for tensor in (program.tensor(name) for name in names)
    )
