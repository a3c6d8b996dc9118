"""Random inputs over the fields, at which the arguments of the program's square roots are squares.

sqrt(x) = x^((p+1)/4) is multiplicative for every x, but its square is x only if x is a square (a quadratic residue). It
is the root of x if x is a square, and the root of -x if not: as sqrt(|x|) over the reals, with squares as the positive
numbers. One draw in two is a square. So rows whose argument is none are drawn again, row by row; to reject whole inputs
would cost 2^rows draws. Modulo q the arguments have to be squares only where an exponential reads them.

For a row with many roots (a matrix of them) there may be no such draw within reach. Then any inputs will do: what is
equal with |x| for x under every root is equal with x where x is positive. Only sqrt(x)^2 = x is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ir.tensors import Tensor
from mugraph.ops.functions.through_exp import CONSTANTS
from mugraph.verification import modular
from mugraph.verification.evaluate import Frame, ancestors, arguments_of, evaluate_values
from mugraph.verification.field import FieldArithmetic, FieldValue, P, Q

_ROUNDS = 120  # draws of a row, about: it stays wrong with probability 0.75^120 = 1e-15
_MOST_IN_A_ROW = 12  # roots of one row: one draw in 2^12 would do
_PATIENCE = 24  # draws of a row by which none becomes right, before it is given up
_AT_ONCE = 16  # draws of a row that are tried side by side, where the tensors are small
_SMALL = 1 << 16  # elements of all of these


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
    search = _Search(program, field, arguments, home)
    validity = field.valid.copy()
    wrong = search.make_right(drawn, rng)
    # Divisions met while drawing say nothing about the inputs that were kept.
    # A seed still wrong after all rounds counts for nothing.
    field.valid = validity & ~wrong
    return inputs()


@dataclass(frozen=True)
class _Search:
    """For draws at which no row is wrong. arguments: of the program's roots"""

    program: TensorProgram
    field: FieldArithmetic
    arguments: Sequence[str]
    home: Mapping[str, str]

    def make_right(self, drawn: dict[str, FieldValue], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw rows of these again until they are right. Which seeds are still wrong: [repetitions]

        A seed whose rows are all right is put aside: the longer it takes, the fewer are evaluated.
        """
        left: NDArray[np.intp] = np.arange(self.field.repetitions)
        here, field = dict(drawn), self.field
        fewest, since, rounds = np.inf, 0, 0
        while rounds < _ROUNDS:
            found = self._wrong(here, field)
            for name, value in here.items():
                drawn[name] = _with_rows(drawn[name], left, value)
            still = np.flatnonzero(found.seeds)
            if not still.size:
                return np.zeros(self.field.repetitions, np.bool_)
            if len(still) < len(left):
                left = left[still]
                here = {name: _rows_of(value, still) for name, value in here.items()}
                field = self.field.selected(left)
            redraw = {name: where[still] for name, where in found.redraw.items()}
            at_once = max(1, min(_AT_ONCE, _SMALL // max(1, sum(value.p.size for value in here.values()))))
            fewest, since = (found.count, 0) if found.count < fewest else (fewest, since + at_once)
            if since >= _PATIENCE or found.hopeless:
                break
            here = self._again(here, field, redraw, at_once, rng)
            rounds += at_once
        wrong = np.zeros(self.field.repetitions, np.bool_)
        wrong[left] = True
        return wrong

    def _again(
        self,
        here: dict[str, FieldValue],
        field: FieldArithmetic,
        redraw: Mapping[str, NDArray[np.bool_]],
        at_once: int,
        rng: np.random.Generator,
    ) -> dict[str, FieldValue]:
        """With new draws of the rows that are wrong: of so many draws the best one of each."""
        if at_once == 1:
            return {**here, **{name: _replaced(here[name], where, field, rng) for name, where in redraw.items()}}
        places = np.repeat(np.arange(field.repetitions), at_once)
        several = field.selected(places)
        tried = {name: _rows_of(value, places) for name, value in here.items()}
        for owner, where in redraw.items():
            tried[owner] = _replaced(tried[owner], where[places], several, rng)
        wrong = self._wrong(tried, several).redraw
        return {
            name: _best(value, wrong.get(name), redraw.get(name), here[name], at_once) for name, value in tried.items()
        }

    def _wrong(self, drawn: Mapping[str, FieldValue], field: FieldArithmetic) -> _Rows:
        inputs = {name: drawn[owner] for name, owner in self.home.items()}
        return _wrong_rows(self.program, self._frame, inputs, field, self.arguments, self._exponents, self.home)

    @cached_property
    def _frame(self) -> Frame:
        return Frame.of(self.program.sizes)

    @cached_property
    def _exponents(self) -> frozenset[str]:
        return _under_exponentials(self.program, self.field)


@dataclass(frozen=True)
class _Rows:
    """Rows that are to be drawn again. redraw: tensor -> its elements. count: of all these. seeds: [repetitions], that
    have any. hopeless: there is a row that no number of draws would make right"""

    redraw: Mapping[str, NDArray[np.bool_]]
    count: int
    seeds: NDArray[np.bool_]
    hopeless: bool


def _wrong_rows(
    program: TensorProgram,
    frame: Frame,
    inputs: Mapping[str, FieldValue],
    field: FieldArithmetic,
    arguments: Sequence[str],
    exponents: frozenset[str],
    home: Mapping[str, str],
) -> _Rows:
    values = evaluate_values(program, inputs, field, arguments)
    redraw: dict[str, NDArray[np.bool_]] = {}
    seeds = np.zeros(field.repetitions, np.bool_)
    count, hopeless = 0, False
    for argument in arguments:
        bad = _no_square(values[argument], argument in exponents)
        rows = _rows_to_draw(program, frame, argument, bad)
        if rows is not None:
            tensor, where, roots = rows
            hopeless |= roots > _MOST_IN_A_ROW and bool(where.any())
            seeds |= where.reshape(field.repetitions, -1).any(1)
            count += int(where.sum())
            owner = home[tensor.name]
            redraw[owner] = where | redraw[owner] if owner in redraw else where
    return _Rows(redraw, count, seeds, hopeless)


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


def _replaced(
    old: FieldValue, where: NDArray[np.bool_], field: FieldArithmetic, rng: np.random.Generator
) -> FieldValue:
    """With new draws there."""
    places = np.broadcast_to(where, old.p.shape)
    p, q = field.draw_flat(rng, int(places.sum()))
    one, other = old.p.copy(), None if old.q is None else old.q.copy()
    one[places] = p
    if other is not None and q is not None:
        other[places] = q
    return FieldValue(one, other)


def _rows_of(value: FieldValue, seeds: NDArray[np.intp]) -> FieldValue:
    return FieldValue(value.p[seeds], None if value.q is None else value.q[seeds])


def _with_rows(value: FieldValue, seeds: NDArray[np.intp], rows: FieldValue) -> FieldValue:
    """With these rows for those of the seeds."""
    if len(seeds) == len(value.p):
        return rows
    one, other = value.p.copy(), None if value.q is None else value.q.copy()
    one[seeds] = rows.p
    if other is not None and rows.q is not None:
        other[seeds] = rows.q
    return FieldValue(one, other)


def _best(
    tried: FieldValue,
    wrong: NDArray[np.bool_] | None,
    drawn: NDArray[np.bool_] | None,
    before: FieldValue,
    times: int,
) -> FieldValue:
    """Of each element the first draw that is in no wrong row; the last one where all are. drawn: elements that were"""
    if drawn is None:
        return before
    shape = (before.p.shape[0], times, *before.p.shape[1:])
    bad = np.zeros(shape, np.bool_) if wrong is None else np.broadcast_to(wrong, tried.p.shape).reshape(shape)
    at = np.where(bad.all(1), times - 1, (~bad).argmax(1))[:, None]
    p = np.take_along_axis(tried.p.reshape(shape), at, 1)[:, 0]
    return FieldValue(p, None if tried.q is None else np.take_along_axis(tried.q.reshape(shape), at, 1)[:, 0])
