"""Random inputs over the fields, at which the arguments of the program's square roots are squares.

sqrt(x) = x^((p+1)/4) is multiplicative for every x, but its square is x only if x is a square (a quadratic residue). It
is the root of x if x is a square, and the root of -x if not: as sqrt(|x|) over the reals, with squares as the positive
numbers. One draw in two is a square. So rows whose argument is none are drawn again, row by row; to reject whole inputs
would cost 2^rows draws. Modulo q the arguments have to be squares only where an exponential reads them.

For a row with many roots (a matrix of them) there may be no such draw within reach. Then any inputs will do: what is
equal with |x| for x under every root is equal with x where x is positive. Only sqrt(x)^2 = x is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ops.functions.through_exp import CONSTANTS
from mugraph.verification import modular
from mugraph.verification.evaluate import Frame, ancestors, arguments_of, evaluate_values
from mugraph.verification.field import FieldArithmetic, FieldValue, P, Q

_ROUNDS = 120  # a row stays wrong with probability 0.75^120 = 1e-15
_MOST_IN_A_ROW = 12  # roots of one row: one draw in 2^12 would do
_PATIENCE = 24  # rounds in which no row becomes right, before it is given up


def draw_inputs(
    program: TensorProgram, field: FieldArithmetic, rng: np.random.Generator, *, of_squares: bool = True
) -> dict[str, FieldValue]:
    """Tensor name -> uniform values of shape [repetitions, *tensor.shape]; tensors of one source and shape are one.

    of_squares: the program's roots are to be of squares; seeds for which none were found are marked invalid in `field`
    Raises Malformed.
    """
    home = homes(program)
    drawn = {name: field.draw(rng, program.tensor(name).shape(program.sizes)) for name in sorted(set(home.values()))}

    def inputs() -> dict[str, FieldValue]:
        return {name: drawn[owner] for name, owner in home.items()}

    arguments = arguments_of(program.ops, "sqrt")
    if not arguments or not of_squares:
        return inputs()
    exponents = _under_exponentials(program, field)
    frame = Frame.of(program.sizes)
    validity = field.valid.copy()
    wrong: NDArray[np.bool_] = np.zeros(field.repetitions, np.bool_)
    fewest, since = np.inf, 0
    for _ in range(_ROUNDS):
        wrong = np.zeros(field.repetitions, np.bool_)
        values = evaluate_values(program, inputs(), field, arguments)
        redraw: dict[str, NDArray[np.bool_]] = {}
        rows_left, hopeless = 0, False
        for argument in arguments:
            bad = _no_square(values[argument], argument in exponents)
            rows = _rows_to_draw(program, frame, argument, bad)
            if rows is not None:
                tensor, where, roots = rows
                hopeless |= roots > _MOST_IN_A_ROW and bool(where.any())
                wrong |= where.reshape(field.repetitions, -1).any(1)
                rows_left += int(where.sum())
                owner = home[tensor.name]
                redraw[owner] = where | redraw[owner] if owner in redraw else where
        fewest, since = (rows_left, 0) if rows_left < fewest else (fewest, since + 1)
        if not wrong.any() or since == _PATIENCE or hopeless:
            break
        for owner, where in redraw.items():
            drawn[owner] = _replace(drawn[owner], field.draw(rng, where.shape[1:]), where)
    # Divisions met while drawing say nothing about the inputs that were kept.
    # A seed still wrong after all rounds counts for nothing.
    field.valid = validity & ~wrong
    return inputs()


def mark_no_squares(program: TensorProgram, inputs: Mapping[str, FieldValue], field: FieldArithmetic) -> None:
    """Seeds for which the program takes the root of what is no square count for nothing. Raises Malformed."""
    arguments = arguments_of(program.ops, "sqrt")
    exponents = _under_exponentials(program, field)
    validity = field.valid.copy()
    values = evaluate_values(program, inputs, field, arguments)
    for argument in arguments:
        bad = _no_square(values[argument], argument in exponents)
        validity &= ~bad.reshape(bad.shape[0], -1).any(1)
    field.valid = validity


def homes(program: TensorProgram) -> dict[str, str]:
    """Tensor -> the first tensor that is the same memory in the same shape."""
    first: dict[tuple[str, tuple[int, ...]], str] = {}
    return {
        tensor.name: first.setdefault((tensor.source, tensor.shape(program.sizes)), tensor.name)
        if tensor.source
        else tensor.name
        for tensor in program.tensors
    }


def _under_exponentials(program: TensorProgram, field: FieldArithmetic) -> frozenset[str]:
    """Values that an exponential is taken of, or that lie on the way to one."""
    taken = [
        op.inputs[0]
        for op in program.ops
        if "exp" in op.kind.primitives or (op.fn in field.by_form and op.fn in CONSTANTS)
    ]
    return ancestors(program.ops, taken)


def _no_square(value: FieldValue, both: bool) -> NDArray[np.bool_]:
    bad = ~modular.is_square(value.p, P)
    return bad | ~modular.is_square(value.q, Q) if both and value.q is not None else bad


def _rows_to_draw(
    program: TensorProgram, frame: Frame, argument: str, bad: NDArray[np.bool_]
) -> tuple[Tensor, NDArray[np.bool_], int] | None:
    """The input that shares most axes with the sqrt's argument, which of its elements to draw again, and how many
    arguments each of them is in."""
    above = ancestors(program.ops, (argument,))
    # Of what is read through a window one element is in many rows.
    windowed = {tensor.name for tensor in program.tensors if tensor.windows}
    loads: list[Op] = [
        op for op in program.ops if op.kind is Kind.LOAD and op.name in above and op.tensor not in windowed
    ]
    if not loads:
        return None  # positive constants are squares already
    axes = frozenset(program.op(argument).axes)
    load = max(loads, key=lambda op: len(axes.intersection(op.axes)))
    tensor = program.tensor(load.tensor)
    lost = frame.positions(axes.difference(load.axes))
    rows = np.logical_or.reduce(bad, axis=lost, keepdims=True) if lost else bad
    full = [bad.shape[0], *(frame.sizes[axis] if axis in tensor.axes else 1 for axis in frame.order)]
    return tensor, frame.to_tensor(np.broadcast_to(rows, full), tensor), bad.size // rows.size


def _replace(old: FieldValue, new: FieldValue, where: NDArray[np.bool_]) -> FieldValue:
    q = None if old.q is None or new.q is None else np.where(where, new.q, old.q)
    return FieldValue(np.where(where, new.p, old.p), q)
