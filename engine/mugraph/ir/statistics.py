"""Values of a program that PyTorch's own kernels keep in float32, whatever the types of its tensors."""

from __future__ import annotations

from mugraph.ir.ops import Kind
from mugraph.ir.program import TensorProgram


def statistics(program: TensorProgram) -> frozenset[str]:
    """Sums that are no products, what is computed for them alone, and what is computed from them and numbers alone: a
    mean, the root of a mean square. So they are inside PyTorch's norms and variances, and a program does not say
    whether it has them from one."""
    found = _reduced(program)
    summed: set[str] = set()
    for op in reversed(program.ops):
        users = [other for other in program.ops if op.name in other.inputs]
        kept = op.name in program.outputs or not users
        if op.kind.is_elementwise and not kept and all(u.kind.is_plain_sum or u.name in summed for u in users):
            summed.add(op.name)
    return frozenset(found | summed)


def _reduced(program: TensorProgram) -> set[str]:
    ops = {op.name: op for op in program.ops}
    found: set[str] = set()
    for op in program.ops:
        made = [name for name in op.inputs if ops[name].kind is not Kind.CONST]
        if not op.kind.contracts and (op.kind.reduces or (made and found.issuperset(made))):
            found.add(op.name)
    return found
