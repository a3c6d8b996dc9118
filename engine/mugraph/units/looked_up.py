"""Tensors of which a program needs some elements alone, at an index.

One element of each row (ops/algebra/picking.py): PyTorch looks it up. A kernel that finds it by the places of all
others would read the whole tensor.

Rows (ops/algebra/looking_up.py): a kernel looks them up where a product reads them once, as the weights of an expert. A
row that several operators need, as a token's of an embedding, is one that PyTorch has to copy once.
"""

from __future__ import annotations

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram


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


def looks_up_for_products(program: TensorProgram) -> bool:
    """Of rows that are looked up: is each operand of a product, by itself or scaled, and of nothing else?"""
    users: dict[str, list[Op]] = {}
    for op in program.ops:
        for name in op.inputs:
            users.setdefault(name, []).append(op)

    def is_multiplied(name: str) -> bool:
        own = users.get(name, [])
        if len(own) != 1 or own[0].inputs.count(name) != 1:
            return False
        return own[0].kind.contracts or (own[0].kind.is_elementwise and is_multiplied(own[0].name))

    loads = (op for op in program.ops if op.kind is Kind.LOAD)
    return all(is_multiplied(op.name) for op in loads if program.tensor(op.tensor).looked_up)


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
