"""A loop nest's frame: the slots its values live in, their primes and sizes, and the program evaluated in them.

Each axis is one slot, and a looped axis two: its tile and its iterations, so that a value inside of the loop carries
the iteration as one more array axis and an accumulator is a sum over it. Slots are bits of a mask. Each slot has a
prime of its own: a sum over a slot multiplies the normal form by it, which no coincidence of sizes can imitate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mugraph.ir.ops import Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.kinds import Role
from mugraph.ops.functions.through_exp import CONSTANTS
from mugraph.search.algebra.abstract import NF, Algebra
from mugraph.search.algebra.expressions import Expressions
from mugraph.search.algebra.field import P, Q, Residues
from mugraph.search.topologies.limits import NotSearchable
from mugraph.search.topologies.residues import Evaluation, Number, Undefined
from mugraph.search.topologies.signs import draw

_ROLES = frozenset({Role.LEAF, Role.ELEMENTWISE, Role.REDUCING, Role.SCANNING})
_SEEDS = 8
"""Draws tried before a program is given up because a denominator of it is always zero."""


@dataclass(slots=True, eq=False)
class Value:
    """A tensor-valued function of the inputs, on small arrays over the field.

    kind, fn, slots, inputs: one way to compute it (slots: those SUM, AMAX, DOT or ACCUM reduce, indices)
    mask:   slots it varies over
    after:  loops it has passed an accumulator of (their iteration slots)
    nf:     its abstract expression
    number: its residues, one array axis per slot (size 1 where it does not vary)
    has_exp: an EXP is on the way to it (a function with an exponential in its form is none)
    is_leaf: a load, a constant, a mask or a position, counted as no operator
    """

    kind: Kind
    fn: str
    slots: tuple[int, ...]
    inputs: tuple[Value, ...]
    mask: int
    after: int
    nf: NF
    number: Number
    has_exp: bool = False

    @property
    def p(self) -> Residues:
        """Its residues mod P, by which values are told apart."""
        return self.number.p

    @property
    def is_leaf(self) -> bool:
        return not self.inputs


@dataclass(frozen=True, slots=True)
class Reduction:
    """A set of axes one SUM, AMAX or DOT may reduce. mask, slots: their tiles; prime: product of the tiles' primes."""

    axes: tuple[str, ...]
    mask: int
    slots: tuple[int, ...]
    prime: int


@dataclass(frozen=True, slots=True)
class Running:
    """A running sum that the program has, along a whole axis.

    mask, slots: the axis's. prime: product of their primes
    """

    kind: Kind
    axes: tuple[str, ...]
    mask: int
    slots: tuple[int, ...]
    prime: int


class Frame:
    """The slots for one set of loops, and what the program computes in them."""

    def __init__(self, program: TensorProgram, loops: tuple[str, ...], algebra: Algebra) -> None:
        """loops: axes that are looped over. Raises NotSearchable where the program has no value in the field."""
        check(program)
        self.program, self.loops, self.algebra = program, loops, algebra
        self.axes = tuple(sorted(program.sizes))
        self.tile_slot = {axis: i for i, axis in enumerate(self.axes)}
        self.loop_slot = {axis: len(self.axes) + i for i, axis in enumerate(loops)}
        self.rank = len(self.axes) + len(loops)
        self.tile_bits = (1 << len(self.axes)) - 1
        self.loop_bits = ((1 << self.rank) - 1) & ~self.tile_bits
        # Unequal neighbours, every part at least 2: an axis of size 1 would let wrong graphs through.
        self.sizes = tuple(2 + (i % 2) for i in range(len(self.axes))) + tuple(2 for _ in loops)
        self.primes = tuple(itertools.islice(_primes(), self.rank))
        self.reductions = self._reductions()
        self.running = self._running()
        self.expressions = Expressions(algebra)
        self.values: dict[str, Value] = {}
        for seed in range(_SEEDS):
            values = self._run(seed)
            if values is not None:
                self.values = values
                break
        else:
            raise NotSearchable(f"'{program.name}' divides by a value that is zero for every input.")
        # The program's own roots are right as they are.
        has_roots = any("sqrt" in op.kind.primitives for op in program.ops)
        self._evaluation.roots_are_checked = has_roots and self._draw_reals()

    def mask(self, axes: tuple[str, ...]) -> int:
        """Slots of whole axes: the tile, and the iterations where the axis is looped."""
        bits = 0
        for axis in axes:
            bits |= 1 << self.tile_slot[axis]
            if axis in self.loop_slot:
                bits |= 1 << self.loop_slot[axis]
        return bits

    def axes_of(self, mask: int) -> tuple[str, ...]:
        """Axes whose tiles are in the mask, sorted."""
        return tuple(axis for i, axis in enumerate(self.axes) if mask >> i & 1)

    def loops_of(self, mask: int) -> tuple[str, ...]:
        """Loops whose iteration slots are in the mask."""
        return tuple(axis for axis, slot in self.loop_slot.items() if mask >> slot & 1)

    def landmarks(self) -> set[NF]:
        """Abstract expressions on the way from the inputs to the outputs: the program's own values', for the whole
        axes and for one iteration's share of them, each also without its denominators (a linear operator can be moved
        before a division). They order the search, they restrict nothing."""
        marks = {value.nf for value in self.values.values()}
        shares: dict[str, NF] = {}
        for op in self.program.ops:
            shares[op.name] = self._nf(op, [shares[i] for i in op.inputs], whole=False)
        marks |= set(shares.values())
        return marks | {self.algebra.numerator(mark) for mark in marks}

    # ------------------------------------------------------------------ evaluating

    def evaluate(self, kind: Kind, fn: str, slots: tuple[int, ...], inputs: Sequence[Value]) -> Number | None:
        """The operator over the field; None where it divides by zero, or would take the root of a negative."""
        try:
            return kind.meaning(self._evaluation, [value.number for value in inputs], fn, slots)
        except Undefined:
            return None

    def _draw_reals(self) -> bool:
        """Real numbers for the program's loads and constants; False where none suit its roots."""
        ops = self.program.ops
        slots = {op.name: self._slots(op) for op in ops if op.over}
        drawn = draw(ops, {name: value.p.shape for name, value in self.values.items()}, slots)
        for name, numbers in (drawn or {}).items():
            self.values[name].number.real = numbers
        return drawn is not None

    def _run(self, seed: int) -> dict[str, Value] | None:
        """Every value of the program, whole; None where this seed's inputs divide by zero."""
        random = np.random.default_rng(seed)
        values: dict[str, Value] = {}
        self._evaluation = Evaluation(self.algebra.by_form, random, self.rank)
        for constant in sorted(set[float]().union(*(CONSTANTS[fn] for fn in self.algebra.by_form))):
            self._evaluation.constant(constant)
        for op in self.program.ops:
            if op.kind.is_leaf:
                mask = self.mask(op.axes)
                if op.kind is Kind.CONST:
                    number = self._evaluation.constant(op.value)
                else:  # a mask or a position is like a tensor: what holds for any holds for these numbers
                    shape = tuple(size if mask >> i & 1 else 1 for i, size in enumerate(self.sizes))
                    number = Number(random.integers(1, P, shape), q=random.integers(1, Q, shape))
                values[op.name] = Value(op.kind, "", (), (), mask, 0, self._nf(op, []), number)
                continue
            inputs = tuple(values[i] for i in op.inputs)
            slots = self._slots(op)
            number = self.evaluate(op.kind, op.fn, slots, inputs)
            if number is None:
                return None
            mask = self.mask(op.axes)
            nf = self._nf(op, [i.nf for i in inputs])
            has_exp = "exp" in op.kind.primitives or any(i.has_exp for i in inputs)
            values[op.name] = Value(op.kind, op.fn, slots, inputs, mask, 0, nf, number, has_exp)
        return values

    def _slots(self, op: Op) -> tuple[int, ...]:
        return tuple(i for i in range(self.rank) if self.mask(op.over) >> i & 1)

    def _nf(self, op: Op, inputs: list[NF], whole: bool = True) -> NF:
        """The abstract expression of a program's operator; whole=False: of its tiles' share of reduced axes."""
        algebra = self.algebra
        if op.kind is Kind.LOAD:
            return algebra.atom(op.tensor)
        if op.kind is Kind.CONST:
            return algebra.atom(op.value)
        if op.kind.of_places:
            return algebra.atom((op.kind.name, op.rows, op.columns, op.value))
        prime = 1
        for slot in self._slots(op):
            if whole or op.kind.scans or slot < len(self.axes):
                prime *= self.primes[slot]
        return op.kind.meaning(self.expressions, inputs, op.fn, prime)

    def _running(self) -> tuple[Running, ...]:
        found: dict[tuple[Kind, tuple[str, ...]], Running] = {}
        for op in self.program.ops:
            if op.kind.scans:
                slots = self._slots(op)
                prime = prod(self.primes[slot] for slot in slots)
                found[op.kind, op.over] = Running(op.kind, op.over, self.mask(op.over), slots, prime)
        return tuple(found.values())

    def _reductions(self) -> tuple[Reduction, ...]:
        """Single reduced axes, and the sets the program reduces at once."""
        sets = {op.over for op in self.program.ops if op.kind.reduces}
        sets |= {(axis,) for axes in sets for axis in axes}
        found: list[Reduction] = []
        for axes in sorted(sets, key=lambda axes: (len(axes), axes)):
            slots = tuple(self.tile_slot[axis] for axis in axes)
            prime = 1
            for slot in slots:
                prime *= self.primes[slot]
            found.append(Reduction(axes, sum(1 << slot for slot in slots), slots, prime))
        return tuple(found)


def check(program: TensorProgram) -> None:
    """Raises NotSearchable, with one sentence, for programs the search does not cover."""
    if len(program.outputs) != 1:
        raise NotSearchable(f"'{program.name}' has {len(program.outputs)} outputs; the search covers one.")
    check_operators(program)


def check_operators(program: TensorProgram) -> None:
    """As `check`, of a program with any outputs."""
    for op in program.ops:
        if op.kind.role not in _ROLES:
            raise NotSearchable(f"'{program.name}' uses '{op.kind}', which the search does not cover.")
        if op.over and not any(set(op.over) <= set(program.op(i).axes) for i in op.inputs):
            raise NotSearchable(f"'{op.name}' reduces {', '.join(op.over)}, which no operand of it has.")
    for output in program.outputs:
        if program.op(output).kind.is_leaf and not program.is_copy:
            raise NotSearchable(f"'{program.name}' returns '{output}' as it is: there is nothing to search.")


def _primes() -> Iterator[int]:
    """2, 3, 5, ..."""
    return (n for n in itertools.count(2) if all(n % d for d in range(2, n)))
