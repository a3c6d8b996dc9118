"""Random inputs over the fields, for which the reference's square roots are roots.

sqrt(x) = x^((p+1)/4) is multiplicative for every x, but squares back to x only for quadratic residues. One draw in four
is one in both fields, so rows whose sqrt argument is none are drawn again, row by row: rejecting whole inputs would
cost 4^rows draws.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.verify import modular
from mugraph.verify.evaluate import Frame, ancestors, evaluate_values
from mugraph.verify.field import FieldArithmetic, FieldValue, P, Q

_ROUNDS = 120  # a row stays wrong with probability 0.75^120 = 1e-15


def draw_inputs(program: TensorProgram, field: FieldArithmetic, rng: np.random.Generator) -> dict[str, FieldValue]:
    """Tensor name -> uniform values of shape [repetitions, *tensor.shape]; tensors of one source and shape are one.

    Seeds for which no residues were found are marked invalid in `field`.
    Raises Malformed.
    """
    home = homes(program)
    drawn = {name: field.draw(rng, program.tensor(name).shape(program.sizes)) for name in sorted(set(home.values()))}

    def inputs() -> dict[str, FieldValue]:
        return {name: drawn[owner] for name, owner in home.items()}

    arguments = [op.inputs[0] for op in program.ops if op.kind is Kind.SQRT]
    if not arguments:
        return inputs()
    frame = Frame.of(program.sizes)
    validity = field.valid.copy()
    wrong: NDArray[np.bool_] = np.zeros(field.repetitions, np.bool_)
    for _ in range(_ROUNDS):
        wrong = np.zeros(field.repetitions, np.bool_)
        values = evaluate_values(program, inputs(), field, arguments)
        redraw: dict[str, NDArray[np.bool_]] = {}
        for argument in arguments:
            bad = _no_square(values[argument])
            rows = _rows_to_draw(program, frame, argument, bad)
            if rows is not None:
                tensor, where = rows
                wrong |= where.reshape(field.repetitions, -1).any(1)
                owner = home[tensor.name]
                redraw[owner] = where | redraw[owner] if owner in redraw else where
        if not wrong.any():
            break
        for owner, where in redraw.items():
            drawn[owner] = _replace(drawn[owner], field.draw(rng, where.shape[1:]), where)
    # Divisions met while drawing say nothing about the inputs that were kept.
    # A seed still wrong after all rounds counts for nothing.
    field.valid = validity & ~wrong
    return inputs()


def homes(program: TensorProgram) -> dict[str, str]:
    """Tensor -> the first tensor that is the same memory in the same shape."""
    first: dict[tuple[str, tuple[int, ...]], str] = {}
    return {
        tensor.name: first.setdefault((tensor.source, tensor.shape(program.sizes)), tensor.name)
        if tensor.source
        else tensor.name
        for tensor in program.tensors
    }


def _no_square(value: FieldValue) -> NDArray[np.bool_]:
    bad = ~modular.is_square(value.p, P)
    return bad if value.q is None else bad | ~modular.is_square(value.q, Q)


def _rows_to_draw(
    program: TensorProgram, frame: Frame, argument: str, bad: NDArray[np.bool_]
) -> tuple[Tensor, NDArray[np.bool_]] | None:
    """The input that shares most axes with the sqrt's argument, and which of its elements to draw again."""
    above = ancestors(program.ops, (argument,))
    # Of what is read through a window one element is in many rows.
    windowed = {tensor.name for tensor in program.tensors if tensor.windows}
    loads: list[Op] = [
        op for op in program.ops if op.kind is Kind.LOAD and op.name in above and op.tensor not in windowed
    ]
    if not loads:
        return None  # constants are squares already
    axes = frozenset(program.op(argument).axes)
    load = max(loads, key=lambda op: len(axes.intersection(op.axes)))
    tensor = program.tensor(load.tensor)
    lost = frame.positions(axes.difference(load.axes))
    rows = np.logical_or.reduce(bad, axis=lost, keepdims=True) if lost else bad
    full = [bad.shape[0], *(frame.sizes[axis] if axis in tensor.axes else 1 for axis in frame.order)]
    return tensor, frame.to_tensor(np.broadcast_to(rows, full), tensor)


def _replace(old: FieldValue, new: FieldValue, where: NDArray[np.bool_]) -> FieldValue:
    q = None if old.q is None or new.q is None else np.where(where, new.q, old.q)
    return FieldValue(np.where(where, new.p, old.p), q)
