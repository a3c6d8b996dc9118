"""A loop nest's frame: the slots its values live in, their primes and sizes, and the program evaluated in them.

Each axis is one slot, and a looped axis two: its tile and its iterations, so that a value inside of the loop carries
the iteration as one more array axis and an accumulator is a sum over it. Slots are bits of a mask. Each slot has a
prime of its own: a sum over a slot multiplies the normal form by it, which no coincidence of sizes can imitate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mugraph.ir.ops import ELEMENTWISE, LARGEST, LEAVES, REDUCING, Kind, Op
from mugraph.ir.program import TensorProgram
from mugraph.ops.functions.through_exp import CONSTANTS, SIGMOID, Applied, form
from mugraph.search.algebra.abstract import NF, Algebra
from mugraph.search.algebra.field import P, Q, Residues, inverse, last, later, oracle, power_of_omega, square_root
from mugraph.search.topologies.limits import NotSearchable
from mugraph.search.topologies.signs import Reals, draw, has_negative, real

_KINDS = frozenset({*LEAVES, *ELEMENTWISE, *REDUCING})
_SEEDS = 8
"""Draws tried before a program is given up because a denominator of it is always zero."""


@dataclass(slots=True, eq=False)
class Value:
    """A tensor-valued function of the inputs, on small arrays over the field.

    kind, fn, slots, inputs: one way to compute it (slots: those SUM, AMAX, DOT or ACCUM reduce, indices)
    mask:   slots it varies over
    after:  loops it has passed an accumulator of (their iteration slots)
    nf:     its abstract expression
    p, q:   its residues, one array axis per slot (size 1 where it does not vary); q only where an exp asks for it
    has_exp: an EXP is on the way to it (a function with an exponential in its form is none)
    real:   real numbers for the same arrays, only where a root asks for them
    is_leaf: a load, a constant or a mask, counted as no operator
    """

    kind: Kind
    fn: str
    slots: tuple[int, ...]
    inputs: tuple[Value, ...]
    mask: int
    after: int
    nf: NF
    p: Residues
    q: Residues | None = None
    has_exp: bool = False
    real: Reals | None = None

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
        self.values: dict[str, Value] = {}
        self._roots_are_checked = False  # the program's own are right as they are
        for seed in range(_SEEDS):
            values = self._run(seed)
            if values is not None:
                self.values = values
                break
        else:
            raise NotSearchable(f"'{program.name}' divides by a value that is zero for every input.")
        self._roots_are_checked = any(op.kind is Kind.SQRT for op in program.ops) and self._draw_reals()

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

    def evaluate(self, kind: Kind, fn: str, slots: tuple[int, ...], inputs: tuple[Value, ...]) -> Residues | None:
        """The operator on the residues mod P; None where it divides by zero, or would take the root of a negative."""
        a = inputs[0]
        if kind is Kind.SQRT and self._roots_are_checked and has_negative(self._real(a)):
            return None
        if kind is Kind.EXP:
            exponent = oracle(a.p, -1, Q) if self.algebra.has_exp(a.nf) else self._component_q(a)
            return None if exponent is None else power_of_omega(exponent)
        if kind is Kind.UNARY and self._has_form(fn, a):
            value = self._by_form(fn, a)
            return None if value is None else value.p
        return _apply(kind, fn, slots, a.p, inputs[1].p if len(inputs) > 1 else None, P)

    def _component_q(self, value: Value) -> Residues | None:
        """Residues mod Q, for a value with no exp in it."""
        if value.q is None:
            parts = [self._component_q(i) for i in value.inputs]
            if any(part is None for part in parts):
                return None
            first = parts[0]
            assert first is not None  # a leaf has its q from the start
            second = parts[1] if len(parts) > 1 else None
            if value.kind is Kind.UNARY and self._has_form(value.fn, value.inputs[0]):
                whole = self._by_form(value.fn, value.inputs[0])
                value.q = None if whole is None else self._component_q(whole)
            elif value.kind is Kind.UNARY:  # a function of the value, not of one of its components
                value.q = oracle(value.inputs[0].p, _salt(value.fn) + 1, Q)
            elif value.kind is Kind.MAX:  # one of the two values, as a whole
                assert second is not None
                value.q = np.where(later(value.inputs[0].p, value.inputs[1].p), first, second)
            elif is_largest(value.kind, value.fn):
                value.q = last(first, by=value.inputs[0].p, slots=value.slots)
            else:
                value.q = _apply(value.kind, value.fn, value.slots, first, second, Q)
        return value.q

    def _has_form(self, fn: str, argument: Value) -> bool:
        """As the algebra has it."""
        return fn in self.algebra.by_form and (fn != SIGMOID or not self.algebra.has_exp(argument.nf))

    def _by_form(self, fn: str, argument: Value) -> Value | None:
        """The function as what it is made of; None where that divides by zero."""

        def apply(kind: Kind, inputs: tuple[Value, ...], name: str) -> Value:
            p = self.evaluate(kind, name, (), inputs)
            if p is None:
                raise ZeroDivisionError
            nf = abstract(self.algebra, kind, name, 1, *(i.nf for i in inputs))
            return Value(kind, name, (), inputs, 0, 0, nf, p)

        try:
            return form(fn, argument, Applied(apply), self._constants.__getitem__)
        except ZeroDivisionError:
            return None

    def _draw_reals(self) -> bool:
        """Real numbers for the program's loads and constants; False where none suit its roots."""
        ops = self.program.ops
        slots = {op.name: self._slots(op) for op in ops if op.over}
        drawn = draw(ops, {name: value.p.shape for name, value in self.values.items()}, slots)
        for name, numbers in (drawn or {}).items():
            self.values[name].real = numbers
        return drawn is not None

    def _real(self, value: Value) -> Reals:
        if value.real is None:
            value.real = real(value.kind, value.fn, value.slots, [self._real(i) for i in value.inputs])
        return value.real

    def _run(self, seed: int) -> dict[str, Value] | None:
        """Every value of the program, whole; None where this seed's inputs divide by zero."""
        random = np.random.default_rng(seed)
        values: dict[str, Value] = {}
        constants: dict[float, tuple[int, int]] = {}
        self._constants: dict[float, Value] = {}
        for number in sorted(set[float]().union(*(CONSTANTS[fn] for fn in self.algebra.by_form))):
            pair = constants[number] = int(random.integers(2, P)), int(random.integers(2, Q))
            p, q = (np.full((1,) * self.rank, residue) for residue in pair)
            self._constants[number] = Value(Kind.CONST, "", (), (), 0, 0, self.algebra.atom(number), p, q)
        for op in self.program.ops:
            if op.kind in LEAVES:
                mask = self.mask(op.axes)
                shape = tuple(size if mask >> i & 1 else 1 for i, size in enumerate(self.sizes))
                if op.kind is Kind.CONST:  # equal constants are the same element, and nothing else is known of them
                    pair = constants.setdefault(op.value, (int(random.integers(2, P)), int(random.integers(2, Q))))
                    p, q = np.full(shape, pair[0]), np.full(shape, pair[1])
                else:  # a mask is like a tensor: what holds for any holds for ones and zeros
                    p, q = random.integers(1, P, shape), random.integers(1, Q, shape)
                values[op.name] = Value(op.kind, "", (), (), mask, 0, self._nf(op, []), p, q)
                continue
            inputs = tuple(values[i] for i in op.inputs)
            slots = self._slots(op)
            p = self.evaluate(op.kind, op.fn, slots, inputs)
            if p is None:
                return None
            mask = self.mask(op.axes)
            nf = self._nf(op, [i.nf for i in inputs])
            has_exp = op.kind is Kind.EXP or any(i.has_exp for i in inputs)
            values[op.name] = Value(op.kind, op.fn, slots, inputs, mask, 0, nf, p, None, has_exp)
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
        if op.kind is Kind.MASK:
            return algebra.atom((op.rows, op.columns, op.value))
        prime = 1
        for slot in self._slots(op):
            if whole or slot < len(self.axes):
                prime *= self.primes[slot]
        return abstract(algebra, op.kind, op.fn, prime, *inputs)

    def _reductions(self) -> tuple[Reduction, ...]:
        """Single reduced axes, and the sets the program reduces at once."""
        sets = {op.over for op in self.program.ops if op.over}
        sets |= {(axis,) for axes in sets for axis in axes}
        found: list[Reduction] = []
        for axes in sorted(sets, key=lambda axes: (len(axes), axes)):
            slots = tuple(self.tile_slot[axis] for axis in axes)
            prime = 1
            for slot in slots:
                prime *= self.primes[slot]
            found.append(Reduction(axes, sum(1 << slot for slot in slots), slots, prime))
        return tuple(found)


def abstract(algebra: Algebra, kind: Kind, fn: str, prime: int, a: NF, b: NF = 0) -> NF:
    """Mirage's Table 1: the abstract expression of one operator. prime: of the parts SUM, AMAX, DOT or ACCUM reduce."""
    match kind:
        case Kind.ADD:
            return algebra.add(a, b)
        case Kind.MUL:
            return algebra.mul(a, b)
        case Kind.DIV:
            return algebra.div(a, b)
        case Kind.SQRT:
            return algebra.sqrt(a)
        case Kind.EXP:
            return algebra.exp(a)
        case Kind.UNARY:
            return algebra.unary(fn, a)
        case Kind.MAX:
            return algebra.maximum(a, b)
        case Kind.AMAX | Kind.ACCUM if is_largest(kind, fn):
            return algebra.amax(prime, a)
        case Kind.SUM | Kind.ACCUM:
            return algebra.sum(prime, a)
        case Kind.DOT:
            return algebra.sum(prime, algebra.mul(a, b))
        case _:
            raise ValueError(f"no abstract expression for {kind}")


def is_largest(kind: Kind, fn: str) -> bool:
    """Does the operator keep the largest of what it reduces?"""
    return kind is Kind.AMAX or (kind is Kind.ACCUM and fn == LARGEST)


def check(program: TensorProgram) -> None:
    """Raises NotSearchable, with one sentence, for programs the search does not cover."""
    if len(program.outputs) != 1:
        raise NotSearchable(f"'{program.name}' has {len(program.outputs)} outputs; the search covers one.")
    for op in program.ops:
        if op.kind not in _KINDS:
            raise NotSearchable(f"'{program.name}' uses '{op.kind}', which the search does not cover.")
        if op.over and not any(set(op.over) <= set(program.op(i).axes) for i in op.inputs):
            raise NotSearchable(f"'{op.name}' reduces {', '.join(op.over)}, which no operand of it has.")
    (output,) = program.outputs
    if program.op(output).kind in LEAVES:
        raise NotSearchable(f"'{program.name}' returns '{output}' as it is: there is nothing to search.")


def _apply(
    kind: Kind, fn: str, slots: tuple[int, ...], a: Residues, b: Residues | None, modulus: int
) -> Residues | None:
    match kind:
        case Kind.AMAX | Kind.ACCUM if is_largest(kind, fn):
            return last(a, by=a, slots=slots)
        case Kind.SUM | Kind.ACCUM:
            return a.sum(axis=slots, keepdims=True) % modulus
        case Kind.SQRT:
            return square_root(a, modulus)
        case Kind.UNARY:
            return oracle(a, _salt(fn), modulus)
        case _:
            assert b is not None
    match kind:
        case Kind.ADD:
            return (a + b) % modulus
        case Kind.MUL:
            return a * b % modulus
        case Kind.MAX:
            return np.where(later(a, b), a, b)
        case Kind.DIV:
            reciprocal = inverse(b, modulus)
            return None if reciprocal is None else a * reciprocal % modulus
        case Kind.DOT:
            return (a * b % modulus).sum(axis=slots, keepdims=True) % modulus
        case _:
            raise ValueError(f"no field semantics for {kind}")


def _salt(fn: str) -> int:
    return int.from_bytes(fn.encode()) * 2 + 1


def _primes() -> Iterator[int]:
    """2, 3, 5, ..."""
    return (n for n in itertools.count(2) if all(n % d for d in range(2, n)))
