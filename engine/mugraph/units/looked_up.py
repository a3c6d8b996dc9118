"""Tensors of which a program needs some elements alone, at an index.

One element of each row (ops/algebra/picking.py): PyTorch looks it up. A kernel that finds it by the places of all
others would read the whole tensor.

Rows (ops/algebra/looking_up.py): a kernel with products looks them up where it reads them once, as the weights of an
expert. A row that several operators need, as a token's of an embedding, is one that PyTorch copies once for all.
"""

from __future__ import annotations

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.units.fusion import is_bound_by_memory


def looks_up(program: TensorProgram) -> bool:
    """Is there such a tensor among what the program loads?"""
    users: dict[str, list[Op]] = {}
    for op in program.ops:
        for name in op.inputs:
            users.setdefault(name, []).append(op)
    placed = _placed(program)

    def is_picked(name: str) -> bool:
        """By all that reads it?"""
        own = users.get(name, [])
        return bool(own) and all(
            user.kind.opaque is not None
            and user.kind.opaque.vanishes
            and user.inputs[0] != name
            and user.inputs[0] in placed
            and all(one.kind.reduces and set(one.over) <= placed[user.inputs[0]] for one in users.get(user.name, []))
            for user in own
        )

    return any(op.kind is Kind.LOAD and is_picked(op.name) for op in program.ops)


def gathers_well(program: TensorProgram) -> bool:
    """Of rows that are looked up: is each read by one operator alone, and are the products made of few numbers for what
    they read? PyTorch's own product of many rows is faster, by more than it takes to copy them."""
    rows = {tensor.name for tensor in program.tensors if tensor.looked_up}
    if not rows:
        return True
    loads = {op.name for op in program.ops if op.kind is Kind.LOAD and op.tensor in rows}
    read = [name for op in program.ops for name in op.inputs if name in loads]
    products = [op for op in program.ops if op.kind.contracts]
    return len(read) == len(loads) and bool(products) and is_bound_by_memory(program)


def _placed(program: TensorProgram) -> dict[str, frozenset[str]]:
    """Comparisons of places with something else, and the places' axes."""
    places = {op.name: frozenset(op.axes) for op in program.ops if op.kind.of_places}
    found: dict[str, frozenset[str]] = {}
    for op in program.ops:
        if op.kind.opaque is not None and op.kind.opaque.is_truth:
            axes = [places[name] for name in op.inputs if name in places]
            if axes:
                found[op.name] = frozenset[str]().union(*axes)
    return found
