"""The spec checker: what makes a tensor program, a block graph and a μGraph valid (Mirage, Definition 2.1).

Each `check_*` returns one sentence per violation, none for a valid graph; each `ensure_*` raises SpecError. In tests it
runs between all passes, so a pass that breaks a graph is found where it broke it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mugraph.ir.block import BlockGraph, Schedule
from mugraph.ir.mugraph import GraphKernel, MuGraph
from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram
from mugraph.ir.spec.block import loop_violations, store_violations
from mugraph.ir.spec.mugraph import mugraph_violations
from mugraph.ir.spec.ops import op_violations, tensor_violations
from mugraph.ir.spec.schedule import schedule_violations
from mugraph.ir.tensors import contiguous_strides
from mugraph.kinds import Role
from mugraph.targets import Target

PROGRAM_ROLES = frozenset({Role.LEAF, Role.ELEMENTWISE, Role.REDUCING, Role.SCANNING})


class SpecError(ValueError):
    """A graph is not valid. violations: one sentence each."""

    def __init__(self, name: str, violations: list[str]) -> None:
        super().__init__(f"{name}: " + "; ".join(violations))
        self.violations = violations


def check_program(program: TensorProgram) -> list[str]:
    """Names, order, arities and axes of a tensor program; one load per input; contiguous outputs."""
    return list(_program_violations(program))


def check_block(block: BlockGraph, *, passes: int = 1) -> list[str]:
    """A topology.

    passes: how often a loop may run. 1 is Mirage's definition: exactly one accumulator on each path from a value that
            varies in a loop to an output. More allow a value accumulated over a loop to be used in a further pass over
            the same loop (rows that do not fit), which lowering emits as a second loop.
    """
    found = [*_broken(block), *loop_violations(block, passes)]
    return [*found, *store_violations(block)] if not list(tensor_violations(block.tensors, block.sizes)) else found


def _broken(block: BlockGraph) -> list[str]:
    """Violations of a block graph's tensors and operators. If there are any, nothing else of the graph is checked."""
    return [
        *tensor_violations(block.tensors, block.sizes),
        *op_violations(block.ops, block.sizes, block.tensors, frozenset(Role)),
    ]


def check_candidate(
    block: BlockGraph,
    schedule: Schedule,
    target: Target | None = None,
    *,
    passes: int = 1,
    for_codegen: bool = True,
) -> list[str]:
    """A topology with its schedule. The schedule is checked only if operators and tensors are valid, and against
    the sizes of device memories only if a target is given. for_codegen: as for check_mugraph"""
    return [
        *check_block(block, passes=passes),
        *(schedule_violations(block, schedule, target, for_codegen) if not _broken(block) else ()),
    ]


def check_mugraph(
    mugraph: MuGraph, target: Target | None = None, *, passes: int = 1, for_codegen: bool = True
) -> list[str]:
    """A kernel graph, and every block graph and thread graph in it. If a kernel's operators or tensors are not
    valid, nothing else of that kernel is checked. for_codegen: with the rules of products that generated kernels need
    and the meaning of a graph does not."""
    broken = {kernel.name for kernel in mugraph.kernels if kernel.block is not None and _broken(kernel.block)}
    violations = list(mugraph_violations(mugraph, broken))
    for kernel in mugraph.kernels:
        if isinstance(kernel, GraphKernel):
            inside = check_candidate(kernel.block, kernel.schedule, target, passes=passes, for_codegen=for_codegen)
        else:
            inside = check_block(kernel.block) if kernel.block is not None else []
        violations += [f"kernel {kernel.name}: {violation}" for violation in inside]
    return violations


def ensure_program(program: TensorProgram) -> None:
    """Raises SpecError."""
    _ensure(program.name, check_program(program))


def ensure_block(block: BlockGraph, *, passes: int = 1) -> None:
    """Raises SpecError."""
    _ensure(block.name, check_block(block, passes=passes))


def ensure_candidate(block: BlockGraph, schedule: Schedule, target: Target | None = None, *, passes: int = 1) -> None:
    """Raises SpecError."""
    _ensure(block.name, check_candidate(block, schedule, target, passes=passes))


def ensure_mugraph(mugraph: MuGraph, target: Target | None = None, *, passes: int = 1) -> None:
    """Raises SpecError."""
    _ensure(mugraph.name, check_mugraph(mugraph, target, passes=passes))


def _ensure(name: str, violations: list[str]) -> None:
    if violations:
        raise SpecError(name, violations)


def _program_violations(program: TensorProgram) -> Iterator[str]:
    yield from tensor_violations((*program.tensors, *program.outputs.values()), program.sizes)
    yield from op_violations(program.ops, program.sizes, program.tensors, PROGRAM_ROLES)
    loads = [op.tensor for op in program.ops if op.kind is Kind.LOAD]
    for tensor in program.tensors:
        if (count := loads.count(tensor.name)) != 1:
            yield f"tensor {tensor.name} is loaded {count} times, not once"
    values = {op.name: op for op in program.ops}
    if not program.outputs:
        yield "there is no output"
    for value, tensor in program.outputs.items():
        if value not in values:
            yield f"output {value} is no value"
        elif values[value].axes != tuple(sorted(tensor.axes)):
            yield f"output {value} has axes {list(values[value].axes)}, its tensor {sorted(tensor.axes)}"
        if tensor.windows:
            yield f"output tensor {tensor.name} is written through a window"
        if set(tensor.axes) <= set(program.sizes) and tensor.strides != contiguous_strides(tensor.dims, program.sizes):
            yield f"output tensor {tensor.name} is not contiguous"
